"""A plan as MaxText's configuration: YAML as release 0.2.5 reads it (``maxtext.trainers.pre_train.train FILE``).

MaxText lays a mesh of named axes over the devices, each axis with a degree inside a slice (``ici``: a TPU pod, a node
of GPUs) and one across slices (``dcn``). Weights are shared out over the axes fsdp, context and expert alike, so a plan
with context or expert parallelism must share out weights too, ZeRO 3; the axis data replicates them, with the
optimizer's state shared out if ``shard_optimizer_over_data`` says so, ZeRO 1. A pipeline is one program that is
differentiated whole: all forward passes come before the first backward pass, which is GPipe; what lies before and after
the blocks is no part of it.

A microbatch is what all devices work on together, and ``per_device_batch_size`` its sequences over all devices::

    per_device_batch_size = microbatch * data / devices                      gradient_accumulation_steps = rounds
    per_device_batch_size = microbatch * data * rounds / devices             in a pipeline, which cuts it into rounds

``tests/export/against_maxtext.py`` has every kind of plan read by the release itself.
"""

from fractions import Fraction
from math import gcd

from phaze import __version__
from phaze.errors import InputError
from phaze.export.flags import Choice, aligned
from phaze.export.maxtext_limits import (
    MODELS,
    QUANTIZED,
    TOKAMAX,
    VERSION,
    is_tpu,
    require_there,
)
from phaze.export.source import Split, priced_elsewhere

GPU_FLAGS = "XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true"
TPU_FLAGS = (
    "LIBTPU_INIT_ARGS='--xla_tpu_enable_async_collective_fusion=true "
    "--xla_tpu_enable_async_collective_fusion_fuse_all_gather=true --xla_tpu_overlap_compute_collective_tc=true'"
)
"""What lets the compiler run collectives behind products, as the release's own scripts say it."""


def axes(split: Split) -> dict[str, int]:
    """The degrees of the mesh by axis, those that lie nearest to each other first."""
    shared = split.data // split.expert
    groups = split.shards if split.zero == 3 else shared
    found = {
        "tensor_sequence" if split.sequence_parallel else "tensor": split.tensor,
        "context": split.context,
        "expert": split.expert,
    }
    replicas = {"fsdp": shared // groups if split.zero == 3 else 1, "data": groups}
    stages = {"pipeline": split.pipeline}
    return {**found, **stages, **replicas} if split.order == "pipeline" else {**found, **replicas, **stages}


def inside(split: Split) -> dict[str, int]:
    """How much of each axis lies inside a slice, filled from the nearest on; refuses devices that fill no slices."""
    degrees = axes(split)
    if split.node == 0 or split.node >= split.processes:
        return degrees
    left, found = split.node, {}
    for axis, degree in degrees.items():
        found[axis] = gcd(degree, left)
        left //= found[axis]
    if left > 1 or split.processes % split.node:
        seen = f"{split.processes} devices on nodes of {split.node}, their degrees {_words(degrees)}"
        raise InputError(split.model, seen, f"{VERSION} needs degrees that fill whole nodes; plan for other devices")
    return found


def _words(degrees: dict[str, int]) -> str:
    return " x ".join(str(degree) for degree in degrees.values() if degree > 1)


def _mesh(split: Split) -> list[Choice]:
    why = {
        "tensor": "width of a tensor group",
        "tensor_sequence": "width of a tensor group, norms split over its positions",
        "context": "ranks that share a sequence, and weights",
        "expert": "ranks that experts are distributed and other weights sharded over",
        "fsdp": "replicas that shard state, gradients and weights (ZeRO 3)",
        "data": "replicas with whole weights",
        "pipeline": "stages of a replica",
    }
    degrees, within = axes(split), inside(split)
    found = []
    for axis, degree in degrees.items():
        if degree > 1 or axis in ("fsdp", "data"):
            found.append(Choice(f"ici_{axis}_parallelism", str(within[axis]), f"inside a slice: {why[axis]}"))
        across = degree // within[axis]
        if across > 1 or axis == "data":
            found.append(Choice(f"dcn_{axis}_parallelism", str(across), f"across slices: {why[axis]}"))
    if split.zero == 1:
        found.append(Choice("shard_optimizer_over_data", "true", "each replica keeps its share of the state (ZeRO 1)"))
    if split.context > 1:
        found.append(Choice("context_parallel_strategy", split.context_way, "how ranks share a sequence"))
        if is_tpu(split) and split.context_way in TOKAMAX:
            found.append(Choice("use_tokamax_splash", "true", f"{split.context_way} needs this kernel on TPUs"))
        if split.context_way == "ulysses":
            found.append(Choice("context_parallel_load_balance", "false", "every rank sees whole sequences"))
    return found


def _batch(split: Split) -> list[Choice]:
    rounds = split.rounds if split.pipeline > 1 else 1
    share = Fraction(split.microbatch * split.data * rounds, split.processes)
    value = share.numerator if share.denominator == 1 else float(share)
    if int(split.processes * value) != split.microbatch * split.data * rounds:
        seen = f"{share} sequences a device"
        raise InputError(split.model, seen, f"{VERSION} rounds them down; plan with another microbatch")
    found = [
        Choice("per_device_batch_size", str(value), f"{split.microbatch} sequences a replica of {split.data}"),
        Choice("max_target_length", str(split.sequence), "positions of a sequence"),
        Choice("packing", "false", "the plan counts whole sequences"),
    ]
    if split.pipeline > 1:
        found += [
            Choice("num_pipeline_microbatches", str(split.rounds), "microbatches of a replica"),
            Choice("num_layers_per_pipeline_stage", str(split.stages[0][0]), "blocks of a stage"),
            Choice("num_pipeline_repeats", "1", "every block once, no circles"),
        ]
    elif split.rounds > 1:
        found.append(Choice("gradient_accumulation_steps", str(split.rounds), "microbatches of a replica"))
    return found


def _model(split: Split) -> list[Choice]:
    if split.model in MODELS:
        return [Choice("model_name", MODELS[split.model], f"{split.model}'s sizes")]
    names = {
        "base_emb_dim": "hidden", "base_num_decoder_layers": "layers", "base_num_query_heads": "heads",
        "base_num_kv_heads": "kv_heads", "head_dim": "head_dim", "base_mlp_dim": "mlp", "vocab_size": "vocabulary",
    }  # fmt: skip
    sizes = {"kv_heads": split.sizes["heads"], "head_dim": split.sizes["hidden"] // split.sizes["heads"]} | dict(
        split.sizes
    )
    return [
        Choice("decoder_block", "llama2", "rotary positions, RMS norms, a gated MLP"),
        *(Choice(key, str(sizes[size]), "of the model") for key, size in names.items()),
        Choice("mlp_activations", '["silu", "linear"]', "gated MLP"),
        Choice("logits_via_embedding", str(bool(sizes.get("tied", 0))).lower(), "whether embeddings are tied"),
        Choice("enable_dropout", "false", "the model has no dropout"),
    ]


def _kernels(split: Split) -> list[Choice]:
    attention = ("dot_product", "the plan keeps the scores")
    if split.attention == "fused":
        attention = ("flash" if is_tpu(split) else "cudnn_flash_te", "scores never leave the chip")
    again = ("full", "every block is recomputed, its input kept")
    if split.recompute[0] == "none":
        again = ("minimal_with_context", "every product and the attention are kept")
    found = [
        Choice("dtype", "float32" if split.precision == "fp32" else "bfloat16", "products as planned"),
        Choice("weight_dtype", "float32", "weights that the optimizer updates"),
        Choice("opt_type", {"adam": "adamw"}.get(split.optimizer, split.optimizer), "as planned"),
        Choice("attention", *attention),
        Choice("remat_policy", *again),
    ]
    recipes = QUANTIZED["tpu" if is_tpu(split) else "gpu"]
    if split.precision in recipes:
        found.append(Choice("quantization", recipes[split.precision], f"products in {split.precision}"))
    return found


def differences(split: Split) -> list[str]:
    """What MaxText will do otherwise than planned, though it can run the plan."""
    found = priced_elsewhere(split, "MaxText", "maxtext", ("maxtext",))
    if split.recompute[0] == "none":
        found.append("element-wise operators between products are recomputed in the backward pass, inside its fusions")
    if split.pipeline > 1:
        found.append("what lies before and after the blocks is shared over all devices, no part of a stage")
    return found


def rows_of(split: Split) -> list[Choice]:
    """Every key of the plan, or an InputError that says why there is none."""
    require_there(split)
    return [
        Choice("base_config", "base.yml", "the release's own defaults, where nothing follows"),
        *_model(split),
        Choice("hardware", "tpu" if is_tpu(split) else "gpu", f"{split.processes} x {split.chip}"),
        *_batch(split),
        *_mesh(split),
        *_kernels(split),
    ]


def maxtext(split: Split) -> str:
    """The configuration as text; refuses what it cannot express."""
    rows, flags = rows_of(split), TPU_FLAGS if is_tpu(split) else GPU_FLAGS
    text = (
        f"# {split.model} on {split.processes} x {split.chip}: a configuration for {VERSION}, by phaze {__version__}.\n"
    )
    text += "# Start it on every host: python3 -m maxtext.trainers.pre_train.train THIS_FILE run_name=...\n"
    if split.hides_synchronisation:
        text += f"# with {flags}: the plan assumes overlapped collectives.\n"
    text += "".join(f"# Not as planned: {one}.\n" for one in differences(split))
    return text + aligned([(f"{row.name}: {row.value}", row.why) for row in rows]) + "\n"
