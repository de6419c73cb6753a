"""``phaze front``: every design that none beats in all of two or three metrics, with a certificate."""

import os
import sys
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering
from phaze.cli.search import Fresh, Model, Settings, Study, Time, settled

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.front.run import Progress

Of = Annotated[str, typer.Option("--of", help="Two or three metrics: throughput,area,power")]
Within = Annotated[
    list[str] | None, typer.Option("--within", help="metric=number: at most so much; throughput: at least.")
]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the front; runs/<name>-front if not given.")]
Gap = Annotated[float, typer.Option("--gap", help="How near the proof must come in metrics of a run; 0 is exact.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes; 0 takes one for each core.")]


def _tell(progress: "Progress") -> None:
    if sys.stderr.isatty():
        said = f"opened {progress.opened:,}; with a chance {progress.left:,}; designs {progress.designs:,}"
        sys.stderr.write(f"\r\x1b[2K{said}" + ("" if progress.left else "\n"))
        sys.stderr.flush()


@answering
def front(
    of: Of,
    study: Study = None,
    model: Model = None,
    within: Within = None,
    out: Out = None,
    gap: Gap = 0.0,
    time: Time = None,
    workers: Workers = 0,
    settings: Settings = None,
    fresh: Fresh = False,
) -> Answer:
    """Find every design that no other one beats in all of two or three metrics, with a certificate for each.

    Metrics: throughput, area, power, price and embodied (making a chip), energy, cost and carbon (of a batch). A front
    that was stopped goes on with the same command. Examples: phaze front --model bert-large --of throughput,area ·
    phaze front study.toml --of throughput,carbon,price --within power=300
    """
    began = monotonic()
    from phaze.files import write_whole
    from phaze.front.folder import PAGE, front_in
    from phaze.front.metrics import asked_of
    from phaze.front.sheet import show_front
    from phaze.hardware.write import toml_text
    from phaze.report.front_page import front_page
    from phaze.search.deadline import left_of
    from phaze.study.load import question_of, study_of

    raw, where = settled(study, model, [*(settings or []), f"search.gap={gap!r}"], fresh)
    checked = study_of(raw, where)
    asked = asked_of(of, within or [])
    folder = Path(out) if out is not None else Path("runs") / f"{checked.name}-front"
    question = question_of(checked).fronted(asked.document())
    papers, processes = question.papers(toml_text(raw)), workers or os.cpu_count() or 1
    done = front_in(folder, papers, replace(question.job, limit_s=left_of(time, began)), asked, processes, _tell)
    write_whole(folder / PAGE, front_page(done.document))

    def show(console: "Console") -> None:
        show_front(console, done.document, str(folder), f"{done.opened:,} were opened. {done.work}")

    return Answer((done.document,), show)
