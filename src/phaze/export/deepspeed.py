"""A plan as DeepSpeed's configuration: JSON as release 0.19.8 reads it, for ``deepspeed --deepspeed_config FILE``.

DeepSpeed shares out state (ZeRO), splits tensors of Hugging Face models by their own plans (AutoTP), and sequences by
exchanging heads (Ulysses); pipelines and experts are written in the model's code, recomputing too. What a configuration
cannot express is refused with the reason; what the code must do is said in the file. A reader of the file keeps what it
does not know, so the reason of every key stands in it, under ``reasons``.
"""

from typing import Any

from phaze import __version__
from phaze.documents import dumps
from phaze.errors import InputError
from phaze.export.flags import Choice
from phaze.export.source import Split, priced_elsewhere, require_launchable

VERSION = "DeepSpeed 0.19.8"
MOST_SPLIT_ZERO = 2
"""AutoTP trains with ZeRO 0 to 2."""


def _require_there(split: Split) -> None:
    """Refuse what a configuration of DeepSpeed cannot say."""
    require_launchable(split, "DeepSpeed")
    own = {
        "a pipeline": split.pipeline > 1,
        "experts distributed over ranks": split.expert > 1,
    }
    for seen, refused in own.items():
        if refused:
            raise InputError(split.model, seen, f"{VERSION} has it in the model's code, not in a file; plan without")
    if split.context > 1 and split.context_way != "ulysses":
        seen = f"a sequence shared over {split.context} ranks ({split.context_way})"
        raise InputError(split.model, seen, f"{VERSION} exchanges heads; plan with --context-way ulysses")
    if split.tensor > 1 and split.zero > MOST_SPLIT_ZERO:
        raise InputError(
            split.model,
            f"ZeRO {split.zero} with tensor parallelism",
            f"{VERSION} splits tensors with ZeRO 0 to {MOST_SPLIT_ZERO}; plan with --zero {MOST_SPLIT_ZERO}",
        )
    if split.shards > 1:
        seen = f"state sharded over {split.shard} ranks, in groups that are replicas"
        raise InputError(split.model, seen, f"{VERSION} shards it over all; plan without --shard")
    if split.precision not in ("bf16", "fp32"):
        raise InputError(split.model, f"products in {split.precision}", f"{VERSION} has bf16 and fp32; plan with one")
    if not {*split.recompute} <= {"none", "full"}:
        seen = f"recompute {', '.join(sorted(set(split.recompute)))}"
        raise InputError(split.model, seen, "the model's code recomputes whole blocks: phaze plan --recompute full")


def _rows(split: Split) -> list[tuple[str, Any, str]]:
    """Every key with its table, its value and why; refuses what a configuration cannot say."""
    _require_there(split)
    found = [
        ("train_batch_size", split.batch, "sequences of a batch"),
        ("train_micro_batch_size_per_gpu", split.microbatch, "sequences of a microbatch"),
        ("gradient_accumulation_steps", split.rounds, f"microbatches of one of {split.data} replicas"),
        ("bf16.enabled", split.precision == "bf16", "as planned"),
        ("zero_optimization.stage", split.zero, "optimizer state, then gradients, then weights are sharded"),
        ("zero_optimization.overlap_comm", split.hides_synchronisation, "whether the plan overlaps synchronisation"),
    ]
    if split.tensor > 1:
        found.append(("tensor_parallel.autotp_size", split.tensor, "width of a tensor group"))
    if split.context > 1:
        found.append(("sequence_parallel_size", split.context, "ranks that share a sequence by exchanging heads"))
    return found


def settings(split: Split) -> list[Choice]:
    """Every key of the plan, by its dotted name."""
    return [Choice(name, dumps(value), why) for name, value, why in _rows(split)]


def deepspeed(split: Split) -> str:
    """The configuration as text; refuses what it cannot express."""
    found: dict[str, Any] = {}
    rows = _rows(split)
    for name, value, _ in rows:
        table, _, key = name.rpartition(".")
        (found.setdefault(table, {}) if table else found)[key] = value
    notes = [f"phaze {__version__}: {split.model} on {split.processes} {split.chip}", f"read by {VERSION}"]
    reasons = {
        **{name: why for name, _, why in rows},
        "planned": {"recompute": split.recompute[0], "attention": split.attention, "optimizer": split.optimizer},
        "notes": notes + differences(split),
    }
    return dumps({**found, "reasons": reasons}, pretty=True) + "\n"


def differences(split: Split) -> list[str]:
    """What the code that is launched must do, or DeepSpeed does otherwise than planned."""
    found = priced_elsewhere(split, "DeepSpeed", "megatron-deepspeed", ("megatron-deepspeed",))
    if "full" in split.recompute:
        found.append("recompute every block: model.gradient_checkpointing_enable() in Hugging Face's classes")
    if split.tensor > 1 and split.sequence_parallel:
        found.append("AutoTP has no sequence parallelism: activations between its splits are held whole on every rank")
    if split.attention == "fused":
        found.append('fused attention: attn_implementation="flash_attention_2" or "sdpa" of the model')
    return found
