"""Peak memory of a function: how far the resident set of the process grows above what it held
before.

Linux only: the high-water mark of the resident set is set back (``/proc/self/clear_refs``) and read
afterwards. Elsewhere, or where the system does not allow that, there is no figure. Memory that an
earlier function has freed but that the allocator has kept is handed back first, so that a function
that uses it again is charged for it.
"""

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
RESET, STATUS = Path("/proc/self/clear_refs"), Path("/proc/self/status")
SET_BACK = "5"
"""What the kernel takes for: set the high-water mark back to the resident set of now."""


def _bytes(field: str) -> int:
    for line in STATUS.read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no {field}")


def _give_back() -> None:
    """Free memory of Python and of the C library to the system, as far as both can."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def grown(run: Callable[[], T]) -> tuple[T, int | None]:
    """What ``run`` returns, and max(resident set during it) - resident set before it, in bytes."""
    try:
        _give_back()
        before = _bytes("VmRSS")
        RESET.write_text(SET_BACK, encoding="ascii")
    except OSError:
        return run(), None
    found = run()
    return found, max(0, _bytes("VmHWM") - before)
