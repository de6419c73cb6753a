"""The options of ``phaze plan``."""

from typing import Annotated

import typer

from phaze.cli.graph import SOURCES

Fixed = Annotated[
    str | None, typer.Option("--fixed", help="A run (phaze.run/1) whose plan is priced; - for standard input.")
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="Your plan, to stand beside the best: a run (phaze.run/1), a shell file with Megatron-LM's flags, a "
        "torchtitan job (TOML), a configuration of MaxText (YAML) or DeepSpeed (JSON).",
    ),
]
ModelName = Annotated[str | None, typer.Option("--model", help=SOURCES)]
Gpt = Annotated[str | None, typer.Option(help="A gpt by sizes: hidden=4096,layers=36,heads=32,vocabulary=51200,...")]
Llama = Annotated[str | None, typer.Option(help="A llama by sizes: hidden=4096,layers=32,heads=32,mlp=11008,...")]
ChipName = Annotated[str | None, typer.Option("--chip", help="A chip: a preset or a file.")]
ClusterName = Annotated[str | None, typer.Option("--cluster", help="A cluster; without it the chip's usual one.")]
StackName = Annotated[str | None, typer.Option("--stack", help="A software stack; without it the cluster's usual one.")]
Devices = Annotated[int | None, typer.Option(help="How many devices there are.")]
Batch = Annotated[
    str | None,
    typer.Option(
        help="Global batch in sequences, 1024, or tokens, 4M-tokens (M = 10^6; 4Mi-tokens: 2^20), within 5 % of it as "
        "a round number of sequences."
    ),
]
Sequence = Annotated[
    str | None,
    typer.Option(help="Sequence length in tokens, such as 4096 or 32k (k = 1024); without it the model's own."),
]
Tokens = Annotated[
    str | None,
    typer.Option(help="Tokens to train on, 15T (T = 10^12): days, device hours, USD, kWh and kg CO2e of the run."),
]
Terms = Annotated[
    str | None, typer.Option(help="With --tokens: prices, PUE and carbon (phaze.ownership/1); without it bundled ones.")
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Trace the model again, whatever the cache holds.")]
Microbatch = Annotated[str | None, typer.Option(help="Microbatch sizes to try, such as 1,2,4; without it 1,2,4,8,16.")]
Tensor = Annotated[
    str | None, typer.Option(help="Tensor-parallel degrees (TP) to try, such as 1,8; without it those that divide.")
]
Expert = Annotated[
    str | None,
    typer.Option(
        help="Expert-parallel degrees (EP) to try, such as 1,8: ranks that share out the experts; without it, for a "
        "mixture of experts, 1 and the powers of two that divide them."
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        help="Context-parallel degrees (CP) to try, such as 1,2: ranks that share a sequence; without it 1, and from "
        "32,768 tokens on 1, 2, 4, 8."
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        help="Hybrid sharding: how many of the ranks with the same weights share out ZeRO's state, such as 8,16 or "
        "8,all; without it all."
    ),
]
ContextWay = Annotated[
    str | None,
    typer.Option(
        help="How ranks share a sequence: ring, all_gather, ulysses or hierarchical, or several of them; without it "
        "the fastest."
    ),
]
Imbalance = Annotated[
    float | None,
    typer.Option(help="Tokens of the fullest rank of experts over the mean, from 1 on; without it 1, balanced."),
]
Capacity = Annotated[
    float | None,
    typer.Option(help="Tokens that a rank of experts takes at most, over the mean; beyond it they are dropped."),
]
Zero = Annotated[
    int | None,
    typer.Option(
        help="ZeRO stage: 1 shares the optimizer state over the replicas, 2 also gradients, 3 also weights; without "
        "it the fastest."
    ),
]
Chunks = Annotated[
    str | None,
    typer.Option(
        help="Virtual stages (VPP) to try beside 1, such as 2,4; without it all that divide the blocks; 1: none."
    ),
]
Family = Annotated[
    str | None,
    typer.Option(
        help="Pipeline families to allow, of those that the stack runs: 1f1b, interleaved, gpipe, zb-h1, "
        "zb-interleaved, zb-v, dualpipe-v; best, or without it, all of them."
    ),
]
Recompute = Annotated[
    str,
    typer.Option(
        help="none, selective, full or modules (mlp,layernorm) on every stage, with offload what is kept lies in the "
        "host's memory (full,offload); best chooses stage by stage.",
        show_default=True,
    ),
]
Attention = Annotated[
    str | None,
    typer.Option(help="eager, fused (scores never leave the chip), or best of both; without it as the stack runs it."),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="bf16, fp32, fp8 (the stack's recipe), fp8-delayed, fp8-tensorwise, fp8-block, mxfp8 or nvfp4; without "
        "it the stack's."
    ),
]
Headroom = Annotated[
    str, typer.Option(help="Share of memory to leave free, such as 6% or 0.06; a fixed plan may fill all of it.")
]
Html = Annotated[str | None, typer.Option("--html", help="Write the plan's page to this file as well.")]
Certificate = Annotated[
    str | None, typer.Option("--certificate", help="Write what proves the plan to this folder; phaze verify checks it.")
]
WhatIf = Annotated[
    bool, typer.Option("--what-if", help="Plan other devices, batches, sequences and chips as well: a plan each.")
]
Over = Annotated[
    list[str] | None,
    typer.Option(
        "--over", help="Plan along devices, batch, sequence or chip: devices=64..1024 (doubling), chip=h100,b200."
    ),
]
Datasheet = Annotated[bool, typer.Option("--datasheet", help="Use no measured constants, only the data sheet's.")]
