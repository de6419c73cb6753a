"""Compile kernels ahead of time into the libraries that are shipped, one for each room.

Only rooms whose sources changed are compiled. Two steps, the second a process for each room:

1. the types: every file of kernels is warmed up as at set-up, and what its functions were called
   with is written down;
2. the code: numba's ahead-of-time compiler for a generic CPU of this architecture, without numba's
   cache (what lies there has no code that could be linked), with the C compiler that Python was
   built with.

The bytes are the same every time: they depend on the sources, on the versions of Python, numba,
llvmlite and numpy (``library.json`` names them), and on the C compiler.
"""

import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Collection
from functools import partial
from hashlib import sha256
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

from phaze.compiled.kernel import CompiledKernel
from phaze.compiled.library import (
    DESCRIPTION,
    FOLDER,
    PACKAGE,
    PREFIX,
    description,
    digest,
    room_of,
    symbol_of,
)
from phaze.compiled.sources import kernel_files, sources_of, warming_modules
from phaze.errors import PhazeError
from phaze.files import write_whole

# What the bytes of the library depend on, beside the sources and Python.
TOOLS = ("numba", "llvmlite", "numpy")
ROOT = Path(__file__).parents[2]


def kernels() -> dict[str, dict[str, CompiledKernel]]:
    """Every compiled function by module and name."""
    modules = {name: importlib.import_module(name) for name in kernel_files()}
    return {
        name: {
            n: k
            for n, k in sorted(vars(m).items())
            if isinstance(k, CompiledKernel) and k.__module__ == name
        }
        for name, m in modules.items()
    }


def called_types(rooms: Collection[str]) -> dict[str, dict[str, list[Any]]]:
    """The types that functions of rooms are called with from Python, by module and name; each has
    one signature."""
    typeof = importlib.import_module("numba").typeof
    found: dict[str, dict[str, list[Any]]] = {}

    def observer(module: str, name: str, arguments: tuple[Any, ...]) -> None:
        types = [_declared(typeof(value)) for value in arguments]
        if found.setdefault(module, {}).setdefault(name, types) != types:
            raise PhazeError(
                f"{module}.{name} is called with more than one signature; the library "
                "holds one of each"
            )

    for module, functions in kernels().items():
        for name, kernel in functions.items() if room_of(module) in rooms else ():
            kernel.leave_library(partial(observer, module, name))
    for module in warming_modules():
        importlib.import_module(module).warm()
    return found


def _declared(kind: Any) -> list[Any]:
    """A numba type as :mod:`phaze.compiled.arguments` writes it."""
    types = importlib.import_module("numba.core.types")

    if isinstance(kind, types.Array):
        return ["array", str(kind.dtype), kind.ndim, kind.layout, kind.mutable]
    if isinstance(kind, types.BaseNamedTuple):
        own = kind.instance_class
        return ["named", own.__module__, own.__qualname__, *map(_declared, kind.types)]
    if isinstance(kind, types.BaseTuple):
        return ["tuple", *map(_declared, kind.types)]
    return [str(kind)]


def _numba_type(declared: list[Any]) -> Any:
    """The other way round."""
    types = importlib.import_module("numba.core.types")

    kind, *rest = declared
    if kind == "array":
        elements, axes, layout, writable = rest
        return types.Array(getattr(types, elements), axes, layout, readonly=not writable)
    if kind == "named":
        own = getattr(importlib.import_module(rest[0]), rest[1])
        return types.BaseTuple.from_types([_numba_type(part) for part in rest[2:]], own)
    if kind == "tuple":
        return types.BaseTuple.from_types([_numba_type(part) for part in rest])
    return getattr(types, "boolean" if kind == "bool" else kind)


def compile_library(room: str, types_of: dict[str, dict[str, list[Any]]], folder: Path) -> None:
    """The second step: the extension module of a room, in a folder."""
    pycc = importlib.import_module("numba.pycc")
    compiler = importlib.import_module("numba.pycc.compiler")
    new_flags, compile_extra = compiler.Flags, compiler.compile_extra
    options = importlib.import_module("numba.core.registry").cpu_target.options

    def flags() -> Any:
        """What numba sets for a function that is compiled when it is called, other threads running
        meanwhile."""
        found = new_flags()
        options.parse_as_flags(found, {"nopython": True, "nogil": True})
        return found

    def compiled(
        typing: Any,
        target: Any,
        function: Any,
        arguments: Any,
        result: Any,
        shared: Any,
        **more: Any,
    ) -> Any:
        """Each function with flags of its own: compiling one changes them, and the next would be
        typed otherwise."""
        return compile_extra(typing, target, function, arguments, result, shared.copy(), **more)

    vars(compiler).update(Flags=flags, compile_extra=compiled)
    # numba names an expression over arrays by the address of an object, hex(hash(...)): here they
    # are counted instead.
    counted = count()
    vars(importlib.import_module("numba.np.ufunc.array_exprs"))["hex"] = lambda _: hex(
        next(counted)
    )
    module = pycc.CC(f"{PREFIX}{room}", source_module="phaze.compiled.library")
    module.output_dir = str(folder)
    # Names of functions count up in the order of compiling; nobody needs them, and without them
    # builds are comparable.
    module._extra_ldflags = {sys.platform: ["-Wl,--strip-all", "-Wl,--build-id=none"]}
    every = kernels()
    for name, functions in types_of.items():
        for function, types in functions.items():
            kernel = every[name][function]
            arguments = tuple(_numba_type(kind) for kind in types)
            module.export(symbol_of(name, function), arguments)(kernel.py_func)
    module.compile()


def stale_rooms() -> list[str]:
    """Rooms whose library was built from other sources, by other versions, or not at all."""
    modules, now = description().get("modules", {}), versions()
    rooms = {
        room: description().get("rooms", {}).get(room, {}) for room in map(room_of, kernel_files())
    }
    changed = {
        room_of(name)
        for name in kernel_files()
        if modules.get(name, {}).get("sources") != hashes(name)
    }
    broken = {
        room for room, own in rooms.items() if own and digest(FOLDER / own["file"]) != own["sha256"]
    }
    return sorted(
        changed | broken | {room for room, own in rooms.items() if own.get("built_with") != now}
    )


def versions() -> dict[str, str]:
    """What a library was built with, beside its sources."""
    return {
        "python": ".".join(platform.python_version_tuple()[:2]),
        "machine": platform.machine(),
        **{tool: version(tool) for tool in TOOLS},
    }


def hashes(module: str) -> dict[str, str]:
    """The SHA-256 of every source of a file of kernels."""
    return {path: digest(PACKAGE / path) for path in sources_of(module)}


def _described(types_of: dict[str, dict[str, list[Any]]], built: dict[str, str]) -> dict[str, Any]:
    """``library.json``: what was built now, and else as it was; rooms without kernels are left
    out."""
    before = description()
    there = {room_of(name) for name in kernel_files()}
    rooms = {room: dict(own) for room, own in before.get("rooms", {}).items() if room in there}
    for room, content in built.items():
        rooms[room] = {
            "file": f"{PREFIX}{room}{EXTENSION_SUFFIXES[0]}",
            "sha256": content,
            "built_with": versions(),
        }
    modules = {}
    for name in kernel_files():
        known = before.get("modules", {}).get(name, {})
        own = (
            {"sources": hashes(name), "functions": types_of.get(name, {})}
            if room_of(name) in built
            else known
        )
        modules[name] = own
    return {"rooms": {room: rooms[room] for room in sorted(rooms)}, "modules": modules}


def compiled_room(room: str, types_of: dict[str, dict[str, list[Any]]], folder: Path) -> Path:
    """The library of a room, by a process of its own."""
    asked = folder / f"{room}.json"
    write_whole(
        asked, json.dumps({name: own for name, own in types_of.items() if room_of(name) == room})
    )
    environment = {
        **os.environ,
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore",
    }
    subprocess.run(
        [sys.executable, "-m", "tools.kernels.build", room, str(asked)],
        check=True,
        env=environment,
        cwd=ROOT,
    )
    return folder / f"{PREFIX}{room}{EXTENSION_SUFFIXES[0]}"


def rebuild(only: Collection[str] = ()) -> list[str]:
    """Compile the rooms that changed (or those of them that are named); which were."""
    rooms = [room for room in stale_rooms() if not only or room in only]
    types_of = called_types(rooms) if rooms else {}
    for room in rooms:
        with tempfile.TemporaryDirectory() as made:
            content = compiled_room(room, types_of, Path(made)).read_bytes()
        FOLDER.mkdir(exist_ok=True)
        write_whole(FOLDER / f"{PREFIX}{room}{EXTENSION_SUFFIXES[0]}", content)
        described = _described(types_of, {room: sha256(content).hexdigest()})
        write_whole(DESCRIPTION, json.dumps(described, separators=(",", ":")) + "\n")
        description.cache_clear()
    return rooms


def main() -> None:
    """The second step for a room, from the file of its types."""
    room, path = sys.argv[1], Path(sys.argv[2])
    types_of = json.loads(path.read_text(encoding="utf-8"))
    for functions in kernels().values():
        for kernel in functions.values():
            kernel.leave_library()
    compile_library(room, types_of, path.parent)


if __name__ == "__main__":
    main()
