"""The problems of both old rule sets as problems of the one solver, and small random problems that mix rules."""

import random
from dataclasses import replace

from phaze.cost.memory import State
from phaze.hardware.cluster import Cluster, Level
from phaze.placement.cluster_problem import ClusterProblem
from phaze.placement.one.problem import Extra, Problem
from phaze.placement.one.rules import GPIPE, ONE_F_ONE_B, Family, Rules, icml24_rules
from phaze.placement.problem import Problem as FlatProblem


def flat(problem: FlatProblem) -> Problem:
    """A problem of rules ``icml24``."""
    most = max(problem.devices, len(problem.graphs[0].layers) * problem.graphs[-1].width)
    level = Level("all", "switch", most, problem.link_bytes_per_s, 0.0)
    return Problem(
        rules=icml24_rules(problem.link_bytes_per_s),
        devices=problem.devices,
        hbm_bytes=problem.hbm_bytes,
        microbatches=problem.microbatches,
        recompute=problem.recompute,
        state=State(1.0, 1.0, 1.0 if problem.optimizer == "adam" else 0.0),
        cluster=Cluster("flat", "one level", most, (level,)),
        graphs=problem.graphs,
        extras=tuple((Extra(),) * len(graph.layers) for graph in problem.graphs),
        sent_bytes=1.0,
    )


def levelled(problem: ClusterProblem, families: tuple[Family, ...] | None = None) -> Problem:
    """A problem of rules ``cluster``."""
    family = GPIPE if problem.schedule == "gpipe" else ONE_F_ONE_B
    stack = problem.stack
    return Problem(
        rules=Rules("cluster", families or (family,), hidden=stack.hidden_synchronisation),
        devices=problem.devices,
        hbm_bytes=problem.hbm_bytes,
        microbatches=problem.microbatches,
        recompute=problem.recompute,
        state=problem.state,
        cluster=problem.cluster,
        graphs=problem.graphs,
        extras=tuple(
            tuple(Extra(e.selective_bytes, e.selective_s, e.full_s, e.tied, e.tied_bytes) for e in row)
            for row in problem.extras
        ),
        zero=problem.zero,
        sent_bytes=problem.sent_bytes,
        hbm_bytes_per_s=problem.hbm_bytes_per_s,
        optimizer_traffic_bytes=stack.optimizer_traffic_bytes,
        reserve_bytes=stack.reserve_bytes,
        scatter_gather=stack.scatter_gather,
    )


def with_blocks(problem: Problem, seed: int) -> Problem:
    """The problem with some layers marked as blocks, the same at every width."""
    rng = random.Random(seed)
    ids = {layer.id for layer in problem.graphs[0].layers if rng.random() < 0.8}
    extras = tuple(
        tuple(replace(extra, block=layer.id in ids) for layer, extra in zip(graph.layers, row, strict=True))
        for graph, row in zip(problem.graphs, problem.extras, strict=True)
    )
    return replace(problem, extras=extras)
