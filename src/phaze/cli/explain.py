"""``phaze explain``: why this chip, what more of each resource would buy, and how wrong constants may be."""

from typing import Annotated

import typer

from phaze.api import runs
from phaze.cli.answer import asking

Run = Annotated[str, typer.Argument(help="The folder of a finished search.")]
Flatness = Annotated[
    str, typer.Option("--flatness", help="Count exactly the chips within this margin of the answer: 1%, 3%.")
]
Constants = Annotated[
    bool,
    typer.Option(
        "--constants", help="Also how far each constant of area and energy must change before another chip wins."
    ),
]
Ranges = Annotated[
    bool,
    typer.Option("--ranges", help="Also the range of each rate within which the answer stays best; many searches."),
]
Error = Annotated[
    float | None, typer.Option("--error", help="Also the best when every rate is lower by this share: 0.2")
]
Instead = Annotated[
    list[str] | None, typer.Option("--instead", help="axis=value: the best chip with this value: vector_cores=64")
]
HeldOut = Annotated[
    list[str] | None,
    typer.Option("--held-out", help="Also this chip on a model that was not part of the search; repeatable."),
]
Compare = Annotated[
    list[str] | None,
    typer.Option("--compare", help="Also an existing chip, to compare with on the page; repeatable."),
]
Regret = Annotated[
    bool, typer.Option("--regret", help="Also the best chip for each model alone, and what this one loses to it.")
]
Workers = Annotated[int, typer.Option("--workers", help="Worker processes; 0: one for each core.")]


@asking(runs.explain)
def explain(
    *, run: Run, instead: Instead, flatness: Flatness, constants: Constants, ranges: Ranges, error: Error,
    held_out: HeldOut, compare: Compare, regret: Regret, workers: Workers,
) -> None:  # fmt: skip
    """Explain the answer of a search: neighbours, near-ties, what the next mm2, W or device would gain.

    Every number is computed exactly, one chip at a time or by another certified search, and stored in the run as
    explanation.json with the results of earlier calls; phaze report then shows it.

    Examples: phaze explain runs/demo --flatness 3% ·
    phaze explain runs/demo --held-out gpt3-175b --compare b200 · phaze explain runs/demo --instead clusters=12 ·
    phaze explain runs/demo --constants · phaze explain runs/demo --ranges --error 0.2
    """
