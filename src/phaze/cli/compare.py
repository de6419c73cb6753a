"""``phaze compare``: chips side by side, under the experts' split and under the best one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering, identified
from phaze.cli.search import Fresh, Model, Rules, Settings, Study, ruled, settled

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress

Chips = Annotated[list[str] | None, typer.Option("--chip", help="A chip by name or path; may be given again.")]
ChipRows = Annotated[
    str | None,
    typer.Option("--chips", help="A CSV of chips and plans of others: chip, what is other in it, tensor, pipeline."),
]
Runs = Annotated[list[str] | None, typer.Option("--run", help="The folder of a search: its chip joins the table.")]
Basis = Annotated[
    str, typer.Option("--basis", help="Constants of all chips: space, baseline, own, datasheet or ideal.")
]


@answering
def compare(
    study: Study = None,
    model: Model = None,
    chip: Chips = None,
    run: Runs = None,
    chips: ChipRows = None,
    basis: Basis = "space",
    rules: Rules = None,
    settings: Settings = None,
    fresh: Fresh = False,
    *,
    progress: "Progress",
) -> Answer:
    """Compare chips: throughput of every model, and its ratio to the study's baseline chip.

    Without a study or --model the first --run's study counts. All chips have the same constants unless --basis is own.

    Examples: phaze compare --run runs/llama3-8b --chip h100 ·
    phaze compare --model bert-large --rules icml24 --chips rows.csv
    """
    from phaze.report.compare_sheet import show_comparison
    from phaze.search.question_files import STUDY
    from phaze.study.compared import compared

    if study is None and not model and run:
        study = str(Path(run[0]) / STUDY)
    raw, origin = settled(study, model, ruled(settings, rules), fresh, progress)
    progress.step("placing the models on each chip")
    document = compared(raw, origin, chip or [], run or [], basis, chips)

    def show(console: "Console") -> None:
        show_comparison(console, document)

    return identified(Answer((document,), show))
