"""``phaze search``: the best chip of a space and the best placement on it, together, with a certificate."""

from typing import Annotated

import typer

from phaze.api import studies
from phaze.cli.answer import asking
from phaze.cli.tensor_plan import TpPlan

Study = Annotated[str | None, typer.Argument(help="A study (phaze.study/1).")]
Model = Annotated[
    list[str] | None,
    typer.Option("--model", help="Instead of a study: a built-in name, file.py:function, a config.json or its folder."),
]
Out = Annotated[str | None, typer.Option("--out", help="The folder of the run; {name} is the study's.")]
Gap = Annotated[float | None, typer.Option("--gap", help="Relative gap to prove, such as 0.0001.")]
Time = Annotated[float | None, typer.Option("--time", help="Stop after this many seconds, with the gap proved so far.")]
Workers = Annotated[int, typer.Option("--workers", help="Worker processes; 0: one for each core.")]
Rules = Annotated[
    str | None, typer.Option("--rules", help="Set of defaults: cluster (today's hardware, the default) or icml24.")
]
Engine = Annotated[str, typer.Option("--engine", help="local: processes of this machine; ray: a Ray cluster.")]
Address = Annotated[
    str | None, typer.Option("--address", help="With ray: auto (the cluster of this machine), local, or HOST:PORT.")
]
Attention = Annotated[
    str | None,
    typer.Option("--attention", help="eager, fused, or best of both; default: as the stack runs it."),
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", help="bf16, fp8 or a recipe that stack and space have; default: the stack's."),
]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard", help="Hybrid sharding: ranks with the same weights that shard state, 8,16 or 8,all; default all."
    ),
]
Headroom = Annotated[
    str | None,
    typer.Option("--headroom", help="Share of memory to leave free; default 6% under rules cluster, else 0."),
]
Devices = Annotated[int | None, typer.Option("--devices", help="Number of devices.")]
Batch = Annotated[
    str | None, typer.Option("--batch", help="Global batch in sequences, 1024, or tokens, 4M-tokens (M = 10^6).")
]
Sequence = Annotated[
    str | None, typer.Option("--sequence", help="Sequence length in tokens, such as 4096 or 32k (k = 1024).")
]
Tokens = Annotated[
    str | None,
    typer.Option("--tokens", help="Tokens to train on, 15T: days, device hours, USD, kWh and kg CO2e of the run."),
]
Terms = Annotated[
    str | None, typer.Option("--terms", help="With --tokens: prices, PUE and carbon (phaze.ownership/1).")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace your own models again, ignoring the cache.")]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Let the file name Python code as a model (file.py:function), which then runs."),
]
Settings = Annotated[list[str] | None, typer.Option("--set", help="a.b=c: override a value of the study; repeatable.")]


@asking(studies.search, page=True)
def search(
    *, study: Study, model: Model, out: Out = "runs/{name}", gap: Gap, time: Time, workers: Workers = 0, rules: Rules,
    engine: Engine, address: Address, attention: Attention, precision: Precision, shard: Shard, headroom: Headroom,
    devices: Devices, batch: Batch, sequence: Sequence, tokens: Tokens, terms: Terms, settings: Settings,
    tp_plan: TpPlan, fresh: Fresh,
    allow_code: AllowCode,
) -> None:  # fmt: skip
    """Search the best chip and the best plan on it together, to a proven gap.

    A stopped run resumes with the same command. Examples: phaze search --model llama3-8b ·
    phaze search --model bert-large --rules icml24 · phaze search study.toml --engine ray ·
    phaze search study.toml --batch 4M-tokens --tokens 2T --out runs/priced
    """
