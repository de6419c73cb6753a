"""What was requested of the plans that a certificate speaks of: it is stated, and the problem has
no other plans.

A plan is the fastest of those that its problem lists. Where they are fewer than what is usual, the
claim must say so: whoever requested no recompute but ``full`` has no proof that no plan is faster.
What is usual of recompute, ZeRO, chunks and sharding is the same for every model; what is usual of
degrees and microbatches is the model's affair, which phaze itself compares where the model is
bundled. Where state is sharded over some ranks, ZeRO 0 shards none.
"""

from collections.abc import Mapping
from typing import Any

from .reading import require

ZEROS = frozenset({0, 1, 2, 3})
OPTIONS = frozenset({
    "tensor", "microbatch", "context", "context_way", "expert", "zero", "shard", "recompute",
    "attention", "family",
    "chunks", "headroom",
})  # fmt: skip


def require_restrictions(model: Mapping[str, Any], stated: Any) -> None:
    """Refuse restrictions that are not those of the problem's plans."""
    require(isinstance(stated, dict), "restricted: it is no table")
    more = sorted(set(stated) - OPTIONS)
    require(not more, f"restricted.{more[0] if more else ''}: no option has that name")
    training, graphs = model["training"], model["graphs"]
    searched = {
        "tensor": {graph["tensor"] for graph in graphs},
        "microbatch": {graph["microbatch"] for graph in graphs},
        "context": {graph.get("context", 1) for graph in graphs},
        "expert": {graph.get("expert", 1) for graph in graphs},
        "context_way": {graph["context_way"] for graph in graphs if graph.get("context", 1) > 1},
        "attention": {graph["attention"] for graph in graphs},
        "zero": set(training["zeros"]),
        "shard": set(training.get("shards", [0])),
        "recompute": {way["recompute"] for way in model["configurations"]},
        "family": set(training["machine"]["stack"]["families"]),
        "chunks": set(training["chunks"] or ()),
        "headroom": {training["headroom"]},
    }
    for key, value in stated.items():
        allowed = set(value) if isinstance(value, list) else {value}
        require(bool(allowed), f"restricted.{key}: nothing is allowed")
        other = sorted(searched[key] - allowed, key=str)
        require(
            not other, f"restricted.{key}: the problem has plans with {other[0] if other else ''}"
        )
    usual = {
        "zero": ZEROS - {0} if "shard" in stated else ZEROS,
        "shard": {0},
        "recompute": {"best"},
    }
    for key, values in usual.items():
        require(
            key in stated or searched[key] == values,
            f"restricted: {key} is restricted, and the claim is silent",
        )
    require(
        "chunks" in stated or training["chunks"] is None,
        "restricted: chunks are, and the claim is silent",
    )
