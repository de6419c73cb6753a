"""``phaze compare``: chips side by side, under the experts' split and under the best one."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering
from phaze.cli.search import Model, Settings, Study, settled

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.hardware.chip import Chip
    from phaze.search.task import Job

Chips = Annotated[list[str] | None, typer.Option("--chip", help="A chip by name or path; may be given again.")]
Runs = Annotated[list[str] | None, typer.Option("--run", help="The folder of a search: its chip joins the table.")]


def _found_chip(folder: str) -> "Chip":
    """The chip that a search found."""
    from phaze.search.chips import open_space
    from phaze.search.folder import RESULT, STUDY
    from phaze.study.load import read_study, space_of, study_of

    raw, where = read_study(str(Path(folder) / STUDY))
    said = json.loads((Path(folder) / RESULT).read_text(encoding="utf-8"))["chip"]
    return open_space(space_of(study_of(raw, where))).chip(int(said["number"]), int(said["hbm_bytes"]))


def _experts(job: "Job") -> dict[str, tuple[int, int, int]]:
    from phaze.graph.zoo import ZOO

    found = {task.name: ZOO[task.name].experts for task in job.models if task.name in ZOO}
    return {name: split for name, split in found.items() if split is not None}


@answering
def compare(
    study: Study = None, model: Model = None, chip: Chips = None, run: Runs = None, settings: Settings = None
) -> Answer:
    """Compare chips: throughput of every model, and its ratio to the study's baseline chip.

    Example: phaze compare --model bert-large --run runs/bert-large --chip tpu-v4
    """
    from phaze.hardware.library import load_chip
    from phaze.search.compare import compare as compare_chips
    from phaze.search.compare import compare_document
    from phaze.study.load import job_of, study_of

    raw, where = settled(study, model, settings or [])
    job = job_of(study_of(raw, where))
    base = load_chip(job.objective.baseline)
    chips = [base, *(load_chip(name) for name in chip or []), *(_found_chip(folder) for folder in run or [])]
    rows = compare_chips(job, chips, _experts(job))

    def show(console: "Console") -> None:
        from phaze.report.terminal import table

        cells = [
            (
                row.model,
                row.chip,
                row.placement,
                "nothing fits" if row.throughput_per_s is None else f"{row.throughput_per_s:,.4g}",
                "" if row.ratio is None else f"{row.ratio:.2f} x",
                "" if row.pipeline is None else f"{row.pipeline} x {row.data} x {row.tensor}",
            )
            for row in rows
        ]
        heads = ("model", "chip", "placement", "sequences/s", "ratio", "p x d x t")
        console.print(table(heads, cells, left=3))

    return Answer((compare_document(rows, base.name),), show)
