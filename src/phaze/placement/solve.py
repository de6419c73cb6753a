"""The fastest plan under rules ``icml24``, over all widths, data degrees, depths, cuts and recompute choices.

For each width a table g(U, q, s) over closed sets, unsplit stages and stages holds the least greatest stage time
(:mod:`phaze.placement.kernels`), so the least batch time over everything is

    min over t, X_1, q, S, d of  max( T(X_1), g(V - X_1, q, S - 1) ) (ceil(M/d) + S - 1) + 4 (d - 1)/d w(X_1) / B

with t (S - q) + q <= K / d. Large tables are kept small by a guess G: a plan of S stages takes at least D(S) devices,
so it has at most d = min(M, K / D(S)) copies, and beats G only if every stage takes less than limit(S) =
G / (ceil(M/d) + S - 1), while the slowest takes at least C / S and at least the longest layer, C being the time of all
layers (:func:`limits`). If a plan below G is found, the best such plan is the best of all; otherwise the guess is
raised, in the end to infinity. Nothing is rounded, so the answer is its own lower bound. What the table promises is
priced anew by :mod:`phaze.placement.pipeline`, and the two must agree.
"""

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.errors import InputError, PhazeError
from phaze.placement import kernels
from phaze.placement.charts import chart_of
from phaze.placement.pipeline import Cut, price
from phaze.placement.problem import ROUNDING, LayerGraph, Plan, Problem
from phaze.placement.stage_kernels import BEST, BY_MEMORY, BY_TIME, FULL, NONE, Case, Rules

MOST_TABLE_BYTES = 2**28
AGREEMENT = 1e-9
# A guess is this multiple of what no plan can beat; below so many steps a table is filled without one.
GUESSES = (1.03, 1.15, 1.5, 3.0, inf)
FEW_STEPS = 3e7

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Width:
    """One width made ready: its arrays, the kinds of stages, and by number of stages the least stage time and the
    least multiple of it that a batch takes."""

    graph: LayerGraph
    case: Case
    kinds: int
    least_s: Floats
    rounds: Floats


@dataclass(frozen=True, slots=True)
class Found:
    """A plan that a table promises: its value, its first stage, unsplit stages and stages, and its data degree."""

    width: Width
    table: Floats
    limit_s: Floats
    value: float
    choice: tuple[int, int, int]
    data: int


def rules_of(problem: Problem, objective: int = BY_TIME) -> Rules:
    """The numbers that kernels judge a stage by; by memory, any amount of it is there."""
    recompute = {"none": NONE, "full": FULL, "best": BEST}[problem.recompute]
    there = inf if objective == BY_MEMORY else problem.hbm_bytes * (1 + ROUNDING)
    return Rules(there, problem.state_factor, float(problem.link_bytes_per_s), recompute, objective)


def ready(problem: Problem, graph: LayerGraph, rules: Rules) -> Width:
    """The arrays of one width. Where no layer is sharded, or the width is 1, stages need not be told apart."""
    chart = chart_of(graph)
    plain, n = int(chart.unsplit[-1]), len(graph.layers)
    same = graph.width == 1 or plain == n
    width, kinds = (1, 1) if same else (graph.width, plain + 1)
    stages = np.arange(1, min(n, problem.devices) + 1)
    devices = width * np.maximum(stages - (kinds - 1), 0) + np.minimum(stages, kinds - 1)
    copies = np.minimum(problem.devices // devices, problem.microbatches)
    rounds = np.where(copies > 0, -(-problem.microbatches // np.maximum(copies, 1)) + stages - 1.0, inf)
    seconds = chart.forward_s + chart.backward_s
    least_s = np.maximum(seconds.sum() / stages, seconds.max())
    return Width(graph, Case(chart, rules, width, problem.devices, problem.microbatches), kinds, least_s, rounds)


def limits(width: Width, guess_s: float) -> Floats:
    """limit(S) for S = 0 .. most + 1, never rising, where ``most`` is the most stages that can beat the guess."""
    with np.errstate(invalid="ignore"):
        allowed = np.where(np.isinf(width.rounds), 0.0, guess_s * (1 + AGREEMENT) / width.rounds)
    allowed[allowed < width.least_s] = 0.0
    most = int(np.flatnonzero(allowed)[-1]) + 1 if allowed.any() else 0
    limit_s = np.zeros(most + 2)
    limit_s[1 : most + 1] = np.maximum.accumulate(allowed[:most][::-1])[::-1]
    limit_s[0] = limit_s[1]
    return limit_s


def require_room(width: Width, most: int) -> None:
    """Refuse a table that would not fit into an ordinary computer."""
    sets = len(width.case.chart.size)
    size = 8 * sets * width.kinds * (most + 1)
    if size > MOST_TABLE_BYTES:
        raise InputError(
            f"widths.{width.graph.width}",
            f"{sets:,} places to cut x {width.kinds} kinds x {most} stages need a table of {size / 2**30:.1f} GiB",
            "merge layers",
        )


def cuts_of(found: Found) -> list[Cut]:
    """The stages that the table promises, first to last."""
    owner, again = kernels.trace(found.width.case, found.table, found.limit_s, found.choice)
    layers: list[list[int]] = [[] for _ in range(found.choice[2])]
    for layer, stage in zip(found.width.graph.layers, owner.tolist(), strict=True):
        layers[stage].append(layer.id)
    return [Cut(tuple(ids), bool(recompute)) for ids, recompute in zip(layers, again.tolist(), strict=True)]


def _below(widths: list[Width], guess_s: float) -> Found | None:
    """The fastest plan below the guess; of equal ones the first in a fixed order."""
    best: Found | None = None
    for width in widths:
        bar_s = guess_s if best is None else best.value
        limit_s = limits(width, bar_s)
        if len(limit_s) > 2:
            require_room(width, len(limit_s) - 2)
            g = kernels.table(width.case, width.kinds, limit_s)
            value, first, unsplit, stages, data = kernels.fastest(width.case, g, limit_s, bar_s)
            if data > 0:
                best = Found(width, g, limit_s, value, (first, unsplit, stages), data)
    return best


def _floor(width: Width) -> float:
    """What no plan of this width can beat."""
    possible = np.isfinite(width.rounds)
    return float(np.min(width.least_s[possible] * width.rounds[possible], initial=inf))


def fastest_plan(problem: Problem) -> Plan | None:
    """The plan with the least batch time, or None when nothing fits."""
    rules = rules_of(problem)
    widths = [ready(problem, graph, rules) for graph in problem.graphs]
    floor_s = min(_floor(width) for width in widths)
    steps = sum(len(w.case.chart.size) ** 2 * w.kinds * len(w.rounds) / 6 for w in widths)
    for guess_s in (inf,) if steps < FEW_STEPS or not 0 < floor_s < inf else (f * floor_s for f in GUESSES):
        best = _below(widths, guess_s)
        if best is not None:
            plan = price(problem, best.width.graph.width, best.data, cuts_of(best))
            if abs(plan.batch_s - best.value) > AGREEMENT * best.value:
                raise PhazeError(f"the table promised {best.value!r} s and the plan takes {plan.batch_s!r} s")
            return replace(plan, lower_bound_s=plan.batch_s)
    return None
