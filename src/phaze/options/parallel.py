"""Options of a job's plans: which of them may be chosen."""

from collections.abc import Sequence
from typing import Annotated, TypedDict

from phaze.options.arguments import names
from phaze.options.option import ByRules, Option
from phaze.pipeline.names import NAMES

Degrees = str | int | Sequence[int]
# Microbatch sizes that are tried where none are given, those that divide the batch.
MICROBATCHES = (1, 2, 4, 8, 16)


class ParallelOptions(TypedDict, total=False):
    """Which plans of a job may be chosen."""

    microbatch: Annotated[
        Degrees | None,
        Option(
            f"Microbatch sizes to try, such as 1,2,4; default {','.join(map(str, MICROBATCHES))}.",
            former="microbatches",
            of_plan="Sequences in a microbatch.",
            value="Count",
            choices="Choices",
        ),
    ]
    tensor: Annotated[
        Degrees | None,
        Option(
            "Tensor-parallel degrees (TP) to try, such as 1,8; default: all that divide.",
            former="widths",
            of_plan="Tensor-parallel degree (TP).",
            value="Count",
            choices="Choices",
        ),
    ]
    expert: Annotated[
        Degrees | None,
        Option(
            "Expert-parallel degrees (EP) to try, such as 1,8: ranks that experts are "
            "distributed over; default, "
            "for a mixture of experts, 1 and the powers of two that divide them.",
            of_plan="Expert-parallel degree (EP), among the tensor x context x data ranks of a "
            "stage.",
            key="training.expert",
            value="Count",
            choices="Choices",
            unstated=1,
            rules=ByRules((1,), (1,)),
        ),
    ]
    context: Annotated[
        Degrees | None,
        Option(
            "Context-parallel degrees (CP) to try, such as 1,2: ranks that a sequence is "
            "split over; default 1, "
            "and from 32,768 tokens on 1, 2, 4, 8.",
            former="contexts",
            of_plan="Context-parallel degree (CP); needs fused attention.",
            key="training.context",
            value="Count",
            choices="Choices",
            unstated=1,
            rules=ByRules((1,), (1,)),
        ),
    ]
    context_way: Annotated[
        str | Sequence[str] | None,
        Option(
            "Context-parallel methods: ring, all_gather, ulysses or hierarchical, or "
            "several of them; default: "
            "the fastest.",
            former="ways",
            of_plan="Context-parallel method.",
            read=names,
            key="training.context_way",
            value="Way",
            choices="WayChoices",
            unstated="ring",
            rules=ByRules(("ring",), ("ring",)),
        ),
    ]
    imbalance: Annotated[
        float | None,
        Option(
            "Tokens of the most loaded expert rank over the mean, at least 1; default 1, balanced.",
            key="training.imbalance",
            value="Positive",
        ),
    ]
    capacity: Annotated[
        float | None,
        Option(
            "Token limit of an expert rank, over the mean; tokens beyond it are dropped.",
            key="training.capacity",
            value="Positive",
        ),
    ]
    chunks: Annotated[
        Degrees | None,
        Option(
            (
                "Virtual stages (VPP) to try in addition to 1, such as 2,4; default: all "
                "that divide the blocks; 1: none."
            ),
            of_plan="Virtual stages (VPP).",
            key="training.chunks",
            value="Count",
            choices="Choices",
            unstated=1,
        ),
    ]
    family: Annotated[
        str | Sequence[str] | None,
        Option(
            f"Pipeline families to allow, of those that the stack runs: {', '.join(NAMES)}, or "
            "best of them; default: all.",
            former="families",
            of_plan="A pipeline family that the stack runs; default: 1F1B, with chunks "
            "interleaved, GPipe under a stack without 1F1B.",
            read=names,
            key="training.family",
            value="PipelineFamily",
            choices="FamilyChoices",
            unstated=None,
        ),
    ]
    zero: Annotated[
        int | None,
        Option(
            "ZeRO stage: 1 shards the optimizer state over the replicas, 2 also "
            "gradients, 3 also weights; default: "
            "the fastest.",
            key="training.zero",
            value="ZeroStage",
            choices="ZeroChoice",
            unstated=0,
            rules=ByRules("best", 0),
        ),
    ]
    recompute: Annotated[
        str,
        Option(
            "none, selective, full or modules (mlp,layernorm) on every stage, with "
            "offload saved activations are "
            "held in host memory (full,offload); best chooses stage by stage.",
            "best",
        ),
    ]
