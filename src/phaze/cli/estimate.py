"""``phaze estimate``: what one operator, one collective or one graph takes."""

from typing import Annotated, Literal

import typer

from phaze.api import estimates
from phaze.cli.answer import asking
from phaze.cli.graph import SOURCES

Gemm = Annotated[str | None, typer.Option(help="A matrix product (GEMM): BATCHxMxNxK, or MxNxK.")]
Vector = Annotated[str | None, typer.Option(help="A vector operator: KIND:ELEMENTS or KIND:ELEMENTS:ROWS.")]
Collective = Annotated[str | None, typer.Option(help="KIND:BYTES:RANKS, such as all_reduce:64MiB:8; with --cluster.")]
Graph = Annotated[str | None, typer.Option(help="A graph file (phaze.graph/1; - for standard input).")]
ModelName = Annotated[str | None, typer.Option("--model", help=SOURCES)]
Tensor = Annotated[int | None, typer.Option(help="With --model: tensor-parallel degree, else 1.")]
Microbatch = Annotated[int | None, typer.Option(help="With --model: sequences in one microbatch, else 1.")]
Sequence = Annotated[str | None, typer.Option(help="With --model: positions, such as 4096 or 32k (k = 1024).")]
Attention = Annotated[
    Literal["eager", "fused"] | None, typer.Option(help="With --model: how its attention runs, else eager.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace the model again, ignoring the cache.")]
ChipName = Annotated[str | None, typer.Option("--chip", help="A preset, or the path of a chip file.")]
ClusterName = Annotated[str | None, typer.Option("--cluster", help="A preset, or the path of a cluster file.")]
BasisName = Annotated[str, typer.Option("--basis", help="Constants: calibrated, datasheet or ideal.")]
PrecisionName = Annotated[str, typer.Option("--precision", help="With --gemm: bf16, fp8, mxfp8 or another recipe.")]
LoadName = Annotated[str, typer.Option("--load", help="One operator alone, or queued in training.")]
Fusing = Annotated[str, typer.Option("--fusion", help="With --graph: fuse first: none, chains, elementwise or full.")]
Residency = Annotated[bool, typer.Option(help="With --graph: keep results in the global buffer where they fit.")]


@asking(estimates.estimate)
def estimate(
    *, gemm: Gemm, vector: Vector, collective: Collective, graph: Graph, model: ModelName, tensor: Tensor,
    microbatch: Microbatch, sequence: Sequence, attention: Attention, fresh: Fresh, chip: ChipName,
    cluster: ClusterName, basis: BasisName, load: LoadName, precision: PrecisionName, fusion: Fusing,
    residency: Residency,
) -> None:  # fmt: skip
    """Time, bound, mapping, traffic and energy of an operator.

    Examples: phaze estimate --gemm 1x4096x4096x4096 --chip tpu-v4 · phaze estimate --vector softmax:16777216:4096
    --chip a100-80gb · phaze estimate --collective all_reduce:64MiB:8 --cluster selene
    """
