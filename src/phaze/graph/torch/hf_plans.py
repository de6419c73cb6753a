"""Tensor-parallel plans of transformers' models: ours where there is one, else the one that the
configuration ships.

Styles are translated (:data:`STYLES`; packed are two stacked matrices); any other is refused.
Embedding and head are split over the vocabulary, whatever the plan says of them.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError
from phaze.graph.torch.plans import PLANS, ShardingPlan, Style, TensorSplit

STYLES: Mapping[str, Style] = MappingProxyType(
    {
        "colwise": "column",
        "rowwise": "row",
        "packed_colwise": "packed",
        "moe_tp_experts": "experts",
        "colwise_gather_output": "gather",
        "rowwise_split_input": "split",
        "replicated_with_grad_allreduce": "summed",
        "mla_kv_a_proj": "tail",
    }
)
HEADS = ("attn", "attention")
VOCABULARY = ("lm_head", "embed_tokens", "embeddings")


def plan_of(config: Any, where: str) -> ShardingPlan | None:
    """The plan for a configuration, or None where neither we nor its authors have one."""
    ours = PLANS.get(config.model_type)
    if ours is not None:
        return ours
    shipped = getattr(config, "base_model_tp_plan", None)
    return translate(shipped, where) if shipped else None


def translate(shipped: Mapping[str, str], where: str) -> ShardingPlan:
    """A plan as transformers writes it, ``{"layers.*.mlp.up_proj": "colwise"}``, as ours."""
    expert_modules = [path for path, style in shipped.items() if style == "moe_tp_experts"]
    splits: list[TensorSplit] = []
    for path, style in shipped.items():
        if path.rsplit(".", 1)[-1] in VOCABULARY:
            continue
        if style not in STYLES:
            raise InputError(
                f"{where}: tensor-parallel plan",
                f"unknown style '{style}' for {path}",
                f"known: {', '.join(sorted(STYLES))}",
            )
        owner = next((module for module in expert_modules if path.startswith(module + ".")), None)
        if owner is not None:
            continue
        if style == "moe_tp_experts":
            splits.append(
                TensorSplit(f"*{path}", "experts", weights=_expert_weights(shipped, path, where))
            )
        else:
            unit = (
                "qk_rope_head_dim"
                if style == "mla_kv_a_proj"
                else "head_dim"
                if _of_heads(path, style)
                else ""
            )
            parts = 2 if style == "packed_colwise" else 1
            splits.append(TensorSplit(f"*{path}", STYLES[style], unit, parts))
    return ShardingPlan(tuple(splits))


def _of_heads(path: str, style: str) -> bool:
    """Whether what is cut are heads: then no head is cut in two. What is gathered again may be cut
    anywhere."""
    cuts = style in ("colwise", "rowwise", "packed_colwise")
    return cuts and any(word in path for word in HEADS)


def _expert_weights(
    shipped: Mapping[str, str], module: str, where: str
) -> tuple[tuple[str, int, int], ...]:
    """Weights (expert, out, in) of an experts module: by outputs (dimension 1) or inputs (dimension
    2)."""
    cuts = {"colwise": (1, 1), "packed_colwise": (1, 2), "rowwise": (2, 1)}
    weights: list[tuple[str, int, int]] = []
    for path, style in shipped.items():
        if path.startswith(module + "."):
            if style not in cuts:
                raise InputError(
                    f"{where}: tensor-parallel plan",
                    f"style '{style}' of {path} does not fit experts",
                )
            weights.append((path.removeprefix(module + "."), *cuts[style]))
    return tuple(sorted(weights, key=lambda cut: cut[1]))
