"""Ranks that share a sequence, and experts, as flags of Megatron Core 0.19.2."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.errors import InputError
from phaze.export.flags import Choice
from phaze.export.megatron_model import has_experts
from phaze.export.source import Split
from phaze.graph.split_context import hierarchy

# What Megatron calls the ways in which ranks share a sequence.
COMM_TYPES: Mapping[str, str] = MappingProxyType({"ring": "p2p", "all_gather": "all_gather", "ulysses": "a2a"})


def shared_choices(split: Split) -> list[Choice]:
    """Ranks that share a sequence, and experts."""
    found = []
    if split.context > 1:
        found += [
            Choice("--context-parallel-size", str(split.context), "ranks that share a sequence"),
            *_ways(split),
        ]
    if has_experts(split):
        _require_experts(split)
        found += [
            Choice("--expert-model-parallel-size", str(split.expert), "ranks that experts are distributed over"),
            Choice("--expert-tensor-parallel-size", str(split.expert_tensor), "ranks that share one expert"),
            Choice("--moe-grouped-gemm", None, "the experts of a rank as one product"),
            *_dispatcher(split),
        ]
    return found


def _ways(split: Split) -> list[Choice]:
    """How ranks share a sequence."""
    if split.context_way != "hierarchical":
        return [Choice("--cp-comm-type", COMM_TYPES[split.context_way], "how they share it, as planned")]
    sizes = " ".join(str(degree) for degree in hierarchy(split.context))
    return [
        Choice("--cp-comm-type", "a2a+p2p", "heads are exchanged among the nearest, keys come round among groups"),
        Choice("--hierarchical-context-parallel-sizes", sizes, "ranks of a group, and groups"),
    ]


def _require_experts(split: Split) -> None:
    if split.tensor > 1 and not split.sequence_parallel:
        raise InputError(
            split.model,
            "expert and tensor parallelism without sequence parallelism",
            "Megatron-LM needs it there; choose a plan with sequence parallelism",
        )
    if split.expert > 1 and split.order == "pipeline" and split.pipeline > 1 and split.data > 1:
        raise InputError(
            split.model,
            "expert parallelism, and the stages of a replica are adjacent",
            "Megatron-LM puts replicas inside stages there; choose a plan of that order",
        )


def _dispatcher(split: Split) -> list[Choice]:
    """How the tokens of experts are exchanged."""
    found = [Choice("--moe-token-dispatcher-type", "alltoall", "rows go straight to their experts, as planned")]
    if split.deduplicated_exchange:
        found = [
            Choice("--moe-token-dispatcher-type", "flex", "a token is sent to a node once, as planned"),
            Choice("--moe-flex-dispatcher-backend", "deepep", "the same"),
        ]
    if split.hidden_exchange > 0:
        if "full" in split.recompute:
            raise InputError(
                "recompute", "Megatron does not overlap the exchange of experts with full recompute", "plan without it"
            )
        found.append(Choice("--overlap-moe-expert-parallel-comm", None, "the plan assumes overlapped exchanges"))
        found.append(Choice("--delay-wgrad-compute", None, "weight gradients run behind exchanges"))
    elif split.overlaps_shared_experts:
        found.append(Choice("--moe-shared-expert-overlap", None, "exchanges overlap shared experts"))
    return found
