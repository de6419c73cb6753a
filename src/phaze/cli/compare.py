"""``phaze compare``: chips side by side, under the experts' split and under the best one."""

from typing import Annotated

import typer

from phaze.api import along
from phaze.cli.answer import asking
from phaze.cli.search import AllowCode, Fresh, Model, Rules, Settings, Study

Chips = Annotated[list[str] | None, typer.Option("--chip", help="A chip by name or path; repeatable.")]
ChipRows = Annotated[
    str | None,
    typer.Option("--chips", help="A CSV of chips and plans: chip, changed keys, tensor, pipeline."),
]
Runs = Annotated[
    list[str] | None, typer.Option("--run", help="The folder of a search, whose chip is added; repeatable.")
]
Basis = Annotated[
    str, typer.Option("--basis", help="Constants of all chips: space, baseline, own, datasheet or ideal.")
]


@asking(along.compare)
def compare(
    study: Study, model: Model, chips: Chips, runs: Runs, rows: ChipRows, basis: Basis, rules: Rules,
    settings: Settings, fresh: Fresh, allow_code: AllowCode,
) -> None:  # fmt: skip
    """Compare chips: throughput of every model, and its ratio to the study's baseline chip.

    Without a study or --model that of the first --run is used. All chips have the same constants unless --basis is own.

    Examples: phaze compare --run runs/llama3-8b --chip h100 ·
    phaze compare --model bert-large --rules icml24 --chips rows.csv
    """
