"""What the documents of a run may hold, and that they are about one question: graphs,
configurations, keys.

A key that is not in these lists has no meaning here, whatever its value: such a run is not covered.
"""

from itertools import product
from math import prod
from typing import Any

from .reading import cover, digest_of, listed, require

PROBLEM = frozenset({
    "schema", "residency", "space", "ownership", "models", "name", "hbm_bytes", "objective", "gap",
    "round_size",
    "baseline", "cluster", "budget", "rules", "front", "chip", "restricted",
})  # fmt: skip
OBJECTIVE = frozenset({"kind", "mean", "baseline"})
MODEL = frozenset({"name", "weight", "training", "configurations", "part", "graphs"})
DEGREES = ("context", "context_way", "expert", "expert_tensor")
ROW = frozenset(
    {"tensor", "microbatch", "sequence", "sequence_parallel", "attention", "digest", *DEGREES}
)
GRAPH = (ROW - {"digest"}) | {"name", "layers", "calls", "edges", "ties", "approximations"}
LAYER = frozenset({
    "name", "tensors", "forward", "backward", "parameters", "none", "selective", "full",
    "shared_bytes", "input_bytes",
    "output_bytes", "sharded",
})  # fmt: skip
"""The keys that this checker knows: with any other it would not know what a claim means."""


def of_graphs(problem: dict[str, Any], graphs: dict[str, Any]) -> None:
    """The graphs are those that the problem names, with what it says of them."""
    require(len(graphs["models"]) == len(problem["models"]), "graphs.json: it has other models")
    for model, own in zip(problem["models"], graphs["models"], strict=True):
        require(len(own) == len(model["graphs"]), f"graphs.json: {model['name']} has other graphs")
        for row, graph in zip(model["graphs"], own, strict=True):
            for key in ROW - {"digest"}:
                require(
                    row.get(key) == graph.get(key),
                    f"graphs.json: {key} of a graph is not what problem.json says",
                )
            require(
                row["digest"] == digest_of(graph),
                f"graphs.json: a graph of {model['name']} is not the problem's",
            )
        _all_configurations(model)


def _all_configurations(model: dict[str, Any]) -> None:
    """Every graph with every recompute that there is, every stage of ZeRO and every number of ranks
    that share out state: what a claim lists has no gaps."""
    ways = listed(model["configurations"], "configurations")
    every = [
        (way["graph"], way["recompute"], zero, way.get("shard", 0))
        for way in ways
        for zero in way["zeros"]
    ]
    modes, training = {way["recompute"] for way in ways}, model["training"]
    wanted = list(
        product(range(len(model["graphs"])), modes, training["zeros"], training.get("shards", [0]))
    )
    once = len(set(every)) == len(every) and len(set(wanted)) == len(wanted)
    require(once, "configurations: one of them is listed twice")
    require(
        set(every) == set(wanted),
        "configurations: not every graph with every recompute, ZeRO and shard",
    )


def known(problem: dict[str, Any], graphs: dict[str, Any]) -> None:
    """What of the two documents this checker has no rules for is not covered, whatever its
    value."""
    rows = [("problem", problem, PROBLEM)]
    if "objective" in problem:
        rows.append(("objective", problem["objective"], OBJECTIVE))
    for model in problem["models"]:
        rows += [("models", model, MODEL), *(("graphs", row, ROW) for row in model["graphs"])]
    for graph in (one for own in graphs["models"] for one in own):
        rows += [
            ("graphs.json", graph, GRAPH),
            *(("layers", layer, LAYER) for layer in graph["layers"]),
        ]
    for where, table, keys in rows:
        more = sorted(set(table) - keys)
        cover(
            not more, f"the key {where}.{more[0] if more else ''}, which this checker does not know"
        )
    _said_once(problem)


def _said_once(problem: dict[str, Any]) -> None:
    """What a problem says in two places is the same in both."""
    chip = problem["chip"] if "chip" in problem else problem["space"]["base"]
    for model in problem["models"]:
        machine = model["training"]["machine"]
        require(
            machine["host_bytes_per_s"] == chip.get("host_bytes_per_s"),
            "host_bytes_per_s: it is not the chip's",
        )
        sizes = [level["size"] for level in machine["cluster"]["levels"]]
        require(
            machine["cluster"]["devices"] == prod(sizes),
            "cluster.devices: it is not what the levels join",
        )
    if problem.get("baseline") is not None and "objective" in problem:
        require(
            problem["objective"]["baseline"] == problem["baseline"]["name"],
            "objective.baseline: it is another chip",
        )
