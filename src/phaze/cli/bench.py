"""``phaze bench``: how fast we are beside published figures and installed peers, on this machine."""

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

Parts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[placement|schedule|cost|search]...", help="What to measure; default: all."),
]
Limit = Annotated[float, typer.Option("--limit", help="Time limit in seconds of another solver on one schedule.")]


@answering
def bench(parts: Parts = None, limit: Limit = 5.0) -> Answer:
    """Measure placement, schedule, cost and search against published figures and other tools, on the same inputs.

    About two minutes on an idle machine; the extra `peers` installs the other tools. Examples: phaze bench ·
    phaze bench placement · phaze bench schedule --limit 60
    """
    from phaze.bench.line import PARTS
    from phaze.bench.run import run
    from phaze.errors import InputError, unknown_name

    for part in parts or ():
        if part not in PARTS:
            raise unknown_name("", "part", part, PARTS)
    if not 0 < limit <= 3600:
        raise InputError("--limit", f"{limit:g} s is out of range", "give more than 0 and at most 3600 seconds")
    document = run(parts or PARTS, limit, lambda part: sys.stderr.write(f"phaze: measuring {part}\n"))

    def show(console: "Console") -> None:
        from phaze.report.bench_sheet import show_bench

        show_bench(console, document)

    return Answer((document,), show, 0 if document["agree"] else 1)
