"""What MaxText 0.2.5 has, by its own names, and what of a plan it cannot run."""

from collections.abc import Mapping
from types import MappingProxyType

from phaze.errors import InputError
from phaze.export.source import Split, require_launchable
from phaze.hardware.stack import StateBytes

VERSION = "MaxText 0.2.5"
MODELS: Mapping[str, str] = MappingProxyType(
    {
        "llama2-7b": "llama2-7b",
        "llama3-8b": "llama3-8b",
        "llama3-70b": "llama3-70b",
        "llama3.1-405b": "llama3.1-405b",
        "mixtral-8x7b": "mixtral-8x7b",
        "mixtral-8x22b": "mixtral-8x22b",
        "qwen3-30b-a3b": "qwen3-30b-a3b",
        "qwen3-235b-a22b": "qwen3-235b-a22b",
        "deepseek-v3": "deepseek3-671b",
        "kimi-k2": "kimi-k2-1t",
        "gpt-oss-120b": "gpt-oss-120b",
        "gemma-2-27b": "gemma2-27b",
        "gpt3-175b": "gpt3-175b",
    }
)
"""Its model of a named one."""
PIPELINED = frozenset({"llama", "llama2-7b", "llama3-8b", "llama3-70b", "llama3.1-405b"})
"""Models of equal blocks, which it cuts into stages."""
QUANTIZED: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "tpu": {"fp8-delayed": "fp8"},
        "gpu": {
            "fp8-delayed": "te_fp8_delayedscaling",
            "fp8-tensorwise": "te_fp8_currentscaling",
            "mxfp8": "te_mxfp8",
            "nvfp4": "te_nvfp4",
        },
    }
)
"""The scheme of a recipe by hardware."""
# Scales of the steps before are kept from pass to pass, which its accumulation of gradients does not do.
UNACCUMULATED = frozenset({"fp8-delayed"})
TOKAMAX = frozenset({"ring", "ulysses"})
WAYS = ("all_gather", "ring", "ulysses")
ELSEWHERE = ("trainium", "gaudi", "wormhole")


def is_tpu(split: Split) -> bool:
    """Whether the chip is one of Google's."""
    return split.chip.startswith("tpu")


def require_there(split: Split) -> None:
    """Refuse what MaxText cannot run, with what to plan instead."""
    if split.chip.startswith(ELSEWHERE):
        raise InputError(split.model, f"a plan for {split.chip}", f"{VERSION} runs on TPUs and GPUs")
    if split.model not in MODELS and (split.model != "llama" or not split.sizes.get("gated", 1)):
        known = ", ".join(sorted(MODELS))
        raise InputError(split.model, f"{VERSION} has no such model", f"its own are {known}, or --llama by sizes")
    require_launchable(split, "MaxText")
    if split.model == "llama" and not {"mlp", "vocabulary"} <= set(split.sizes):
        raise InputError(split.model, "its sizes are not known", "plan with --llama hidden=...,mlp=...,vocabulary=...")
    _require_sharing(split)
    _require_kernels(split)
    if split.pipeline > 1:
        _require_pipeline(split)


def _require_sharing(split: Split) -> None:
    if split.zero == 2:
        seen = "gradients sharded over replicas that keep weights (ZeRO 2)"
        raise InputError(split.model, seen, f"{VERSION} shards optimizer state or everything; plan with --zero 1 or 3")
    for seen, degree in (("context parallelism", split.context), ("expert parallelism", split.expert)):
        if degree > 1 and split.zero != 3:
            what = f"{seen} over {degree} ranks with ZeRO {split.zero}"
            raise InputError(split.model, what, f"{VERSION} shards weights over these ranks too; plan with --zero 3")
    if split.data % split.expert or (split.expert > 1 and split.expert_tensor != split.tensor):
        seen = (
            f"experts over {split.expert} ranks of {split.expert_tensor} each, {split.data} replicas of {split.tensor}"
        )
        raise InputError(split.model, seen, f"{VERSION} splits experts as all else; plan with --tensor 1")
    if split.shards > 1 and (split.zero != 3 or split.context > 1 or (split.data // split.expert) % split.shards):
        seen = f"state sharded over {split.shard} ranks in {split.shards} groups"
        raise InputError(split.model, seen, f"{VERSION} has groups of whole replicas with ZeRO 3; plan without --shard")
    if split.context > 1:
        ways = WAYS if is_tpu(split) else ("all_gather", "ring")
        if split.context_way not in ways:
            raise InputError(
                split.model,
                f"a sequence shared by {split.context_way}",
                f"{VERSION} has {', '.join(ways)} here; plan with --context-way {ways[0]}",
            )


def _require_kernels(split: Split) -> None:
    known = QUANTIZED["tpu" if is_tpu(split) else "gpu"]
    if split.precision not in ("bf16", "fp32", *known):
        seen = f"products in {split.precision}"
        raise InputError(split.model, seen, f"{VERSION} has {', '.join(known)} here; plan with one or in bf16")
    if split.precision in UNACCUMULATED and split.rounds > 1 and split.pipeline == 1:
        seen = f"{split.precision} over {split.rounds} microbatches"
        raise InputError(split.model, seen, f"{VERSION} does not add up their gradients; plan with a larger microbatch")
    if not {*split.recompute} <= {"none", "full"}:
        seen = f"recompute {', '.join(sorted(set(split.recompute)))}"
        raise InputError(
            split.model, seen, f"{VERSION} names what it keeps otherwise; plan with --recompute none or full"
        )
    if split.optimizer not in ("adam", "sgd"):
        raise InputError(split.model, f"the optimizer {split.optimizer}", f"{VERSION} has adam and sgd; plan with one")
    if split.state is not None and split.state != StateBytes():
        seen = "an optimizer's state of its own types"
        raise InputError(split.model, seen, "plan with a stack without [state]")
    if split.context > 1 and split.attention == "eager":
        raise InputError(split.model, "eager attention over a shared sequence", "plan with --attention fused")


def _require_pipeline(split: Split) -> None:
    if split.model not in PIPELINED:
        seen = f"a pipeline of {split.model}"
        raise InputError(split.model, seen, f"{VERSION} cuts equal dense blocks into stages; plan without one")
    if split.schedule != "gpipe":
        raise InputError(
            split.model,
            f"the pipeline schedule {split.schedule}",
            f"{VERSION} runs all forward passes first; plan with --family gpipe, or with the stack maxtext",
        )
    if len({blocks for blocks, _, _ in split.stages}) > 1:
        raise InputError(split.model, "its stages are uneven", f"{VERSION} has even ones; plan with other stages")
    if split.rounds % split.pipeline:
        seen = f"{split.rounds} microbatches of a replica over {split.pipeline} stages"
        raise InputError(split.model, seen, f"{VERSION} needs a multiple; plan with another batch")
