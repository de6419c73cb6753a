"""Nothing fits, as an answer: the closest plan, what it needs, and what would have to change.

Whether something fits never turns from yes to no with more memory or more devices, so the least memory and the fewest
devices are found by halving; the rest of the levers are tried as they are. A wider split (sharded layers shrink with
the width) and a smaller microbatch (activations and edges shrink with it) are estimates, as a problem does not hold
their layers.
"""

from dataclasses import replace

from phaze.placement.cluster_prices import Prices, RingPrices
from phaze.placement.one.prepare import prepared
from phaze.placement.one.problem import Problem
from phaze.placement.one.shapes import cases_of, fits
from phaze.placement.one.solve import fastest_plan
from phaze.placement.shortage import Levers, Shortage, first_power, smaller_microbatch, wider

# Halvings after which two numbers of 53 bits are next to each other.
HALVINGS = 60
# More memory than this lets everything fit that a device number allows.
MOST_BYTES = 1e40


def something_fits(problem: Problem) -> bool:
    """Whether any plan fits, whatever its time."""
    prices = RingPrices(problem.cluster)
    # Chunks never need less memory than one, so they are tried only where nothing else is allowed.
    plain = tuple(family for family in problem.rules.families if family.chunks == 1) or problem.rules.families
    for graph, extras in zip(problem.graphs, problem.extras, strict=True):
        width = prepared(problem, graph, extras, prices)
        if width.depth:
            for case in cases_of(problem, width, plain, prices):
                if any(fits(case, stages, 0) for stages in range(1, width.depth + 1)):
                    return True
    return False


def least_hbm(problem: Problem) -> float | None:
    """A memory at which something fits, above the least by rounding only; None if devices are short."""
    short, enough = problem.hbm_bytes, problem.hbm_bytes
    while not something_fits(replace(problem, hbm_bytes=enough)):
        short, enough = enough, 2 * enough
        if enough > MOST_BYTES:
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


def _fewest_devices(problem: Problem) -> int | None:
    short, enough = problem.devices, problem.cluster.devices
    if enough <= short or not something_fits(replace(problem, devices=enough)):
        return None
    while enough - short > 1:
        middle = (short + enough) // 2
        if something_fits(replace(problem, devices=middle)):
            enough = middle
        else:
            short = middle
    return enough


def _divided(problem: Problem, divisor: int) -> Problem:
    extras = tuple(
        tuple(
            extra if extra.selective_bytes is None else replace(extra, selective_bytes=extra.selective_bytes / divisor)
            for extra in row
        )
        for row in problem.extras
    )
    smaller = tuple(smaller_microbatch(graph, divisor) for graph in problem.graphs)
    return replace(problem, graphs=smaller, extras=extras)


def _widened(problem: Problem, factor: int) -> bool:
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


def shortage_of(problem: Problem, prices: Prices | None = None) -> Shortage:
    """The shortage of a problem for which there is no plan."""
    least = least_hbm(problem)
    plan = None if least is None else fastest_plan(replace(problem, hbm_bytes=least), prices)
    need = None if plan is None else max(stage.memory.total_bytes for stage in plan.stages) / (1 - problem.headroom)
    factor = first_power(lambda f: _widened(problem, f))
    best = problem.recompute != "best" and something_fits(replace(problem, recompute="best"))
    sgd = problem.sgd_state is not None and something_fits(replace(problem, state=problem.sgd_state))
    zeros = (zero for zero in problem.rules.zeros if zero > problem.zero)
    levers = Levers(
        hbm_bytes=need,
        devices=_fewest_devices(problem),
        tensor=None if factor is None else problem.graphs[-1].width * factor,
        microbatch_divisor=first_power(lambda divisor: something_fits(_divided(problem, divisor))),
        recompute="best" if best else None,
        optimizer="sgd" if sgd else None,
        zero=next((zero for zero in zeros if something_fits(replace(problem, zero=zero))), None),
    )
    rules = problem.rules.name
    return Shortage(plan, problem.available_bytes, problem.devices, levers, rules, problem.headroom)
