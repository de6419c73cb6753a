"""MaxText's configuration: YAML as release 0.2.5 reads it (``maxtext.trainers.pre_train.train
FILE``).

Weights are sharded over the axes fsdp, context and expert alike, so a plan with context or
expert parallelism must shard weights too, ZeRO 3; the axis data replicates them, with the
optimizer's state sharded if ``shard_optimizer_over_data`` says so, ZeRO 1. A pipeline is one
program that is differentiated whole: all forward passes come before the first backward pass, which
is GPipe; what lies before and after the blocks is no part of it.

A microbatch is what all devices work on together, and ``per_device_batch_size`` its sequences over
all devices::

    per_device_batch_size = microbatch * data / devices         gradient_accumulation_steps = rounds
    per_device_batch_size = microbatch * data * rounds / devices             in a pipeline, which cuts it into rounds

Only flat files are read: a key and a plain value a line. ``tests/export/against_maxtext.py`` has
every kind of plan read by the release itself.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import Any

from phaze import __version__
from phaze.export.flag import SAME, Condition, Flag, Framework, Line, above_one, when
from phaze.export.maxtext_limits import (
    GPU_RECIPES,
    LIMITS,
    MODELS,
    TPU_RECIPES,
    VERSION,
    WAYS,
    by_sizes,
    is_tpu,
    recipes,
    share,
)
from phaze.export.maxtext_mesh import MESH, degrees
from phaze.export.notation import aligned, flat_yaml, not_as_planned, yaml_value
from phaze.export.source import PlannedSplit
from phaze.export.values import MOST, Values

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
"""Its keys for the sizes of a llama."""
POLICIES: Mapping[str, str] = MappingProxyType(
    {"full": "full", "minimal_with_context": "none", "minimal_flash": "none"}
)
"""Recompute by its policies, as far as they are priced."""
GPU_FLAGS = "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true"
TPU_FLAGS = (
    "LIBTPU_INIT_ARGS='--xla_tpu_enable_async_collective_fusion=true "
    "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true "
    "--xla_tpu_overlap_compute_collective_tc=true'"
)
"""What lets the compiler run collectives behind products, as the release's own scripts say it."""


def _size(size: str) -> Callable[[PlannedSplit], int]:
    """A size of a llama that is not named."""
    usual: Mapping[str, Callable[[Mapping[str, int]], int]] = {
        "kv_heads": lambda sizes: sizes["heads"],
        "head_dim": lambda sizes: sizes["hidden"] // sizes["heads"],
    }  # fmt: skip
    return lambda split: split.sizes[size] if size in split.sizes else usual[size](split.sizes)


def _attention(split: PlannedSplit) -> str:
    if split.attention == "eager":
        return "dot_product"
    return "flash" if is_tpu(split) else "cudnn_flash_te"


MODEL = when(
    by_sizes,
    Flag("decoder_block", "model", "llama2", (
        "rotary positions, RMS "
        "norms, a gated MLP"
    ), default="llama2"),
    *(Flag(name, "model", _size(size), "of the model") for name, size in SIZES.items()),
    Flag("mlp_activations", "model", ["silu", "linear"], "gated MLP"),
    Flag("logits_via_embedding", "model", lambda split: bool(split.sizes.get("tied", 0)),
         "whether embeddings are tied", default=False),
    Flag("enable_dropout", "model", False, "the model has no dropout"),
)  # fmt: skip
STAGES = when(
    above_one("pipeline"),
    Flag(
        "num_pipeline_microbatches",
        "batch",
        lambda split: split.rounds,
        "microbatches of a replica",
        default=-1,
    ),
    Flag(
        "num_layers_per_pipeline_stage",
        "pipeline",
        lambda split: split.stages[0][0],
        "blocks of a stage",
    ),
    Flag("num_pipeline_repeats", "chunks", 1, "every block once, no circles", default=1),
)
SHARED_SEQUENCE = when(
    above_one("context"),
    Flag("context_parallel_strategy", "context_way", {way: way for way in WAYS},
    "how ranks share a sequence",
         default="all_gather"),
    Flag("use_tokamax_splash", "context_way",
         lambda split: True if is_tpu(split) and split.context_way in ("ring", "ulysses") else None,
         "{split.context_way} needs this kernel on TPUs"),
    Flag("context_parallel_load_balance", "context_way",
         lambda split: False if split.context_way == "ulysses" else None, (
             "every rank sees "
             "whole sequences"
         )),
)  # fmt: skip
KERNELS = (
    Flag("dtype", "precision", lambda split: "float32" if split.precision == "fp32" else "bfloat16",
         "products as planned", default="bfloat16"),
    Flag("weight_dtype", "precision", "float32", "weights that the optimizer updates"),
    Flag("opt_type", "optimizer", {"adam": "adamw", "sgd": "sgd"}, "as planned",
         lambda values, name: "adam" if values.word(name).startswith("adam") else values.word(name),
         default="adamw"),
    Flag("attention", "attention", _attention,
         {"fused": "scores never leave the chip", "eager": "the plan keeps the scores"},
         lambda values, name: "eager" if values.word(name) == "dot_product" else "fused",
         default="autoselected"),
    Flag("remat_policy", "recompute", {"none": "minimal_with_context", "full": "full"},
         {"none": (
             "every product and the "
             "attention are kept"
         ), "full": (
             "every block is recomputed, "
             "its input kept"
         )},
         lambda values, name: POLICIES[values.choice(name, "priced policy", tuple(POLICIES))],
         default="full"),
    Flag("quantization", "precision", lambda split: recipes(split).get(split.precision),
         "products in {split.precision}", default=""),
)  # fmt: skip
FLAGS = (
    Flag("base_config", "stack", "base.yml", "the release's own defaults, where nothing follows"),
    Flag("model_name", "model", lambda split: MODELS.get(split.model), "{split.model}'s sizes",
    default="default"),
    *MODEL,
    Flag("hardware", "stack", lambda split: "tpu" if is_tpu(split) else "gpu", (
        "{split.processes} x "
        "{split.chip}"
    )),
    Flag("per_device_batch_size", "microbatch", share, (
        "{split.microbatch} sequences a "
        "replica of {split.data}"
    ),
         default=12),
    Flag("max_target_length", "sequence", SAME, "positions of a sequence", default=2048),
    Flag("packing", "batch", False, "the plan counts whole sequences"),
    *STAGES,
    Flag("gradient_accumulation_steps", "batch", lambda split: split.rounds,
    "microbatches of a replica", default=1,
         needed=lambda split: split.pipeline == 1 and split.rounds > 1),
    *MESH,
    Flag("shard_optimizer_over_data", "zero", True, (
        "each replica keeps its share of "
        "the state (ZeRO 1)"
    ),
         default=False, needed=lambda split: split.zero == 1),
    *SHARED_SEQUENCE,
    *KERNELS,
)  # fmt: skip


def _rounds(values: Values, pipeline: int) -> int:
    """Microbatches that a pipeline cuts what all devices work on into."""
    if pipeline == 1:
        return 1
    if values.open_count("num_pipeline_repeats") > 1:
        raise values.fault("num_pipeline_repeats", "circles are not priced", "give 1")
    return values.open_count("num_pipeline_microbatches") or pipeline


def _batch(values: Values, devices: int, microbatches: int, data: int) -> dict[str, int]:
    each = values.value("per_device_batch_size")
    if isinstance(each, bool) or not isinstance(each, int | float) or not 0 < each < MOST:
        raise values.fault(
            "per_device_batch_size", f"{each!r} is out of range", "give a number above 0"
        )
    together = int(devices * each)  # as the release rounds it
    if together == 0 or together % microbatches:
        seen = (
            f"{together} sequences on {devices} devices are not whole microbatches of {data} "
            "replicas"
        )
        raise values.fault("per_device_batch_size", seen, "give one that they divide")
    steps = values.required("gradient_accumulation_steps")
    return {"microbatch": together // microbatches, "batch": together * steps}


def _model(values: Values) -> dict[str, Any]:
    name = values.word("model_name")
    ours = {theirs: word for word, theirs in MODELS.items()}
    if name in ours:
        return {"model": ours[name]}
    if all(name in values for name in SIZES) and values.word("decoder_block") == "llama2":
        sizes: dict[str, Any] = {size: values.count(name) for name, size in SIZES.items()}
        sequence, tied = values.count("max_target_length"), values.switch("logits_via_embedding")
        return {"llama": {**sizes, "sequence": sequence, "tied": tied}}
    return {}


def _precision(values: Values) -> str:
    ours = {theirs: word for words in (TPU_RECIPES, GPU_RECIPES) for word, theirs in words.items()}
    if values.word("quantization"):
        return ours[values.choice("quantization", "priced scheme", tuple(ours))]
    return "fp32" if values.word("dtype") == "float32" else "bf16"


def _together(values: Values) -> dict[str, Any]:
    """What the mesh states, and what depends on it."""
    mesh = degrees(values)
    tensor, pipeline, expert = (
        mesh["tensor"] * mesh["tensor_sequence"],
        mesh["pipeline"],
        mesh["expert"],
    )
    devices, data = prod(mesh.values()), mesh["fsdp"] * mesh["data"] * expert
    shares_weights = mesh["fsdp"] * mesh["context"] * expert > 1
    return {
        "tensor": tensor,
        "context": mesh["context"],
        "expert": expert,
        "expert_tensor": tensor,
        "pipeline": pipeline,
        "family": "gpipe",
        "chunks": 1,
        "sequence_parallel": mesh["tensor_sequence"] > 1,
        "zero": 3 if shares_weights else int(values.switch("shard_optimizer_over_data")),
        **_batch(values, devices, data * _rounds(values, pipeline), data),
        "devices": devices,
        "model": _model(values),
        "precision": _precision(values),
        "shards": mesh["data"] if shares_weights else 1,
    }


def _write(split: PlannedSplit, lines: Sequence[Line], deviations: Sequence[str]) -> str:
    text = (
        f"# {split.model} on {split.processes} x {split.chip}: a configuration for "
        f"{VERSION}, by phaze {__version__}.\n"
        "# Start it on every host: python3 -m maxtext.trainers.pre_train.train THIS_FILE "
        "run_name=...\n"
    )
    if split.hides_synchronisation:
        text += (
            f"# with {TPU_FLAGS if is_tpu(split) else GPU_FLAGS}: the plan assumes "
            "overlapped collectives.\n"
        )
    rows = [(f"{line.name}: {yaml_value(line.value)}", line.reason) for line in lines]
    return text + not_as_planned(deviations) + aligned(rows) + "\n"


DEVIATIONS: tuple[tuple[Condition, str], ...] = (
    (lambda split: split.recompute[0] == "none",
     (
         "element-wise operators between products are recomputed in the backward pass, "
         "inside its fusions"
     )),
    (lambda split: split.pipeline > 1,
     "what lies before and after the blocks is shared over all devices, no part of a stage"),
)  # fmt: skip
FRAMEWORK = Framework(
    key="maxtext",
    version=VERSION,
    file="maxtext.yml",
    described="a MaxText YAML",
    stacks=("maxtext",),
    flags=FLAGS,
    limits=LIMITS,
    form=yaml_value,
    write=_write,
    parse=flat_yaml,
    recognises=lambda path, text, where: path.endswith((".yml", ".yaml")),
    deviations=DEVIATIONS,
    together=_together,
)
