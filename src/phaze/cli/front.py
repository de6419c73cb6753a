"""``phaze front``: every design that none beats in all of two or three metrics, with a certificate."""

import os
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering, identified
from phaze.cli.search import Fresh, Model, Rules, Settings, Study, Time, ruled, settled

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from phaze.front.run import FrontProgress as Standing
    from phaze.report.progress import Progress

Of = Annotated[str, typer.Option("--of", help="Two or three metrics: throughput,area,power")]
Within = Annotated[
    list[str] | None, typer.Option("--within", help="metric=number: at most so much; throughput: at least.")
]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the front; runs/<name>-front if not given.")]
Gap = Annotated[float, typer.Option("--gap", help="How near the proof must come in metrics of a run; 0 is exact.")]
Workers = Annotated[int, typer.Option("--workers", help="Processes; 0 takes one for each core.")]


def _shown_on(progress: "Progress") -> "Callable[[Standing], None]":
    def watch(standing: "Standing") -> None:
        what = f"looking for designs that none beats ({standing.designs:,} so far), chips evaluated"
        progress.count(standing.opened, standing.opened + standing.left, what, at_most=True)

    return watch


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
    rules: Rules = None,
    settings: Settings = None,
    fresh: Fresh = False,
    *,
    progress: "Progress",
) -> Answer:
    """Find every design that no other one beats in all of two or three metrics, with a certificate for each.

    Metrics: throughput, area, power, price and embodied (manufacturing a chip), energy, cost and carbon (of a batch). A
    front that was stopped goes on with the same command. Examples: phaze front --model llama3-8b --of throughput,price
    · phaze front study.toml --of throughput,carbon,price --within power=300
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

    raw, origin = settled(study, model, [*ruled(settings, rules), f"search.gap={gap!r}"], fresh, progress)
    progress.step("loading the models' graphs")
    checked = study_of(raw, origin.where)
    asked = asked_of(of, within or [])
    folder = Path(out) if out is not None else Path("runs") / f"{checked.name}-front"
    question = question_of(checked, reader=origin.reader).fronted(asked.document())
    papers, processes = question.papers(toml_text(raw)), workers or os.cpu_count() or 1
    done = front_in(
        folder, papers, replace(question.job, limit_s=left_of(time, began)), asked, processes, _shown_on(progress)
    )
    write_whole(folder / PAGE, front_page(done.document))

    def show(console: "Console") -> None:
        show_front(console, done.document, str(folder), f"{done.opened:,} were evaluated. {done.work}")

    return identified(Answer((done.document,), show), folder)
