"""The placement problem of a configuration of a search, built as :mod:`phaze.evaluate.flow` builds
every problem.

Its pipeline families are all that the blocks and the study allow. It stands at the first stage of
ZeRO of the configuration; :func:`phaze.placement.solve.fastest_at` looks at all of them.
"""

from dataclasses import replace

import numpy as np

from phaze.evaluate.flow import placed_layers, placement_problem
from phaze.evaluate.layer_table import LayerTable, empty_table
from phaze.placement.bottleneck_solver import decides
from phaze.placement.layers import LayerGraph
from phaze.placement.problem import PlacementProblem
from phaze.placement.shortage import something_fits
from phaze.search.rank_graph import RankGraph
from phaze.search.task import Configuration, ModelTask, SearchJob


def problem_of(
    task: ModelTask, configuration: Configuration, table: LayerTable, hbm_bytes: float
) -> PlacementProblem:
    """The placement problem of a configuration whose layers on one chip are known, on devices of so
    much memory."""
    placed = _placed(task, configuration, table)
    return _problem(task, configuration, placed, hbm_bytes, float(table.hbm_bytes_per_s[0]))


def _placed(task: ModelTask, configuration: Configuration, table: LayerTable) -> LayerGraph:
    return placed_layers(
        task.graphs[configuration.graph].model, table, precision=task.training.precision
    )


def _problem(
    task: ModelTask,
    configuration: Configuration,
    placed: LayerGraph,
    hbm_bytes: float,
    hbm_bytes_per_s: float,
) -> PlacementProblem:
    training, graph = task.training, task.graphs[configuration.graph]
    job = replace(
        training,
        zeros=configuration.zeros,
        recompute=configuration.recompute,
        shards=(configuration.shard,),
    )
    sharing = replace(graph.sharing, shard=configuration.shard)
    return placement_problem(
        job, graph.microbatch, [placed], hbm_bytes, hbm_bytes_per_s, sharing=sharing
    )


def unit_table(graph: RankGraph) -> LayerTable:
    """Every layer a second forward and a second to recompute: sums are counts, and what fits
    depends on no time."""
    table = empty_table(graph.layers, 1)
    ones = np.ones_like(table.forward_s)
    rate = np.ones_like(table.hbm_bytes_per_s)
    table = replace(
        table, forward_s=ones, again_s=np.ones_like(table.again_s), hbm_bytes_per_s=rate
    )
    return replace(table, weight_s=np.zeros_like(ones))


def pattern_of(task: ModelTask, configuration: Configuration, hbm_bytes: float) -> PlacementProblem:
    """The problem of a configuration on no chip, at the last of its stages of ZeRO: it needs the
    least memory, and of a group that is searched together no other is faster."""

    def pattern() -> PlacementProblem:
        graph = task.graphs[configuration.graph]
        placed = task.shared.take(
            ("placed", configuration.graph), lambda: _placed(task, configuration, unit_table(graph))
        )
        return _problem(task, configuration, placed, hbm_bytes, 1.0).at_zero(
            max(configuration.zeros)
        )

    return task.memo.take(("pattern", configuration, hbm_bytes), pattern)


def table_decides(job: SearchJob) -> bool:
    """Whether the pace and the first stage alone decide every plan of a job, so that the bottleneck
    table does."""
    problems = (
        pattern_of(task, configuration, job.hbm_bytes[-1])
        for task in job.models
        for configuration in task.configurations
    )
    return all(
        decides(problem, family) for problem in problems for family in problem.rules.families
    )


def has_plan(task: ModelTask, configuration: Configuration, hbm_bytes: float) -> bool:
    """Whether a configuration fits into a memory, whatever its layers take."""
    return something_fits(pattern_of(task, configuration, hbm_bytes))
