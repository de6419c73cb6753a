"""What torchtitan 0.2.2 has, by its own names, and what of a plan it cannot run."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.export.flag import Limit
from phaze.export.limits import COMMON, has_special_state
from phaze.export.source import PlannedSplit
from phaze.export.torchtitan_flavour import model_sizes
from phaze.graph.saved.modes import ALTERNATE, OFFLOAD
from phaze.pipeline.families import FAMILIES

VERSION = "torchtitan 0.2.2"
FLAVOURS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "llama3-8b": ("llama3", "8B"),
        "llama3-70b": ("llama3", "70B"),
        "llama3.1-405b": ("llama3", "405B"),
        "qwen3-30b-a3b": ("qwen3", "30B-A3B"),
        "qwen3-235b-a22b": ("qwen3", "235B-A22B"),
        "deepseek-v3": ("deepseek_v3", "671B"),
        "gpt-oss-120b": ("gpt_oss", "120b"),
    }
)
"""Its model and flavour of a named one."""
MIXTURES = frozenset({"qwen3", "deepseek_v3", "gpt_oss"})
# Models that it cuts into stages, and those whose attention cannot share a sequence over ranks.
PIPELINED, WHOLE_SEQUENCES = (
    frozenset({"llama3", "deepseek_v3"}),
    frozenset({"deepseek_v3", "gpt_oss"}),
)
ROTATED: Mapping[str, str] = MappingProxyType({"ring": "alltoall", "all_gather": "allgather"})
"""How keys and values of a shared sequence travel, by the ways of phaze."""
SCHEDULES: Mapping[str, str] = MappingProxyType(
    {name: family.torch_schedule for name, family in FAMILIES.items() if family.torch_schedule}
)
"""The names of PyTorch's schedules by family."""
CONVERTERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "fp8-tensorwise": (
            "quantize.linear.float8",
            "products of linear maps in fp8, a scale a tensor",
        ),
        "mxfp8": (
            "quantize.linear.mx",
            "products of linear maps in fp8, a scale for every 32 values",
        ),
    }
)
"""The converter of a recipe, which is also its table, and why."""


def kind_of(split: PlannedSplit) -> str:
    """Its model of the plan's."""
    return FLAVOURS[split.model][0] if split.model in FLAVOURS else "llama3"


def _uses_one_axis(split: PlannedSplit) -> bool:
    return split.tensor == split.pipeline == split.context == split.expert == 1


def _head_is_no_share(split: PlannedSplit) -> bool:
    if split.model in FLAVOURS:
        return False
    sizes = model_sizes(split)
    hidden, heads = sizes["hidden"], sizes["heads"]
    return sizes.get("head_dim", hidden // heads) * heads != hidden


def _no_such_context(split: PlannedSplit) -> str:
    kind, ways = kind_of(split), " or ".join(ROTATED)
    has = f"has no such attention for {kind}" if kind in WHOLE_SEQUENCES else f"does it by {ways}"
    return f"{VERSION} {has}; plan with --context 1 or --context-way {ways}"


def _turns(split: PlannedSplit) -> int:
    """Rounds over the stages of a replica."""
    return max(1, split.rounds // split.pipeline)


SHARING = (
    Limit(lambda split: split.pipeline > 1 and kind_of(split) not in PIPELINED,
          "a pipeline",
          lambda split: f"{VERSION} cuts {kind_of(split)} into no stages; plan with one"),
    Limit(lambda split: split.context > 1
          and (kind_of(split) in WHOLE_SEQUENCES or split.context_way not in ROTATED),
          "a sequence shared over {split.context} ranks ({split.context_way})",
          _no_such_context),
    Limit(lambda split: split.expert > 1 and split.expert_tensor not in (1, split.tensor),
          "experts split over {split.expert_tensor} ranks with tensor {split.tensor}",
          "{version} splits them as the rest or not at all"),
    Limit(lambda split: split.expert == 1 and split.tensor > 1 and kind_of(split) in MIXTURES,
          "experts split by tensor parallelism alone",
          "plan with --expert: {version} then shares them"),
    Limit(lambda split: kind_of(split) in MIXTURES and split.precision == "fp8-tensorwise",
          "grouped products with one scale a tensor",
          "{version} has scales by row; plan in bf16"),
)  # fmt: skip
LIMITS = (
    Limit(lambda split: not split.sizes.get("gated", 1),
          "{version} has no model without a gate",
          "plan one with gated = true"),
    Limit(lambda split: split.model not in ("llama", "llama2-7b", *FLAVOURS),
          "{version} has no such model",
          f"its own are of the llama kind, {', '.join(sorted(FLAVOURS))}, or --llama by sizes"),
    *COMMON,
    *SHARING,
    Limit(lambda split: split.zero == 0 and split.data * split.context > 1 and not _uses_one_axis(split),
          "the replicas keep whole optimizer states with tensor or pipeline parallelism",
          "torchtitan's replication cannot be combined with it; plan with --zero 1"),
    Limit(lambda split: split.data * split.context == 1 and not _uses_one_axis(split) and split.precision != "fp32",
          "one replica in {split.precision} with tensor or pipeline parallelism",
          "{version} has mixed precision with sharding only; plan for two replicas or more"),
    Limit(lambda split: split.precision not in ("fp32", "bf16", *CONVERTERS),
          "products in {split.precision}",
          f"{{version}} has {' and '.join(CONVERTERS)} alone; plan with one of these or in bf16"),
    Limit(lambda split: split.tensor > 1 and not split.sequence_parallel,
          "tensor parallelism without sequence parallelism",
          "{version} has none; choose a plan with sequence parallelism"),
    Limit(lambda split: split.shards > split.data or split.data % split.shards != 0,
          "state sharded over {split.shard} ranks of {split.context} that share a sequence",
          "{version} shards it over whole replicas; plan with another --shard"),
    Limit(has_special_state,
          "an optimizer's state of its own types",
          "{version} has no such optimizer: leave out [state]"),
    Limit(lambda split: split.pipeline > 1 and split.schedule not in SCHEDULES,
          "the pipeline schedule {split.schedule}",
          (
              "{version} gives InterleavedZeroBubble two stages a rank or more; plan with "
              "--family zb-interleaved"
          )),
    Limit(lambda split: any(blocks % split.chunks for blocks, _, _ in split.stages),
          "chunks that do not divide the blocks of a stage",
          "plan with other chunks"),
    Limit(lambda split: FAMILIES[split.schedule].whole_rounds and split.rounds % _turns(split) != 0,
          lambda split: (
              f"{split.rounds} microbatches of a replica do not divide into "
                  f"{_turns(split)} rounds over its stages"
          ),
          lambda split: (
              f"{SCHEDULES[split.schedule]} needs that; plan with another batch or without "
              "chunks"
          )),
    Limit(lambda split: OFFLOAD in split.recompute[0],
          "activations are offloaded",
          "{version} keeps them on the device"),
    Limit(lambda split: split.recompute[0] not in ("none", "selective", "full", ALTERNATE),
          "{split.recompute[0]} is recomputed",
          "{version} recomputes operators or whole blocks"),
    Limit(lambda split: split.optimizer != "adam",
          "{version} has no optimizer {split.optimizer}",
          "plan with adam"),
    Limit(_head_is_no_share,
          (
              "heads of {split.sizes[head_dim]} with a hidden size of {split.sizes[hidden]} "
              "and {split.sizes[heads]} heads"
          ),
          "{version}'s llama has no such; plan with head_dim = hidden / heads"),
    Limit(lambda split: split.model not in FLAVOURS and bool(model_sizes(split).get("tied", 0)),
          "an embedding tied to the head",
          "{version}'s llama ties none"),
)  # fmt: skip
