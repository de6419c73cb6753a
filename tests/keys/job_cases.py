"""For every key of runs, studies, profiles, operators and graphs: a document, another value, and who must notice."""

import json
from pathlib import Path
from typing import Any

from phaze.graph import store
from phaze.graph.zoo import load_family
from tests.keys import answers
from tests.keys.cases import Base, Case, same, space
from tests.keys.small import GPT, LLAMA, graph, run, written

# -- runs ------------------------------------------------------------------------------------------------------------


def small_run(folder: Path) -> dict[str, Any]:
    return run()


def llama_run(folder: Path) -> dict[str, Any]:
    return run(gpt=None, llama=LLAMA | {"tied": False})


def named_run(folder: Path) -> dict[str, Any]:
    return run(gpt=None, model="bert-large", sequence=64, batch=16)


def graph_run(folder: Path) -> dict[str, Any]:
    return run(gpt=None, graph=graph(folder, 2))


RUN = Base(
    small_run,
    answers.of_run,
    same(
        ("gpt.hidden", 128),
        ("gpt.layers", 8),
        ("gpt.heads", 2),
        ("gpt.vocabulary", 2048),
        ("gpt.sequence", 64),
        ("chip", "h100"),
        ("cluster", "vtrain-a100"),
        ("stack", "nanotron"),
        ("devices", 8),
        ("batch", 128),
        ("plan.tensor", 1),
        ("plan.pipeline", 1),
        ("plan.data", 2),
        ("plan.microbatch", 2),
        ("plan.chunks", 2),
        ("plan.recompute", "full"),
        ("plan.sequence_parallel", True),
        ("plan.zero", 1),
        ("precision", "fp32"),
        ("optimizer", "sgd"),
        ("attention", "fused"),
        ("graph", "graph-2-1.json"),
        ("model", "gpt2-xl"),
    ),
)
LLAMA_RUN = Base(
    llama_run,
    answers.of_run,
    same(
        ("llama.hidden", 128),
        ("llama.layers", 8),
        ("llama.heads", 8),
        ("llama.kv_heads", 4),
        ("llama.head_dim", 32),
        ("llama.mlp", 192),
        ("llama.vocabulary", 2048),
        ("llama.sequence", 64),
        ("llama.tied", True),
    ),
)
NAMED_RUN = Base(named_run, answers.of_run, same(("sequence", 128), ("model", "gpt2-xl")))
GRAPH_RUN = Base(
    graph_run,
    answers.of_run,
    same(("sequence", 64), ("attention", "fused"), ("plan.sequence_parallel", True), ("plan.tensor", 1)),
)

# -- studies ---------------------------------------------------------------------------------------------------------


def study(folder: Path) -> dict[str, Any]:
    """Two tiny models on a few chips with little memory, placed on a flat network."""
    few = space(folder)
    few["axes"] |= {"tensor_cores": [1, 4], "rows": [16, 64], "vector_cores": [2, 8]}
    models = [
        {"name": "tiny", "graphs": [graph(folder, width) for width in (1, 2)]},
        {"name": "other", "graphs": [graph(folder, 2, size) for size in (1, 2)]},
    ]
    return {
        "schema": "phaze.study/1", "name": "mine", "models": models, "space": written(folder, "space.json", few),
        "hbm": ["64 MiB", "8 GiB"], "training": {"devices": 16, "batch": 32},
        "search": {"gap": 0.0, "round_size": 1},
    }  # fmt: skip


def placed(folder: Path) -> dict[str, Any]:
    """One of them under rules cluster."""
    found = study(folder)
    training = found["training"] | {"cluster": "selene", "headroom": 0.0}
    return found | {"rules": "cluster", "models": found["models"][:1], "hbm": ["1027 MiB"], "training": training}


def named(folder: Path) -> dict[str, Any]:
    """One named model that takes its sequence from the training."""
    found = study(folder)
    training = {"devices": 16, "batch": 32, "sequence": 32, "microbatches": [1]}
    return found | {"models": [{"name": "bert-large", "widths": [2]}], "hbm": ["8 GiB"], "training": training}


def named_and_placed(folder: Path) -> dict[str, Any]:
    found = named(folder)
    return found | {"rules": "cluster", "training": found["training"] | {"cluster": "selene"}}


def tight(folder: Path) -> dict[str, Any]:
    return study(folder) | {"hbm": ["400 KiB"]}


TIGHT = Base(tight, answers.of_study, same(("training.optimizer", "adam")))
STUDY = Base(
    study,
    answers.of_study,
    (
        ("models.part", "models/1/part", "block"),
        ("models.weight", "models/1/weight", 9.0),
        ("models.widths", "models/0/widths", [1]),
        ("models.sequence", "models/0/sequence", 64),
        ("models.graphs", "models/0/graphs", ["graph-1-1.json"]),
        *same(
            ("rules", "cluster"),
            ("space", "nowhere"),
            ("hbm", ["8 GiB"]),
            ("training.devices", 8),
            ("training.batch", 64),
            ("training.sequence", 64),
            ("training.attention", "fused"),
            ("training.sequence_parallel", True),
            ("training.microbatches", [4]),
            ("training.cluster", "selene"),
            ("training.recompute", [True]),
            ("training.stack", "nanotron"),
            ("training.precision", "fp8"),
            ("training.zero", 1),
            ("cost.residency", False),
            ("cost.basis", "datasheet"),
            ("cluster.link_bytes_per_s", 1e8),
            ("budget.area", "4 mm2"),
            ("budget.power", "5 W"),
            ("budget.usd", 60),
            ("objective.kind", "throughput_per_watt"),
            ("objective.mean", "arithmetic"),
            ("objective.baseline", "tpu-v2"),
            ("search.round_size", 64),
        ),
    ),
)
PLACED = Base(
    placed,
    answers.of_study,
    same(
        ("training.cluster", "dgx-h100"),
        ("training.stack", "megatron-core"),
        ("training.optimizer", "sgd"),
        ("training.zero", 3),
        ("search.gap", 0.9),
        ("training.headroom", 0.3),
        ("training.precision", "fp32"),
        ("cost.basis", "ideal"),
        ("cost.residency", False),
    ),
)
NAMED = Base(
    named,
    answers.of_study,
    (
        ("models.name", "models/0/name", "opt-350m"),
        ("models.sequence", "models/0/sequence", 64),
        ("models.widths", "models/0/widths", [1]),
        *same(("training.sequence", 64), ("training.attention", "fused"), ("training.microbatches", [2])),
    ),
)
NAMED_PLACED = Base(
    named_and_placed,
    answers.of_study,
    same(("training.sequence_parallel", True), ("training.attention", "best")),
)

# -- profiles and operators ------------------------------------------------------------------------------------------


def profile(folder: Path) -> dict[str, Any]:
    """Six layers at two widths under rules cluster, in little memory."""
    widths = {}
    for width in (1, 2):
        layers = [
            {"id": at, "forward_s": 0.01 / width, "backward_s": 0.02 / width, "parameter_bytes": 2e8 / width,
             "activation_bytes": 4e8 / width, "sharded": width > 1, "selective_bytes": 3e8 / width,
             "selective_s": 0.001, "full_s": 0.009 / width, "tied": "words" if at in (0, 5) else None,
             "tied_bytes": 1e8 if at in (0, 5) else None}
            for at in range(6)
        ]  # fmt: skip
        rows = [{key: value for key, value in layer.items() if value is not None} for layer in layers]
        edges = [{"from": at, "to": at + 1, "bytes": 1e8} for at in range(5)]
        widths[str(width)] = {"layers": rows, "edges": edges}
    levels = [
        {"name": "node", "kind": "switch", "size": 4, "bandwidth": 1e10, "latency": 1e-5},
        {"name": "rack", "kind": "switch", "size": 4, "bandwidth": 1e9, "latency": 1e-4},
    ]
    return {
        "schema": "phaze.profile/1", "rules": "cluster", "devices": 16, "hbm_bytes": 6e9, "microbatches": 16,
        "optimizer": "adam", "recompute": "best", "cluster": levels, "stack": "megatron-2021", "precision": "bf16",
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
        *same(
            ("rules", "icml24"),
            ("devices", 8),
            ("hbm_bytes", 3e9),
            ("microbatches", 32),
            ("optimizer", "sgd"),
            ("recompute", True),
            ("link_bytes_per_s", 1e9),
            ("stack", "megatron-core"),
            ("precision", "fp32"),
            ("zero", 2),
            ("schedule", "gpipe"),
            ("hbm_bytes_per_s", 1e10),
        ),
        ("cluster.kind", "cluster/0/kind", "torus"),
        ("cluster.size", "cluster/0/size", 8),
        ("cluster.bandwidth", "cluster/1/bandwidth", 1e8),
        ("cluster.latency", "cluster/1/latency", 1e-2),
        ("cluster.shape", "cluster/0/shape", [2, 2]),
        ("cluster.share", "cluster/0/share", 0.5),
        ("cluster.start", "cluster/0/start", 0.5),
        ("cluster.local", "cluster/0/local", 1e9),
        ("cluster.small_start", "cluster/0/small_start", 0.5),
        ("cluster.small_share", "cluster/0/small_share", 0.5),
    ),
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


def full_profile(folder: Path) -> dict[str, Any]:
    return deep_profile(folder) | {"recompute": True}


FULL = Base(full_profile, answers.of_profile, (_layer("full_s", 0.001),))


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

# -- graphs ----------------------------------------------------------------------------------------------------------


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

JOBS: dict[str, list[Base]] = {
    "phaze.run/1": [RUN, LLAMA_RUN, NAMED_RUN, GRAPH_RUN],
    "phaze.study/1": [STUDY, TIGHT, PLACED, NAMED, NAMED_PLACED],
    "phaze.profile/1": [PROFILE, FLAT, DEEP, FULL],
    "phaze.operators/1": [OPERATORS, BESIDE],
    "phaze.graph/1": [GRAPH],
}
