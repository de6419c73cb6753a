"""Launch flags of Megatron-LM, by the parser and the checks of Megatron Core 0.19.2.

ZeRO 1 is the distributed optimizer, ZeRO 2 and 3 are Megatron-FSDP, which stands beside tensor
parallelism but is not documented beside a pipeline. ``tests/export/against_releases.py`` gives
every kind of plan to the release itself.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from phaze import __version__
from phaze.evaluate.recomputing import mode_named, with_offload
from phaze.export.flag import SAME, Flag, Framework, Limit, Line, above_one, when, with_others
from phaze.export.limits import COMMON, has_special_state
from phaze.export.megatron_model import (
    MODEL,
    NOT_THERE,
    is_not_there,
    script_of,
    stated_model,
    stated_sizes,
)
from phaze.export.megatron_pipeline import PIPELINE, PIPELINE_LIMITS, stated_stages
from phaze.export.megatron_shared import (
    SHARED,
    SHARED_LIMITS,
    adjacent_stages,
    require_priced_groups,
)
from phaze.export.notation import aligned, not_as_planned, shell_value
from phaze.export.shell import flags_of, words_of
from phaze.export.source import PlannedSplit
from phaze.export.values import Values, Words
from phaze.graph.saved.modes import ALTERNATE, JOIN, OFFLOAD

VERSION = "Megatron-LM with Megatron Core 0.19.2"
CONNECTIONS, OFFLOADS = "CUDA_DEVICE_MAX_CONNECTIONS", "NVTE_CPU_OFFLOAD_V1"
SHARDING: Mapping[int, str] = MappingProxyType(
    {0: "no_shard", 1: "optim", 2: "optim_grads", 3: "optim_grads_params"}
)
"""Megatron-FSDP's strategy by ZeRO stage."""
HYBRID = "products in fp8: E4M3 forward, E5M2 for gradients"
OF_128, OF_32 = (f"products in fp8: E4M3 with a scale for every {n} values" for n in (128, 32))
FP8_RECIPES: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "fp8": ("delayed", "hybrid", HYBRID),
        "fp8-delayed": ("delayed", "hybrid", HYBRID),
        "fp8-tensorwise": ("tensorwise", "hybrid", HYBRID),
        "fp8-block": ("blockwise", "e4m3", OF_128),
        "mxfp8": ("mxfp8", "e4m3", OF_32),
    }
)
"""Megatron-LM's word for a recipe, its format, and why."""
DTYPES: Mapping[str, tuple[str, Mapping[float, str]]] = MappingProxyType(
    {
        "gradient": ("--main-grads-dtype", {4.0: "fp32", 2.0: "bf16"}),
        "main_weight": ("--main-params-dtype", {4.0: "fp32", 2.0: "fp16"}),
        "first_moment": ("--exp-avg-dtype", {4.0: "fp32", 2.0: "bf16", 1.0: "fp8"}),
        "second_moment": ("--exp-avg-sq-dtype", {4.0: "fp32", 2.0: "bf16", 1.0: "fp8"}),
    }
)
"""Megatron-LM's word for a part of the optimizer's state, and its types by bytes."""
OFFLOADED = "attn_norm qkv_linear core_attn attn_proj mlp_norm expert_fc1 moe_act"
"""What Megatron Core 0.19 can keep in the memory of the host where it cannot keep whole blocks
there."""
BACKENDS: Mapping[str, str | None] = MappingProxyType(
    {"auto": None, "unfused": "eager", "local": "eager"}
)
"""Attention by its backends; every other one is fused."""


def _offloads(split: PlannedSplit) -> bool:
    return OFFLOAD in split.recompute[0]


def _offloads_blocks(split: PlannedSplit) -> bool:
    """Whether whole blocks can be offloaded: without a pipeline, all but the last."""
    return _offloads(split) and split.pipeline == 1 and split.blocks > 1


def _has_other_state(split: PlannedSplit) -> bool:
    """Whether the optimizer must be told the types of its state."""
    return has_special_state(split) and split.optimizer == "adam"


def _state_bytes(split: PlannedSplit, part: str) -> float:
    return float(getattr(split.state, part))


def _dtype(part: str, name: str, types: Mapping[float, str]) -> Flag:
    return Flag(
        name,
        value=lambda split: types[_state_bytes(split, part)],
        reason=lambda split: f"{_state_bytes(split, part):g} bytes a parameter",
    )


def _dtype_limit(part: str, types: Mapping[float, str]) -> Limit:
    return Limit(
        lambda split: _has_other_state(split) and _state_bytes(split, part) not in types,
        lambda split: f"{_state_bytes(split, part):g} bytes of {part} a parameter",
        f"Megatron-LM holds {', '.join(f'{size:g}' for size in types)}",
    )


BATCH = (
    Flag("--use-tp-pp-dp-mapping", "", True, "stages of a replica adjacent, replicas further apart",
         needed=adjacent_stages),
    Flag("--micro-batch-size", "microbatch", SAME, (
        "sequences that pass the "
        "pipeline together"
    ), default=1),
    Flag("--global-batch-size", "batch", SAME, (
        "{split.rounds} microbatches in each of "
        "{split.data} replicas"
    )),
    Flag("--nproc-per-node", "devices"),
    Flag("--nnodes", "devices", default=1),
)  # fmt: skip
RECOMPUTE = (
    Flag("--cpu-offloading-num-layers", "recompute", lambda split: split.blocks - 1,
         (
             "activations wait in the memory of the host, those of the last block on the "
             "device"
         ), needed=_offloads_blocks),
    *when(
        lambda split: _offloads(split) and not _offloads_blocks(split),
        Flag("--fine-grained-activation-offloading", "recompute", True, (
            "activations wait in the "
            "memory of the host"
        )),
        Flag("--offload-modules", "recompute", OFFLOADED, (
            "all that can: inside a dense MLP they "
            "stay on the device"
        )),
    ),
    *when(
        lambda split: split.recompute[0] == "full",
        Flag("--recompute-granularity", "recompute", "full", (
            "every block runs its "
            "forward pass again"
        )),
        Flag("--recompute-method", "recompute", "uniform", "block by block"),
        Flag("--recompute-num-layers", "recompute", "1", "only the input of each block is kept"),
    ),
    *when(
        lambda split: split.recompute[0] == "selective",
        Flag("--recompute-granularity", "recompute", "selective", (
            "only what is cheap to "
            "compute again"
        )),
        Flag("--recompute-modules", "recompute", "core_attn", (
            "scores, softmax and dropout "
            "of attention"
        )),
    ),
    *when(
        lambda split: split.recompute[0] not in ("none", "full",
        "selective") and not _offloads(split),
        Flag("--recompute-granularity", "recompute", "selective", "parts of every block"),
        Flag("--recompute-modules", "recompute",
        lambda split: split.recompute[0].replace(JOIN, " "),
             "the parts that are recomputed"),
    ),
    Flag("--recompute-activations", "recompute"),
)  # fmt: skip
PRECISION = (
    Flag("--bf16", "precision", True, "weights and activations in bf16, state in fp32",
         needed=lambda split: split.precision != "fp32"),
    Flag("--fp16", "precision"),
    *when(
        lambda split: split.precision == "nvfp4",
        Flag("--fp4-format", "precision", "e2m1", "products in 4 bits"),
        Flag("--fp4-recipe", "precision", "nvfp4", "a scale for every 16 values"),
    ),
    *when(
        lambda split: split.precision in FP8_RECIPES,
        Flag("--fp8-format", "precision", lambda split: FP8_RECIPES[split.precision][1],
             lambda split: FP8_RECIPES[split.precision][2]),
        Flag("--fp8-recipe", "precision", lambda split: FP8_RECIPES[split.precision][0],
             "the plan's {split.precision}", default="delayed"),
        Flag("--fp8-param-gather", "", lambda split: split.low_precision_weights or None,
             "weights are held and gathered in fp8"),
    ),
)  # fmt: skip
OPTIMIZER = (
    Flag("--optimizer", "optimizer", SAME, "as planned", Values.value),
    Flag("--sgd-momentum", "", "0.0", "the plan keeps no momentum",
    needed=lambda split: split.optimizer == "sgd"),
    Flag("--use-distributed-optimizer", "zero", True, (
        "ZeRO 1: each replica keeps its "
        "share of the state"
    ),
         needed=lambda split: split.zero == 1),
    *when(
        above_one("zero"),
        Flag("--use-megatron-fsdp", "zero", True, "ZeRO {split.zero}"),
        Flag("--data-parallel-sharding-strategy", "zero", SHARDING,
             lambda split: (
                 "each replica keeps its share of state, "
                 f"gradients{' and weights' * (split.zero == 3)}"
             ),
             with_others, default="no_shard"),
        Flag("--use-distributed-optimizer", "zero", True, "Megatron-FSDP needs it"),
        Flag("--no-gradient-accumulation-fusion", "", True, (
            "Megatron-FSDP needs it before "
            "Transformer Engine 2.10"
        )),
        Flag("--ckpt-format", "", "fsdp_dtensor", (
            "the one form of checkpoint that "
            "Megatron-FSDP writes"
        )),
    ),
    Flag("--num-distributed-optimizer-instances", "shards", SAME,
         (
             "{split.shards} groups of {split.shard} ranks shard state, and reduce over each "
             "other"
         ), default=1,
         needed=above_one("shards")),
    *when(
        _has_other_state,
        Flag("--use-precision-aware-optimizer", "", True, "state in the types that the stack says"),
        *(_dtype(part, name, types) for part, (name, types) in DTYPES.items()),
    ),
    *when(
        lambda split: split.hides_synchronisation and split.data > 1,
        Flag("--overlap-grad-reduce", "", True, "the plan assumes overlapped synchronisation"),
        Flag("--overlap-param-gather", "", lambda split: split.zero > 0 or None,
             "the plan assumes overlapped synchronisation"),
    ),
    Flag("--attention-backend", "attention", {"eager": "unfused", "fused": "flash"},
         {"eager": (
             "the plan keeps the scores; auto may be "
             "faster and smaller"
         ), "fused": "scores never leave the chip"},
         lambda values, name: BACKENDS.get(values.value(name) or "auto", "fused")),
)  # fmt: skip
LIMITS = (
    Limit(is_not_there, "Megatron-LM cannot run this plan", lambda split: NOT_THERE[split.model]),
    *COMMON,
    *SHARED_LIMITS,
    *PIPELINE_LIMITS,
    Limit(lambda split: _offloads(split) and split.recompute[0] != OFFLOAD,
          "'{split.recompute[0]}': parts of a block are recomputed and the rest is offloaded",
          "Megatron-LM offloads what it does not recompute; plan with --recompute offload"),
    Limit(lambda split: split.recompute[0] == ALTERNATE,
          "every second block is recomputed",
          "Megatron-LM recomputes modules or whole blocks"),
    Limit(lambda split: split.zero > 1 and split.pipeline > 1,
          "ZeRO {split.zero} with a pipeline of {split.pipeline} stages",
          "Megatron-FSDP is documented with tensor parallelism only; plan with --zero 1"),
    Limit(lambda split: _has_other_state(split) and split.zero == 0,
          "an optimizer's state of its own types without ZeRO",
          "Megatron-LM's precision-aware optimizer is distributed; plan with --zero 1"),
    *(_dtype_limit(part, types) for part, (_, types) in DTYPES.items()),
)  # fmt: skip


def _recompute(values: Values) -> str:
    granularity, method = "--recompute-granularity", "--recompute-method"
    if granularity not in values:
        return "selective" if "--recompute-activations" in values else "none"
    if values.choice(granularity, "granularity", ("selective", "full")) == "full":
        if values.value(method) == "block":
            seen = "block recomputes some blocks of a stage"
            raise values.fault(method, seen, "phaze prices uniform: all of them")
        return "full"
    modules = values.words("--recompute-modules") or ("core_attn",)
    # With core_attn alone Megatron-LM calls it selective; what that reruns is the stack's own.
    if list(modules) == ["core_attn"]:
        return "selective"
    return mode_named(JOIN.join(modules), f"{values.where}: --recompute-modules")


def _zero(values: Values) -> int:
    if "--use-megatron-fsdp" not in values:
        return int("--use-distributed-optimizer" in values)
    strategy = values.choice(
        "--data-parallel-sharding-strategy", "strategy", tuple(SHARDING.values())
    )
    return next(zero for zero, name in SHARDING.items() if name == strategy)


def _precision(values: Values) -> str:
    if "--fp4-format" in values:
        return "nvfp4"
    if "--fp8-format" in values:
        ours = {name: recipe for recipe, (name, _, _) in FP8_RECIPES.items()}
        return ours[values.choice("--fp8-recipe", "priced recipe", tuple(ours))]
    return "bf16" if "--bf16" in values or "--fp16" in values else "fp32"


def _together(values: Values) -> dict[str, Any]:
    """What several flags state together."""
    offloads = (
        values.count("--cpu-offloading-num-layers")
        or "--fine-grained-activation-offloading" in values
    )
    ranks, sizes = values.count("--nproc-per-node"), stated_sizes(values)
    is_fp16 = "--fp16" in values and _precision(values) == "bf16"
    require_priced_groups(values)
    return {
        **{f"sizes.{size}": number for size, number in sizes.items()},
        **stated_stages(values),
        "model": stated_model(values, sizes),
        "recompute": with_offload(_recompute(values)) if offloads else _recompute(values),
        "zero": _zero(values),
        "devices": None if ranks is None else ranks * values.required("--nnodes"),
        "precision": _precision(values),
        "assumed": ("fp16 is priced as bf16: both have two bytes",) if is_fp16 else (),
    }


def environment(split: PlannedSplit) -> str:
    """The lines that set what the flags need of the environment."""
    text = ""
    if split.zero > 1:
        text = f"unset {CONNECTIONS}  # Megatron-FSDP refuses to start with 1\n"
    elif split.tensor > 1 or split.context > 1:
        text = (
            f"export {CONNECTIONS}=1  # tensor and context parallelism need it on GPUs "
            "before Blackwell\n"
        )
    if _offloads(split) and split.pipeline > 1:
        text += (
            f"export {OFFLOADS}=1  # weights stay on the device, with Transformer Engine "
            "2.10 or later\n"
        )
    return text


def _write(split: PlannedSplit, lines: Sequence[Line], deviations: Sequence[str]) -> str:
    """A shell file that sets MEGATRON_FLAGS."""
    rows = [(f"  {line.name} {shell_value(line.value)}".rstrip(), line.reason) for line in lines]
    vocabulary = (
        f" of {split.sizes['vocabulary']:,} words, as planned,"
        if "vocabulary" in split.sizes
        else ""
    )
    return (
        f"# {split.model} on {split.processes} x {split.chip}: flags for {VERSION}, by "
        f"phaze {__version__}.\n"
        f"# The data-parallel degree, {split.data}, follows from the {split.processes} "
        "processes that are started.\n"
        f"{not_as_planned(deviations)}{environment(split)}MEGATRON_FLAGS=(\n{aligned(rows)}\n)\n"
        f"# Then, with data, a tokenizer{vocabulary} and a learning rate of your own,\n"
        f"# and torchrun's own options for {split.processes} processes:\n"
        f'#   torchrun ... {script_of(split)} "${{MEGATRON_FLAGS[@]}}" ...\n'
    )


def _parse(text: str, where: str) -> dict[str, Words]:
    return {name: Words(tuple(words)) for name, words in flags_of(words_of(text, where))}


def _recognises(path: str, text: str, where: str) -> bool:
    """Any text that is not of another notation and has the flags of a batch."""
    if path.endswith((".toml", ".yml", ".yaml")) or text.lstrip().startswith("{"):
        return False
    return not {"--micro-batch-size", "--global-batch-size"}.isdisjoint(_parse(text, where))


FRAMEWORK = Framework(
    key="megatron",
    version=VERSION,
    file="megatron.sh",
    described="a shell file with Megatron-LM's flags",
    stacks=("megatron-core", "megatron-2021", "megatron-2022"),
    flags=(*MODEL, *SHARED, *PIPELINE, *BATCH, *RECOMPUTE, *PRECISION, *OPTIMIZER),
    limits=LIMITS,
    form=shell_value,
    write=_write,
    parse=_parse,
    recognises=_recognises,
    together=_together,
)
