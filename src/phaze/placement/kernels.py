"""Compiling every kernel of the room: those of stage tables, bottlenecks and labels."""

from phaze.placement.answer import place
from phaze.placement.profile import problem_of


def warm() -> None:
    """Compile and cache every kernel of the room by placing a small profile of each kind."""
    numbers = {
        "forward_s": 1.0,
        "backward_s": 2.0,
        "parameter_bytes": 1.0,
        "activation_bytes": 1.0,
        "sharded": True,
    }
    layers = [{"id": i, **numbers} for i in range(3)]
    edges = [{"from": 0, "to": 1, "bytes": 1.0}, {"from": 1, "to": 2, "bytes": 1.0}]
    raw = {
        "schema": "phaze.profile/1",
        "devices": 4,
        "microbatches": 4,
        "optimizer": "sgd",
        "recompute": "best",
    }
    raw["widths"] = {"1": {"layers": layers, "edges": edges}}
    level = {"name": "all", "kind": "switch", "size": 4, "bandwidth": 1.0, "latency": 0.0}
    for memory in (100.0, 0.5):
        cluster = {**raw, "rules": "cluster", "hbm_bytes": memory, "cluster": [level]}
        flat = {**raw, "rules": "icml24", "hbm_bytes": memory, "link_bytes_per_s": 1.0}
        for document in (flat, {**cluster, "zero": 3}, {**cluster, "schedule": "gpipe"}):
            place(problem_of(document, "warm"))
