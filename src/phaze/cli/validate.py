"""``phaze validate``: our models against what is published of real hardware."""

from typing import Annotated

import typer

from phaze.api import tables
from phaze.cli.answer import asking
from phaze.cli.search import AllowCode

Silicon = Annotated[bool, typer.Option("--silicon", help="Area, power and sustained rates against published chips.")]
Operators = Annotated[
    bool, typer.Option("--operators", help="Operators, collectives and layers against measured ones.")
]
Rediscovery = Annotated[
    bool, typer.Option("--rediscovery", help="The best chip within a real one's area and power, against it.")
]
Rows = Annotated[str | None, typer.Argument(help="A CSV file of measured runs; default: the bundled ones.")]
Datasheet = Annotated[bool, typer.Option("--datasheet", help="Chips and links from their data sheets, uncalibrated.")]
Only = Annotated[list[str] | None, typer.Option("--set", help="Only this set of runs; repeatable.")]
Best = Annotated[bool, typer.Option("--best", help="The best plan for each job against the one that was run.")]
Every = Annotated[bool, typer.Option("--rows", help="Show every run.")]


@asking(tables.validate)
def validate(
    rows: Rows, silicon: Silicon, operators: Operators, datasheet: Datasheet, sets: Only, every: Every, best: Best,
    rediscovery: Rediscovery, allow_code: AllowCode,
) -> None:  # fmt: skip
    """Compare estimates with published figures: whole training runs, operators, or silicon.

    Examples: phaze validate · phaze validate --set sc21 --rows · phaze validate my_runs.csv · phaze validate --best
    """
