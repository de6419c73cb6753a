"""``python -m phaze.compiled.build``: compile every kernel ahead of time into the library that is shipped.

Two steps, each a process:

1. the types: every file of kernels is warmed up as at set-up, and what its functions were called with is written down;
2. the code: numba's ahead-of-time compiler for a generic CPU of this architecture, without numba's cache (what lies
   there has no code that could be linked), with the C compiler that Python was built with.

The bytes depend on the sources, on the versions of Python, numba, llvmlite and numpy, and on the C compiler;
``library.json`` names all of them.
"""

import importlib
import json
import os
import platform
import subprocess
import sys
import tempfile
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from pathlib import Path
from typing import Any

from phaze.compiled.kernel import Kernel
from phaze.compiled.library import DESCRIPTION, FOLDER, MODULE, PACKAGE, digest, symbol_of
from phaze.compiled.sources import kernel_files, sources_of, warming_modules
from phaze.errors import PhazeError
from phaze.files import write_whole

# What the bytes of the library depend on, beside the sources and Python.
TOOLS = ("numba", "llvmlite", "numpy")


def kernels() -> dict[str, dict[str, Kernel]]:
    """Every compiled function by module and name."""
    modules = {name: importlib.import_module(name) for name in kernel_files()}
    return {
        name: {n: k for n, k in sorted(vars(m).items()) if isinstance(k, Kernel) and k.__module__ == name}
        for name, m in modules.items()
    }


def called_types() -> dict[str, dict[str, list[Any]]]:
    """The types that functions are called with from Python, by module and name; each has exactly one signature."""
    typeof = importlib.import_module("numba").typeof

    found: dict[str, dict[str, list[Any]]] = {}

    def observer(module: str, name: str, arguments: tuple[Any, ...]) -> None:
        types = [_declared(typeof(value)) for value in arguments]
        if found.setdefault(module, {}).setdefault(name, types) != types:
            raise PhazeError(f"{module}.{name} is called with more than one signature; the library holds one of each")

    for module, functions in kernels().items():
        for name, kernel in functions.items():
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


def compile_library(types_of: dict[str, dict[str, list[Any]]], folder: Path) -> Path:
    """The second step: the extension module, in a folder."""
    pycc = importlib.import_module("numba.pycc")
    compiler = importlib.import_module("numba.pycc.compiler")
    ordinary = compiler.Flags

    options = importlib.import_module("numba.core.registry").cpu_target.options

    def flags() -> Any:
        """What numba sets for a function that is compiled when it is called, other threads running meanwhile."""
        found = ordinary()
        options.parse_as_flags(found, {"nopython": True, "nogil": True})
        return found

    vars(compiler)["Flags"] = flags
    module = pycc.CC(MODULE, source_module="phaze.compiled.library")
    module.output_dir = str(folder)
    # Names of functions count up in the order of compiling; nobody needs them, and without them builds are comparable.
    module._extra_ldflags = {sys.platform: ["-Wl,--strip-all", "-Wl,--build-id=none"]}
    every = kernels()
    for name, functions in types_of.items():
        for function, types in functions.items():
            kernel = every[name][function]
            arguments = tuple(_numba_type(kind) for kind in types)
            module.export(symbol_of(name, function), arguments)(kernel.py_func)
    module.compile()
    return folder / f"{MODULE}{EXTENSION_SUFFIXES[0]}"


def describe(types_of: dict[str, dict[str, list[Any]]], built: Path) -> dict[str, Any]:
    """``library.json``."""
    sources = {name: sources_of(name) for name in kernel_files()}
    return {
        "file": built.name,
        "sha256": digest(built),
        "built_with": {
            "python": platform.python_version(),
            "machine": platform.machine(),
            **{tool: version(tool) for tool in TOOLS},
        },
        "sources": {path: digest(PACKAGE / path) for path in sorted({p for found in sources.values() for p in found})},
        "modules": {name: {"sources": found, "functions": types_of.get(name, {})} for name, found in sources.items()},
    }


def rebuild() -> Path:
    """Both steps; the library lies in the package afterwards."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        types_of = called_types()
        asked = folder / "types.json"
        write_whole(asked, json.dumps(types_of))
        environment = {
            **os.environ,
            "NUMBA_CPU_NAME": "generic",
            "NUMBA_CPU_FEATURES": "",
            "NUMBA_CACHE_DIR": str(folder / "cache"),
            "PYTHONHASHSEED": "0",
            "PYTHONWARNINGS": "ignore",
        }
        subprocess.run(
            [sys.executable, "-m", "phaze.compiled.build", str(asked)],
            check=True,
            env=environment,
        )
        built = folder / f"{MODULE}{EXTENSION_SUFFIXES[0]}"
        FOLDER.mkdir(exist_ok=True)
        target = FOLDER / built.name
        write_whole(target, built.read_bytes())
    write_whole(DESCRIPTION, json.dumps(describe(types_of, target), indent=1) + "\n")
    return target


def main() -> None:
    """Without an argument the whole; with the file of types the second step alone."""
    if len(sys.argv) == 1:
        rebuild()
        return
    path = Path(sys.argv[1])
    types_of = json.loads(path.read_text(encoding="utf-8"))
    for functions in kernels().values():
        for kernel in functions.values():
            kernel.leave_library()
    compile_library(types_of, path.parent)


if __name__ == "__main__":
    main()
