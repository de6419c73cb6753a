"""For every key of runs and studies: a document, another value, and who must notice."""

import json
from pathlib import Path
from typing import Any

from tests.keys import answers
from tests.keys.cases import BESIDE, SENT, STATE, Base, same, space
from tests.keys.small import LLAMA, graph, preset, run, written

# -- runs
# ------------------------------------------------------------------------------------------------------------


def small_run(folder: Path) -> dict[str, Any]:
    return run()


def llama_run(folder: Path) -> dict[str, Any]:
    return run(gpt=None, llama=LLAMA | {"tied": False})


def terms_of(folder: Path) -> str:
    return written(
        folder, "terms.json", preset("ownership", "default") | {"device_usd_per_hour": {"any": 7.0}}
    )


def priced_run(folder: Path) -> dict[str, Any]:
    terms_of(folder)
    return run(tokens="1T")


def named_run(folder: Path) -> dict[str, Any]:
    return run(gpt=None, model="bert-large", sequence=64, batch=16)


def moe_run(folder: Path) -> dict[str, Any]:
    """A tiny mixture of experts with one dense layer."""
    experts = {"experts": 4, "active": 2, "expert_mlp": 64, "shared_mlp": 0, "dense_layers": 1}
    return run(gpt=None, moe={**LLAMA, **experts}, attention="fused")


def overlapping_run(folder: Path) -> dict[str, Any]:
    """Experts over two nodes, and tensor groups that shard activations."""
    experts = {"experts": 16, "active": 4, "expert_mlp": 64, "shared_mlp": 0}
    plan = {
        "tensor": 2, "pipeline": 1, "data": 8, "microbatch": 1, "expert": 16, "expert_tensor": 1,
        "sequence_parallel": True, "zero": 1,
    }  # fmt: skip
    where = {"chip": "h100", "cluster": "dgx-h100", "stack": "megatron-core"}
    return run(gpt=None, moe={**LLAMA, **experts}, attention="fused", plan=plan, **where)


def context_run(folder: Path) -> dict[str, Any]:
    """Two ranks a sequence."""
    plan = {"tensor": 1, "pipeline": 2, "data": 4, "microbatch": 1, "context": 2}
    return run(plan=plan, attention="fused")


def graph_run(folder: Path) -> dict[str, Any]:
    return run(gpt=None, graph=graph(folder, 2))


RUN = Base(
    small_run,
    answers.of_run,
    same(
        ("chip", "h100"),
        ("cluster", "vtrain-a100"),
        ("stack", "nanotron"),
        ("batch", "4k-tokens"),
        ("gpt.sequence", "1k"),
        ("terms", "default"),
        ("plan.blocks", [1, 3]),
        ("plan.shard", 2),
        ("graph", "graph-2-1.json"),
        ("model", "gpt2-xl"),
    ),
    keys="""
    gpt.hidden gpt.layers gpt.heads gpt.vocabulary gpt.sequence devices batch tokens plan.tensor plan.pipeline
    plan.data plan.microbatch plan.chunks plan.family plan.recompute plan.sequence_parallel plan.zero
    plan.expert plan.expert_tensor plan.offload imbalance capacity precision
    optimizer attention
    """,
)
LLAMA_RUN = Base(
    llama_run,
    answers.of_run,
    keys="""
    llama.hidden llama.layers llama.heads llama.kv_heads llama.head_dim llama.mlp llama.vocabulary
    llama.sequence llama.tied llama.gated
    """,
)
MOE_RUN = Base(
    moe_run,
    answers.of_run,
    keys="""
    moe.hidden moe.layers moe.heads moe.kv_heads moe.head_dim moe.mlp moe.vocabulary moe.sequence moe.tied
    moe.experts moe.active moe.expert_mlp moe.shared_mlp moe.dense_layers
    """,
)
OVERLAPPING_RUN = Base(
    overlapping_run,
    answers.of_run,
    same(
        ("plan.expert_overlap", True),
        ("plan.tensor_overlap", False),
        ("plan.gradients", "bf16"),
        ("plan.dispatcher", "node-once"),
    ),
)
CONTEXT_RUN = Base(context_run, answers.of_run, keys="plan.context plan.context_way")
PRICED_RUN = Base(priced_run, answers.of_run, same(("tokens", "2T"), ("terms", "terms.json")))
NAMED_RUN = Base(
    named_run,
    answers.of_run,
    same(("sequence", 128), ("model", "gpt2-xl"), ("tensor_plan", "plan.toml")),
)
GRAPH_RUN = Base(
    graph_run,
    answers.of_run,
    keys="sequence attention plan.sequence_parallel plan.tensor",
)

# -- studies
# ---------------------------------------------------------------------------------------------------------


def study(folder: Path) -> dict[str, Any]:
    """Two tiny models on a few chips with little memory, placed on a flat network."""
    few = space(folder)
    few["axes"] |= {"tensor_cores": [1, 4], "rows": [16, 64], "vector_cores": [2, 8]}
    models = [
        {"name": "tiny", "graphs": [graph(folder, width) for width in (1, 2)]},
        {"name": "other", "graphs": [graph(folder, 2, size) for size in (1, 2)]},
    ]
    written(folder, "space.json", few)
    return {
        "schema": "phaze.study/1", "name": "mine", "models": models, "space": "space.json",
        "rules": "icml24",
        "hbm": ["64 MiB", "8 GiB"], "training": {"devices": 16, "batch": 32},
        "search": {"gap": 0.0, "round_size": 1},
    }  # fmt: skip


def placed(folder: Path) -> dict[str, Any]:
    """One of them under rules cluster."""
    found = study(folder)
    training = found["training"] | {"cluster": "selene", "headroom": 0.0, "zero": 0}
    return found | {
        "rules": "cluster",
        "models": found["models"][:1],
        "hbm": ["1027 MiB"],
        "training": training,
    }


def named(folder: Path) -> dict[str, Any]:
    """One named model that takes its sequence from the training."""
    found = study(folder)
    training = {"devices": 16, "batch": 32, "sequence": 32, "microbatches": [1]}
    return found | {
        "models": [{"name": "bert-large", "widths": [2]}],
        "hbm": ["8 GiB"],
        "training": training,
    }


def named_and_placed(folder: Path) -> dict[str, Any]:
    found = named(folder)
    return found | {"rules": "cluster", "training": found["training"] | {"cluster": "selene"}}


def piped(folder: Path) -> dict[str, Any]:
    """The named model in so little memory that it takes a pipeline."""
    found = named_and_placed(folder)
    return found | {"hbm": ["3 GiB"], "training": found["training"] | {"zero": 0, "headroom": 0.0}}


def priced(folder: Path) -> dict[str, Any]:
    """One of them, trained on so many tokens."""
    found, _ = study(folder), terms_of(folder)
    training = found["training"] | {"tokens": "1T", "batch": "1k-tokens"}
    return found | {"models": found["models"][:1], "hbm": ["8 GiB"], "training": training}


PRICED = Base(
    priced,
    answers.of_priced,
    same(
        ("training.tokens", "2T"), ("training.terms", "terms.json"), ("training.batch", "2k-tokens")
    ),
)


def tight(folder: Path) -> dict[str, Any]:
    return study(folder) | {"hbm": ["400 KiB"]}


TIGHT = Base(
    tight, answers.of_study, same(("training.optimizer", "adam"), ("training.headroom", 0.5))
)
STUDY = Base(
    study,
    answers.of_study,
    (
        ("models.part", "models/1/part", "block"),
        ("models.weight", "models/1/weight", 9.0),
        ("models.widths", "models/0/widths", [1]),
        ("models.sequence", "models/0/sequence", 64),
        ("models.graphs", "models/0/graphs", ["graph-1-1.json"]),
        ("models.model", "models/0/model", "own.py:build"),
        ("models.tensor_plan", "models/0/tensor_plan", "plan.toml"),
        ("files", "files", {"space.json": "no space"}),
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
            ("training.context", [2]),
            ("training.expert", [2]),
            ("training.context_way", ["ulysses"]),
            ("training.imbalance", 1.5),
            ("training.capacity", 1.5),
            ("training.cluster", "selene"),
            ("training.recompute", [True]),
            ("training.stack", "nanotron"),
            ("training.precision", "fp8"),
            ("training.zero", 1),
            ("training.chunks", [2]),
            ("cost.residency", False),
            ("cost.basis", "datasheet"),
            ("cluster.link_bytes_per_s", 1e8),
            ("stack.schedule", "serial"),
            ("stack.stages", "layers"),
            ("stack.pipeline", "1f1b"),
            ("stack.synchronisation", "pieces"),
            ("stack.host_time", "1 ms"),
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
    (
        ("cluster.levels.bandwidth", "cluster/levels/fabric/bandwidth", 1e6),
        ("cluster.levels.latency", "cluster/levels/fabric/latency", 1.0),
        ("cluster.levels.size", "cluster/levels/node/size", 2),
        *same(
            ("training.cluster", "dgx-h100"),
            ("training.stack", "megatron-core"),
            ("training.optimizer", "sgd"),
            ("training.zero", 3),
            ("search.gap", 0.9),
            ("training.headroom", 0.3),
            ("training.precision", "fp32"),
            ("training.shard", [2]),
            ("cost.basis", "ideal"),
            ("cost.residency", False),
        ),
    ),
)


SLOWED = {"runs": True, "slows": 0.19}


def stacked(folder: Path) -> dict[str, Any]:
    """One of them at width 2 with a stack that hides nothing, in so little memory that it takes two
    stages."""
    found = placed(folder)
    training = found["training"] | {"devices": 8, "batch": 16, "recompute": [True]}
    return (
        found
        | {
            "models": [{"name": "tiny", "graphs": [graph(folder, 2, spread=True)]}],
            "hbm": ["1026 MiB"],
        }
        | {"training": training, "stack": {"overlap": {kind: dict(SLOWED) for kind in SENT}}}
    )


def shared(folder: Path) -> dict[str, Any]:
    """Its gradients shared out by ZeRO 2, those of the largest layer just fitting whole."""
    found = stacked(folder)
    return found | {"hbm": ["1049500 KiB"], "training": found["training"] | {"zero": 2}}


STACKED = Base(
    stacked,
    answers.of_study,
    same(
        ("stack.fusion", "none"),
        ("stack.host_time", "5 ms"),
        ("stack.hides_tensor_collectives", True),
        ("stack.overlap.reduction.runs", False),
        ("stack.overlap.reduction.slows", 0.9),
        ("stack.overlap.reduction.bucket", 0.0),
        ("stack.overlap.step_host", "1 s"),
        ("stack.zeroes_gradients", True),
        ("stack.gradients", "bf16"),
        ("stack.clips_gradients", True),
        ("stack.scatter_gather", False),
        ("stack.optimizer_traffic_bytes", 5000.0),
        ("stack.state_bytes", 40.0),
        ("stack.reserve", 2**31),
        ("stack.schedule", "links"),
        ("stack.overlap.tensor.runs", True),
        ("stack.trims_recompute", True),
        ("stack.synchronisation", "first"),
        ("stack.accumulation_inside", 800.0),
        ("stack.accumulation_apart", 800.0),
        ("stack.stages", "icml24"),
        ("stack.pipeline", "icml24"),
        ("stack.interleaves", False),
        ("stack.families", ["1f1b"]),
        ("stack.logit_bytes", 6000.0),
        ("stack.gradient_buffer_bytes", 8000.0),
        ("stack.gradient_wire_bytes", 400),
        ("stack.overlap.transfers.runs", True),
        ("stack.softmax_matrices", 1000),
    )
    + tuple((f"stack.state.{part}", "stack/state", {part: 40}) for part in STATE),
)


def kept(folder: Path) -> dict[str, Any]:
    """Any mode of recompute, in memory that decides between them: what is kept of a layer
    counts."""
    found = stacked(folder)
    training = {key: value for key, value in found["training"].items() if key != "recompute"}
    return found | {"hbm": ["1050000 KiB"], "training": training}


KEPT = Base(
    kept,
    answers.of_study,
    same(
        ("stack.saves", "mincut"),
        ("stack.selective", "operators"),
        ("stack.recompute_modules", ["mlp"]),
    ),
)
SHARED = Base(
    shared,
    answers.of_study,
    same(
        ("stack.gradient_bytes", 14.0),
        ("stack.prefetch", "layer"),
        *(
            (f"stack.overlap.{kind}.{key}", value)
            for kind in SENT[1:]
            for key, value in BESIDE.items()
        ),
    ),
)


def low(folder: Path) -> dict[str, Any]:
    """Products in 8 bits, their weights gathered by ZeRO 1."""
    found, few = placed(folder), space(folder)
    own = preset("chips", "h100")
    own |= {"name": "mine", "links": own["links"] | {"bandwidth": "300 GB/s"}}  # as selene has
    few["base"] = written(folder, "base.json", own)
    few["axes"] |= {"tensor_cores": [1, 4]}
    training = found["training"] | {"zero": 1, "precision": "fp8"}
    study = {
        "space": written(folder, "low.json", few),
        "training": training,
        "stack": {"recipes": ["fp8-delayed"]},
    }
    return found | study | {"hbm": ["4 GiB"]}


def of_experts(folder: Path) -> dict[str, Any]:
    """A mixture of experts with a shared one on two chips of clusters, its experts split."""
    few = preset("silicon/spaces", "n5-reticle")
    few["axes"] |= {
        "clusters": [12],
        "arrays": [8],
        "rows": [32],
        "columns": [128],
        "lanes": [512, 1024],
    }
    few["axes"] |= {
        "registers": ["1 MiB"],
        "global_buffer": ["25 MiB"],
        "hbm_stacks": [6],
        "links": ["450 GB/s"],
    }
    training = {
        "cluster": "dgx-h100",
        "devices": 1024,
        "batch": 1024,
        "microbatches": [1],
        "expert": [64],
        "zero": 1,
    }
    return {
        "schema": "phaze.study/1", "name": "mine",
        "models": [{"name": "deepseek-v3", "widths": [1]}],
        "space": written(folder, "experts.json", few), "training": training, "search": {"gap": 0.0},
    }  # fmt: skip


def of_overlapped_experts(folder: Path) -> dict[str, Any]:
    """One without, whose exchange over two nodes runs behind another microbatch of its chunks."""
    study = of_experts(folder)
    return study | {
        "models": [{"name": "qwen3-30b-a3b", "widths": [1]}],
        "training": study["training"] | {"devices": 64, "expert": [16]},
        "stack": {"overlap": {"exchange": {"offered": True, "runs": True, "slows": 0.19}}},
    }


EXPERTS = Base(
    of_overlapped_experts,
    answers.of_study,
    same(
        ("stack.software_share", {"any": 0.5}),
        ("stack.grouped_share", {"any": 0.5}),
        ("stack.expert_start", {"any": "5 us"}),
        ("stack.overlap.exchange.offered", False),
        ("stack.overlap.exchange.runs", False),
        ("stack.overlap.exchange.slows", 0.9),
        ("stack.overlap.dispatcher", "node-once"),
    ),
)


SHARED_EXPERTS = Base(of_experts, answers.of_study, same(("stack.overlap.shared_experts", True)))


def offloaded(folder: Path) -> dict[str, Any]:
    """Activations in the memory of the host, copied behind all of the passes."""
    found = of_experts(folder)
    few = json.loads(Path(found["space"]).read_text(encoding="utf-8"))
    base = preset("silicon/bases", few["base"]) | {
        "name": "hosted",
        "host": {"bandwidth": "50 GB/s"},
    }
    found["space"] = written(
        folder, "hosted.json", few | {"base": written(folder, "base.json", base)}
    )
    return found | {
        "training": found["training"] | {"recompute": ["offload"]},
        "stack": {"overlap": {"host_link": {"runs": True, "slows": 0.0}}},
    }


OFFLOADED = Base(
    offloaded,
    answers.of_study,
    same(("stack.overlap.host_link.runs", False), ("stack.overlap.host_link.slows", 1.0)),
)
LOW = Base(
    low, answers.of_study, same(("stack.recipes", []), ("stack.low_precision_weights", True))
)
CAST = Base(
    lambda folder: (
        low(folder) | {"stack": {"recipes": ["fp8-tensorwise"], "fusion": "elementwise"}}
    ),
    answers.of_study,
    same(("stack.casts_apart", True)),
)
NAMED = Base(
    named,
    answers.of_study,
    (
        ("models.name", "models/0/name", "opt-350m"),
        ("models.sequence", "models/0/sequence", 64),
        ("models.widths", "models/0/widths", [1]),
        *same(
            ("training.sequence", 64),
            ("training.attention", "fused"),
            ("training.attention", "best"),
            ("training.sequence_parallel", "best"),
            ("training.microbatches", [2]),
        ),
    ),
)
NAMED_PLACED = Base(
    named_and_placed,
    answers.of_study,
    same(
        ("training.sequence_parallel", True),
        ("training.attention", "best"),
    ),
)
PIPED = Base(
    piped,
    answers.of_study,
    same(("training.chunks", [1]), ("training.family", ["1f1b"]), ("training.zero", "best")),
)

JOBS: dict[str, list[Base]] = {
    "phaze.run/1": [
        RUN,
        CONTEXT_RUN,
        OVERLAPPING_RUN,
        LLAMA_RUN,
        MOE_RUN,
        PRICED_RUN,
        NAMED_RUN,
        GRAPH_RUN,
    ],
    "phaze.study/1": [
        STUDY,
        TIGHT,
        PLACED,
        STACKED,
        SHARED,
        LOW,
        CAST,
        NAMED,
        NAMED_PLACED,
        PIPED,
        PRICED,
        EXPERTS,
        SHARED_EXPERTS,
        KEPT,
        OFFLOADED,
    ],
}
