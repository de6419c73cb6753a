"""What bounds of plans are made of: seconds and joules of a graph on chips, and the costs of a row
of plans on them.

C, D and the greatest stage of :mod:`.plan_bounds`: transfers by the outermost level that boundaries
cross, what of ZeRO's collectives is exposed, and the least that must be recomputed.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .energy import Rates
from .job import Job
from .plan_classes import Ends, FittingBlocks, PlanSpace, Row
from .plan_energy import Spent
from .plan_graph import LayerSeconds, PlanGraph
from .plans import around_seconds, sent_seconds

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sums:
    """Seconds of all calls of a graph on some chips: forward, backward and gradients of weights;
    both passes of each layer; how often each is called."""

    forward: Floats
    backward: Floats
    weight: Floats
    both: Floats
    often: Floats


@dataclass(frozen=True, slots=True)
class Chipwise:
    """Seconds of a graph on some chips that share a network: of layers, of a whole pass, of what
    recomputing adds to a block by mode; ``rate``: HBM bytes a second that vector work reaches,
    ``links``: of the innermost level, ``rates`` of what counts, ``spent``: joules where they do."""

    times: LayerSeconds
    rate: Floats
    links: float
    rates: tuple[Rates, ...]
    spent: Spent | None = None
    _sums: list[Sums] = field(default_factory=list)

    def taken(self, index: NDArray[np.int64]) -> "Chipwise":
        if len(index) == len(self.rate):
            return self
        spent = None if self.spent is None else self.spent.taken(index)
        rates = tuple(rate.taken(index) for rate in self.rates)
        return Chipwise(self.times.taken(index), self.rate[index], self.links, rates, spent)

    def least_joules(self, space: PlanSpace) -> Floats:
        """Joules of a batch of all layers; 0 where they do not count."""
        return np.zeros(len(self.rate)) if self.spent is None else self.spent.of_layers(space)

    def row_joules(self, space: PlanSpace, row: Row) -> Floats:
        """Joules of a batch that no plan of a row undercuts; 0 where they do not count."""
        fitting = None if self.spent is None else space.what_fits(row)
        if self.spent is None or fitting is None:
            return np.zeros(len(self.rate))
        return self.spent.of_row(space, row, fitting)

    def sums(self, graph: PlanGraph) -> Sums:
        """Of the graph whose seconds these are."""
        if not self._sums:
            times = self.times
            often = np.bincount(np.array(graph.calls), minlength=len(graph.layers)).astype(float)
            totals = often @ times.forward, often @ times.backward, often @ times.weight
            self._sums.append(Sums(*totals, times.forward + times.backward, often))
        return self._sums[0]


@dataclass(frozen=True, slots=True)
class RowCosts:
    """A row on some chips: all layers, and with all that stages wait for; D, the most layers of a
    kind in a stage, transfers of the stage that has most, the least slowdown of a stage that
    recomputes; and of equal blocks what a stage is made of: a block, what lies before and after all
    of them, starts of chunks, a boundary."""

    layers: Floats
    whole: Floats
    filled: Floats
    longest: Floats
    sent: float
    slowdown: Floats | float
    block: Floats
    first: Floats
    last: Floats
    starts: float
    boundary: float


def _transfers(space: PlanSpace, row: Row, job: Job, level: int) -> tuple[float, float, float]:
    """A pass of a microbatch over the boundary that crosses a level, over another one, and around
    the pipeline."""
    if job.stack.arriving:
        arriving = space.parts.arriving / job.stack.link if row.stages > 1 else 0.0
        return arriving, arriving, 0.0
    size = np.array([space.parts.carried if row.stages > 1 else 0.0])
    over = [
        row.family.chunks * float(sent_seconds(space.graph, job, across, size)[0])
        for across in range(level + 1)
    ]
    return (
        over[level],
        min(over),
        around_seconds(space.graph, job, row.family, level, space.parts.around),
    )


def _recomputed(
    space: PlanSpace, row: Row, held: FittingBlocks | None, times: LayerSeconds
) -> Floats:
    """The least that must be recomputed; nothing where it is not known what fits."""
    graph, nothing = space.graph, np.zeros(times.forward.shape[1])
    if held is None:
        return nothing
    if row.stages == 1:
        kinds = [graph.calls[call] for call, is_block in enumerate(graph.block) if is_block]
        fitting = np.flatnonzero(held.blocks[0] >= 0).tolist()
        every = [sum((times.again[mode, kind] for kind in kinds), nothing) for mode in fitting]
        return np.asarray(np.min(every, axis=0))
    more = [mode for mode in space.modes_at(row.family, row.stages) if mode]
    if not (space.parts.simple and more):
        return nothing
    kind = graph.calls[graph.block.index(True)]
    least = np.min([times.again[mode, kind] for mode in more], axis=0)
    return np.asarray(max(0, sum(graph.block) - held.plain) * least)


def _slowdown(space: PlanSpace, row: Row, times: LayerSeconds) -> Floats | float:
    """How many times as long every layer takes at least where its stage must recompute; 1 where it
    need not."""
    modes = space.modes_at(row.family, row.stages)
    if 0 in modes or not modes or not space.graph.every_mode:
        return 1.0
    both = times.forward + times.backward
    again = np.min([times.again[mode] for mode in modes], axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.nan_to_num(1.0 + again / both, nan=1.0)
    return np.asarray(ratio[np.unique(np.array(space.graph.calls))].min(axis=0))


def row_costs(
    space: PlanSpace, row: Row, held: FittingBlocks | None, chips: Chipwise, level: int, ends: Ends
) -> RowCosts:
    """The costs of the plans of a row whose boundaries cross that level, and none beyond it; with
    nothing recomputed where it is not known what fits."""
    graph, job = space.graph, space.job if chips.links == 0 else space.job.at_links(chips.links)
    family, times, stages, sums = row.family, chips.times, row.stages, chips.sums(graph)
    exposed, both = job.stack.sharding, sums.both
    forward, backward = sums.forward, sums.backward
    if row.zero >= 2:
        ahead, behind = exposed * ends.gathers[0], exposed * ends.gathers[1]
        forward, backward = forward + sums.often @ ahead, backward + sums.often @ behind
        both = both + (ahead + behind)[:, None]
    crossed, another, around = _transfers(space, row, job, level)
    starts = 2 * (family.chunks - 1) * job.stack.chunk_start
    inner = crossed + (stages - 2) * another if stages > 1 else 0.0
    moved = stages * starts / 2 + around + inner
    recomputed = _recomputed(space, row, held, times)
    # What arrives while a stage recomputes is not waited for.
    waited = np.maximum(recomputed, moved) if job.stack.arriving else recomputed + moved
    filled = forward + backward + moved + waited
    shown = family.shown(job.stack.overlapped, row.rounds, stages)
    whole = filled - 2 * (1 - shown) * (around + inner)
    if family.split:
        known = "but moves" if row.zero < 2 else "but more"
        # What arrives while a stage runs goes to either pass in other parts.
        if job.stack.arriving or not times.exact:
            known = "nothing"
        inputs = backward - sums.weight
        filled = family.least_filled(forward + moved, inputs + moved, sums.weight, stages, known)
    nothing = np.zeros(both.shape[1])
    return RowCosts(
        layers=forward + backward,
        whole=whole,
        filled=filled,
        longest=(np.ceil(sums.often / stages)[:, None] * both).max(axis=0),
        sent=starts + (crossed + min(another, around) if stages > 1 else 2 * around),
        slowdown=_slowdown(space, row, times),
        block=both[graph.calls[graph.block.index(True)]],
        first=nothing if graph.block[0] else both[graph.calls[0]],
        last=nothing if graph.block[-1] else both[graph.calls[-1]],
        starts=starts,
        boundary=shown * another,
    )
