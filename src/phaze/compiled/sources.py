"""The files of kernels, and the sources that the code of each depends on."""

import ast
import pkgutil
from pathlib import Path

import phaze
from phaze.compiled.library import PACKAGE

# Rooms whose files named ``kernels`` hold no compiled functions: the command, and the checker,
# which compiles nothing.
NOT_COMPILED = ("phaze.cli", "phaze.check")


def _modules(suffix: str) -> list[str]:
    packages = pkgutil.walk_packages(phaze.__path__, "phaze.", onerror=lambda _: None)
    return sorted(
        m.name for m in packages if m.name.endswith(suffix) and not m.name.startswith(NOT_COMPILED)
    )


def kernel_files() -> list[str]:
    """The modules that hold compiled functions: by convention those whose name ends with
    ``kernels``; some of these only warm up the others of their room."""
    paths = {name: _path(name) for name in _modules("kernels")}
    return [
        name
        for name, path in paths.items()
        if path is not None and "@njit" in path.read_text(encoding="utf-8")
    ]


def warming_modules() -> list[str]:
    """The modules whose ``warm()`` calls every compiled function of their room: those named
    ``kernels``."""
    return _modules(".kernels")


def _path(module: str) -> Path | None:
    base = PACKAGE.joinpath(*module.split(".")[1:])
    return next(
        (path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None
    )


def _imported(path: Path) -> set[str]:
    """What a file imports of phaze when it is loaded: compiled code may have any constant or class
    of it inside."""
    names = set[str]()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("phaze."):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                names.add(inner if _path(inner) else node.module or "")
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.startswith("phaze.")}
    return names - {"phaze.compiled"}


def sources_of(module: str) -> list[str]:
    """The files, below the package's folder, that the code of a module was compiled from."""
    seen, waiting = set[Path](), [module]
    while waiting:
        path = _path(waiting.pop())
        if path is not None and path not in seen:
            seen.add(path)
            waiting.extend(_imported(path))
    return sorted(path.relative_to(PACKAGE).as_posix() for path in seen)
