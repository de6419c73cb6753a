"""Compiled kernels that an older version of the sources left behind.

numba looks at the time of a kernel's own file only; what it kept may still name a class of another
file that has been renamed since, and reading it then fails. Such caches are removed, and the next
command compiles them anew.
"""

from contextlib import suppress
from pathlib import Path
from traceback import walk_tb

SUFFIXES = (".nbi", ".nbc")


def is_stale(fault: BaseException) -> bool:
    """Whether a fault arose while numba read a cache that names what no longer exists."""
    if not isinstance(fault, AttributeError | ImportError):
        return False
    files = [Path(frame.f_code.co_filename) for frame, _ in walk_tb(fault.__traceback__)]
    return any(path.name == "caching.py" and "numba" in path.parts for path in files)


def remove_caches(package: Path) -> int:
    """Remove every compiled kernel below a folder; how many files went."""
    caches = [path for path in package.rglob("__pycache__/*") if path.suffix in SUFFIXES]
    removed = 0
    for path in caches:
        with suppress(OSError):
            path.unlink()
            removed += 1
    return removed
