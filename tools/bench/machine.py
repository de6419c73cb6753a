"""The machine that times were measured on, as far as the system tells."""

import os
import platform
import sys
from pathlib import Path
from typing import Any


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _load() -> float | None:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def machine() -> dict[str, Any]:
    """Processor, cores, system, Python, and how busy it is just now: the load of the last
    minute."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        "load": _load(),
    }
