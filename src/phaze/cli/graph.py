"""``phaze graph``: a model as the training program it runs, layer by layer."""

from typing import Annotated, Literal

import typer

from phaze.api import graphs
from phaze.cli.answer import asking
from phaze.cli.tensor_plan import TpPlan

SOURCES = (
    "A name (see phaze models), a phaze.graph/1 file, a config.json of transformers, or path.py:function or "
    "package.module:function that returns (module, inputs) or (module, inputs, loss). "
    "Code of a model file is run only when you name it here."
)
ModelName = Annotated[str | None, typer.Option("--model", help=SOURCES)]
Gpt = Annotated[
    str | None, typer.Option(help="A Megatron-style decoder: hidden=4096,layers=36,heads=32,vocabulary=51200.")
]
Llama = Annotated[
    str | None,
    typer.Option(help="A Llama-style decoder: hidden, layers, heads, kv_heads, head_dim, mlp, vocabulary, tied."),
]
Tensor = Annotated[int | None, typer.Option(help="Tensor-parallel degree, else 1; all sizes are of one rank.")]
Microbatch = Annotated[int | None, typer.Option(help="Sequences in one microbatch, else 1.")]
Sequence = Annotated[
    str | None, typer.Option(help="Positions of a sequence, 4096 or 32k (k = 1024); the model's own by default.")
]
Kernels = Annotated[
    Literal["eager", "fused"] | None,
    typer.Option("--attention", help="eager (default), or fused: scores never leave the chip."),
]
Spread = Annotated[
    bool, typer.Option("--sequence-parallel", help="Shard activations that tensor parallelism replicates.")
]
Fusion = Annotated[
    Literal["none", "chains", "elementwise", "full"],
    typer.Option(help="none, chains, elementwise, or full (also GEMM epilogues)."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace PyTorch even if the graph is bundled.")]
ShowPlan = Annotated[
    bool, typer.Option("--show-plan", help="Print the tensor-parallel plan as a file that --tp-plan takes back.")
]
Check = Annotated[bool, typer.Option("--check", help="List all operators that phaze does not support.")]


@asking(graphs.graph)
def graph(
    *, model: ModelName, gpt: Gpt, llama: Llama, tensor: Tensor, microbatch: Microbatch, sequence: Sequence,
    attention: Kernels, sequence_parallel: Spread, fusion: Fusion, fresh: Fresh, check: Check, tp_plan: TpPlan,
    show_plan: ShowPlan,
) -> None:  # fmt: skip
    """Show a model as layers of operators, forward and backward, on one rank.

    Examples: phaze graph --model llama2-7b --tensor 4 · phaze graph --model my.py:build --check ·
    phaze graph --gpt hidden=4096,layers=36,heads=32,vocabulary=51200 --sequence 2048 --json
    """
