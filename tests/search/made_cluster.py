"""Small jobs under rules ``cluster``: real decoders by tiny sizes, on real and made clusters and stacks."""

from dataclasses import replace
from typing import Any

from phaze.evaluate.machine import Machine
from phaze.graph.zoo import load_family
from phaze.hardware.calibration import constants_of
from phaze.hardware.cluster import Cluster, Level
from phaze.hardware.library import load_cluster, load_stack
from phaze.hardware.stack import Pipeline, ScheduleRule, StageRule, Synchronisation
from phaze.placement.problem import RecomputeChoice
from phaze.search.objective import Kind, Objective
from phaze.search.rank_graph import rank_graph
from phaze.search.task import ModelTask, SearchJob, Training, task_of
from tests.search.made import MIB, small_space

GPT = {"hidden": 64, "layers": 4, "heads": 4, "vocabulary": 512, "sequence": 32}
LLAMA = {
    "hidden": 64, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 16, "mlp": 96, "vocabulary": 256,
    "sequence": 32, "tied": False,
}  # fmt: skip
DEEP = {**GPT, "hidden": 32, "layers": 8}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {"gpt": ("gpt", GPT), "llama": ("llama", LLAMA), "deep": ("gpt", DEEP)}


def slow_cluster(devices: int = 16) -> Cluster:
    """Nodes of four on a slow network, so that synchronisation and transfers matter to small models."""
    levels = (Level("node", "switch", 4, 2e9, 1e-6), Level("rack", "switch", devices // 4, 2e8, 5e-6))
    return Cluster("slow", "slow", devices, levels)


def made_cluster(name: str) -> Cluster:
    """A cluster that comes along, or the slow one."""
    return slow_cluster() if name == "slow" else load_cluster(name)


def cluster_task(
    model: str = "gpt",
    cluster: str = "slow",
    stack: str = "megatron-core",
    *,
    widths: tuple[int, ...] = (1, 2),
    microbatches: tuple[int, ...] = (1, 2),
    recompute: tuple[RecomputeChoice, ...] = ("best",),
    zeros: tuple[int, ...] = (0,),
    chunks: tuple[int, ...] | None = None,
    devices: int = 16,
    batch: int = 32,
    schedule: ScheduleRule | None = None,
    synchronisation: Synchronisation = "share",
    stages: StageRule = "layers",
    pipeline: Pipeline = "1f1b",
    headroom: float = 0.0,
) -> ModelTask:
    """A small decoder at several widths and microbatches, its stack keeping no memory for itself."""
    where = made_cluster(cluster)
    own = replace(load_stack(stack), reserve_bytes=0.0, host_s=1e-7, synchronisation=synchronisation)
    own = replace(own, stages=stages, pipeline=pipeline)
    own = own if schedule is None else replace(own, schedule=schedule)
    machine = Machine(where, own)
    constants = constants_of(None, "calibrated", "training")
    choices: dict[str, Any] = {"precision": own.precision, "zeros": zeros, "chunks": chunks, "headroom": headroom}
    job = Training(devices, batch, own.optimizer, machine, constants, **choices)
    family, sizes = MODELS[model]
    traced = [
        load_family(family, sizes, tensor=width, microbatch=size, sequence_parallel=spread)
        for size in microbatches
        for width in widths
        for spread in ((False, True) if width > 1 else (False,))
    ]
    graphs = [rank_graph(one, machine) for one in traced]
    return task_of(model, 1.0, job, graphs, recompute)


def cluster_job(
    tasks: tuple[ModelTask, ...],
    kind: Kind = "throughput",
    gap: float = 0.0,
    hbm: tuple[int, ...] = (2 * MIB, 64 * MIB),
    **axes: Any,
) -> SearchJob:
    """A search over a dozen chips."""
    few: dict[str, Any] = {"tensor_cores": [1, 4], "rows": [16, 64], "vector_cores": [2], "lanes": [16], **axes}
    return SearchJob("made", tasks, small_space(**few), hbm, Objective(kind), gap, "made", round_size=2)
