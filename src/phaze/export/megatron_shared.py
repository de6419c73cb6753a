"""Ranks that share tensors, sequences and experts, as flags of Megatron Core 0.19.2, both ways.

Without ``--expert-tensor-parallel-size`` experts are split as the tensor degree says, which a run
means too.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.export.flag import SAME, Flag, Limit, above_one, when
from phaze.export.megatron_model import has_experts
from phaze.export.source import PlannedSplit
from phaze.export.values import Values
from phaze.graph.split_context import hierarchy

COMM_TYPES: Mapping[str, str] = MappingProxyType(
    {"ring": "p2p", "all_gather": "all_gather", "ulysses": "a2a", "hierarchical": "a2a+p2p"}
)
"""What Megatron calls the ways in which ranks share a sequence."""
GROUPS = "--hierarchical-context-parallel-sizes"


def adjacent_stages(split: PlannedSplit) -> bool:
    """Whether the stages of a replica are adjacent, not the replicas of a stage."""
    return split.order == "pipeline" and split.pipeline > 1 and split.data > 1


def _hides_exchange(split: PlannedSplit) -> bool:
    return has_experts(split) and split.hidden_exchange > 0


SHARED = (
    Flag("--tensor-model-parallel-size", "tensor", SAME, "width of a tensor group", default=1),
    Flag("--sequence-parallel", "sequence_parallel", True, (
        "norms and dropout split over the "
        "tensor group too"
    ),
         lambda values, name: name in values,
         needed=lambda split: split.sequence_parallel and split.tensor > 1),
    *when(
        above_one("context"),
        Flag("--context-parallel-size", "context", SAME, "ranks that share a sequence", default=1),
        Flag("--cp-comm-type", "context_way", COMM_TYPES,
             lambda split: (
                 "heads are exchanged among the nearest, keys come round among groups"
                 if split.context_way == "hierarchical" else "how they share it, as planned"
             ), default="p2p"),
    ),
    Flag(GROUPS, "context_way", lambda split: " ".join(map(str, hierarchy(split.context))),
         "ranks of a group, and groups",
         needed=lambda split: split.context > 1 and split.context_way == "hierarchical"),
    *when(
        has_experts,
        Flag("--expert-model-parallel-size", "expert", SAME, (
            "ranks that experts are "
            "distributed over"
        ), default=1),
        Flag("--expert-tensor-parallel-size", "expert_tensor", SAME, "ranks that share one expert"),
        Flag("--moe-grouped-gemm", "expert", True, "the experts of a rank as one product"),
        Flag("--moe-token-dispatcher-type", "",
             lambda split: "flex" if split.deduplicated_exchange else "alltoall",
             lambda split: (
                 "a token is sent to a node once, as planned" if split.deduplicated_exchange
                 else "rows go straight to their experts, as planned"
             )),
    ),
    Flag("--moe-flex-dispatcher-backend", "", "deepep", "the same",
         needed=lambda split: has_experts(split) and split.deduplicated_exchange),
    *when(
        _hides_exchange,
        Flag("--overlap-moe-expert-parallel-comm", "", True, (
            "the plan assumes "
            "overlapped exchanges"
        )),
        Flag("--delay-wgrad-compute", "", True, "weight gradients run behind exchanges"),
    ),
    Flag("--moe-shared-expert-overlap", "", True, "exchanges overlap shared experts",
         needed=lambda s: has_experts(s) and s.overlaps_shared_experts and not _hides_exchange(s)),
)  # fmt: skip
SHARED_LIMITS = (
    Limit(lambda split: has_experts(split) and split.tensor > 1 and not split.sequence_parallel,
          "expert and tensor parallelism without sequence parallelism",
          "Megatron-LM needs it there; choose a plan with sequence parallelism"),
    Limit(lambda split: has_experts(split) and split.expert > 1 and adjacent_stages(split),
          "expert parallelism, and the stages of a replica are adjacent",
          "Megatron-LM puts replicas inside stages there; choose a plan of that order"),
    Limit(lambda split: _hides_exchange(split) and "full" in split.recompute,
          "Megatron does not overlap the exchange of experts with full recompute",
          "plan without it",
          where="recompute"),
)  # fmt: skip


def require_priced_groups(values: Values) -> None:
    """Refuse a hierarchy of ranks that share a sequence other than the one that is priced."""
    degree = values.required("--context-parallel-size")
    if degree > 1 and values.word("--cp-comm-type") == COMM_TYPES["hierarchical"]:
        sizes, priced = " ".join(values.words(GROUPS)), " ".join(map(str, hierarchy(degree)))
        if sizes != priced:
            raise values.fault(GROUPS, f"'{sizes}' is not priced", f"phaze prices {priced}")
