"""Nothing fits under rules ``cluster``, as an answer: the closest plan, what it needs, and what would have to change.

Whether something fits never turns from yes to no with more memory or more devices, so the least memory and the fewest
devices are found by halving; the rest of the levers are tried as they are.
"""

from dataclasses import replace
from math import inf

from phaze.placement.cluster_prices import Prices
from phaze.placement.cluster_problem import ZEROS, ClusterProblem
from phaze.placement.cluster_solve import fastest_plan, something_fits
from phaze.placement.problem import Plan
from phaze.placement.shortage import Levers, Shortage, first_power, smaller_microbatch, wider

HALVINGS = 60


def least_hbm(problem: ClusterProblem) -> float | None:
    """A memory at which something fits, above the least by rounding only; None if devices are short."""
    short, enough = problem.hbm_bytes, problem.hbm_bytes
    while not something_fits(replace(problem, hbm_bytes=enough)):
        short, enough = enough, 2 * enough
        if enough > 1e40:
            return None
    for _ in range(HALVINGS):
        middle = (short + enough) / 2
        if not short < middle < enough:
            break
        if something_fits(replace(problem, hbm_bytes=middle)):
            enough = middle
        else:
            short = middle
    return enough


def _fewest_devices(problem: ClusterProblem) -> int | None:
    short, enough = problem.devices, problem.cluster.devices
    if not something_fits(replace(problem, devices=enough)):
        return None
    while enough - short > 1:
        middle = (short + enough) // 2
        if something_fits(replace(problem, devices=middle)):
            enough = middle
        else:
            short = middle
    return enough


def _divided(problem: ClusterProblem, divisor: int) -> ClusterProblem:
    extras = tuple(
        tuple(
            extra if extra.selective_bytes is None else replace(extra, selective_bytes=extra.selective_bytes / divisor)
            for extra in row
        )
        for row in problem.extras
    )
    smaller = tuple(smaller_microbatch(graph, divisor) for graph in problem.graphs)
    return replace(problem, graphs=smaller, extras=extras)


def _widened(problem: ClusterProblem, factor: int) -> bool:
    graph, row = problem.graphs[-1], problem.extras[-1]
    if graph.width == 1 or graph.width * factor > problem.devices:
        return False
    ties = {(extra.tied, layer.sharded) for layer, extra in zip(graph.layers, row, strict=True) if extra.tied}
    if len(ties) > len({name for name, _ in ties}):  # a layer that is split and one that is not would share no size
        return False
    extras = tuple(
        replace(
            extra,
            selective_bytes=None if extra.selective_bytes is None else extra.selective_bytes / factor,
            tied_bytes=extra.tied_bytes / factor,
        )
        if layer.sharded
        else extra
        for layer, extra in zip(graph.layers, row, strict=True)
    )
    return something_fits(replace(problem, graphs=(wider(graph, factor),), extras=(extras,)))


def shortage_of(problem: ClusterProblem, prices: Prices) -> Shortage:
    """The shortage of a problem for which there is no plan."""
    least = least_hbm(problem)
    plan: Plan | None = None
    if least is not None:
        plan = fastest_plan(replace(problem, hbm_bytes=least), prices)
    need = inf if plan is None else max(stage.memory.total_bytes for stage in plan.stages)
    factor = first_power(lambda f: _widened(problem, f))
    best = problem.recompute != "best" and something_fits(replace(problem, recompute="best"))
    stages = (zero for zero in ZEROS if zero > problem.zero)
    levers = Levers(
        hbm_bytes=None if plan is None else need,
        devices=_fewest_devices(problem),
        tensor=None if factor is None else problem.graphs[-1].width * factor,
        microbatch_divisor=first_power(lambda divisor: something_fits(_divided(problem, divisor))),
        recompute="best" if best else None,
        optimizer=None,
        zero=next((zero for zero in stages if something_fits(replace(problem, zero=zero))), None),
    )
    return Shortage(plan, problem.hbm_bytes, problem.devices, levers, "cluster")
