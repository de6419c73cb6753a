"""The placement problem of a configuration of a search, built as :mod:`phaze.evaluate.flow` builds every problem."""

from collections.abc import Sequence

from phaze.evaluate.flow import PlacementJob, placed_layers, placement_problem
from phaze.evaluate.layers import LayerCost
from phaze.placement.bottleneck_solver import decides
from phaze.placement.problem import Problem
from phaze.placement.rules import ONE_F_ONE_B
from phaze.search.rank_graph import RankGraph
from phaze.search.task import Job, ModelTask, Way


def problem_of(
    task: ModelTask, way: Way, costs: Sequence[LayerCost], hbm_bytes: float, hbm_bytes_per_s: float
) -> Problem:
    """The placement problem of a configuration whose layers' costs are known, on devices of so much memory."""
    training, graph = task.training, task.graphs[way.graph]
    job = PlacementJob(
        training.machine,
        training.devices,
        training.batch,
        training.precision,
        training.optimizer,
        training.zero,
        way.recompute,
        headroom=training.headroom,
    )
    placed = placed_layers(graph.model, costs)
    return placement_problem(job, graph.microbatch, [placed], hbm_bytes, hbm_bytes_per_s, (ONE_F_ONE_B,))


def unit_costs(graph: RankGraph) -> tuple[LayerCost, ...]:
    """Every layer a second forward and a second to recompute: sums are counts, and what fits depends on no time."""
    return tuple(LayerCost(own.name, 1.0, 0.0, 1.0, 1.0, *own.sizes) for own in graph.layers)


def pattern_of(task: ModelTask, way: Way, hbm_bytes: float) -> Problem:
    """The problem of a configuration on no chip."""
    return problem_of(task, way, unit_costs(task.graphs[way.graph]), hbm_bytes, 1.0)


def table_decides(job: Job) -> bool:
    """Whether the pace and the first stage alone decide every plan of a job, so that the bottleneck table does."""
    problems = (pattern_of(task, way, job.hbm_bytes[-1]) for task in job.models for way in task.ways)
    return all(decides(problem, family) for problem in problems for family in problem.rules.families)
