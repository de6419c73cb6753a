"""A configuration of DeepSpeed (0.19.8, JSON) as a launch: the inverse of :mod:`phaze.export.deepspeed`.

What DeepSpeed leaves to the model's code, a configuration that phaze wrote says under ``reasons.planned``; of any other
one it is taken for granted that nothing is recomputed and attention is fused, and the answer says so.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError
from phaze.export.launch.values import Launch

READ = frozenset(
    {
        "train_batch_size",
        "train_micro_batch_size_per_gpu",
        "gradient_accumulation_steps",
        "bf16",
        "zero_optimization",
        "tensor_parallel",
        "sequence_parallel_size",
        "reasons",
    }
)
USUAL: Mapping[str, str] = MappingProxyType({"recompute": "none", "attention": "fused", "optimizer": "adam"})


def is_deepspeed(raw: Mapping[str, Any]) -> bool:
    """Whether a JSON document is a configuration of DeepSpeed."""
    return "zero_optimization" in raw or "train_micro_batch_size_per_gpu" in raw


def _count(raw: Mapping[str, Any], key: str, where: str, usual: int | None) -> int:
    value = raw.get(key, usual)
    if value is None:
        raise InputError(f"{where}: {key}", "it is not there", "state it")
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**40:
        raise InputError(f"{where}: {key}", f"{value!r} is out of range", "give a whole number")
    return value


def _table(raw: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    own = raw.get(key, {})
    if not isinstance(own, Mapping):
        raise InputError(f"{where}: {key}", "it is not a table", f'write "{key}": {{...}}')
    return own


def deepspeed_launch(raw: Mapping[str, Any], where: str) -> Launch:
    """The launch that a configuration describes."""
    batch, microbatch = (
        _count(raw, key, where, None) for key in ("train_batch_size", "train_micro_batch_size_per_gpu")
    )
    rounds = _count(raw, "gradient_accumulation_steps", where, 1)
    if not microbatch * rounds or batch % (microbatch * rounds) or not batch:
        seen = f"{batch} sequences are not a multiple of {rounds} x {microbatch}"
        raise InputError(f"{where}: train_batch_size", seen, "give microbatches of whole replicas")
    tensor = _count(_table(raw, "tensor_parallel", where), "autotp_size", f"{where}: tensor_parallel", 1) or 1
    context = _count(raw, "sequence_parallel_size", where, 1) or 1
    zero = _count(_table(raw, "zero_optimization", where), "stage", f"{where}: zero_optimization", 0)
    said = _table(_table(raw, "reasons", where), "planned", f"{where}: reasons")
    planned = {**USUAL, **{key: str(said[key]) for key in USUAL if key in said}}
    enabled = _table(raw, "bf16", where).get("enabled", False)
    return Launch(
        framework="deepspeed",
        plan={
            "tensor": tensor,
            "pipeline": 1,
            "microbatch": microbatch,
            "chunks": 1,
            "sequence_parallel": False,
            "recompute": planned["recompute"],
            "zero": zero,
            **({"context": context, "context_way": "ulysses"} if context > 1 else {}),
        },
        stack="megatron-deepspeed",
        batch=batch,
        devices=batch // (microbatch * rounds) * tensor * context,
        precision="bf16" if enabled is True else "fp32",
        optimizer=planned["optimizer"],
        attention=planned["attention"],
        not_read=tuple(sorted(set(raw) - READ)),
        assumed=() if said else ("nothing is recomputed", "attention is fused", "the optimizer is adam"),
    )
