"""Launch flags of a plan for Megatron-LM, by the parser and the checks of Megatron Core 0.19.2.

A pipeline is told as a layout, ``--pipeline-model-parallel-layout``: E what lies before the blocks, t a block, L what
lies after them, ``|`` between stages; with chunks, the stages of the first chunk of all ranks come first.
ZeRO 1 is the distributed optimizer, ZeRO 2 and 3 are Megatron-FSDP, which stands beside tensor parallelism but is not
documented beside a pipeline. What Megatron-LM cannot express is refused: see
:func:`phaze.export.source.require_launchable` and below. ``tests/export/against_releases.py`` gives every kind of plan
to the release itself.
"""

from collections.abc import Mapping
from types import MappingProxyType

from phaze import __version__
from phaze.errors import InputError
from phaze.export.flags import Choice, aligned
from phaze.export.megatron_model import BERT, SCRIPTS, model_choices, require_there
from phaze.export.megatron_shared import shared_choices
from phaze.export.source import Split, priced_elsewhere, require_launchable
from phaze.graph.saved.modes import ALTERNATE, JOIN, OFFLOAD
from phaze.hardware.stack import StateBytes

VERSION = "Megatron-LM with Megatron Core 0.19.2"
STACKS = ("megatron-core", "megatron-2021", "megatron-2022")
"""The stacks that price it."""
CONNECTIONS, OFFLOADS = "CUDA_DEVICE_MAX_CONNECTIONS", "NVTE_CPU_OFFLOAD_V1"


def layout(split: Split) -> str:
    """The pipeline as a layout string; chunk c of rank r is the stage c * ranks + r of the string."""
    if split.chunks == 1:
        return "|".join(_stage(blocks, before, after) for blocks, before, after in split.stages)
    pieces: list[list[str]] = []
    for number, (blocks, _, _) in enumerate(split.stages):
        if blocks % split.chunks:
            raise InputError(
                split.model,
                f"stage {number} has {blocks} blocks in {split.chunks} chunks",
                "plan with chunks that divide the blocks of a stage",
            )
        pieces.append([_stage(blocks // split.chunks, False, False)] * split.chunks)
    flat = [pieces[rank][chunk] for chunk in range(split.chunks) for rank in range(split.pipeline)]
    flat[0], flat[-1] = "E" + flat[0], flat[-1] + "L"
    return "|".join(flat)


def _stage(blocks: int, before: bool, after: bool) -> str:
    own = "" if blocks == 0 else "t" if blocks == 1 else f"t*{blocks}"
    return f"{'E' if before else ''}{own}{'L' if after else ''}"


def _even(split: Split) -> bool:
    """Whether Megatron-LM cuts the pipeline so without being told."""
    first, last = split.stages[0], split.stages[-1]
    return len({blocks for blocks, _, _ in split.stages}) == 1 and first[1] and last[2] and split.chunks == 1


def _pipeline(split: Split) -> list[Choice]:
    if split.pipeline == 1:
        return [Choice("--pipeline-model-parallel-size", "1", "no pipeline")]
    if split.schedule not in ("1f1b", "interleaved"):
        seen = f"{VERSION} runs 1F1B, interleaved or not; plan with --family 1f1b,interleaved"
        raise InputError(split.model, f"the pipeline schedule {split.schedule}", seen)
    found = [Choice("--pipeline-model-parallel-size", str(split.pipeline), "stages of a replica")]
    if _even(split):
        return found
    if SCRIPTS.get(split.model) == BERT:
        raise InputError(
            split.model, "its stages are uneven", "Megatron-LM's layouts are for decoders; plan with even stages"
        )
    why = "uneven stages: E before the blocks, t a block, L after them"
    if split.chunks > 1:
        why = f"{split.chunks} virtual stages a rank, the first of every rank first"
        if split.rounds % split.pipeline:
            raise InputError(
                split.model,
                f"{split.rounds} microbatches of a replica are not a multiple of its {split.pipeline} stages",
                "Megatron-LM needs one; plan with another batch or without chunks",
            )
    return [*found, Choice("--pipeline-model-parallel-layout", f'"{layout(split)}"', why)]


# What Megatron Core 0.19 can keep in the memory of the host where it cannot keep whole blocks there.
OFFLOADED = "attn_norm qkv_linear core_attn attn_proj mlp_norm expert_fc1 moe_act"


def _offload(split: Split) -> list[Choice]:
    """Activations in the memory of the host."""
    mode = split.recompute[0]
    if mode != OFFLOAD:
        raise InputError(
            split.model,
            f"'{mode}': parts of a block are recomputed and the rest is offloaded",
            "Megatron-LM offloads what it does not recompute; plan with --recompute offload",
        )
    if split.pipeline == 1 and split.blocks > 1:
        why = "activations wait in the memory of the host, those of the last block on the device"
        return [Choice("--cpu-offloading-num-layers", str(split.blocks - 1), why)]
    return [
        Choice("--fine-grained-activation-offloading", None, "activations wait in the memory of the host"),
        Choice("--offload-modules", OFFLOADED, "all that can: inside a dense MLP they stay on the device"),
    ]


def _recompute(model: str, mode: str) -> list[Choice]:
    if mode == "full":
        return [
            Choice("--recompute-granularity", "full", "every block runs its forward pass again"),
            Choice("--recompute-method", "uniform", "block by block"),
            Choice("--recompute-num-layers", "1", "only the input of each block is kept"),
        ]
    if mode == "selective":
        return [
            Choice("--recompute-granularity", "selective", "only what is cheap to compute again"),
            Choice("--recompute-modules", "core_attn", "scores, softmax and dropout of attention"),
        ]
    if mode == ALTERNATE:
        raise InputError(model, "every second block is recomputed", "Megatron-LM recomputes modules or whole blocks")
    if mode != "none":
        return [
            Choice("--recompute-granularity", "selective", "parts of every block"),
            Choice("--recompute-modules", mode.replace(JOIN, " "), "the parts that are recomputed"),
        ]
    return []


HYBRID = "products in fp8: E4M3 forward, E5M2 for gradients"
FP8_RECIPES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "fp8": ("delayed", "hybrid", HYBRID),
        "fp8-delayed": ("delayed", "hybrid", HYBRID),
        "fp8-tensorwise": ("tensorwise", "hybrid", HYBRID),
        "fp8-block": ("blockwise", "e4m3", "products in fp8: E4M3 with a scale for every 128 values"),
        "mxfp8": ("mxfp8", "e4m3", "products in fp8: E4M3 with a scale for every 32 values"),
    }
)
"""Megatron-LM's word for a recipe, its format, and why."""


def _precision(split: Split) -> list[Choice]:
    if split.precision == "fp32":
        return []
    found = [Choice("--bf16", None, "weights and activations in bf16, state in fp32")]
    if split.precision == "nvfp4":
        found += [
            Choice("--fp4-format", "e2m1", "products in 4 bits"),
            Choice("--fp4-recipe", "nvfp4", "a scale for every 16 values"),
        ]
    elif split.precision in FP8_RECIPES:
        name, form, why = FP8_RECIPES[split.precision]
        found += [Choice("--fp8-format", form, why), Choice("--fp8-recipe", name, f"the plan's {split.precision}")]
        if split.low_precision_weights:
            found.append(Choice("--fp8-param-gather", None, "weights are held and gathered in fp8"))
    return found


def _fsdp(split: Split) -> list[Choice]:
    if split.pipeline > 1:
        raise InputError(
            split.model,
            f"ZeRO {split.zero} with a pipeline of {split.pipeline} stages",
            "Megatron-FSDP is documented with tensor parallelism only; plan with --zero 1",
        )
    kind, what = ("optim_grads", "gradients") if split.zero == 2 else ("optim_grads_params", "gradients and weights")
    return [
        Choice("--use-megatron-fsdp", None, f"ZeRO {split.zero}"),
        Choice("--data-parallel-sharding-strategy", kind, f"each replica keeps its share of state, {what}"),
        Choice("--use-distributed-optimizer", None, "Megatron-FSDP needs it"),
        Choice("--no-gradient-accumulation-fusion", None, "Megatron-FSDP needs it before Transformer Engine 2.10"),
        Choice("--ckpt-format", "fsdp_dtensor", "the one form of checkpoint that Megatron-FSDP writes"),
    ]


DTYPES: Mapping[str, tuple[str, Mapping[float, str]]] = MappingProxyType(
    {
        "gradient": ("--main-grads-dtype", {4.0: "fp32", 2.0: "bf16"}),
        "main_weight": ("--main-params-dtype", {4.0: "fp32", 2.0: "fp16"}),
        "first_moment": ("--exp-avg-dtype", {4.0: "fp32", 2.0: "bf16", 1.0: "fp8"}),
        "second_moment": ("--exp-avg-sq-dtype", {4.0: "fp32", 2.0: "bf16", 1.0: "fp8"}),
    }
)
"""Megatron-LM's word for a part of the optimizer's state, and its types by bytes."""


def _aware(split: Split) -> list[Choice]:
    """The types of the optimizer's state, where the stack has others than the usual."""
    if split.state is None or split.state == StateBytes() or split.optimizer != "adam":
        return []
    if split.zero == 0:
        raise InputError(
            split.model,
            "an optimizer's state of its own types without ZeRO",
            "Megatron-LM's precision-aware optimizer is distributed; plan with --zero 1",
        )
    found = [Choice("--use-precision-aware-optimizer", None, "state in the types that the stack says")]
    for part, (flag, names) in DTYPES.items():
        size = getattr(split.state, part)
        if size not in names:
            allowed = ", ".join(f"{known:g}" for known in names)
            raise InputError(split.model, f"{size:g} bytes of {part} a parameter", f"Megatron-LM holds {allowed}")
        found.append(Choice(flag, names[size], f"{size:g} bytes a parameter"))
    return found


def _state(split: Split) -> list[Choice]:
    found = [*_precision(split), Choice("--optimizer", split.optimizer, "as planned")]
    if split.optimizer == "sgd":
        found.append(Choice("--sgd-momentum", "0.0", "the plan keeps no momentum"))
    if split.zero == 1:
        found.append(Choice("--use-distributed-optimizer", None, "ZeRO 1: each replica keeps its share of the state"))
    if split.zero > 1:
        found += _fsdp(split)
    if split.shards > 1:
        why = f"{split.shards} groups of {split.shard} ranks shard state, and reduce over each other"
        found.append(Choice("--num-distributed-optimizer-instances", str(split.shards), why))
    found += _aware(split)
    if split.hides_synchronisation and split.data > 1:
        found.append(Choice("--overlap-grad-reduce", None, "the plan assumes overlapped synchronisation"))
        if split.zero > 0:
            found.append(Choice("--overlap-param-gather", None, "the plan assumes overlapped synchronisation"))
    return found


def choices(split: Split) -> list[Choice]:
    """Every flag of the plan, or an InputError that says why there is none."""
    require_there(split)
    require_launchable(split, "Megatron-LM")
    found = [
        *model_choices(split),
        Choice("--tensor-model-parallel-size", str(split.tensor), "width of a tensor group"),
    ]
    if split.sequence_parallel and split.tensor > 1:
        found.append(Choice("--sequence-parallel", None, "norms and dropout split over the tensor group too"))
    found += shared_choices(split) + _pipeline(split)
    if split.order == "pipeline" and split.pipeline > 1 and split.data > 1:
        found.append(Choice("--use-tp-pp-dp-mapping", None, "stages of a replica adjacent, replicas further apart"))
    attention = ("flash", "scores never leave the chip")
    if split.attention == "eager":
        attention = ("unfused", "the plan keeps the scores; auto may be faster and smaller")
    return [
        *found,
        Choice("--micro-batch-size", str(split.microbatch), "sequences that pass the pipeline together"),
        Choice(
            "--global-batch-size", str(split.batch), f"{split.rounds} microbatches in each of {split.data} replicas"
        ),
        *(_offload(split) if OFFLOAD in split.recompute[0] else _recompute(split.model, split.recompute[0])),
        *_state(split),
        Choice("--attention-backend", *attention),
    ]


def environment(split: Split) -> str:
    """The lines that set what the flags need of the environment."""
    found = ""
    if split.zero > 1:
        found = f"unset {CONNECTIONS}  # Megatron-FSDP refuses to start with 1\n"
    elif split.tensor > 1 or split.context > 1:
        found = f"export {CONNECTIONS}=1  # tensor and context parallelism need it on GPUs before Blackwell\n"
    if OFFLOAD in split.recompute[0] and split.pipeline > 1:
        found += f"export {OFFLOADS}=1  # weights stay on the device, with Transformer Engine 2.10 or later\n"
    return found


def _words(split: Split) -> str:
    words = split.sizes.get("vocabulary")
    return "" if words is None else f" of {words:,} words, as planned,"


def differences(split: Split) -> list[str]:
    """What Megatron-LM will do otherwise than planned: it runs a plan as it is, with its own kernels."""
    return priced_elsewhere(split, "Megatron-LM", "megatron-core", STACKS)


def megatron(split: Split) -> str:
    """A shell file that sets MEGATRON_FLAGS."""
    lines = [(f"  {c.name}{'' if c.value is None else ' ' + c.value}", c.why) for c in choices(split)]
    used = split.processes
    script = SCRIPTS.get(split.model, "your pretraining script")
    return (
        f"# {split.model} on {used} x {split.chip}: flags for {VERSION}, by phaze {__version__}.\n"
        f"# The data-parallel degree, {split.data}, follows from the {used} processes that are started.\n"
        + "".join(f"# Not as planned: {one}.\n" for one in differences(split))
        + f"{environment(split)}MEGATRON_FLAGS=(\n{aligned(lines)}\n)\n"
        f"# Then, with data, a tokenizer{_words(split)} and a learning rate of your own,\n"
        f"# and torchrun's own options for {used} processes:\n"
        f'#   torchrun ... {script} "${{MEGATRON_FLAGS[@]}}" ...\n'
    )
