"""For every key of profiles, operators and graphs: a document, another value, and who must notice
or refuse it."""

import json
from pathlib import Path
from typing import Any

from phaze.graph import store
from phaze.graph.zoo import load_family
from tests.keys import answers
from tests.keys.cases import Base, Case, same
from tests.keys.small import GPT

# -- profiles and operators
# ------------------------------------------------------------------------------------------


def profile(folder: Path) -> dict[str, Any]:
    """Six layers at two widths under rules cluster, in little memory."""
    widths = {}
    for width in (1, 2):
        layers = [
            {"id": at, "forward_s": 0.01 / width, "backward_s": 0.02 / width,
            "parameter_bytes": 2e8 / width,
             "activation_bytes": 4e8 / width, "sharded": width > 1, "selective_bytes": 3e8 / width,
             "selective_s": 0.001, "full_s": 0.009 / width,
             "tied": "words" if at in (0, 5) else None,
             "tied_bytes": 1e8 if at in (0, 5) else None}
            for at in range(6)
        ]  # fmt: skip
        rows = [
            {key: value for key, value in layer.items() if value is not None} for layer in layers
        ]
        edges = [{"from": at, "to": at + 1, "bytes": 1e8} for at in range(5)]
        widths[str(width)] = {"layers": rows, "edges": edges}
    levels = [
        {"name": "node", "kind": "switch", "size": 4, "bandwidth": 1e10, "latency": 1e-5},
        {"name": "rack", "kind": "switch", "size": 4, "bandwidth": 1e9, "latency": 1e-4},
    ]
    return {
        "schema": "phaze.profile/1", "rules": "cluster", "devices": 16, "hbm_bytes": 6e9,
        "microbatches": 16,
        "optimizer": "adam", "recompute": "best", "cluster": levels, "stack": "megatron-2021",
        "precision": "bf16",
        "zero": 0, "schedule": "1f1b", "hbm_bytes_per_s": 1e12, "widths": widths,
    }  # fmt: skip


def flat_profile(folder: Path) -> dict[str, Any]:
    found = profile(folder)
    for key in ("cluster", "stack", "precision", "zero", "schedule", "hbm_bytes_per_s"):
        del found[key]
    for table in found["widths"].values():
        for layer in table["layers"]:
            for key in ("selective_bytes", "selective_s", "full_s", "tied", "tied_bytes"):
                layer.pop(key, None)
    return found | {"rules": "icml24", "link_bytes_per_s": 1e9}


def deep_profile(folder: Path) -> dict[str, Any]:
    """One width and no copies, so that stages, transfers and recomputing are all that is left."""
    found = profile(folder)
    del found["widths"]["2"]
    return found | {"devices": 4, "recompute": "selective", "microbatches": 4}


def _layer(key: str, value: Any, at: int = 0) -> Case:
    return (f"widths.layers.{key}", f"widths/1/layers/{at}/{key}", value)


PROFILE = Base(
    profile,
    answers.of_profile,
    (
        *same(("stack", "megatron-core")),
        ("cluster.kind", "cluster/0/kind", "torus"),
        ("cluster.size", "cluster/0/size", 8),
        ("cluster.bandwidth", "cluster/1/bandwidth", 100000000.0),
        ("cluster.latency", "cluster/1/latency", 0.01),
        ("cluster.shape", "cluster/0/shape", [2, 2]),
        ("cluster.share", "cluster/0/share", 0.5),
        ("cluster.start", "cluster/0/start", 0.5),
        ("cluster.local", "cluster/0/local", 1000000000.0),
        ("cluster.small_start", "cluster/0/small_start", 0.5),
        ("cluster.small_share", "cluster/0/small_share", 0.5),
        ("cluster.small_step", "cluster/0/small_step", 0.5),
        ("cluster.piece", "cluster/0/piece", 0.5),
        ("cluster.in_switch_share", "cluster/0/in_switch_share", 0.5),
    ),
    keys="""
    rules devices hbm_bytes microbatches optimizer recompute link_bytes_per_s precision zero schedule
    hbm_bytes_per_s
    """,
)
FLAT = Base(
    flat_profile,
    answers.of_profile,
    (
        *same(("link_bytes_per_s", 1e8), ("optimizer", "sgd")),
        *(("widths.layers.sharded", f"widths/2/layers/{at}/sharded", False) for at in (0,)),
    ),
)
DEEP = Base(
    deep_profile,
    answers.of_profile,
    (
        _layer("id", 7),
        _layer("forward_s", 0.5),
        _layer("backward_s", 0.5),
        _layer("parameter_bytes", 4e8),
        _layer("activation_bytes", 5e8),
        _layer("selective_bytes", 1e8),
        _layer("selective_s", 0.009),
        _layer("tied", "other"),
        _layer("tied_bytes", 1e3),
        ("widths.layers.full_s", "recompute", True),
        ("widths.edges.from", "widths/1/edges/0/from", 1),
        ("widths.edges.to", "widths/1/edges/0/to", 3),
        ("widths.edges.bytes", "widths/1/edges/1/bytes", 1e10),
    ),
)


def split_profile(folder: Path) -> dict[str, Any]:
    found = deep_profile(folder) | {"recompute": False, "schedule": "zb-h1", "hbm_bytes": 8e9}
    for table in found["widths"].values():
        table["layers"] = [row | {"weight_s": row["backward_s"] / 2} for row in table["layers"]]
    return found


def full_profile(folder: Path) -> dict[str, Any]:
    return deep_profile(folder) | {"recompute": True}


FULL = Base(full_profile, answers.of_profile, (_layer("full_s", 0.001),))
SPLIT = Base(
    split_profile, answers.of_profile, (_layer("weight_s", 0.0), ("schedule", "schedule", "1f1b"))
)


def operators(folder: Path, rules: str = "overlap") -> dict[str, Any]:
    rows = [
        {"id": "a", "core": "tensor", "one_core_s": 4.0, "all_cores_s": 1.0, "hbm_s": 0.5},
        {"id": "b", "core": "vector", "one_core_s": 2.0, "all_cores_s": 1.0, "hbm_s": 0.8},
        {"id": "c", "core": "none", "one_core_s": 0.5, "all_cores_s": 0.5},
        {"id": "d", "core": "tensor", "one_core_s": 4.0, "all_cores_s": 1.0, "hbm_s": 1.0},
    ]
    head = {"schema": "phaze.operators/1", "rules": rules, "tensor_cores": 4, "vector_cores": 2}
    return head | {"operators": rows, "edges": [["a", "c"]]}


def beside_each_other(folder: Path) -> dict[str, Any]:
    found = operators(folder, "companions")
    found["operators"][2]["beside"] = ["d"]
    return found


def _operator(key: str, value: Any, at: int = 0) -> Case:
    return (f"operators.{key}", f"operators/{at}/{key}", value)


OPERATORS = Base(
    operators,
    answers.of_operators,
    (
        ("rules", "rules", "serial"),
        ("tensor_cores", "tensor_cores", 0),
        ("vector_cores", "vector_cores", 0),
        ("edges", "edges", [["c", "a"], ["c", "b"], ["c", "d"]]),
        _operator("core", "vector"),
        _operator("one_core_s", 0.5),
        _operator("all_cores_s", 9.0),
        _operator("network", True, 3),
        _operator("hbm_s", 0.95),
        _operator("id", "b"),
    ),
)
BESIDE = Base(beside_each_other, answers.of_operators, (_operator("beside", [], 2),))

# -- graphs
# ----------------------------------------------------------------------------------------------------------


def small_graph(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(store.dumps(load_family("gpt", GPT, tensor=2, microbatch=1)))
    del found["summary"]
    return found


LAYER = "layers/1"
GRAPH = Base(
    small_graph,
    answers.of_graph,
    (
        ("tensor", "tensor", 4),
        ("microbatch", "microbatch", 2),
        ("sequence", "sequence", 64),
        ("sequence_parallel", "sequence_parallel", True),
        ("attention", "attention", "fused"),
        ("context", "context", 2),
        ("context_way", "context_way", "ring"),
        ("expert", "expert", 2),
        ("expert_tensor", "expert_tensor", 2),
        ("summary", "summary", {"parameters": 1}),
        ("layers.tensors", f"{LAYER}/tensors/0/1", 1),
        ("layers.forward.operators", f"{LAYER}/forward/operators/0/4/0/1", 2**30),
        ("layers.forward.outputs", f"{LAYER}/forward/outputs", [10**6]),
        ("layers.backward.operators", f"{LAYER}/backward/operators/0/4/0/1", 2**30),
        ("layers.backward.outputs", f"{LAYER}/backward/outputs", [10**6]),
        ("layers.parameters", f"{LAYER}/parameters/0/2", 2**30),
        ("layers.none.saved", f"{LAYER}/none/saved", [10**6]),
        ("layers.none.saved_bytes", f"{LAYER}/none/saved_bytes", 2**40),
        ("layers.none.rerun.operators", f"{LAYER}/none/rerun", "forward"),
        ("layers.none.rerun.outputs", f"{LAYER}/none/rerun", "forward"),
        ("layers.selective.saved", f"{LAYER}/selective/saved", [10**6]),
        ("layers.selective.saved_bytes", f"{LAYER}/selective/saved_bytes", 1),
        ("layers.selective.rerun.operators", f"{LAYER}/selective/rerun/operators", []),
        ("layers.selective.rerun.outputs", f"{LAYER}/selective/rerun/outputs", [10**6]),
        ("layers.full.saved", f"{LAYER}/full/saved", [10**6]),
        ("layers.full.saved_bytes", f"{LAYER}/full/saved_bytes", 2**40),
        ("layers.full.rerun.operators", f"{LAYER}/full/rerun", {"operators": [], "outputs": []}),
        ("layers.full.rerun.outputs", f"{LAYER}/full/rerun", {"operators": [], "outputs": []}),
        ("layers.shared_bytes", f"{LAYER}/shared_bytes", 2**40),
        ("layers.input_bytes", f"{LAYER}/input_bytes", 2**40),
        ("layers.output_bytes", f"{LAYER}/output_bytes", 2**40),
        ("layers.sharded", f"{LAYER}/sharded", False),
        ("calls", "calls/1/0", 0),
        ("edges", "edges/2/2", 2**40),
        ("ties", "ties", []),
        ("approximations", "approximations", ["made"]),
    ),
)

PROBLEMS: dict[str, list[Base]] = {
    "phaze.profile/1": [PROFILE, FLAT, DEEP, FULL, SPLIT],
    "phaze.operators/1": [OPERATORS, BESIDE],
    "phaze.graph/1": [GRAPH],
}
