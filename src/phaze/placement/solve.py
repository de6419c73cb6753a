"""The fastest plan of a placement problem, over widths, depths, degrees, orders, families, cuts and recompute modes.

Families that the bottleneck table decides are read off it (:mod:`phaze.placement.bottleneck_solver`), all others are
solved by labels below what is known (:mod:`phaze.placement.label_solver`). What they promise is priced anew by
:mod:`phaze.placement.pipeline`, and the two must agree; the answer is its own lower bound.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

import numpy as np

from phaze.errors import InputError, PhazeError
from phaze.placement import bottleneck_solver, label_solver, stage_kernels
from phaze.placement.bottleneck_solver import AGREEMENT, BottleneckPlan
from phaze.placement.layout import Shape
from phaze.placement.pipeline import fits, price
from phaze.placement.plan import Plan
from phaze.placement.prepared_width import Width, prepared
from phaze.placement.prices import Prices, RingPrices
from phaze.placement.problem import Problem
from phaze.placement.rules import Family
from phaze.placement.shapes import cases_of
from phaze.placement.structure import StageCut

# With more stages than this in all widths they are searched one after another, so that one at a time is in memory.
MANY_STAGES = 600_000
# Labels look at every number of replicas up to the most, which takes memory and minutes beyond this.
MOST_REPLICAS = 2**24


def cuts_of(problem: Problem, found: BottleneckPlan) -> list[StageCut]:
    """The stages that were found, first to last."""
    layers: list[list[int]] = [[] for _ in found.path]
    owner = stage_kernels.owners(found.width.cut_sets, found.table.rest[found.path])
    for layer, stage in zip(found.width.graph.layers, owner.tolist(), strict=True):
        layers[stage].append(layer.id)
    names = problem.mode_names
    return [StageCut(tuple(ids), names[mode]) for ids, mode in zip(layers, found.modes.tolist(), strict=True)]


def _quick_bound(problem: Problem, width: Width) -> float:
    """What no plan of a width undercuts, with free transfers, ends and memory."""
    stages = np.arange(1, width.depth + 1)
    replicas = np.minimum(problem.microbatches, problem.devices // width.fewest_devices(stages))
    rounds = -(-problem.microbatches // replicas)
    pace_s = np.maximum(width.seconds / stages, width.longest_s)
    return float(np.min((rounds - 1) * pace_s, initial=inf))


def fastest_plan(problem: Problem, prices: Prices | None = None, below_s: float = inf) -> Plan | None:
    """The plan with the least batch time, or None when nothing fits, or nothing that takes less than ``below_s``."""
    fastest = fastest_at(problem, (problem.zero,), prices, below_s)
    return None if fastest is None else fastest[1]


def fastest_at(
    problem: Problem, zeros: Sequence[int], prices: Prices | None = None, below_s: float = inf
) -> tuple[Problem, Plan] | None:
    """The fastest plan over some stages of ZeRO, and the problem at its stage; None where there is none below
    ``below_s``. Of stages at which that plan takes as long the least."""
    priced = RingPrices(problem.cluster) if prices is None else prices
    best = _fastest_of([replace(problem, zero=zero) for zero in needed_zeros(zeros)], priced, below_s)
    if best is None:
        return None
    chosen = replace(problem, zero=best.zero)
    plan = plan_of(chosen, best, priced)
    for zero in sorted(zeros):
        less = replace(problem, zero=zero)
        same = price(less, _shape_of(best), cuts_of(problem, best), priced) if zero < best.zero else None
        if same is not None and same.batch_s <= plan.batch_s and fits(less, same):
            return less, replace(same, lower_bound_s=same.batch_s)
    return chosen, plan


def needed_zeros(zeros: Sequence[int]) -> tuple[int, ...]:
    """The stages of ZeRO that may be the fastest: stage 1 needs no more memory than 0, and its step no more time."""
    return tuple(zero for zero in sorted(zeros) if zero != 0 or 1 not in zeros)


def _fastest_of(problems: Sequence[Problem], prices: Prices, below_s: float) -> BottleneckPlan | None:
    """The best of problems that differ in their stage of ZeRO alone, below ``below_s``."""
    problem = problems[0]
    given = zip(problem.graphs, problem.extras, strict=True)
    widths = [width for width in (prepared(problem, *one, prices) for one in given) if width.depth]
    best: BottleneckPlan | None = None
    labelled = dict[int, tuple[Family, ...]]()
    for own in problems:
        for family in own.rules.families:
            if not bottleneck_solver.decides(own, family):
                labelled[own.zero] = (*labelled.get(own.zero, ()), family)
            elif widths:
                bar_s = below_s if best is None else best.cost_s
                best = bottleneck_solver.fastest(own, widths, family, bar_s) or best
    replicas = min(problem.microbatches, problem.devices // problem.graphs[0].width)
    if labelled and replicas > MOST_REPLICAS:
        raise InputError(
            "microbatches",
            f"{replicas:,} replicas of the model are possible",
            f"give at most {MOST_REPLICAS:,} microbatches",
        )
    open_ = [own for own in problems if own.zero in labelled]
    if labelled and sum(len(w.cut_sets.size) ** 2 / 2 for w in widths) <= MANY_STAGES:
        cases = [case for own in open_ for width in widths for case in cases_of(own, width, labelled[own.zero], prices)]
        best = label_solver.fastest(cases, best, below_s)
    elif labelled:
        for width in sorted(widths, key=lambda width: _quick_bound(problem, width)):
            for own in open_:
                best = label_solver.fastest(cases_of(own, width, labelled[own.zero], prices), best, below_s)
    return best


def _shape_of(found: BottleneckPlan) -> Shape:
    family = found.family
    return Shape(found.width.graph.width, len(found.path), found.data, found.order, family.chunks, family.name)


def plan_of(problem: Problem, found: BottleneckPlan, prices: Prices) -> Plan:
    """What was found as a plan, priced anew."""
    plan = price(problem, _shape_of(found), cuts_of(problem, found), prices)
    if abs(plan.batch_s - found.cost_s) > AGREEMENT * found.cost_s:
        raise PhazeError(f"{found.cost_s!r} s were promised and the plan takes {plan.batch_s!r} s")
    return replace(plan, lower_bound_s=plan.batch_s)
