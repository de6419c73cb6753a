"""What no plan of a graph undercuts, on many chips at once (docs/placement.md). Rules icml24: :mod:`.placements`.

A *row* is all plans of S stages of a family at a stage of ZeRO whose replicas run m microbatches: d from ceil(M/m) to
the most that the devices allow. With C the seconds of all layers and T the greatest stage, none of them takes less than

    laps T + share D + E,     T >= max( C / S, the longest layer )                                      (:func:`_floor`)

where C counts transfers, what of ZeRO's collectives is exposed, and the least that must be recomputed: where at most k
blocks fit without it, B - k are. The plans of a row are bounded apart by the outermost level that their boundaries
cross, and the row by the least of these: one boundary and the way around cross that level, all others the fastest up to
it. The stages beside that boundary take no less than their transfers, whatever hides them,

    T >= crossed + min(another, around) + starts                            (:attr:`_Costs.sent`)

and transfers that run behind other chunks count in every T with the part that is always shown, as max(w, x) + r min(w,
x) >= w + r x for 0 <= r <= 1. D is C with all of them, or of families with split backward passes the greatest of what
its forms sum to over all stages. E is that of a stage with its share of the parameters.

For models of equal blocks, T is sharper (:func:`_closed`): to beat a goal every stage must end within
t = (goal - E - share D) / laps, so the stage of number s has room for at most a_s blocks, by time and memory in the
mode that gives it most; if they do not add up to all blocks, no plan of the row beats the goal.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .energy import Rates
from .job import Job
from .layer_costs import LayerJoules
from .placements import least_batch
from .plan_classes import Ends, FittingBlocks, PlanSpace, Row
from .plan_graph import LayerSeconds
from .plans import around_seconds, sent_seconds, stepped_parameters

Floats = NDArray[np.float64]
NEAR = 1e-9
"""Times are sums in another order than phaze has them."""


@dataclass(frozen=True, slots=True)
class Chipwise:
    """Seconds of a graph on some chips that share a network: of layers, of a whole pass, of what recomputing adds to a
    block by mode; ``rate``: HBM bytes a second that vector work reaches, ``links``: of the innermost level."""

    times: LayerSeconds
    rate: Floats
    links: float
    spent: "Spent | None" = None

    def taken(self, index: NDArray[np.int64]) -> "Chipwise":
        spent = None if self.spent is None else self.spent.taken(index)
        return Chipwise(self.times.taken(index), self.rate[index], self.links, spent)


@dataclass(frozen=True, slots=True)
class Spent:
    """What chips take beside time, where that counts: joules of layers, of a byte of HBM, and what they count."""

    layers: LayerJoules
    hbm: Floats
    rates: Rates

    def taken(self, index: NDArray[np.int64]) -> "Spent":
        layers = LayerJoules(self.layers.both[:, index], self.layers.again[:, :, index])
        return Spent(layers, self.hbm[index], self.rates.taken(index))

    def of_layers(self, space: PlanSpace) -> Floats:
        """Joules of a batch of all layers, nothing recomputed."""
        graph = space.graph
        often = np.bincount(np.array(graph.calls), minlength=len(graph.layers)).astype(float)
        return np.asarray(space.microbatches * graph.width * (often @ self.layers.both))

    def of_row(self, space: PlanSpace, row: Row, held: FittingBlocks) -> Floats:
        """Joules of a batch that no plan of a row undercuts."""
        graph, more = space.graph, [mode for mode in space.modes_of(row) if mode]
        kind, blocks = graph.calls[graph.block.index(True)], sum(graph.block)
        again = np.zeros(len(self.hbm))
        if more and space.parts.simple:
            least = np.min([self.layers.again[mode, kind] for mode in more], axis=0)
            again = max(0, blocks - held.plain) * least
        kinds = [graph.layers[k] for k in graph.calls]
        ties = sum(tie.elements * (len(tie.calls) - 1) for tie in graph.ties)
        experts = float(sum(layer.experts for layer in kinds))
        dense = float(sum(layer.parameters for layer in kinds)) - experts - ties
        stepped = stepped_parameters(graph, (row.zero, row.fewest, space.shard), dense, experts)
        update = stepped * space.job.held.update * self.hbm
        return np.asarray(self.of_layers(space) + space.microbatches * graph.width * again + update)


Exact = Callable[[PlanSpace, Row, Chipwise, float], float]
"""The least step time of the plans of a row on one chip, as far as it is below a goal."""


@dataclass(frozen=True, slots=True)
class _Costs:
    """A row on some chips: all layers, D, the longest layer, transfers of the stage that has most, ends; and of equal
    blocks what a stage is made of: a block, what lies before and after all of them, starts of chunks, a boundary."""

    whole: Floats
    filled: Floats
    longest: Floats
    sent: float
    ends: Floats
    block: Floats
    first: Floats
    last: Floats
    starts: float
    boundary: float


def _transfers(space: PlanSpace, row: Row, job: Job, level: int) -> tuple[float, float, float]:
    """A pass of a microbatch over the boundary that crosses a level, over another one, and around the pipeline."""
    size = np.array([space.parts.carried if row.stages > 1 else 0.0])
    over = [row.family.chunks * float(sent_seconds(space.graph, job, across, size)[0]) for across in range(level + 1)]
    return over[level], min(over), around_seconds(space.graph, job, row.family, level, space.parts.around)


def _recomputed(space: PlanSpace, row: Row, held: FittingBlocks | None, times: LayerSeconds) -> Floats:
    """The least that must be recomputed; nothing where it is not known what fits."""
    graph, modes = space.graph, space.modes_of(row)
    nothing = np.zeros(times.forward.shape[1])
    if held is None:
        return nothing
    if row.stages == 1:
        kinds = [graph.calls[call] for call, is_block in enumerate(graph.block) if is_block]
        fitting = [mode for place, mode in enumerate(modes) if held.blocks[0, place] >= 0]
        every = [sum((times.again[mode, kind] for kind in kinds), nothing) for mode in fitting]
        return np.asarray(np.min(every, axis=0))
    more = [mode for mode in modes if mode]
    if not (space.parts.simple and more):
        return nothing
    kind = graph.calls[graph.block.index(True)]
    least = np.min([times.again[mode, kind] for mode in more], axis=0)
    return np.asarray(max(0, sum(graph.block) - held.plain) * least)


def _costs(space: PlanSpace, row: Row, held: FittingBlocks | None, chips: Chipwise, level: int, ends: Ends) -> _Costs:
    """The costs of the plans of a row whose boundaries cross that level, and none beyond it; with nothing recomputed
    where it is not known what fits."""
    graph, job = space.graph, space.job if chips.links == 0 else space.job.at_links(chips.links)
    family, times, stages = row.family, chips.times, row.stages
    exposed = 1 - job.stack.hidden
    forward = times.forward + (exposed * ends.gathers[0])[:, None]
    backward = times.backward + (exposed * ends.gathers[1])[:, None]
    both = forward + backward
    often = np.bincount(np.array(graph.calls), minlength=len(graph.layers)).astype(float)
    crossed, another, around = _transfers(space, row, job, level)
    starts = 2 * (family.chunks - 1) * job.stack.chunk_start
    inner = crossed + (stages - 2) * another if stages > 1 else 0.0
    moved = stages * starts / 2 + around + inner
    filled = often @ both + _recomputed(space, row, held, times) + 2 * moved
    shown = family.shown(job.stack.overlapped, row.rounds, stages)
    whole = filled - 2 * (1 - shown) * (around + inner)
    if family.split:
        known = "nothing" if not times.exact else "but moves" if row.zero < 2 else "but more"
        weight = often @ times.weight
        inputs = often @ backward - weight
        filled = family.least_filled(often @ forward + moved, inputs + moved, weight, stages, known)
    nothing = np.zeros(both.shape[1])
    return _Costs(
        whole=whole,
        filled=filled,
        longest=both[np.unique(np.array(graph.calls))].max(axis=0),
        sent=starts + (crossed + min(another, around) if stages > 1 else 2 * around),
        ends=(ends.seconds[:, None] + ends.step_bytes[:, None] / chips.rate).max(axis=0),
        block=both[graph.calls[graph.block.index(True)]],
        first=nothing if graph.block[0] else both[graph.calls[0]],
        last=nothing if graph.block[-1] else both[graph.calls[-1]],
        starts=starts,
        boundary=shown * another,
    )


def _floor(row: Row, costs: _Costs) -> Floats:
    pace = np.maximum(np.maximum(costs.whole / row.stages, costs.longest), costs.sent)
    laps, share = row.family.laps(row.rounds), row.family.share(row.stages)
    return np.asarray(laps * pace + share * costs.filled + costs.ends)


def _closed(
    space: PlanSpace, row: Row, held: FittingBlocks, chips: Chipwise, costs: _Costs, goal: Floats
) -> NDArray[np.bool_]:
    """Chips on which no plan of a row beats the goal."""
    laps, chunks, blocks = row.family.laps(row.rounds), row.family.chunks, sum(space.graph.block)
    if row.stages == 1 or laps == 0 or not space.parts.simple:
        return _floor(row, costs) >= goal
    longest = (goal - costs.ends - row.family.share(row.stages) * costs.filled) / laps
    kind = space.graph.calls[space.graph.block.index(True)]
    room, never = np.zeros(len(goal)), (longest <= 0) | (longest * (1 + NEAR) < costs.sent)
    for number in range(1, row.stages + 1):
        left = longest - costs.starts - 2 * costs.boundary
        if number == 1:
            left = left + costs.boundary - costs.last
        elif number == row.stages:
            left = left + costs.boundary - costs.first
        most = np.full(len(goal), -1.0)
        for place, mode in enumerate(space.modes_of(row)):
            fitting = held.blocks[number - 1, place]
            if fitting >= 0:
                each = costs.block + chips.times.again[mode, kind]
                in_time = np.floor(left / each * (1 + NEAR) + NEAR)
                most = np.maximum(most, np.minimum(in_time, fitting) // chunks * chunks)
        never |= most < 0
        room += np.maximum(most, 0.0)
    return np.asarray(never | (room < blocks))


def least_batches(
    spaces: Sequence[PlanSpace], chips: Chipwise, goal: Floats, known: Floats, sharp: bool, exact: Exact | None = None
) -> Floats:
    """What no plan of each configuration undercuts, [configurations, chips], as far as it is below the goal;
    ``sharp``: stages of equal blocks, too; ``exact``: their plans, on one chip at a time."""
    found = np.zeros(known.shape)
    for at, space in enumerate(spaces):
        index = np.flatnonzero(known[at] < goal)
        if not len(index):
            continue
        own = chips.taken(index)
        if space.cuts is not None:
            found[at, index] = least_batch(space.cuts, own.times.forward, own.times.backward, goal[index], not sharp)
            continue
        often = np.bincount(np.array(space.graph.calls), minlength=len(space.graph.layers)).astype(float)
        both = own.times.forward + own.times.backward
        whole, longest = often @ both, both[np.unique(np.array(space.graph.calls))].max(axis=0)
        # M t / K microbatches of all layers fall to every device, however they are placed.
        least, spent = space.microbatches * space.graph.width * whole / space.job.devices, own.spent
        limit, first = goal[index], least
        if spent is not None:
            limit = spent.rates.longest(goal[index], spent.of_layers(space))
            first = spent.rates.value(least, spent.of_layers(space))
        best = np.where(least >= limit, np.maximum(first, goal[index]), np.inf)
        there = np.flatnonzero(least < limit)
        if len(there):
            most = float(limit[there].max())
            some = own.taken(there)
            for row in space.rows(float(whole[there].min()), float(longest[there].min()), most):
                found_row = _valued(space, row, some, goal[index][there], sharp, exact)
                best[there] = np.minimum(best[there], found_row)
        # Rows that none brings below the goal are not looked at, so more than it is not shown.
        found[at, index] = np.minimum(best, goal[index])
    return found


def _valued(space: PlanSpace, row: Row, chips: Chipwise, goal: Floats, sharp: bool, exact: Exact | None) -> Floats:
    """What no plan of a row undercuts on every chip: seconds, or where more counts its value."""
    spent = chips.spent
    held = None if spent is None else space.what_fits(row)
    if spent is None or held is None:
        return row_bound(space, row, chips, goal, sharp, exact)
    joules = spent.of_row(space, row, held)
    limit = spent.rates.longest(goal, joules)
    seconds = row_bound(space, row, chips, limit, sharp, exact)
    value = spent.rates.value(seconds, joules)
    return np.where(seconds >= limit, np.maximum(value, goal), value)


def row_bound(
    space: PlanSpace, row: Row, chips: Chipwise, goal: Floats, sharp: bool, exact: Exact | None = None
) -> Floats:
    """What no plan of a row undercuts on every chip."""
    by_level, found = space.end(row, chips.links), np.full(len(goal), np.inf)
    for level, ends in by_level.items():
        found = np.minimum(found, _floor(row, _costs(space, row, None, chips, level, ends)))
    if (found >= goal).all():  # whatever fits
        return found
    held, found = space.what_fits(row), np.full(len(goal), np.inf)
    if held is None:
        return found
    for level, ends in by_level.items():
        costs = _costs(space, row, held, chips, level, ends)
        least = _floor(row, costs)
        if sharp and (least < goal).any():
            least = np.where(_closed(space, row, held, chips, costs, goal), np.maximum(least, goal), least)
        found = np.minimum(found, least)
    if exact is not None and space.parts.chain:
        for at in np.flatnonzero(found < goal).tolist():
            found[at] = exact(space, row, chips.taken(np.array([at])), float(goal[at]))
    return found
