"""A configuration of MaxText (0.2.5, YAML) as a launch: the inverse of :mod:`phaze.export.maxtext`.

Only flat files are read: a key and a plain value a line. The degrees of an axis inside a slice and across slices count
as one; -1, which leaves one of them to the number of devices, needs ``--devices``.
"""

import json
import re
from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError, unknown_name
from phaze.export.launch.values import Launch
from phaze.export.maxtext_limits import MODELS, QUANTIZED, WAYS

# What a file without a key means, by the release's own base.yml.
DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "model_name": "default", "hardware": "tpu", "per_device_batch_size": 12, "gradient_accumulation_steps": 1,
        "max_target_length": 2048, "num_pipeline_microbatches": -1, "num_pipeline_repeats": -1,
        "shard_optimizer_over_data": False, "context_parallel_strategy": "all_gather", "dtype": "bfloat16",
        "opt_type": "adamw", "attention": "autoselected", "remat_policy": "full", "quantization": "",
        "decoder_block": "llama2", "logits_via_embedding": False,
    }
)  # fmt: skip
AXES = ("tensor", "tensor_sequence", "context", "expert", "pipeline", "fsdp", "data")
# Axes of its mesh that no plan of phaze has.
OTHERS = ("diloco", "fsdp_transpose", "sequence", "context_usp_ulysses", "context_autoregressive", "autoregressive")
LEFT_OPEN: Mapping[str, int] = MappingProxyType({"ici_fsdp_parallelism": -1, "dcn_data_parallelism": -1})
SIZES: Mapping[str, str] = MappingProxyType(
    {
        "base_emb_dim": "hidden",
        "base_num_decoder_layers": "layers",
        "base_num_query_heads": "heads",
        "base_num_kv_heads": "kv_heads",
        "head_dim": "head_dim",
        "base_mlp_dim": "mlp",
        "vocab_size": "vocabulary",
    }
)
KEPT: Mapping[str, str] = MappingProxyType({"full": "full", "minimal_with_context": "none", "minimal_flash": "none"})
"""Recompute by its policies, as far as they are priced."""
SILENT = frozenset({"base_config", "packing", "use_tokamax_splash", "context_parallel_load_balance", "weight_dtype"})
SILENT_SIZES = frozenset({"mlp_activations", "enable_dropout", "num_layers_per_pipeline_stage"})


def flat_values(text: str, where: str) -> dict[str, Any]:
    """The keys of a flat YAML file; anything deeper is refused with its line."""
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        plain = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if not plain or plain == "---":
            continue
        match = re.fullmatch(r"([A-Za-z_]\w*):\s+(\S.*)", plain)
        if match is None or match[1] in found:
            why = "it is there twice" if match else "it is not a key with a plain value"
            raise InputError(f"{where}: line {number}", why, "phaze reads flat files of MaxText, key: value")
        found[match[1]] = _plain(match[2])
    return found


def _plain(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return json.loads(text.replace("_", "") if re.fullmatch(r"[\d_.]+", text) else text)
    except (ValueError, RecursionError):
        return text.strip("'\"")


class Config:
    """A configuration's values, with the release's defaults for what it does not say."""

    def __init__(self, raw: Mapping[str, Any], where: str) -> None:
        self.raw, self.where = raw, where

    def word(self, key: str) -> str:
        """A name."""
        value = self.raw.get(key, DEFAULTS[key])
        if not isinstance(value, str):
            raise InputError(f"{self.where}: {key}", f"{value!r} is not a name", "see MaxText 0.2.5")
        return value

    def flag(self, key: str) -> bool:
        """A switch."""
        value = self.raw.get(key, DEFAULTS[key])
        if not isinstance(value, bool):
            raise InputError(f"{self.where}: {key}", f"{value!r} is neither true nor false", "give one of them")
        return value

    def count(self, key: str, usual: int) -> int:
        """A whole number above 0; -1, which leaves it open, is 0."""
        value = self.raw.get(key, usual)
        if isinstance(value, bool) or not isinstance(value, int) or not (value == -1 or 1 <= value < 2**40):
            raise InputError(f"{self.where}: {key}", f"{value!r} is out of range", "give a whole number above 0")
        return max(value, 0)

    def degrees(self, devices: int | None) -> dict[str, int]:
        """The degree of every axis; one that is left open comes from the devices."""
        keys = [f"{place}_{axis}_parallelism" for axis in (*AXES, *OTHERS) for place in ("ici", "dcn")]
        counts = {key: self.count(key, LEFT_OPEN.get(key, 1)) for key in keys}
        if "ici_fsdp_parallelism" in self.raw and "dcn_data_parallelism" not in self.raw:
            counts["dcn_data_parallelism"] = 1  # one slice, where nothing is said of more
        opened = [key for key, count in counts.items() if count == 0]
        known = prod(count for count in counts.values() if count)
        if opened:
            if len(opened) > 1 or devices is None or devices % known:
                seen = f"{' and '.join(opened)} left to the number of devices"
                raise InputError(self.where, seen, f"state all but one and give --devices, a multiple of {known}")
            counts[opened[0]] = devices // known
        found = {axis: counts[f"ici_{axis}_parallelism"] * counts[f"dcn_{axis}_parallelism"] for axis in AXES}
        for axis in OTHERS:
            if counts[f"ici_{axis}_parallelism"] * counts[f"dcn_{axis}_parallelism"] > 1:
                raise InputError(f"{self.where}: ici_{axis}_parallelism", "it is not priced", "leave it at 1")
        return found

    def not_read(self) -> tuple[str, ...]:
        """Keys of the file that are not read."""
        known = {f"{place}_{axis}_parallelism" for axis in (*AXES, *OTHERS) for place in ("ici", "dcn")}
        return tuple(sorted(set(self.raw) - known - set(DEFAULTS) - set(SIZES) - SILENT - SILENT_SIZES))


def _microbatch(config: Config, devices: int, data: int, pipeline: int) -> tuple[int, int]:
    """Sequences of a microbatch and of a batch."""
    share = config.raw.get("per_device_batch_size", DEFAULTS["per_device_batch_size"])
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 2**40:
        raise InputError(
            f"{config.where}: per_device_batch_size", f"{share!r} is out of range", "give a number above 0"
        )
    together = int(devices * share)  # as the release rounds it
    rounds = 1
    if pipeline > 1:
        rounds = config.count("num_pipeline_microbatches", -1) or pipeline
        if config.count("num_pipeline_repeats", 1) > 1:
            raise InputError(f"{config.where}: num_pipeline_repeats", "circles are not priced", "give 1")
    if together == 0 or together % (data * rounds):
        seen = f"{together} sequences on {devices} devices are not whole microbatches of {data} replicas"
        raise InputError(f"{config.where}: per_device_batch_size", seen, "give one that they divide")
    return together // (data * rounds), together * config.count("gradient_accumulation_steps", 1)


def _model(config: Config, sequence: int) -> dict[str, Any]:
    name = config.word("model_name")
    named = {theirs: ours for ours, theirs in MODELS.items()}
    if name in named:
        return {"model": named[name]}
    if set(SIZES) <= set(config.raw) and config.word("decoder_block") == "llama2":
        sizes = {size: config.count(key, 1) for key, size in SIZES.items()}
        return {"llama": {**sizes, "sequence": sequence, "tied": config.flag("logits_via_embedding")}}
    return {}


def _precision(config: Config) -> str:
    scheme = config.word("quantization")
    recipes = {theirs: ours for known in QUANTIZED.values() for ours, theirs in known.items()}
    if scheme and scheme not in recipes:
        raise unknown_name(f"{config.where}: quantization", "priced scheme", scheme, tuple(recipes))
    return recipes[scheme] if scheme else "fp32" if config.word("dtype") == "float32" else "bf16"


def _shared(config: Config, degrees: Mapping[str, int], tensor: int) -> dict[str, Any]:
    """Context and expert degrees, as far as they are more than one."""
    found: dict[str, Any] = {}
    if degrees["context"] > 1:
        way = config.word("context_parallel_strategy")
        if way not in WAYS:
            raise unknown_name(f"{config.where}: context_parallel_strategy", "priced way", way, WAYS)
        found |= {"context": degrees["context"], "context_way": way}
    if degrees["expert"] > 1:
        found |= {"expert": degrees["expert"], "expert_tensor": tensor}
    return found


def maxtext_launch(text: str, where: str, devices: int | None) -> Launch:
    """The launch that a configuration describes; ``devices`` fill in a degree of -1."""
    config = Config(flat_values(text, where), where)
    degrees = config.degrees(devices)
    if degrees["tensor"] > 1 and degrees["tensor_sequence"] > 1:
        raise InputError(f"{where}: ici_tensor_parallelism", "tensors are split over two axes", "use one of them")
    tensor, pipeline = degrees["tensor"] * degrees["tensor_sequence"], degrees["pipeline"]
    data = degrees["fsdp"] * degrees["data"] * degrees["expert"]
    used = tensor * pipeline * degrees["context"] * data
    microbatch, batch = _microbatch(config, used, data, pipeline)
    policy = config.word("remat_policy")
    if policy not in KEPT:
        raise unknown_name(f"{where}: remat_policy", "priced policy", policy, tuple(KEPT))
    shares = degrees["fsdp"] * degrees["context"] * degrees["expert"] > 1
    sequence = config.count("max_target_length", DEFAULTS["max_target_length"])
    optimizer = config.word("opt_type")
    return Launch(
        framework="maxtext",
        plan={
            "tensor": tensor,
            "pipeline": pipeline,
            "microbatch": microbatch,
            "chunks": 1,
            "sequence_parallel": degrees["tensor_sequence"] > 1,
            "recompute": KEPT[policy],
            "zero": 3 if shares else 1 if config.flag("shard_optimizer_over_data") else 0,
            **({"family": "gpipe"} if pipeline > 1 else {}),
            **_shared(config, degrees, tensor),
        },
        stack="maxtext",
        batch=batch,
        sequence=sequence,
        devices=used,
        model=_model(config, sequence),
        precision=_precision(config),
        optimizer="adam" if optimizer.startswith("adam") else optimizer,
        attention="eager" if config.word("attention") == "dot_product" else "fused",
        shards=degrees["data"] if shares else 1,
        not_read=config.not_read(),
    )
