"""``phaze kernels``: make every compiled function ready, so that a first command compiles nothing."""

import importlib
import time
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress


@answering
def kernels(
    *,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Compile the shipped libraries that are not current (needs a C compiler)."),
    ] = False,
    room: Annotated[list[str] | None, typer.Option("--room", help="With --rebuild: only this one, e.g. cost.")] = None,
    progress: "Progress",
) -> Answer:
    """Compile and cache the kernels that the shipped library does not have for this Python and machine.

    make setup does this. Example: phaze kernels
    """
    from phaze.compiled.library import library_serves
    from phaze.compiled.sources import kernel_files, warming_modules

    start = time.perf_counter()
    if rebuild:
        from phaze.compiled.build import rebuild as build

        progress.step("compiling libraries for a generic CPU")
        built = build(room or ())
        words = f"recompiled: {', '.join(built) or 'nothing, all are current'}"
        return Answer(({"rebuilt": built},), lambda console: console.print(words))
    files = kernel_files()
    missing = [name for name in files if not library_serves(name)]
    names = [name for name in warming_modules() if any(f.startswith(name.removesuffix("kernels")) for f in missing)]
    for done, name in enumerate(names):
        progress.count(done, len(names), f"compiling {name}")
        importlib.import_module(name).warm()
    seconds = time.perf_counter() - start

    def show(console: "Console") -> None:
        console.print(f"{len(files) - len(missing)} of {len(files)} kernel files run from the shipped library")
        if names:
            console.print(f"the kernels of {len(names)} packages compiled and cached in {seconds:.1f} s")

    document = {"kernels": names, "shipped": len(files) - len(missing), "seconds": round(seconds, 3)}
    return Answer((document,), show)
