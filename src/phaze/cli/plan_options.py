"""The options of ``phaze plan``."""

from typing import Annotated

import typer

from phaze.cli.graph import SOURCES

Fixed = Annotated[
    str | None, typer.Option("--fixed", help="A run (phaze.run/1) whose given plan is evaluated; - for standard input.")
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="Your plan, to compare with the best: a run (phaze.run/1), a shell file with Megatron-LM's flags, a "
        "torchtitan job (TOML), a configuration of MaxText (YAML) or DeepSpeed (JSON).",
    ),
]
ModelName = Annotated[str | None, typer.Option("--model", help=SOURCES)]
Gpt = Annotated[str | None, typer.Option(help="A gpt by sizes: hidden=4096,layers=36,heads=32,vocabulary=51200,...")]
Llama = Annotated[str | None, typer.Option(help="A llama by sizes: hidden=4096,layers=32,heads=32,mlp=11008,...")]
ChipName = Annotated[str | None, typer.Option("--chip", help="A chip: a preset or a file.")]
ClusterName = Annotated[str | None, typer.Option("--cluster", help="A cluster; default: that of the chip.")]
StackName = Annotated[str | None, typer.Option("--stack", help="A software stack; default: that of the cluster.")]
Devices = Annotated[int | None, typer.Option(help="Number of devices.")]
Batch = Annotated[
    str | None,
    typer.Option(
        help="Global batch in sequences, 1024, or tokens, 4M-tokens (M = 10^6; 4Mi-tokens: 2^20), within 5 % of it as "
        "a round number of sequences."
    ),
]
Sequence = Annotated[
    str | None,
    typer.Option(help="Sequence length in tokens, such as 4096 or 32k (k = 1024); default: the model's."),
]
Tokens = Annotated[
    str | None,
    typer.Option(help="Tokens to train on, 15T (T = 10^12): days, device hours, USD, kWh and kg CO2e of the run."),
]
Terms = Annotated[
    str | None, typer.Option(help="With --tokens: prices, PUE and carbon (phaze.ownership/1); default: bundled ones.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace the model again, ignoring the cache.")]
Microbatch = Annotated[str | None, typer.Option(help="Microbatch sizes to try, such as 1,2,4; default 1,2,4,8,16.")]
Tensor = Annotated[
    str | None, typer.Option(help="Tensor-parallel degrees (TP) to try, such as 1,8; default: all that divide.")
]
Expert = Annotated[
    str | None,
    typer.Option(
        help="Expert-parallel degrees (EP) to try, such as 1,8: ranks that experts are distributed over; default, "
        "for a mixture of experts, 1 and the powers of two that divide them."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        help="Context-parallel degrees (CP) to try, such as 1,2: ranks that a sequence is split over; default 1, "
        "and from 32,768 tokens on 1, 2, 4, 8."
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        help="Hybrid sharding: over how many of the ranks with the same weights ZeRO shards, such as 8,16 or "
        "8,all; default all."
    ),
]
ContextWay = Annotated[
    str | None,
    typer.Option(
        help="Context-parallel methods: ring, all_gather, ulysses or hierarchical, or several of them; default: "
        "the fastest."
    ),
]
Imbalance = Annotated[
    float | None,
    typer.Option(help="Tokens of the most loaded expert rank over the mean, at least 1; default 1, balanced."),
]
Capacity = Annotated[
    float | None,
    typer.Option(help="Token limit of an expert rank, over the mean; tokens beyond it are dropped."),
]
Zero = Annotated[
    int | None,
    typer.Option(
        help="ZeRO stage: 1 shards the optimizer state over the replicas, 2 also gradients, 3 also weights; default: "
        "the fastest."
    ),
]
Chunks = Annotated[
    str | None,
    typer.Option(
        help="Virtual stages (VPP) to try in addition to 1, such as 2,4; default: all that divide the blocks; 1: none."
    ),
]
Family = Annotated[
    str | None,
    typer.Option(
        help="Pipeline families to allow, of those that the stack runs: 1f1b, interleaved, gpipe, zb-h1, "
        "zb-interleaved, zb-v, dualpipe-v; best (default): all of them."
    ),
]
Recompute = Annotated[
    str,
    typer.Option(
        help="none, selective, full or modules (mlp,layernorm) on every stage, with offload saved activations are "
        "held in host memory (full,offload); best chooses stage by stage.",
        show_default=True,
    ),
]
Attention = Annotated[
    str | None,
    typer.Option(help="eager, fused (scores never leave the chip), or best of both; default: as the stack runs it."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="bf16, fp32, fp8 (the stack's recipe), fp8-delayed, fp8-tensorwise, fp8-block, mxfp8 or nvfp4; "
        "default: the stack's."
    ),
]
Headroom = Annotated[
    str, typer.Option(help="Share of memory to leave free, such as 6% or 0.06; a fixed plan may use all of it.")
]
Html = Annotated[str | None, typer.Option("--html", help="Also write the plan's page to this file.")]
Certificate = Annotated[
    str | None,
    typer.Option("--certificate", help="Write the certificate of the plan to this folder, for phaze verify."),
]
WhatIf = Annotated[bool, typer.Option("--what-if", help="Also plan other devices, batches, sequences and chips.")]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over", help="Plan along devices, batch, sequence or chip: devices=64..1024 (doubling), chip=h100,b200."
    ),
]
Datasheet = Annotated[bool, typer.Option("--datasheet", help="Use data-sheet constants only, no measured ones.")]
