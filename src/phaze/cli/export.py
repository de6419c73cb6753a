"""``phaze export``: a run or a plan in the forms that other tools read."""

from typing import Annotated

import typer

from phaze.api import runs
from phaze.cli.answer import asking

RunOrPlan = Annotated[str, typer.Argument(help="The folder of a run, or a plan (phaze plan ... --json).")]
To = Annotated[
    str, typer.Option("--to", help="megatron, torchtitan, maxtext, deepspeed, chakra, perfetto, csv or parquet.")
]
Out = Annotated[str | None, typer.Option("--out", help="The file to write; default: standard output.")]
ModelName = Annotated[str | None, typer.Option("--model", help="Which model, where a run has several.")]


@asking(runs.export)
def export(run: RunOrPlan, to: To, out: Out, model: ModelName) -> None:
    """Write launch files (Megatron-LM, torchtitan, MaxText, DeepSpeed), traces (Chakra, Perfetto), or tables.

    Examples: phaze export plan.json --to megatron · phaze export plan.json --to chakra --out traces ·
    phaze export runs/llama3-8b --to parquet --out chips.parquet
    """
