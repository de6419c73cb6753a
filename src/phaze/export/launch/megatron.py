"""Flags of Megatron-LM (Megatron Core 0.19.2) as a launch: the inverse of :mod:`phaze.export.megatron`.

tensor, pipeline, microbatch          --tensor-model-parallel-size, --pipeline-model-parallel-size, --micro-batch-size
chunks                                --num-virtual-stages-per-pipeline-rank, or layers / (pipeline x
                                      --num-layers-per-virtual-pipeline-stage), or the parts of a layout
blocks of a stage                     --pipeline-model-parallel-layout, --decoder-first-, -last-pipeline-num-layers
ZeRO 1, 2, 3                          --use-distributed-optimizer; Megatron-FSDP's sharding strategies
context, expert degrees               :mod:`phaze.export.launch.megatron_shared`
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError, unknown_name
from phaze.evaluate.recomputing import mode_asked, with_offload
from phaze.export.launch.flags import Flags
from phaze.export.launch.megatron_shared import SHARED, expert_sizes, shared_degrees
from phaze.export.launch.shell import flags_of, words_of
from phaze.export.launch.values import LAUNCH_FILES, Launch, stages_of
from phaze.graph.saved.modes import JOIN

SHARDING: Mapping[str, int] = MappingProxyType({"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3})
FP8: Mapping[str, str] = MappingProxyType(
    {"delayed": "fp8-delayed", "tensorwise": "fp8-tensorwise", "blockwise": "fp8-block", "mxfp8": "mxfp8"}
)
SIZES: Mapping[str, str] = MappingProxyType(
    {
        "--num-layers": "layers",
        "--hidden-size": "hidden",
        "--num-attention-heads": "heads",
        "--num-query-groups": "kv_heads",
        "--kv-channels": "head_dim",
        "--ffn-hidden-size": "mlp",
        "--vocab-size": "vocabulary",
    }
)
READ = frozenset(
    {
        *SHARED,
        *SIZES,
        "--tensor-model-parallel-size",
        "--pipeline-model-parallel-size",
        "--num-virtual-stages-per-pipeline-rank",
        "--num-layers-per-virtual-pipeline-stage",
        "--pipeline-model-parallel-layout",
        "--decoder-first-pipeline-num-layers",
        "--decoder-last-pipeline-num-layers",
        "--micro-batch-size",
        "--global-batch-size",
        "--seq-length",
        "--sequence-parallel",
        "--recompute-granularity",
        "--recompute-modules",
        "--recompute-activations",
        "--recompute-method",
        "--recompute-num-layers",
        "--use-distributed-optimizer",
        "--num-distributed-optimizer-instances",
        "--cpu-offloading-num-layers",
        "--fine-grained-activation-offloading",
        "--offload-modules",
        "--use-megatron-fsdp",
        "--data-parallel-sharding-strategy",
        "--bf16",
        "--fp16",
        "--fp8-format",
        "--fp8-recipe",
        "--fp4-format",
        "--fp4-recipe",
        "--optimizer",
        "--attention-backend",
        "--swiglu",
        "--squared-relu",
        "--untie-embeddings-and-output-weights",
        "--normalization",
        "--position-embedding-type",
        "--group-query-attention",
        "--nproc-per-node",
        "--nnodes",
    }
)


def layout_parts(text: str, where: str) -> list[int]:
    """Blocks of every part of a pipeline layout (``Et*3|t*4|t*4|t*3L``)."""
    plain = re.sub(r"\(([^()]*)\)\*([0-9]{1,4})", lambda match: match[1] * int(match[2]), text.replace(",", ""))
    plain = re.sub(r"([A-Za-z|])\*([0-9]{1,4})", lambda match: match[1] * int(match[2]), plain)
    parts = plain.split("|")
    strange = sorted(set(plain) - set("EtL|"))
    if strange or not plain or "E" not in parts[0] or "L" not in parts[-1] or plain.count("E") + plain.count("L") != 2:
        seen = f"'{text}' is not a layout of one decoder" + (f" ({', '.join(strange)})" if strange else "")
        raise InputError(where, seen, "E first, t a block, L last, | between stages")
    return [part.count("t") for part in parts]


def _stages(flags: Flags, pipeline: int) -> dict[str, Any]:
    where, layers = flags.where, flags.count("--num-layers")
    stated = flags.text("--pipeline-model-parallel-layout")
    if stated is not None:
        blocks, chunks = stages_of(layout_parts(stated, f"{where}: layout"), pipeline, f"{where}: layout")
        return {"chunks": chunks, "blocks": blocks}
    chunks = flags.count("--num-virtual-stages-per-pipeline-rank") or 1
    part = flags.count("--num-layers-per-virtual-pipeline-stage")
    if part is not None:
        if layers is None or layers % (pipeline * part):
            seen = f"parts of {part} layers do not divide {layers} layers over {pipeline} stages"
            raise InputError(f"{where}: --num-layers-per-virtual-pipeline-stage", seen, "give --num-layers, a multiple")
        chunks = layers // (pipeline * part)
    first, last = (flags.count(f"--decoder-{end}-pipeline-num-layers") for end in ("first", "last"))
    if first is None and last is None:
        return {"chunks": chunks}
    ends = (first is not None) + (last is not None)
    inner, left = pipeline - ends, (layers or 0) - (first or 0) - (last or 0)
    if layers is None or inner < 1 or left < inner or left % inner:
        raise InputError(f"{where}: --decoder-first-pipeline-num-layers", "the other stages do not come out even", "")
    middle = [left // inner] * inner
    return {"chunks": chunks, "blocks": [*([first] if first else []), *middle, *([last] if last else [])]}


def _recompute(flags: Flags) -> str:
    kind = flags.text("--recompute-granularity")
    if kind is None:
        return "selective" if "--recompute-activations" in flags else "none"
    if kind == "full":
        if flags.text("--recompute-method") == "block":
            where = f"{flags.where}: --recompute-method"
            raise InputError(where, "block recomputes some blocks of a stage", "phaze prices uniform: all of them")
        return "full"
    if kind != "selective":
        raise unknown_name(f"{flags.where}: --recompute-granularity", "granularity", kind, ("selective", "full"))
    modules = flags.found.get("--recompute-modules") or ["core_attn"]
    # With core_attn alone Megatron-LM calls it selective; what that reruns is the stack's own.
    where = f"{flags.where}: --recompute-modules"
    return "selective" if modules == ["core_attn"] else mode_asked(JOIN.join(modules), where)


def _offloads(flags: Flags) -> bool:
    return bool(flags.count("--cpu-offloading-num-layers")) or "--fine-grained-activation-offloading" in flags


def _zero(flags: Flags) -> int:
    if "--use-megatron-fsdp" in flags:
        kind = flags.text("--data-parallel-sharding-strategy") or "no_shard"
        if kind not in SHARDING:
            raise unknown_name(f"{flags.where}: --data-parallel-sharding-strategy", "strategy", kind, tuple(SHARDING))
        return SHARDING[kind]
    return 1 if "--use-distributed-optimizer" in flags else 0


def _model(flags: Flags, sizes: Mapping[str, int], sequence: int | None) -> dict[str, Any]:
    """The model by its sizes where the flags state all of them, else nothing."""
    needed = ("layers", "hidden", "heads", "vocabulary")
    if sequence is None or any(key not in sizes for key in needed):
        return {}
    if "--multi-latent-attention" in flags or "--qk-layernorm" in flags:  # neither family has these
        return {}
    tied = "--untie-embeddings-and-output-weights" not in flags
    if "experts" in sizes:
        return {"moe": {**sizes, "sequence": sequence, "tied": tied}} if "--swiglu" in flags else {}
    if "--swiglu" in flags or "--squared-relu" in flags:
        if "mlp" not in sizes:
            return {}
        ungated = {} if "--swiglu" in flags else {"gated": False}
        return {"llama": {**sizes, "sequence": sequence, "tied": tied, **ungated}}
    if sizes.get("mlp", 4 * sizes["hidden"]) != 4 * sizes["hidden"] or "kv_heads" in sizes:
        return {}
    return {"gpt": {key: sizes[key] for key in needed} | {"sequence": sequence}}


def _precision(flags: Flags) -> tuple[str | None, list[str]]:
    if "--fp4-format" in flags:
        return "nvfp4", []
    if "--fp8-format" in flags:
        kind = flags.text("--fp8-recipe") or "delayed"
        if kind not in FP8:
            raise unknown_name(f"{flags.where}: --fp8-recipe", "priced recipe", kind, tuple(FP8))
        return FP8[kind], []
    if "--fp16" in flags:
        return "bf16", ["fp16 is priced as bf16: both have two bytes"]
    return ("bf16" if "--bf16" in flags else "fp32"), []


def _attention(flags: Flags) -> str | None:
    kind = flags.text("--attention-backend")
    return None if kind in (None, "auto") else "eager" if kind in ("unfused", "local") else "fused"


def megatron_launch(text: str, where: str) -> Launch:
    """The launch that a file of Megatron-LM's flags describes."""
    flags = Flags(dict(flags_of(words_of(text, where))), where)
    if not {"--micro-batch-size", "--global-batch-size"} & set(flags.found):
        seen = "it has neither --micro-batch-size nor --global-batch-size"
        raise InputError(where, seen, f"give {LAUNCH_FILES}")
    pipeline = flags.count("--pipeline-model-parallel-size") or 1
    sizes = {key: number for name, key in SIZES.items() if (number := flags.count(name)) is not None}
    sequence = flags.count("--seq-length")
    sizes |= expert_sizes(flags, sizes)
    precision, assumed = _precision(flags)
    ranks, nodes = flags.count("--nproc-per-node"), flags.count("--nnodes")
    plan = {
        "tensor": flags.count("--tensor-model-parallel-size") or 1,
        "pipeline": pipeline,
        "microbatch": flags.count("--micro-batch-size") or 1,
        "sequence_parallel": "--sequence-parallel" in flags,
        "recompute": with_offload(_recompute(flags)) if _offloads(flags) else _recompute(flags),
        "zero": _zero(flags),
        **_stages(flags, pipeline),
        **shared_degrees(flags),
    }
    return Launch(
        framework="megatron",
        plan=plan,
        stack="megatron-core",
        batch=flags.count("--global-batch-size"),
        sequence=sequence,
        devices=None if ranks is None else ranks * (nodes or 1),
        model=_model(flags, sizes, sequence),
        sizes=sizes,
        precision=precision,
        optimizer=flags.text("--optimizer"),
        attention=_attention(flags),
        not_read=tuple(sorted(set(flags.found) - READ)),
        assumed=tuple(assumed),
        shards=flags.count("--num-distributed-optimizer-instances") or 1,
    )
