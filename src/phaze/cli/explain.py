"""``phaze explain``: why this chip, what more of each resource would buy, and how wrong constants may be."""

from typing import Annotated

import typer

from phaze.api import runs
from phaze.cli.answer import asking

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


@asking(runs.explain)
def explain(
    *, run: Run, instead: Instead, flatness: Flatness, constants: Constants, ranges: Ranges, error: Error,
    held_out: HeldOut, beside: Beside, regret: Regret, workers: Workers,
) -> None:  # fmt: skip
    """Explain the answer of a search: its neighbours, chips as good as it, what the next mm2, W or device would buy.

    Every number is computed, by the plain path or by another certified search, and kept in the run as explanation.json,
    beside what earlier explanations of the same answer were asked for (--constants, --ranges, --error, --instead,
    --held-out, --beside, --regret); phaze report then shows it. Examples: phaze explain runs/demo --flatness 3% ·
    phaze explain runs/demo --held-out gpt3-175b --beside b200 · phaze explain runs/demo --instead clusters=12 ·
    phaze explain runs/demo --constants · phaze explain runs/demo --ranges --error 0.2
    """
