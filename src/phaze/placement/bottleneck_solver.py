r"""Where only the pace and the first stage count, the bottleneck table decides all stages and
degrees at once.

With beta = 0, E of the first stage over a flat link and stage times that no shape changes, the
least batch time is

    min over t, X_1, q, S, d of  max( T(X_1), g(V - X_1, q, S - 1) ) alpha(m, S)  +  W(X_1) (1 -
                                 1/d)

with t (S - q) + q <= K / d. Large tables are kept small by a guess G: a plan of S stages takes at
least D(S) devices, so it has at most d = min(M, K / D(S)) replicas, and beats G only if every stage
takes less than limit(S) = G / alpha(m, S), while the slowest takes at least C / S and at least the
longest layer, C being the time of all layers (:func:`limits`). If a plan below G is found, the best
such plan is the best of all; otherwise the guess is raised, in the end to infinity. Nothing is
rounded, so the answer is its own lower bound.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.errors import InputError
from phaze.pipeline.family import Family
from phaze.placement import bottleneck_kernels as kernels
from phaze.placement.batch_end import flat_link_s_per_byte, over_flat_link_alone
from phaze.placement.prepared_width import Width, in_flight_of, room_of, stages_of, with_frozen
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import Order
from phaze.placement.stage_kernels import StageTable

# What an ordinary computer spares for one table.
MOST_TABLE_BYTES = 2**28
# A guess is this multiple of what no plan can beat; below so many steps a table is filled without
# one.
GUESSES = (1.03, 1.15, 1.5, 3.0, inf)
FEW_STEPS = 3e7
# Products of the same times in another order differ by less.
AGREEMENT = 1e-9

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class BottleneckPlan:
    """The best plan so far: batch time, width, data degree, family, its stages and modes first to
    last, and at which stage of ZeRO."""

    cost_s: float
    width: Width
    table: StageTable
    data: int
    family: Family
    path: Ints
    modes: Ints
    order: Order = ""
    zero: int = 0


@dataclass(frozen=True, slots=True)
class _Paces:
    """By number of stages from 1 on: the least alpha of any data degree, and the least pace."""

    alpha: Floats
    least_s: Floats

    @property
    def bound_s(self) -> float:
        """What no plan can beat."""
        possible = np.isfinite(self.alpha)
        return float(np.min(self.least_s[possible] * self.alpha[possible], initial=inf))


def decides(problem: PlacementProblem, family: Family) -> bool:
    """Whether the table gives the best plan of a family."""
    rules = problem.rules
    flat = rules.stage == "icml24" and over_flat_link_alone(problem)
    return (
        flat and family.pace_stages == 1 and family.in_flight_rule == "number" and problem.zero == 0
    )


def _paces(problem: PlacementProblem, width: Width, family: Family) -> _Paces:
    stages = np.arange(1, width.depth + 1)
    replicas = np.minimum(problem.devices // width.fewest_devices(stages), problem.microbatches)
    rounds = -(-problem.microbatches // np.maximum(replicas, 1))
    alpha = np.where(replicas > 0, rounds + family.pace_stages * stages - 1.0, inf)
    return _Paces(alpha, np.maximum(width.seconds / stages, width.longest_s))


def limits(paces: _Paces, guess_s: float) -> Floats:
    """limit(S) for S = 0 .. most + 1, never rising, where ``most`` is the most stages that can beat
    the guess."""
    with np.errstate(invalid="ignore"):
        allowed = np.where(np.isinf(paces.alpha), 0.0, guess_s * (1 + AGREEMENT) / paces.alpha)
    allowed[allowed < paces.least_s] = 0.0
    most = int(np.flatnonzero(allowed)[-1]) + 1 if allowed.any() else 0
    limit_s = np.zeros(most + 2)
    limit_s[1 : most + 1] = np.maximum.accumulate(allowed[:most][::-1])[::-1]
    limit_s[0] = limit_s[1]
    return limit_s


def _require_room(width: Width, most: int) -> None:
    """Refuse a table that would not fit into an ordinary computer."""
    sets = len(width.cut_sets.size)
    size = 8 * sets * width.kinds * (most + 1)
    if size > MOST_TABLE_BYTES:
        raise InputError(
            f"widths.{width.graph.width}",
            (
                f"{sets:,} places to cut x {width.kinds} kinds x {most} stages need a table "
                f"of {size / 2**30:.1f} GiB"
            ),
            "merge layers",
        )


def _of_width(
    problem: PlacementProblem, width: Width, family: Family, limit_s: Floats, bar_s: float
) -> BottleneckPlan | None:
    """The fastest plan of a width below ``bar_s``."""
    most = len(limit_s) - 2
    _require_room(width, most)
    table = with_frozen(
        problem, width, stages_of(problem, width, kernels.longest_of(width.cut_sets, limit_s)), 1
    )
    room, in_flight = room_of(problem, 1), in_flight_of(family, problem.microbatches, None, most)
    free = np.zeros(len(width.cut_sets.size))
    g = kernels.bottleneck(width.cut_sets, table, room, in_flight, (width.kinds, free, limit_s))
    degrees = kernels.ReplicaDegrees(
        width.devices_per_stage,
        problem.devices,
        problem.microbatches,
        float(family.pace_stages),
        -1.0,
    )
    sync_s = flat_link_s_per_byte(problem.rules.link_bytes_per_s or inf)
    chosen = kernels.best_of_table(
        width.cut_sets, table, room, in_flight, (g, limit_s, degrees, sync_s, bar_s)
    )
    cost_s, first, unsplit, stages, data = chosen
    if not data:
        return None
    path, modes = kernels.trace(table, room, in_flight, g, (first, unsplit, stages))
    return BottleneckPlan(cost_s, width, table, data, family, path, modes, problem.rules.orders[0])


def best_by_table(
    problem: PlacementProblem, widths: list[Width], family: Family, below_s: float
) -> BottleneckPlan | None:
    """The fastest plan of a family below ``below_s``; of equal ones the first in a fixed order."""
    paces = [_paces(problem, width, family) for width in widths]
    bound_s = min(pace.bound_s for pace in paces)
    steps = sum(len(w.cut_sets.size) ** 2 * w.kinds * w.depth / 6 for w in widths)
    small = steps < FEW_STEPS or not 0 < bound_s < inf
    for factor in (inf,) if small else GUESSES:
        guess_s = below_s if factor == inf else min(below_s, factor * bound_s)
        best: BottleneckPlan | None = None
        for width, pace in zip(widths, paces, strict=True):
            bar_s = guess_s if best is None else best.cost_s
            limit_s = limits(pace, bar_s)
            if len(limit_s) > 2:
                best = _of_width(problem, width, family, limit_s, bar_s) or best
        if best is not None or guess_s == below_s:
            return best
    return None
