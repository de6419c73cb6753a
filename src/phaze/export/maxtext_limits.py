"""What MaxText 0.2.5 has, by its own names, and what of a plan it cannot run."""

from collections.abc import Mapping
from fractions import Fraction
from types import MappingProxyType

from phaze.export.flag import Limit
from phaze.export.limits import COMMON, has_special_state, modes
from phaze.export.maxtext_mesh import degrees_in_words, fills_no_slices
from phaze.export.source import PlannedSplit

VERSION = "MaxText 0.2.5"
NAMED = ("llama2-7b", "llama3-8b", "llama3-70b", "llama3.1-405b", "mixtral-8x7b", "mixtral-8x22b",
"qwen3-30b-a3b",
         "qwen3-235b-a22b", "gpt-oss-120b", "gpt3-175b")  # fmt: skip
MODELS: Mapping[str, str] = MappingProxyType(
    {
        **{name: name for name in NAMED},
        "deepseek-v3": "deepseek3-671b",
        "kimi-k2": "kimi-k2-1t",
        "gemma-2-27b": "gemma2-27b",
    }
)
"""Its model of a named one."""
PIPELINED = frozenset({"llama", "llama2-7b", "llama3-8b", "llama3-70b", "llama3.1-405b"})
"""Models of equal blocks, which it cuts into stages."""
TPU_RECIPES: Mapping[str, str] = MappingProxyType({"fp8-delayed": "fp8"})
GPU_RECIPES: Mapping[str, str] = MappingProxyType(
    {
        "fp8-delayed": "te_fp8_delayedscaling",
        "fp8-tensorwise": "te_fp8_currentscaling",
        "mxfp8": "te_mxfp8",
        "nvfp4": "te_nvfp4",
    }
)
WAYS = ("all_gather", "ring", "ulysses")
ELSEWHERE = ("trainium", "gaudi", "wormhole")


def is_tpu(split: PlannedSplit) -> bool:
    """Whether the chip is one of Google's."""
    return split.chip.startswith("tpu")


def recipes(split: PlannedSplit) -> Mapping[str, str]:
    """Its scheme of a recipe, by hardware."""
    return TPU_RECIPES if is_tpu(split) else GPU_RECIPES


def by_sizes(split: PlannedSplit) -> bool:
    """Whether the model is none of its own."""
    return split.model not in MODELS


def together(split: PlannedSplit) -> int:
    """Sequences that all devices work on together."""
    return split.microbatch * split.data * (split.rounds if split.pipeline > 1 else 1)


def share(split: PlannedSplit) -> int | float:
    """Sequences a device."""
    exact = Fraction(together(split), split.processes)
    return exact.numerator if exact.denominator == 1 else float(exact)


def _ways(split: PlannedSplit) -> tuple[str, ...]:
    return WAYS if is_tpu(split) else WAYS[:2]


def _has_no_model(split: PlannedSplit) -> bool:
    return by_sizes(split) and (split.model != "llama" or not split.sizes.get("gated", 1))


LIMITS = (
    Limit(lambda split: split.chip.startswith(ELSEWHERE), "a plan for {split.chip}", (
        "{version} runs on "
        "TPUs and GPUs"
    )),
    Limit(_has_no_model,
          "{version} has no such model",
          f"its own are {', '.join(sorted(MODELS))}, or --llama by sizes"),
    *COMMON,
    Limit(lambda split: split.model == "llama" and not {"mlp", "vocabulary"} <= set(split.sizes),
          "its sizes are not known",
          "plan with --llama hidden=...,mlp=...,vocabulary=..."),
    Limit(lambda split: split.zero == 2,
          "gradients sharded over replicas that keep weights (ZeRO 2)",
          "{version} shards optimizer state or everything; plan with --zero 1 or 3"),
    Limit(lambda split: split.context > 1 and split.zero != 3,
          "context parallelism over {split.context} ranks with ZeRO {split.zero}",
          "{version} shards weights over these ranks too; plan with --zero 3"),
    Limit(lambda split: split.expert > 1 and split.zero != 3,
          "expert parallelism over {split.expert} ranks with ZeRO {split.zero}",
          "{version} shards weights over these ranks too; plan with --zero 3"),
    Limit(lambda split: split.data % split.expert != 0 or (split.expert > 1 and split.expert_tensor != split.tensor),
          (
              "experts over {split.expert} ranks of {split.expert_tensor} each, {split.data} "
              "replicas of {split.tensor}"
          ),
          "{version} splits experts as all else; plan with --tensor 1"),
    Limit(lambda split: split.shards > 1
          and (split.zero != 3 or split.context > 1 or (split.data // split.expert) % split.shards != 0),
          "state sharded over {split.shard} ranks in {split.shards} groups",
          "{version} has groups of whole replicas with ZeRO 3; plan without --shard"),
    Limit(lambda split: split.context > 1 and split.context_way not in _ways(split),
          "a sequence shared by {split.context_way}",
          lambda split: (
              f"{VERSION} has {', '.join(_ways(split))} here; plan with --context-way "
              f"{WAYS[0]}"
          )),
    Limit(lambda split: split.precision not in ("bf16", "fp32", *recipes(split)),
          "products in {split.precision}",
          lambda split: (
              f"{VERSION} has {', '.join(recipes(split))} here; "
              "plan with one or in bf16"
          )),
    # Scales of the steps before are kept from pass to pass, which its accumulation of gradients
    # does not do.
    Limit(lambda split: split.precision == "fp8-delayed" and split.rounds > 1 and split.pipeline == 1,
          "{split.precision} over {split.rounds} microbatches",
          "{version} does not add up their gradients; plan with a larger microbatch"),
    Limit(lambda split: not {*split.recompute} <= {"none", "full"},
          lambda split: f"recompute {modes(split)}",
          "{version} names what it keeps otherwise; plan with --recompute none or full"),
    Limit(lambda split: split.optimizer not in ("adam", "sgd"),
          "the optimizer {split.optimizer}",
          "{version} has adam and sgd; plan with one"),
    Limit(has_special_state, (
        "an optimizer's state of "
        "its own types"
    ), (
        "plan with a stack "
        "without [state]"
    )),
    Limit(lambda split: split.context > 1 and split.attention == "eager",
          "eager attention over a shared sequence",
          "plan with --attention fused"),
    Limit(lambda split: split.pipeline > 1 and split.model not in PIPELINED,
          "a pipeline of {split.model}",
          "{version} cuts equal dense blocks into stages; plan without one"),
    Limit(lambda split: split.pipeline > 1 and split.schedule != "gpipe",
          "the pipeline schedule {split.schedule}",
          (
              "{version} runs all forward passes first; plan with --family gpipe, or with "
              "the stack maxtext"
          )),
    Limit(lambda split: split.pipeline > 1 and len({blocks for blocks, _, _ in split.stages}) > 1,
          "its stages are uneven",
          "{version} has even ones; plan with other stages"),
    Limit(lambda split: split.pipeline > 1 and split.rounds % split.pipeline != 0,
          "{split.rounds} microbatches of a replica over {split.pipeline} stages",
          "{version} needs a multiple; plan with another batch"),
    Limit(lambda split: int(split.processes * share(split)) != together(split),
          lambda split: f"{Fraction(together(split), split.processes)} sequences a device",
          "{version} rounds them down; plan with another microbatch"),
    Limit(fills_no_slices,
          lambda split: (
              f"{split.processes} devices on nodes of {split.node}, their degrees "
              f"{degrees_in_words(split)}"
          ),
          "{version} needs degrees that fill whole nodes; plan for other devices"),
)  # fmt: skip
