"""A job file of torchtitan (0.2.2, TOML) as a launch: the inverse of :mod:`phaze.export.torchtitan`.

FSDP that keeps weights gathered through the step (``fsdp_reshard_after_forward = "never"``) shares state and gradients,
ZeRO 2; one that gathers them again, ZeRO 3. ``default`` gathers again unless there is a pipeline.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError, unknown_name
from phaze.export.launch.values import Launch, stages_of
from phaze.export.torchtitan_limits import CONVERTERS, FLAVOURS, FOLDED, ROTATED, SCHEDULES
from phaze.graph.saved.modes import ALTERNATE
from phaze.hardware.stack import SPLIT_FAMILIES

# What a file without a key means, by the release's own defaults.
DEFAULTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "training": {"local_batch_size": 8, "global_batch_size": -1, "seq_len": 2048},
        "parallelism": {
            "tensor_parallel_degree": 1,
            "pipeline_parallel_degree": 1,
            "data_parallel_replicate_degree": 1,
            "data_parallel_shard_degree": -1,
            "context_parallel_degree": 1,
            "expert_parallel_degree": 1,
            "expert_tensor_parallel_degree": 1,
            "expert_parallel_comm_backend": "standard",
            "context_parallel_rotate_method": "allgather",
            "fsdp_reshard_after_forward": "default",
            "pipeline_parallel_schedule": "1F1B",
            "pipeline_parallel_microbatch_size": 1,
            "module_fqns_per_model_part": None,
        },
        "activation_checkpoint": {"mode": "selective", "selective_ac_option": "2"},
        "model": {"name": "llama3", "flavor": "debugmodel", "converters": []},
        "optimizer": {"name": "AdamW"},
    }
)
FAMILY: Mapping[str, str] = MappingProxyType({name: family for family, name in SCHEDULES.items()})
RESHARDS = ("default", "always", "never")


class Job:
    """A job file's values, with the release's defaults for what it does not say."""

    def __init__(self, raw: Mapping[str, Any], where: str) -> None:
        self.raw, self.where = raw, where

    def value(self, table: str, key: str, kind: type) -> Any:
        """A value of the kind that it must have."""
        own = self.raw.get(table, {})
        if not isinstance(own, Mapping):
            raise InputError(f"{self.where}: {table}", "it is not a table", f"write [{table}]")
        value = own.get(key, DEFAULTS[table][key])
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            raise InputError(f"{self.where}: {table}.{key}", f"{value!r} is no {kind.__name__}", "see torchtitan 0.2.2")
        return value

    def count(self, table: str, key: str) -> int:
        """A whole number above 0; -1, which leaves it to the framework, is 0."""
        value = self.value(table, key, int)
        if value == -1:
            return 0
        if not 1 <= value < 2**40:
            raise InputError(f"{self.where}: {table}.{key}", f"{value} is out of range", "give a number above 0")
        return int(value)

    def degree(self, key: str) -> int:
        """A degree of parallelism."""
        return self.count("parallelism", f"{key}_degree")

    def not_read(self) -> tuple[str, ...]:
        """Keys of the file that are not read."""
        return tuple(
            sorted(
                f"{table}.{key}"
                for table, own in self.raw.items()
                if isinstance(own, Mapping)
                for key in own
                if key not in DEFAULTS.get(table, {}) and f"{table}.{key}" != "training.mixed_precision_param"
            )
        )


def _stages(job: Job, pipeline: int) -> dict[str, Any]:
    kind = job.value("parallelism", "pipeline_parallel_schedule", str)
    if pipeline > 1 and kind not in FAMILY:
        where = f"{job.where}: parallelism.pipeline_parallel_schedule"
        raise unknown_name(where, "priced schedule", kind, list(FAMILY))
    family = FAMILY.get(kind, "1f1b") if pipeline > 1 else "1f1b"
    named = {"family": family} if family not in ("1f1b", "interleaved") else {}
    parts = job.value("parallelism", "module_fqns_per_model_part", list)
    if parts is None or pipeline == 1:
        return {"chunks": 1 if family in ("1f1b", "gpipe") else 2, **named}
    where = f"{job.where}: parallelism.module_fqns_per_model_part"
    if not all(isinstance(part, Sequence) and not isinstance(part, str) for part in parts):
        raise InputError(where, "a part is not a list of modules", 'write [["tok_embeddings", "layers.0"], ...]')
    counts = [sum(str(name).startswith("layers.") for name in part) for part in parts]
    if family in FOLDED and len(counts) == 2 * pipeline:  # the second chunks lie from the last rank back
        counts = [*counts[:pipeline], *counts[pipeline:][::-1]]
    blocks, chunks = stages_of(counts, pipeline, where)
    return {"chunks": chunks, "blocks": blocks, **named}


def _recompute(job: Job) -> str:
    mode = job.value("activation_checkpoint", "mode", str)
    if mode not in ("none", "selective", "full"):
        raise unknown_name(f"{job.where}: activation_checkpoint.mode", "mode", mode, ("none", "selective", "full"))
    option = job.value("activation_checkpoint", "selective_ac_option", str)
    if mode == "selective" and option == "2":
        return ALTERNATE
    if mode == "selective" and option != "op":
        where = f"{job.where}: activation_checkpoint.selective_ac_option"
        raise InputError(where, f"blocks in turn of {option} are not priced", 'phaze prices "op" and "2"')
    return str(mode)


def _zero(job: Job, shard: int, pipeline: int) -> int:
    kind = job.value("parallelism", "fsdp_reshard_after_forward", str)
    if kind not in RESHARDS:
        raise unknown_name(f"{job.where}: parallelism.fsdp_reshard_after_forward", "policy", kind, RESHARDS)
    if shard == 1:
        return 0
    again = kind == "always" or (kind == "default" and pipeline == 1)
    return 3 if again else 2


def _shared(job: Job) -> dict[str, Any]:
    """Context and expert degrees, as far as they are more than one."""
    found: dict[str, Any] = {}
    context, expert = job.degree("context_parallel") or 1, job.degree("expert_parallel") or 1
    if context > 1:
        ways = {kind: way for way, kind in ROTATED.items()}
        kind = job.value("parallelism", "context_parallel_rotate_method", str)
        if kind not in ways:
            raise unknown_name(f"{job.where}: parallelism.context_parallel_rotate_method", "way", kind, tuple(ways))
        found |= {"context": context, "context_way": ways[kind]}
    if expert > 1:
        found |= {"expert": expert, "expert_tensor": job.degree("expert_tensor_parallel") or 1}
    return found


def _precision(job: Job) -> str:
    converters = job.value("model", "converters", list)
    for recipe, (converter, _, _) in CONVERTERS.items():
        if converter in converters:
            return recipe
    kind = job.raw.get("training", {}).get("mixed_precision_param", "bfloat16")
    return "fp32" if kind == "float32" else "bf16"


def torchtitan_launch(raw: Mapping[str, Any], where: str, devices: int | None) -> Launch:
    """The launch that a job file describes; ``devices`` fill in a sharding degree of -1."""
    job = Job(raw, where)
    tensor, pipeline, shared = job.degree("tensor_parallel"), job.degree("pipeline_parallel"), _shared(job)
    context = int(shared.get("context", 1))
    replicate, shard = job.degree("data_parallel_replicate"), job.degree("data_parallel_shard")
    if shard == 0:
        if devices is None or devices % (tensor * pipeline * context * replicate):
            seen = "the sharding degree is left to the number of processes"
            raise InputError(f"{where}: parallelism.data_parallel_shard_degree", seen, "add --devices, a multiple")
        shard = devices // (tensor * pipeline * context * replicate)
    data, local = shard * replicate, job.count("training", "local_batch_size")
    microbatch = job.count("parallelism", "pipeline_parallel_microbatch_size") if pipeline > 1 else local
    flavour, stages = job.value("model", "flavor", str), _stages(job, pipeline)
    names = {value: key for key, value in FLAVOURS.items()}
    kind = (job.value("model", "name", str), flavour)
    optimizer = job.value("optimizer", "name", str)
    return Launch(
        framework="torchtitan",
        plan={
            "tensor": tensor,
            "pipeline": pipeline,
            "microbatch": microbatch,
            "sequence_parallel": tensor > 1,
            "recompute": _recompute(job),
            "zero": _zero(job, shard * context, pipeline),
            **stages,
            **shared,
        },
        # Blocks whose backward pass is split are not compiled.
        stack="torchtitan-eager" if stages.get("family") in SPLIT_FAMILIES else "torchtitan",
        batch=job.count("training", "global_batch_size") or local * data,
        sequence=job.count("training", "seq_len"),
        devices=tensor * pipeline * context * data,
        model={"model": names[kind]} if kind in names else {},
        precision=_precision(job),
        optimizer="adam" if optimizer in ("Adam", "AdamW") else optimizer.lower(),
        attention="fused",
        shards=replicate if shard * context > 1 else 1,
        not_read=job.not_read(),
    )
