"""Plans of a graph, exactly: the least batch time of the plans of a row, on many chips at once.

Stage s from the end of a plan of S stages leads from a closed set of calls U to a smaller one U'
(:mod:`.closed_sets`). With T[s, U, U'] its time at the pace, in the fastest mode that fits there,
and D[s, U, U'] what it adds to the sum,

    pace[s, U] = min over U' of max(T[s, U, U'], pace[s - 1, U'])    no cut of U into s stages has a lesser greatest one
    rest[s, U] = min over U' of D[s, U, U'] + rest[s - 1, U']        nor a lesser sum            (:mod:`.completions`)

so with the first stage tried apart no plan takes less than laps max(T, pace) + share (D + rest) +
its end. Where the sum does not count and the first stage's end is that of the batch, that is the
best plan; unsplit stages, which take one device, are counted apart. Else plans are built from the
first stage on, each with its label: the greatest stage (of passes that run apart, of each of both),
the sum of D, the end of a batch (the greatest, or that of the first stage). One is dropped if
another that leaves the same set and has as many unsplit stages is no worse in all, or if with pace
and rest it does not beat the goal, or not even with all that can be unsplit on the devices. The
batch time rises with each of them, so the best plan stays.

Where replicas change nothing but the end of a batch, one table serves all rows and degrees d: they
are tried from the most on, by equal ceil(M/d), until no lesser one can be below the goal.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from .closed_sets import StageSets, even_chunks
from .completions import Completions
from .job import Job, Shape
from .plan_bounds import row_bound
from .plan_classes import PlanSpace, Row
from .plan_graph import PlanGraph
from .plans import tied_seconds
from .row_costs import Chipwise

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Label = tuple[float, float, float, float]


class ExactRows:
    """The least batch times of rows of a configuration on some chips; tables that rows share are
    built once."""

    def __init__(self, space: PlanSpace, chips: Chipwise) -> None:
        self.space, self.chips = space, chips
        self.job = space.job if chips.links == 0 else space.job.at_links(chips.links)
        self._shared: Completions | None = None

    def least(self, row: Row, goal: Floats) -> Floats:
        """Of every chip, as far as it is below its goal."""
        if self.space.parts.sets is None:
            return np.zeros(len(goal))
        if self.space.ends_alone:
            return self._over_degrees(row, goal)
        least = goal.copy()
        for chip in range(len(goal)):
            alone = ExactRows(self.space, self.chips.taken(np.array([chip])))
            least[chip] = alone.least_on_one_chip(row, float(goal[chip]))
        return least

    def _over_degrees(self, row: Row, goal: Floats) -> Floats:
        """Where replicas change nothing but the end of a batch, which is that of the first stage
        and of what stages share."""
        space, family, stages = self.space, row.family, row.stages
        assert space.parts.sets is not None
        if self._shared is None:
            shape = space.shape(row, row.most, row.orders[0])
            self._shared = Completions(
                space, self.job, shape, row.rounds, self.chips, space.parts.sets
            )
        table = self._shared
        table.grown(stages)
        first, slowest, _ = table.first_stages(stages)
        tied = _tied(space.graph, self.job, space.shape(row, row.most, row.orders[0]))
        best = goal - tied
        for unsplit in range(min(table.most_unsplit, stages) + 1):
            pace, most = slowest[:, unsplit], min(row.most, space.most_replicas(stages, unsplit))
            while most >= row.fewest and np.isfinite(pace).any():
                rounds = -(-row.microbatches // most)
                data = -(-row.microbatches // rounds)
                ends = table.ends(space.shape(row, data, row.orders[0]))[first]
                seconds = family.laps(rounds, stages) * pace + ends
                best = np.minimum(best, seconds.min(axis=0))
                most = data - 1
                if most < row.fewest:
                    break
                if not (self._relaxed(table, row, pace, first, most) < best).any():
                    break
        # Taking off and adding what ties take would lose the goal's last digits.
        return np.where(best < goal - tied, best + tied, goal)

    def _relaxed(
        self, table: Completions, row: Row, pace: Floats, first: Integers, most: int
    ) -> Floats:
        """What no degree up to the most undercuts, by first stage: a bound is linear in 1/d."""
        least = np.full_like(pace, np.inf)
        for data in (row.fewest, most):
            ends = table.ends(self.space.shape(row, data, row.orders[0]))[first]
            laps = row.family.laps(row.microbatches / data, row.stages)
            least = np.minimum(least, laps * pace + ends)
        return least

    def least_on_one_chip(self, row: Row, goal: float) -> float:
        """Of one chip, every degree and order by its own table."""
        space, job, sets = self.space, self.job, self.space.parts.sets
        assert sets is not None
        # More replicas never need more memory.
        if not something_fits(space, sets, row):
            return goal
        for data, order in _degrees(row):
            shape = space.shape(row, data, order)
            alone = replace(row, fewest=data, most=data, orders=(order,))
            if (
                not shape.allowed
                or float(row_bound(space, alone, self.chips, np.array([goal]), True)[0]) >= goal
            ):
                continue
            tied = _tied(space.graph, job, shape)
            table = Completions(space, job, shape, row.rounds, self.chips, sets)
            table.grown(row.stages)
            least = _least_by_labels(table, shape, row, goal - tied)
            # Taking off and adding what ties take would lose the goal's last digits.
            goal = least + tied if least < goal - tied else goal
        return goal


def _degrees(row: Row) -> Iterator[tuple[int, str]]:
    """The replicas and orders of a row, most replicas first."""
    for data in range(row.most, row.fewest - 1, -1):
        for order in row.orders[: 1 if row.stages == 1 else 2]:
            yield data, order


def something_fits(space: PlanSpace, sets: StageSets, row: Row) -> bool:
    """Whether some cut into the stages of a row with its most replicas fits into memory."""
    shape, room = space.shape(row, row.most, row.orders[-1]), space.job.room(space.hbm_bytes)
    reached: NDArray[np.bool_] = np.zeros(len(sets.calls), bool)
    reached[0] = True
    allowed = even_chunks(sets, shape)
    for number in range(1, row.stages + 1):
        flying = row.family.flying(row.rounds, number, row.stages)
        fits = np.zeros(len(sets.blocks), bool)
        for mode in space.modes_at(row.family, number):
            fits |= allowed & (sets.bytes_of[mode].needed(space.job, shape, flying) <= room)
        steps = reached[sets.after] & fits[sets.stage]
        reached = np.zeros(len(sets.calls), bool)
        reached[sets.before[steps]] = True
    return bool(reached[-1])


def _least_unsplit(space: PlanSpace, row: Row, data: int) -> int:
    """The fewest stages of one device with which so many replicas find enough devices; one more
    than there can be where none do."""
    for unsplit in range(space.parts.unsplit + 1):
        if data * space.least_devices(row.stages, unsplit) <= space.job.devices:
            return unsplit
    return space.parts.unsplit + 1


def _least_by_labels(table: Completions, shape: Shape, row: Row, goal: float) -> float:
    """The least of laps x pace + share x sum of D + end below ``goal``, or that, on one chip."""
    laps, share = row.family.laps(row.rounds, row.stages), row.family.share(row.stages)
    sets, case, first_end = table.sets, table.case, table.job.stack.first_end
    ends = table.ends(shape)[:, 0]
    needed = _least_unsplit(table.space, row, shape.data)
    labels: dict[tuple[int, int], list[Label]] = {(len(sets.calls) - 1, 0): [(0.0, 0.0, 0.0, 0.0)]}
    for number in range(row.stages, 0, -1):
        stages = table.stages[number - 1]
        rest = table.rest[number - 1][:, 0]
        counts_end = number == row.stages or not first_end
        grown: dict[tuple[int, int], list[Label]] = {}
        for (closed_set, unsplit), waiting in labels.items():
            steps = sets.steps_from(closed_set)
            after, cases, distinct = sets.after[steps], case[steps], sets.stage[steps]
            so_far = unsplit + sets.unsplit[distinct].astype(np.int64)
            pace = table.least_pace(number - 1, needed - so_far)[after, np.arange(len(after))]
            seconds, filled = stages.seconds[cases, 0], stages.filled[cases, 0]
            slowest, total = np.maximum(seconds, pace), filled + rest[after]
            with np.errstate(invalid="ignore"):
                beats = laps * slowest + share * total < goal
            for step in np.flatnonzero(np.isfinite(slowest) & beats).tolist():
                behind, fill = float(stages.backward[cases[step], 0]), float(filled[step])
                ahead = float(seconds[step]) - behind
                end = float(ends[distinct[step]]) if counts_end else 0.0
                place = int(after[step]), int(so_far[step])
                for first, last, whole, stop in waiting:
                    label = max(first, ahead), max(last, behind), whole + fill, max(stop, end)
                    pipeline = laps * max(label[0] + label[1], pace[step]) + share * (
                        label[2] + rest[place[0]]
                    )
                    if pipeline + label[3] < goal:
                        grown.setdefault(place, []).append(label)
        labels = {place: _undominated(every) for place, every in grown.items()}
    for (closed_set, _), every in labels.items():
        if closed_set == 0:
            for first, last, whole, end in every:
                goal = min(goal, laps * (first + last) + share * whole + end)
    return goal


def _undominated(every: list[Label]) -> list[Label]:
    """The labels that no other is no worse than in all."""
    best: list[Label] = []
    for new in sorted(every):
        if not any(all(a <= b for a, b in zip(old, new, strict=True)) for old in best):
            best.append(new)
    return best


def _tied(graph: PlanGraph, job: Job, shape: Shape) -> float:
    """What the ties of the first and the last call add, wherever stages are cut."""
    owner = {call: min(call, shape.stages - 1) for call in range(len(graph.calls))}
    return tied_seconds(graph, job, shape, owner)
