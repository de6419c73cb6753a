"""``phaze kernels``: make every compiled function ready, so that a first command compiles
nothing."""

import importlib
import time
from typing import TYPE_CHECKING

from phaze.api.values import Answer, notes

if TYPE_CHECKING:
    from phaze.report.progress import Progress


def kernels(
    *,
    progress: "Progress",
) -> Answer:
    """Compile and cache the kernels that the shipped library does not have for this Python and
    machine.

    make setup does this. Example: phaze kernels
    """
    from phaze.compiled.library import library_serves
    from phaze.compiled.sources import kernel_files, warming_modules

    start = time.perf_counter()
    files = kernel_files()
    missing = [name for name in files if not library_serves(name)]
    names = [
        name
        for name in warming_modules()
        if any(f.startswith(name.removesuffix("kernels")) for f in missing)
    ]
    for done, name in enumerate(names):
        progress.count(done, len(names), f"compiling {name}")
        importlib.import_module(name).warm()
    seconds = time.perf_counter() - start

    lines = [
        f"{len(files) - len(missing)} of {len(files)} kernel files run from the shipped library"
    ]
    if names:
        lines.append(f"the kernels of {len(names)} packages compiled and cached in {seconds:.1f} s")
    document = {
        "kernels": names,
        "shipped": len(files) - len(missing),
        "seconds": round(seconds, 3),
    }
    return Answer(document, notes(*lines))
