"""Ranks that share a sequence, and experts, from Megatron-LM's flags: the inverse of
:mod:`phaze.export.megatron_shared`.

Without ``--expert-tensor-parallel-size`` experts are split as the tensor degree says, which a run means too.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError, unknown_name
from phaze.export.launch.flags import Flags
from phaze.export.megatron_shared import COMM_TYPES
from phaze.graph.split_context import hierarchy

SIZES: Mapping[str, str] = MappingProxyType(
    {
        "--num-experts": "experts",
        "--moe-router-topk": "active",
        "--moe-ffn-hidden-size": "expert_mlp",
        "--moe-shared-expert-intermediate-size": "shared_mlp",
    }
)
GROUPS = "--hierarchical-context-parallel-sizes"
SHARED = (
    *SIZES,
    "--context-parallel-size",
    "--cp-comm-type",
    GROUPS,
    "--expert-model-parallel-size",
    "--expert-tensor-parallel-size",
    "--moe-layer-freq",
    "--moe-grouped-gemm",
)
# Megatron-LM's own default.
USUAL_ACTIVE = 2
DENSE_FIRST = re.compile(r"\(\[0\]\*([0-9]{1,4})\+\[1\]\*([0-9]{1,4})\)")


def shared_degrees(flags: Flags) -> dict[str, Any]:
    """Context and expert degrees of a plan, as far as they are more than one."""
    found: dict[str, Any] = {}
    context = flags.count("--context-parallel-size") or 1
    if context > 1:
        ways = {**{kind: way for way, kind in COMM_TYPES.items()}, "a2a+p2p": "hierarchical"}
        kind = flags.text("--cp-comm-type") or "p2p"
        if kind not in ways:
            raise unknown_name(f"{flags.where}: --cp-comm-type", "priced way", kind, tuple(ways))
        found |= {"context": context, "context_way": ways[kind]}
        if kind == "a2a+p2p":
            sizes, priced = flags.found.get(GROUPS, []), [str(degree) for degree in hierarchy(context)]
            if list(sizes) != priced:
                seen = f"'{' '.join(sizes)}' is not priced"
                raise InputError(f"{flags.where}: {GROUPS}", seen, f"phaze prices {' '.join(priced)}")
    expert = flags.count("--expert-model-parallel-size") or 1
    if expert > 1:
        split = flags.count("--expert-tensor-parallel-size")
        found |= {"expert": expert, **({} if split is None else {"expert_tensor": split})}
    return found


def expert_sizes(flags: Flags, sizes: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a mixture of experts; nothing of other models."""
    if "--num-experts" not in flags:
        return {}
    found = {key: number for name, key in SIZES.items() if (number := flags.count(name)) is not None}
    if "mlp" in sizes:
        found.setdefault("expert_mlp", sizes["mlp"])
    pattern = flags.text("--moe-layer-freq")
    if pattern not in (None, "1"):
        match = DENSE_FIRST.fullmatch(pattern or "")
        if match is None or int(match[1]) + int(match[2]) != sizes.get("layers"):
            seen = f"'{pattern}' is not a number of dense layers before all others"
            raise InputError(
                f"{flags.where}: --moe-layer-freq", seen, "phaze prices ([0]*3+[1]*58), dense layers first"
            )
        found["dense_layers"] = int(match[1])
    return {"active": USUAL_ACTIVE, **found}
