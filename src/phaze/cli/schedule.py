"""``phaze schedule``: the best order of operators on one chip, for any number of files."""

from typing import Annotated, Literal

import typer

from phaze.api import single
from phaze.cli.answer import asking
from phaze.cli.graph import SOURCES
from phaze.cli.tensor_plan import TpPlan

Files = Annotated[
    list[str] | None, typer.Argument(help="Operators (phaze.operators/1); - reads one from standard input.")
]
By = Annotated[str, typer.Option("--scheduler", help="exact, list, cpsat, or ilp (the published program).")]
Perfetto = Annotated[str | None, typer.Option(help="Write a trace for ui.perfetto.dev to this file.")]
ModelName = Annotated[str | None, typer.Option("--model", help=f"Instead of files, a layer of a model. {SOURCES}")]
LayerName = Annotated[
    str | None, typer.Option("--layer", help="A layer or module (phaze graph lists them); else the most repeated.")
]
PassName = Annotated[
    Literal["forward", "backward"] | None, typer.Option("--pass", help="forward or backward; else both, in order.")
]
ChipName = Annotated[str | None, typer.Option("--chip", help="With --model: a preset, or the path of a chip file.")]
ClusterName = Annotated[str | None, typer.Option("--cluster", help="With --model; default: that of the chip.")]
StackName = Annotated[str | None, typer.Option("--stack", help="With --model; default: that of the cluster.")]
RulesName = Annotated[
    str | None,
    typer.Option("--rules", help="With --model: serial, companions, links, icml24, overlap; else the stack's."),
]
BasisName = Annotated[str, typer.Option("--basis", help="With --model: calibrated, datasheet or ideal constants.")]
Tensor = Annotated[int | None, typer.Option(help="With --model: tensor-parallel degree, else 1.")]
Microbatch = Annotated[int | None, typer.Option(help="With --model: sequences in one microbatch, else 1.")]
Sequence = Annotated[str | None, typer.Option(help="With --model: positions, 4096 or 32k (k = 1024); else its own.")]
Attention = Annotated[
    Literal["eager", "fused"] | None, typer.Option(help="With --model: eager or fused; else as the stack runs it.")
]
Spread = Annotated[
    bool,
    typer.Option("--sequence-parallel", help="With --model: shard activations that tensor parallelism replicates."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace the model again, ignoring the cache.")]


@asking(single.schedule)
def schedule(
    *, operators: Files, scheduler: By, perfetto: Perfetto, model: ModelName, layer: LayerName, pass_: PassName,
    chip: ChipName, cluster: ClusterName, stack: StackName, rules: RulesName, basis: BasisName, tensor: Tensor,
    microbatch: Microbatch, sequence: Sequence, attention: Attention, sequence_parallel: Spread, tp_plan: TpPlan,
    fresh: Fresh,
) -> None:  # fmt: skip
    """Schedule operators on the cores of a chip: the least makespan, with a proof.

    The operators are those of files, or of a layer of a model, one line for each file or pass with --json. Examples:
    phaze schedule layer.json --perfetto trace.json · phaze schedule --model llama2-7b --chip tpu-v4 --pass backward ·
    phaze schedule --model my.py:build --chip h100 --tensor 4 --rules overlap
    """
