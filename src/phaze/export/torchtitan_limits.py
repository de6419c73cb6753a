"""What torchtitan 0.2.2 has, by its own names, and what of a plan it cannot run."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.errors import InputError
from phaze.export.source import Split, require_launchable
from phaze.hardware.stack import StateBytes

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
PIPELINED, WHOLE_SEQUENCES = frozenset({"llama3", "deepseek_v3"}), frozenset({"deepseek_v3", "gpt_oss"})
ROTATED: Mapping[str, str] = MappingProxyType({"ring": "alltoall", "all_gather": "allgather"})
"""How keys and values of a shared sequence travel, by the ways of phaze."""
SCHEDULES: Mapping[str, str] = MappingProxyType(
    {
        "gpipe": "GPipe",
        "1f1b": "1F1B",
        "interleaved": "Interleaved1F1B",
        "zb-interleaved": "InterleavedZeroBubble",
        "zb-v": "ZBVZeroBubble",
        "dualpipe-v": "DualPipeV",
    }
)
"""The names of PyTorch's schedules by family."""
FOLDED = ("zb-v", "dualpipe-v")
WHY: Mapping[str, str] = MappingProxyType(
    {
        "gpipe": "all forwards, then all backwards",
        "zb-interleaved": "gradients of weights fill the bubble; blocks must not be compiled",
        "zb-v": "stages folded into a V, gradients of weights fill the bubble; blocks must not be compiled",
        "dualpipe-v": "forward and backward of two chunks in turn; blocks must not be compiled",
    }
)
LLAMAS = frozenset({"llama", "llama2-7b", *FLAVOURS})
"""Models that it has, by name or by sizes."""


CONVERTERS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "fp8-tensorwise": ("quantize.linear.float8", "float8", "products of linear maps in fp8, a scale a tensor"),
        "mxfp8": ("quantize.linear.mx", "mx", "products of linear maps in fp8, a scale for every 32 values"),
    }
)
"""The converter of a recipe, its table under quantize.linear, and why."""


def require_there(split: Split) -> None:
    if not split.sizes.get("gated", 1):
        raise InputError(split.model, f"{VERSION} has no model without a gate", "plan one with gated = true")
    if split.model not in LLAMAS:
        raise InputError(
            split.model,
            f"{VERSION} has no such model",
            f"its own are of the llama kind, {', '.join(sorted(FLAVOURS))}, or --llama by sizes",
        )
    require_launchable(split, "torchtitan")
    _require_shared(split)
    alone = split.tensor == split.pipeline == split.context == split.expert == 1
    if split.zero == 0 and split.data * split.context > 1 and not alone:
        raise InputError(
            split.model,
            "the replicas keep whole optimizer states with tensor or pipeline parallelism",
            "torchtitan's replication cannot be combined with it; plan with --zero 1",
        )
    if split.data * split.context == 1 and not alone and split.precision != "fp32":
        raise InputError(
            split.model,
            f"one replica in {split.precision} with tensor or pipeline parallelism",
            f"{VERSION} has mixed precision with sharding only; plan for two replicas or more",
        )
    if split.precision not in ("fp32", "bf16", *CONVERTERS):
        raise InputError(
            split.model,
            f"products in {split.precision}",
            f"{VERSION} has {' and '.join(CONVERTERS)} alone; plan with one of these or in bf16",
        )
    if split.tensor > 1 and not split.sequence_parallel:
        raise InputError(
            split.model,
            "tensor parallelism without sequence parallelism",
            f"{VERSION} has none; choose a plan with sequence parallelism",
        )
    if split.shards > split.data or split.data % split.shards:
        raise InputError(
            split.model,
            f"state sharded over {split.shard} ranks of {split.context} that share a sequence",
            f"{VERSION} shards it over whole replicas; plan with another --shard",
        )
    if split.state is not None and split.state != StateBytes():
        raise InputError(
            split.model, "an optimizer's state of its own types", f"{VERSION} has no such optimizer: leave out [state]"
        )
    if split.pipeline > 1 and split.schedule not in SCHEDULES:
        raise InputError(
            split.model,
            f"the pipeline schedule {split.schedule}",
            f"{VERSION} gives InterleavedZeroBubble two stages a rank or more; plan with --family zb-interleaved",
        )
    if split.chunks > 1:
        _require_interleaved(split)


def kind_of(split: Split) -> str:
    """Its model of the plan's."""
    return FLAVOURS[split.model][0] if split.model in FLAVOURS else "llama3"


def _require_shared(split: Split) -> None:
    """Refuse what it cannot share out of sequences and experts."""
    kind = kind_of(split)
    if split.pipeline > 1 and kind not in PIPELINED:
        raise InputError(split.model, "a pipeline", f"{VERSION} cuts {kind} into no stages; plan with one")
    if split.context > 1 and (kind in WHOLE_SEQUENCES or split.context_way not in ROTATED):
        seen = f"a sequence shared over {split.context} ranks ({split.context_way})"
        ways = " or ".join(ROTATED)
        has = f"has no such attention for {kind}" if kind in WHOLE_SEQUENCES else f"does it by {ways}"
        raise InputError(split.model, seen, f"{VERSION} {has}; plan with --context 1 or --context-way {ways}")
    if split.expert > 1 and split.expert_tensor not in (1, split.tensor):
        raise InputError(
            split.model,
            f"experts split over {split.expert_tensor} ranks with tensor {split.tensor}",
            f"{VERSION} splits them as the rest or not at all",
        )
    if split.expert == 1 and split.tensor > 1 and kind in MIXTURES:
        raise InputError(
            split.model, "experts split by tensor parallelism alone", f"plan with --expert: {VERSION} then shares them"
        )
    if kind in MIXTURES and split.precision == "fp8-tensorwise":
        raise InputError(
            split.model, "grouped products with one scale a tensor", f"{VERSION} has scales by row; plan in bf16"
        )


def _require_interleaved(split: Split) -> None:
    if any(blocks % split.chunks for blocks, _, _ in split.stages):
        raise InputError(split.model, "chunks that do not divide the blocks of a stage", "plan with other chunks")
    rounds = max(1, split.rounds // split.pipeline)
    if split.rounds % rounds and split.schedule not in FOLDED:
        raise InputError(
            split.model,
            f"{split.rounds} microbatches of a replica do not divide into {rounds} rounds over its stages",
            f"{SCHEDULES[split.schedule]} needs that; plan with another batch or without chunks",
        )
