"""What no plan of a graph undercuts, on many chips at once (docs/placement.md).

A *row* is all plans of S stages of a family at a stage of ZeRO whose replicas run m microbatches: d
from ceil(M/m) to the most that the devices allow. With C the seconds of all layers and T the
greatest stage, none of them takes less than

    laps T + share D + E,     T >= max( C / S, ceil(n / S) layers of a kind called n times )
                              (:func:`_floor`)

where C counts transfers, what of ZeRO's collectives is exposed, and the least that must be
recomputed: where at most k blocks fit without it, B - k are. Where every layer takes r times as
long with what it recomputes, in all stages or in all but the last, S T >= r C or (S - 1 + r) T >= r
C. The plans of a row are bounded apart by the outermost level that their boundaries cross, and the
row by the least of these: one boundary and the way around cross that level, all others the fastest
up to it. The stages beside that boundary take no less than their transfers, whatever hides them,

    T >= crossed + min(another, around) + starts                            (:mod:`.row_costs`)

and transfers that run behind other chunks count in every T with the part that is always shown, as
max(w, x) + r min(w, x) >= w + r x for 0 <= r <= 1. D is C with all of them, or of families with
split backward passes the greatest of what its forms sum to over all stages. E is that of a stage
with its share of the parameters.

For models of equal blocks, T is sharper (:func:`_closed`): to beat a goal every stage must end
within t = (goal - E - share D) / laps, so the stage of number s has room for at most a_s blocks, by
time and memory in the mode that gives it most; if they do not add up to all blocks, no plan of the
row beats the goal.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .energy import Goals, Shown
from .plan_classes import FittingBlocks, PlanSpace, Row
from .row_costs import Chipwise, RowCosts, row_costs

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
NEAR = 1e-9
"""Times are sums in another order than phaze has them."""
ROOM = 12_000_000
"""Numbers that a table of plans may hold at once; more chips than fit are taken in turn."""


class Exact(Protocol):
    """Plans of rows one by one on some chips."""

    def least(self, row: Row, goal: Floats) -> Floats:
        """The least batch time of the plans of a row, as far as it is below a goal."""


ExactSolver = Callable[[PlanSpace, Chipwise], Exact]


def _floor(space: PlanSpace, row: Row, costs: RowCosts, ends: Floats) -> Floats:
    """What no plan of a row undercuts whose batches end so late."""
    spared = 0.0 if space.job.stack.last_recomputes else 1.0
    shared = costs.slowdown * costs.layers / (row.stages + spared * (costs.slowdown - 1.0))
    pace = np.maximum(
        np.maximum(np.maximum(costs.whole / row.stages, shared), costs.longest), costs.sent
    )
    laps, share = row.family.laps(row.rounds, row.stages), row.family.share(row.stages)
    return np.asarray(laps * pace + share * costs.filled + ends)


def _closed(
    space: PlanSpace,
    row: Row,
    held: FittingBlocks,
    chips: Chipwise,
    costs: RowCosts,
    ends: Floats,
    goal: Floats,
) -> NDArray[np.bool_]:
    """Chips on which no plan of a row beats the goal."""
    laps, chunks = row.family.laps(row.rounds, row.stages), row.family.chunks
    if row.stages == 1 or laps == 0 or not space.parts.simple:
        return _floor(space, row, costs, ends) >= goal
    longest = (goal - ends - row.family.share(row.stages) * costs.filled) / laps
    left = np.repeat((longest - costs.starts - 2 * costs.boundary)[None, :], row.stages, axis=0)
    left[0] += costs.boundary - costs.last
    left[-1] += costs.boundary - costs.first
    kind = space.graph.calls[space.graph.block.index(True)]
    most = np.full(left.shape, -1.0)
    for mode in np.flatnonzero((held.blocks >= 0).any(axis=0)).tolist():
        fitting = held.blocks[:, mode][:, None]
        each = costs.block + chips.times.again[mode, kind]
        # What a later stage sends back arrives while this one recomputes.
        time_left = left + costs.boundary if mode and space.job.stack.arriving else left
        in_time = np.floor(time_left / each * (1 + NEAR) + NEAR)
        blocks = np.minimum(in_time, fitting) // chunks * chunks
        most = np.maximum(most, np.where(fitting >= 0, blocks, -1.0))
    never = (longest <= 0) | (longest * (1 + NEAR) < costs.sent) | (most < 0).any(axis=0)
    return np.asarray(never | (np.maximum(most, 0.0).sum(axis=0) < sum(space.graph.block)))


def least_batches(
    spaces: Sequence[PlanSpace], chips: Chipwise, goals: Goals, known: Shown, sharp: bool,
    exact: ExactSolver | None = None,
) -> Shown:  # fmt: skip
    """What is shown of the plans of each configuration, as far as they do not reach the goals;
    ``sharp``: stages of equal blocks, too; ``exact``: plans one by one."""
    values, corners = np.zeros(known.values.shape), known.corners.copy()
    for number, space in enumerate(spaces):
        missing = goals.open & ~known.corners[number]
        index = np.flatnonzero(missing.any(axis=0))
        if len(index):
            open_goals = Goals(goals.corners[:, :, index], missing[:, index])
            shown = _least_of_space(space, chips.taken(index), open_goals, sharp, exact)
            values[number][:, index], corners[number][:, index] = shown
    return Shown(values, corners)


def _least_of_space(
    space: PlanSpace, chips: Chipwise, goals: Goals, sharp: bool, exact: ExactSolver | None
) -> tuple[Floats, Flags]:
    """What no plan of a configuration undercuts on every chip in anything that counts, and the
    corners of which none has one for itself, as far as plans do not reach the goals."""
    sums = chips.sums(space.graph)
    whole, longest = sums.forward + sums.backward, sums.both[sums.often > 0].max(axis=0)
    # M t / K microbatches of all layers fall to every device, however they are placed.
    least, joules = space.microbatches * whole / space.job.devices, chips.least_joules(space)
    if not space.parts.unsplit:
        least = least * space.graph.width
    limit = goals.limit(chips.rates, joules)
    values = np.stack([rate.value(least, joules) for rate in chips.rates])
    corners = ~goals.open | (least >= goals.seconds(chips.rates, joules))
    left = np.flatnonzero(least < limit)
    if len(left):
        rows = list(
            space.rows(
                float(whole[left].min()),
                float(longest[left].min()),
                float(limit[left].max()),
                chips.spent is not None,
            )
        )
        of_rows = _least_of_rows(space, rows, chips.taken(left), goals.taken(left), sharp, exact)
        # Rows that none brings below the limit are not looked at: no more than it is shown.
        missed = np.stack([rate.value(limit, joules) for rate in chips.rates])[:, left]
        values[:, left] = np.maximum(values[:, left], np.minimum(of_rows[0], missed))
        corners[:, left] |= of_rows[1]
    return values, corners


def _least_of_rows(
    space: PlanSpace,
    rows: Sequence[Row],
    chips: Chipwise,
    goals: Goals,
    sharp: bool,
    exact: ExactSolver | None,
) -> tuple[Floats, Flags]:
    """What no plan of some rows undercuts on every chip, and corners of which none has one for
    itself."""
    limits, joules, bounds = list[Floats](), list[Floats](), list[Floats]()
    for row in rows:
        joules.append(chips.row_joules(space, row))
        limits.append(goals.limit(chips.rates, joules[-1]))
        bounds.append(row_bound(space, row, chips, limits[-1], sharp))
    if exact is not None and rows:
        _solve(space, rows, chips, limits, bounds, exact)
        if chips.spent is not None and chips.times.exact:
            _leave_fastest(space, rows, chips, limits, bounds, exact)
    values = np.full((len(chips.rates), len(chips.rate)), np.inf)
    corners = np.ones(goals.open.shape, bool)
    for spent, seconds in zip(joules, bounds, strict=True):
        values = np.minimum(values, [rate.value(seconds, spent) for rate in chips.rates])
        corners &= ~goals.open | (seconds >= goals.seconds(chips.rates, spent))
    return values, corners


def _solve(
    space: PlanSpace, rows: Sequence[Row], chips: Chipwise, limits: Sequence[Floats],
    bounds: list[Floats],
    exact: ExactSolver,
) -> None:  # fmt: skip
    """Sharpen bounds that are below their limits to the best plans of their rows."""
    below = np.stack([bound < limit for bound, limit in zip(bounds, limits, strict=True)])
    left = np.flatnonzero(below.any(axis=0))
    sets = space.parts.sets if len(left) else None
    if sets is None:
        return
    depth = max(row.stages for row in rows)
    each = max(1, ROOM // (len(sets.after) * (space.parts.unsplit + 1) * depth))
    for start in range(0, len(left), each):
        some = left[start : start + each]
        solver = exact(space, chips.taken(some))
        for number, row in enumerate(rows):
            mine = below[number, some]
            if mine.any():
                goals = np.where(mine, limits[number][some], 0.0)
                bounds[number][some] = np.where(
                    mine, solver.least(row, goals), bounds[number][some]
                )


def _leave_fastest(
    space: PlanSpace, rows: Sequence[Row], chips: Chipwise, limits: Sequence[Floats],
    bounds: list[Floats],
    exact: ExactSolver,
) -> None:  # fmt: skip
    """Where joules count, a slower plan may take fewer: rows whose best plan is not shown to reach
    the goals count no further where some other row is faster, for it is not the fastest of the
    configuration."""
    below = np.stack([bound < limit for bound, limit in zip(bounds, limits, strict=True)])
    seconds = np.where(below, np.stack(bounds), np.inf)
    slowest = np.where(below, np.stack(bounds), 0.0).max(axis=0)
    fastest = [row_bound(space, row, chips, slowest, True) for row in rows]
    _solve(space, rows, chips, [slowest] * len(rows), fastest, exact)
    # No row is solved beyond the slowest of these: what is not below it is no time of a plan.
    times = np.where(np.stack(fastest) < slowest, np.stack(fastest), np.inf)
    least = np.minimum(times.min(axis=0), seconds.min(axis=0)) * (1 + NEAR)
    for number, bound in enumerate(bounds):
        bounds[number] = np.where(below[number] & (bound > least), np.inf, bound)


def row_bound(space: PlanSpace, row: Row, chips: Chipwise, goal: Floats, sharp: bool) -> Floats:
    """What no plan of a row undercuts on every chip."""
    bound = _row_bound(space, row, None, chips, goal, False)
    left = np.flatnonzero(bound < goal)
    if not len(left):  # whatever fits
        return bound
    held = space.what_fits(row)
    if held is None:
        return np.full(len(goal), np.inf)
    bound[left] = _row_bound(space, row, held, chips.taken(left), goal[left], sharp)
    return bound


def _row_bound(
    space: PlanSpace,
    row: Row,
    held: FittingBlocks | None,
    chips: Chipwise,
    goal: Floats,
    sharp: bool,
) -> Floats:
    """The same by what fits, or where that is not known with nothing recomputed."""
    bound, costs = np.full(len(goal), np.inf), dict[int, RowCosts]()
    for part in row.extremes():
        for level, ends in space.end(part, chips.links).items():
            if level not in costs:
                costs[level] = row_costs(space, row, held, chips, level, ends)
            end = (ends.seconds[:, None] + ends.step_bytes[:, None] / chips.rate).max(axis=0)
            floor = _floor(space, part, costs[level], end)
            if held is not None and sharp and (floor < goal).any():
                closed = _closed(space, part, held, chips, costs[level], end, goal)
                floor = np.where(closed, np.maximum(floor, goal), floor)
            bound = np.minimum(bound, floor)
    return bound
