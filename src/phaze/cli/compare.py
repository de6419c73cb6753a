"""``phaze compare``: chips side by side, under the experts' split and under the best one."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering
from phaze.cli.search import Fresh, Model, Settings, Study, settled

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.documents import Reader
    from phaze.hardware.chip import Chip
    from phaze.report.progress import Progress
    from phaze.search.candidates import Known
    from phaze.search.task import Job

Chips = Annotated[list[str] | None, typer.Option("--chip", help="A chip by name or path; may be given again.")]
Runs = Annotated[list[str] | None, typer.Option("--run", help="The folder of a search: its chip joins the table.")]
Basis = Annotated[
    str, typer.Option("--basis", help="Constants of all chips: space, baseline, own, datasheet or ideal.")
]


def _found_chip(folder: str) -> "Known":
    """The chip that a search found, on its own links where its space had them as an axis."""
    from phaze.errors import InputError
    from phaze.search.candidates import Known
    from phaze.search.chips import open_space
    from phaze.search.folder import RESULT
    from phaze.search.result_file import read_result
    from phaze.study.load import question_in

    space = question_in(Path(folder)).job.space
    opened, wanted = open_space(space), read_result(Path(folder))["chip"]
    if wanted["number"] >= len(opened):
        seen = f"its chip {wanted['number']:,} is none of the {len(opened):,} of its space"
        raise InputError(str(Path(folder) / RESULT), seen, "search again")
    return Known(opened.chip(wanted["number"], wanted["hbm_bytes"]), space.axes.links is not None)


def _own_chip(name: str, job: "Job") -> "Chip":
    """A chip by name or path, whose links do not contradict the cluster."""
    from phaze.hardware.library import load_chip, require_links

    chip = load_chip(name)
    if job.cluster is not None and job.space.axes.links is None:
        require_links(chip, name, job.cluster, "--chip")
    return chip


def _experts(job: "Job") -> dict[str, tuple[int, int, int]]:
    from phaze.graph.zoo import ZOO

    found = {task.name: ZOO[task.name].experts for task in job.models if task.name in ZOO}
    return {name: split for name, split in found.items() if split is not None}


@answering
def compare(
    study: Study = None,
    model: Model = None,
    chip: Chips = None,
    run: Runs = None,
    basis: Basis = "space",
    settings: Settings = None,
    fresh: Fresh = False,
    *,
    progress: "Progress",
) -> Answer:
    """Compare chips: throughput of every model, and its ratio to the study's baseline chip.

    Without a study or --model the first --run's study counts. All chips have the same constants unless --basis is own.

    Example: phaze compare --run runs/bert-large --chip tpu-v4
    """
    from phaze.files import read_text
    from phaze.hardware.library import load_chip
    from phaze.report.compare_sheet import show_comparison
    from phaze.search.candidates import Known, candidates_of, require_basis
    from phaze.search.compare import compare as compare_chips
    from phaze.search.compare import compare_document
    from phaze.search.papers import STUDY, reader_of
    from phaze.study.load import question_of, study_of, with_settings

    reader: Reader = read_text
    if study is None and not model and run:
        study, reader = str(Path(run[0]) / STUDY), reader_of(Path(run[0]))
    raw, where = settled(study, model, settings or [], fresh, progress)
    if basis in ("datasheet", "ideal") and raw.get("rules") == "cluster":
        raw = with_settings(raw, [f"cost.basis={basis}"])
    job = question_of(study_of(raw, where), reader=reader).job
    common = require_basis(job, basis)
    base = Known(job.baseline or load_chip(job.objective.baseline))
    others = [Known(_own_chip(name, job)) for name in chip or []] + [_found_chip(folder) for folder in run or []]
    progress.step("placing the models on each chip")
    rows = compare_chips(job, candidates_of(job, [base, *others], common), _experts(job))
    document = compare_document(job, rows, base.chip.name, common)

    def show(console: "Console") -> None:
        show_comparison(console, document)

    return Answer((document,), show)
