"""``phaze kernels``: compile and cache every numba kernel, so that a first command compiles nothing."""

import importlib
import pkgutil
import time
from typing import TYPE_CHECKING

import phaze
from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress


NOT_COMPILED = ("phaze.cli", "phaze.check")


def kernel_modules() -> list[str]:
    """The modules that hold kernels: by convention those named ``kernels`` in any room but this one and the checker,
    which compiles nothing."""
    found = pkgutil.walk_packages(phaze.__path__, "phaze.", onerror=lambda _: None)
    return sorted(m.name for m in found if m.name.endswith(".kernels") and not m.name.startswith(NOT_COMPILED))


@answering
def kernels(*, progress: "Progress") -> Answer:
    """Compile and cache the kernels (make setup does this)."""
    start = time.perf_counter()
    names = kernel_modules()
    for done, name in enumerate(names):
        progress.count(done, len(names), f"compiling {name}")
        importlib.import_module(name).warm()
    seconds = time.perf_counter() - start

    def show(console: "Console") -> None:
        console.print(f"{len(names)} kernel files compiled and cached in {seconds:.1f} s")

    return Answer(({"kernels": names, "seconds": round(seconds, 3)},), show)
