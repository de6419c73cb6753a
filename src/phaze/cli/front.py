"""``phaze front``: every design that none beats in all of two or three metrics, with a certificate."""

from typing import Annotated

import typer

from phaze.api import studies
from phaze.cli.answer import asking
from phaze.cli.search import AllowCode, Fresh, Model, Rules, Settings, Study, Time, Workers

Of = Annotated[str, typer.Option("--of", help="Two or three metrics: throughput,area,power")]
Within = Annotated[
    list[str] | None, typer.Option("--within", help="metric=number: upper limit; lower limit for throughput.")
]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the front; {name} is the study's.")]
Gap = Annotated[float, typer.Option("--gap", help="Relative gap in metrics that depend on the plan; 0 is exact.")]


@asking(studies.front, page=True)
def front(
    *, of: Of, study: Study, model: Model, within: Within, out: Out = "runs/{name}-front", gap: Gap, time: Time,
    workers: Workers = 0, rules: Rules, settings: Settings, fresh: Fresh,
    allow_code: AllowCode,
) -> None:  # fmt: skip
    """Find the Pareto front of two or three metrics, with a certificate for each design.

    Metrics: throughput, area, power, price and embodied (manufacturing a chip), energy, cost and carbon (of a step). A
    stopped front resumes with the same command. Examples: phaze front --model llama3-8b --of throughput,price
    · phaze front study.toml --of throughput,carbon,price --within power=300
    """
