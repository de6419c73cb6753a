"""``phaze front``: every design that none beats in all of two or three metrics, with a certificate."""

from typing import Annotated

import typer

from phaze.api import studies
from phaze.cli.answer import asking
from phaze.cli.search import Fresh, Model, Rules, Settings, Study, Time, Workers

Of = Annotated[str, typer.Option("--of", help="Two or three metrics: throughput,area,power")]
Within = Annotated[
    list[str] | None, typer.Option("--within", help="metric=number: at most so much; throughput: at least.")
]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the front; {name} is the study's.")]
Gap = Annotated[float, typer.Option("--gap", help="How near the proof must come in metrics of a run; 0 is exact.")]


@asking(studies.front, page=True)
def front(
    *, of: Of, study: Study, model: Model, within: Within, out: Out = "runs/{name}-front", gap: Gap, time: Time,
    workers: Workers = 0, rules: Rules, settings: Settings, fresh: Fresh,
) -> None:  # fmt: skip
    """Find every design that no other one beats in all of two or three metrics, with a certificate for each.

    Metrics: throughput, area, power, price and embodied (manufacturing a chip), energy, cost and carbon (of a batch). A
    front that was stopped goes on with the same command. Examples: phaze front --model llama3-8b --of throughput,price
    · phaze front study.toml --of throughput,carbon,price --within power=300
    """
