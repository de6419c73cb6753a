"""``phaze sweep``: the certified best along a range of one value of a study."""

from typing import Annotated

import typer

from phaze.api import along
from phaze.cli.answer import asking
from phaze.cli.search import Address, AllowCode, Engine, Fresh, Model, Rules, Settings, Study, Workers

Range = Annotated[str, typer.Option("--over", help="key=low..high or key=a,b,c: a key of the study and its range.")]
Points = Annotated[int, typer.Option("--points", help="Number of values of a range, in geometric progression.")]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the sweep; {name} is the study's.")]


@asking(along.sweep, page=True)
def sweep(
    *, over: Range, study: Study, model: Model, points: Points, out: Out = "runs/{name}-sweep", workers: Workers = 0,
    engine: Engine, address: Address, rules: Rules, settings: Settings, fresh: Fresh,
    allow_code: AllowCode,
) -> None:  # fmt: skip
    """Search along a range: the certified best chip and plan for each value of one key of a study.

    A stopped sweep resumes with the same command; phaze plan --over sweeps plans on a given chip. Examples:
    phaze sweep --model llama3-8b --over budget.power=400..700 · phaze sweep study.toml --over
    training.devices=64,256,1024 · phaze sweep --model bert-large --rules icml24 --over
    cluster.link_bytes_per_s=1e9..1e12 --points 4
    """
