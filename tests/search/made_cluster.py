"""Small jobs under rules ``cluster``: real decoders by tiny sizes, on real and made clusters and
stacks."""

from typing import Any

from phaze.evaluate.parallel_rank import parallel_rank, parallels, supply_at
from phaze.graph.ir import Model
from phaze.graph.supply.point import RankPoint
from phaze.graph.supply.supply import Bundled
from phaze.graph.zoo import load_family
from phaze.hardware.calibration import constants_of
from phaze.hardware.cluster import Cluster, cluster_of, switch_level
from phaze.hardware.library import load_cluster, load_stack
from phaze.hardware.stack import Pipeline, ScheduleRule, StageRule, Synchronisation
from phaze.options.values import Kind
from phaze.pipeline.names import PipelineFamily
from phaze.placement.job import TrainingJob
from phaze.placement.machine import Machine
from phaze.placement.problem import RecomputeChoice
from phaze.search.objective import Objective
from phaze.search.rank_graph import rank_graph
from phaze.search.task import ModelTask, SearchJob, task_of
from phaze.values import replace
from tests.search.made import MIB, small_space

GPT = {"hidden": 64, "layers": 4, "heads": 4, "vocabulary": 512, "sequence": 32}
LLAMA = {
    "hidden": 64, "layers": 3, "heads": 4, "kv_heads": 2, "head_dim": 16, "mlp": 96,
    "vocabulary": 256,
    "sequence": 32, "tied": False,
}  # fmt: skip
DEEP = {**GPT, "hidden": 32, "layers": 8}
SMALL_MIXTURE = 3


def few_blocks(model: Model, blocks: int) -> Model:
    """A decoder with its first blocks alone, between what lies before and after them."""
    last = len(model.calls) - 1
    kept = [*range(blocks + 1), last]
    place = {old: new for new, old in enumerate(kept)}
    edges = tuple(
        replace(e, source=place[e.source], target=place[e.target])
        for e in model.edges
        if e.target <= blocks
    )
    end = next(e for e in model.edges if e.target == last and e.source == last - 1)
    edges += (replace(end, source=place[blocks], target=place[last]),)
    return replace(model, calls=tuple(model.calls[old] for old in kept), edges=edges)


def mixture_ranks(
    microbatch: int, contexts: tuple[int, ...], experts: tuple[int, ...]
) -> list[Model]:
    """Three blocks of Mixtral on short sequences at every degree, on one rank and on two."""
    load = supply_at(Bundled("mixtral-8x7b"), RankPoint(1, microbatch, 64, "fused"))
    found = []
    for width in (1, 2):
        for parallel in parallels(width, contexts, experts):
            rank = parallel_rank(load, parallel, 64, width > 1)
            found.append(few_blocks(rank, SMALL_MIXTURE))
    return found


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt": ("gpt", GPT),
    "llama": ("llama", LLAMA),
    "deep": ("gpt", DEEP),
}


def slow_cluster(devices: int = 16) -> Cluster:
    """Nodes of four on a slow network, so that synchronisation and transfers matter to small
    models."""
    levels = (switch_level("node", 4, 2e9, 1e-6), switch_level("rack", devices // 4, 2e8, 5e-6))
    return cluster_of("slow", "slow", levels)


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
    synchronisation: Synchronisation = "pieces",
    bucket: float | None = None,
    stages: StageRule = "layers",
    pipeline: Pipeline = "1f1b",
    headroom: float = 0.0,
    contexts: tuple[int, ...] = (1,),
    experts: tuple[int, ...] = (1,),
    families: tuple[PipelineFamily, ...] | None = None,
    shards: tuple[int, ...] = (0,),
    modules: tuple[str, ...] = (),
) -> ModelTask:
    """A small decoder at several widths and microbatches, its stack keeping no memory for itself;
    or a mixture of experts of some blocks, at degrees of context and expert parallelism."""
    where = made_cluster(cluster)
    own = replace(
        load_stack(stack), reserve_bytes=0.0, host_s=1e-7, synchronisation=synchronisation
    )
    pieces = own.overlap.reduction.model_copy(update={"bucket": bucket})
    own = replace(own, overlap=own.overlap.model_copy(update={"reduction": pieces}))
    own = replace(own, stages=stages, pipeline=pipeline)
    own = own if schedule is None else replace(own, schedule=schedule)
    own = own if families is None else replace(own, families=families)
    own = replace(own, recompute_modules=(), recompute_named=modules) if modules else own
    machine = Machine(where, own)
    constants = replace(
        constants_of(None, "calibrated", "training"), expert_start_s=own.expert_start_on()
    )
    choices: dict[str, Any] = {
        "zeros": zeros,
        "chunks": chunks,
        "headroom": headroom,
    }
    job = TrainingJob(machine, devices, batch, own.optimizer, **choices, shards=shards)
    if model == "mixture":
        ranks = [rank for size in microbatches for rank in mixture_ranks(size, contexts, experts)]
        return task_of(
            model, 1.0, job, constants, [rank_graph(one, machine) for one in ranks], recompute
        )
    family, sizes = MODELS[model]
    traced = [
        load_family(family, sizes, tensor=width, microbatch=size, sequence_parallel=spread)
        for size in microbatches
        for width in widths
        for spread in ((False, True) if width > 1 else (False,))
    ]
    graphs = [rank_graph(one, machine) for one in traced]
    return task_of(model, 1.0, job, constants, graphs, recompute)


def cluster_job(
    tasks: tuple[ModelTask, ...],
    kind: Kind = "throughput",
    gap: float = 0.0,
    hbm: tuple[int, ...] = (2 * MIB, 64 * MIB),
    **axes: Any,
) -> SearchJob:
    """A search over a dozen chips."""
    few: dict[str, Any] = {
        "tensor_cores": [1, 4],
        "rows": [16, 64],
        "vector_cores": [2],
        "lanes": [16],
        **axes,
    }
    return SearchJob(
        "made", tasks, small_space(**few), hbm, Objective(kind), gap, "made", round_size=2
    )
