"""``phaze explain``: why this chip, what more of each resource would buy, and how wrong constants may be."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from phaze.cli.answer import Answer, answering

if TYPE_CHECKING:
    from rich.console import Console

    from phaze.report.progress import Progress

Run = Annotated[str, typer.Argument(help="The folder of a finished search.")]
Flatness = Annotated[
    str, typer.Option("--flatness", help="Count the chips within so much of the answer, exactly: 1%, 3%.")
]
Constants = Annotated[
    bool,
    typer.Option("--constants", help="Also how far each constant of area and energy must move before another wins."),
]
Ranges = Annotated[bool, typer.Option("--ranges", help="Also how wrong each constant may be; searches many times.")]
Error = Annotated[float | None, typer.Option("--error", help="Also the best when every constant is so much lower: 0.2")]
Instead = Annotated[
    list[str] | None, typer.Option("--instead", help="axis=value: the best chip that has it: vector_cores=64")
]
HeldOut = Annotated[
    list[str] | None,
    typer.Option("--held-out", help="Also this chip on a model that was not searched for; may be given again."),
]
Beside = Annotated[
    list[str] | None,
    typer.Option("--beside", help="Also a chip that exists, to compare with on the page; may be given again."),
]
Regret = Annotated[
    bool, typer.Option("--regret", help="Also the best chip for each model alone, and what this one loses to it.")
]
Workers = Annotated[int, typer.Option("--workers", help="Processes; 0 takes one for each core.")]


@answering
def explain(
    run: Run,
    instead: Instead = None,
    flatness: Flatness = "1%",
    constants: Constants = False,
    ranges: Ranges = False,
    error: Error = None,
    held_out: HeldOut = None,
    beside: Beside = None,
    regret: Regret = False,
    workers: Workers = 0,
    *,
    progress: "Progress",
) -> Answer:
    """Explain the answer of a search: its neighbours, chips as good as it, what the next mm2, W or device would buy.

    Every number is computed, by the plain path or by another certified search, and kept in the run as explanation.json,
    beside what earlier explanations of the same answer were asked for (--constants, --ranges, --error, --instead,
    --held-out, --beside, --regret); phaze report then shows it. Examples: phaze explain runs/demo --flatness 3% ·
    phaze explain runs/demo --held-out gpt3-175b --beside b200 · phaze explain runs/demo --instead clusters=12 ·
    phaze explain runs/demo --constants · phaze explain runs/demo --ranges --error 0.2
    """
    from phaze.documents import dumps
    from phaze.errors import InputError
    from phaze.explain.flatness import share_of
    from phaze.explain.held_out import held_out_job
    from phaze.explain.question import question_of
    from phaze.explain.run import OtherModelsAndChips, explanation
    from phaze.files import write_whole
    from phaze.report.explanation_file import EXPLANATION, kept_with

    if error is not None and not 0 < error < 1:
        raise InputError("--error", f"{error} is no share", "give a number above 0 and below 1, such as 0.2")
    within, processes = share_of(flatness), workers or os.cpu_count() or 1
    question = question_of(run)
    held = held_out_job(run, question, held_out) if held_out else None
    others = OtherModelsAndChips(held, tuple(beside or ()), regret)
    said = explanation(question, error, ranges, processes, progress.step, instead or [], within, constants, others)

    try:  # for the page of the run: phaze report shows it from then on
        write_whole(Path(run) / EXPLANATION, dumps(kept_with(Path(run), said)) + "\n")
    except InputError as fault:
        progress.say(f"The explanation is not kept for the page: {fault}\n")

    def show(console: "Console") -> None:
        from phaze.explain.sheet import show_explanation
        from phaze.report.run_id import show_run_id

        show_explanation(console, said)
        show_run_id(console, Path(run))

    return Answer((said,), show)
