"""Ranks that share tensors, sequences and experts, as flags of Megatron Core 0.19.2, both ways.

Without ``--expert-tensor-parallel-size`` experts are split as the tensor degree says, which a run means too.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.export.flag import Flag, Limit, above_one, only, our_word
from phaze.export.megatron_model import has_experts
from phaze.export.source import Split
from phaze.export.values import Values
from phaze.graph.split_context import hierarchy

COMM_TYPES: Mapping[str, str] = MappingProxyType(
    {"ring": "p2p", "all_gather": "all_gather", "ulysses": "a2a", "hierarchical": "a2a+p2p"}
)
"""What Megatron calls the ways in which ranks share a sequence."""
GROUPS = "--hierarchical-context-parallel-sizes"


def adjacent_stages(split: Split) -> bool:
    """Whether the stages of a replica are adjacent, not the replicas of a stage."""
    return split.order == "pipeline" and split.pipeline > 1 and split.data > 1


def _hides_exchange(split: Split) -> bool:
    return has_experts(split) and split.hidden_exchange > 0


SHARED = (
    Flag("--tensor-model-parallel-size", "tensor", "tensor", "width of a tensor group", Values.number),
    Flag("--sequence-parallel", "sequence_parallel",
         only(True, lambda split: split.sequence_parallel and split.tensor > 1),
         "norms and dropout split over the tensor group too", lambda values, name: name in values),
    Flag("--context-parallel-size", "context", above_one("context"), "ranks that share a sequence", Values.degree),
    Flag("--cp-comm-type", "context_way",
         lambda split: COMM_TYPES[split.context_way] if split.context > 1 else None,
         lambda split: (
             "heads are exchanged among the nearest, keys come round among groups"
             if split.context_way == "hierarchical" else "how they share it, as planned"
         ), default="p2p"),
    Flag(GROUPS, "context_way",
         lambda split: (
             " ".join(map(str, hierarchy(split.context)))
             if split.context > 1 and split.context_way == "hierarchical" else None
         ), "ranks of a group, and groups"),
    Flag("--expert-model-parallel-size", "expert", lambda split: split.expert if has_experts(split) else None,
         "ranks that experts are distributed over", Values.degree),
    Flag("--expert-tensor-parallel-size", "expert_tensor",
         lambda split: split.expert_tensor if has_experts(split) else None, "ranks that share one expert"),
    Flag("--moe-grouped-gemm", "expert", only(True, has_experts), "the experts of a rank as one product"),
    Flag("--moe-token-dispatcher-type", "",
         lambda split: None if not has_experts(split) else "flex" if split.deduplicated_exchange else "alltoall",
         lambda split: (
             "a token is sent to a node once, as planned" if split.deduplicated_exchange
             else "rows go straight to their experts, as planned"
         )),
    Flag("--moe-flex-dispatcher-backend", "",
         only("deepep", lambda split: has_experts(split) and split.deduplicated_exchange), "the same"),
    Flag("--overlap-moe-expert-parallel-comm", "", only(True, _hides_exchange),
         "the plan assumes overlapped exchanges"),
    Flag("--delay-wgrad-compute", "", only(True, _hides_exchange), "weight gradients run behind exchanges"),
    Flag("--moe-shared-expert-overlap", "",
         only(True, lambda s: has_experts(s) and s.overlaps_shared_experts and not _hides_exchange(s)),
         "exchanges overlap shared experts"),
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


def context_way(values: Values) -> str:
    """How ranks share a sequence; of a hierarchy only the one that is priced."""
    way = our_word(COMM_TYPES, "priced way")(values, "--cp-comm-type")
    if way == "hierarchical":
        degrees = hierarchy(values.number("--context-parallel-size"))
        sizes, priced = values.words(GROUPS), [str(degree) for degree in degrees]
        if list(sizes) != priced:
            raise values.fault(GROUPS, f"'{' '.join(sizes)}' is not priced", f"phaze prices {' '.join(priced)}")
    return way
