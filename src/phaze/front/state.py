"""A front under way: lower bounds of every design in every metric, what was opened, and the designs that none beats.

A unit is a chip with one memory, numbered memory * chips + chip; these numbers stand where a search has chips, in the
journal too. Where one metric comes with a run, a unit has one lane: the best of all ways to run the models on it. Where
two do, each way is a lane of its own, for none of them need be best in both. ``lower`` is [metrics, lanes, units].
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from phaze.front.measures import limit_of
from phaze.front.metrics import Asked, known_values
from phaze.front.order import beaten, closed, steps
from phaze.schedule.problem import ROUNDING
from phaze.search.evaluation import Evaluated, Ran, evaluate
from phaze.search.objective import Objective, Rates
from phaze.search.rates import rates_of
from phaze.search.slip import failed
from phaze.search.state import TIE, State

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(slots=True)
class Archive:
    """Designs that none of those seen so far beats: numbers (unit * lanes + lane) and values [metrics, designs].

    The first ``weighed`` metrics count.
    """

    weighed: int
    numbers: Integers
    values: Floats

    def add(self, number: int, values: Floats) -> bool:
        """Put a design in, unless one beats it; those that it beats go."""
        own, one, name = steps(self.values[: self.weighed]), steps(values[: self.weighed])[:, None], np.array([number])
        if beaten(own, self.numbers, one, name)[0]:
            return False
        kept = ~beaten(one, name, own, self.numbers)
        self.numbers = np.append(self.numbers[kept], number)
        self.values = np.concatenate([self.values[:, kept], values[:, None]], axis=1)
        return True


def _nothing(weighed: int, measured: int) -> Archive:
    return Archive(weighed, np.empty(0, np.int64), np.empty((measured, 0)))


@dataclass(slots=True, kw_only=True)
class FrontState(State):
    """A front under way: ``front_rates`` of the metrics of a run, ``limits`` of every measured metric.

    ``allowed`` are the units within the limits on what is known of them.
    """

    asked: Asked
    front_rates: list[Rates]
    limits: Floats
    allowed: Flags
    lower: Floats
    alive: Flags
    tightened: Flags
    archive: Archive

    @property
    def lanes(self) -> int:
        return int(self.lower.shape[1])

    @property
    def weighed(self) -> int:
        """How many of the measured metrics, the first ones, are those of the front."""
        return len(self.asked.of)

    @property
    def run_metrics(self) -> Flags:
        """Which metrics of the front come with a run."""
        return np.array([metric.kind is not None for metric in self.asked.of])

    @property
    def first_run(self) -> int:
        """Where the first metric of a run stands among those measured."""
        return self.asked.measured.index(self.asked.runs[0])

    def place(self, unit: int) -> tuple[int, int]:
        """Chip and memory (its position among those opened) of a unit."""
        return unit % len(self.opened), unit // len(self.opened)

    def scored(self) -> Floats:
        """The bound of every unit in the first metric of a run."""
        return np.asarray(self.lower[self.first_run].min(axis=0))

    @property
    def cut(self) -> float:
        """Each unit has a cut-off of its own (:meth:`cut_of`)."""
        return float("inf")

    def vectors(self, index: Integers) -> Floats:
        """Lower bounds of some chips in the metrics of a run, [runs, lanes, memories, chips], from times and joules."""
        found = []
        for rates in self.front_rates:
            values = []
            for model, task in enumerate(self.job.models):
                graphs = [way.graph for way in task.ways]
                some = Rates(rates.rate[self.memories][:, index], rates.weight, rates.delays)
                joules = self.floors[model][graphs][:, index] if rates.weight else np.zeros((1, 1))
                values.append(some.value(self.bounds[model][:, :, index], joules[:, None, :]))
            if len(self.asked.runs) > 1:
                found.append(values[0])
            else:
                found.append(self.scale.score(np.stack([own.min(axis=0) for own in values]))[None])
        return np.stack(found)

    def refresh(self, index: Integers) -> None:
        """Bounds of some chips anew; lanes that no longer have a chance are closed. Opened units keep theirs."""
        chips, count = len(self.opened), len(self.memories)
        units = (np.arange(count)[:, None] * chips + index[None, :]).ravel()
        fresh = self.vectors(index).reshape(len(self.asked.runs), self.lanes, -1)
        unopened = ~np.isin(units, list(self.evaluated))
        for metric, own in zip(self.asked.runs, fresh, strict=True):
            self.lower[self.asked.measured.index(metric)][:, units[unopened]] = own[:, unopened]
        self.close(units, self.archive.numbers, self.archive.values)

    def close(self, units: Integers, numbers: Integers, values: Floats) -> None:
        """Close what these designs leave no chance among ``units``, and what is above a limit."""
        lane, at = np.nonzero(self.alive[:, units])
        unit = units[at]
        lower = self.lower[:, lane, unit]
        out = ~(lower <= self.limits[:, None]).all(axis=0) | ~np.isfinite(lower).all(axis=0)
        known, weighed = steps(values[: self.weighed]), lower[: self.weighed]
        out |= closed(known, numbers, weighed, unit * self.lanes + lane, self.run_metrics, self.job.gap)
        self.alive[lane[out], unit[out]] = False

    def cut_of(self, unit: int) -> float:
        """The score that a unit with one lane must not exceed: its limit, and what designs no worse elsewhere have."""
        row = self.first_run
        cut = float(self.limits[row])
        if row >= self.weighed:
            return cut
        others = [at for at in range(self.weighed) if at != row]
        values = self.archive.values
        inside = (steps(values[others]) <= steps(self.lower[others, 0, unit])[:, None]).all(axis=0)
        best = float(values[row][inside].min(initial=np.inf))
        return min(cut, best * (1 - self.job.gap if self.job.gap > 0 else 1 + TIE))

    def evaluate(self, chip: int, cut: float) -> Evaluated:
        """A unit opened (``chip`` is its number): its best ways against its own cut-off, or all ways with a chance."""
        number, memory = self.place(chip)
        hbm = self.memories[memory]
        try:
            return self._ways(chip, number, hbm) if len(self.asked.runs) > 1 else self._best(chip, number, memory, cut)
        except Exception as fault:
            return failed(chip, hbm, float(self.scored()[chip]), f"{type(fault).__name__}: {fault}")

    def _best(self, unit: int, chip: int, memory: int, cut: float) -> Evaluated:
        """The best ways of all models on a unit."""
        index = np.array([chip])
        bounds = [self.values(model, index)[:, memory : memory + 1, 0] for model in range(len(self.bounds))]
        floors = [floor[:, chip] for floor in self.floors]
        found = evaluate(self.open(chip), bounds, floors, [self.memories[memory]], min(cut, self.cut_of(unit)))
        return replace(found, chip=unit)

    def _ways(self, unit: int, chip: int, hbm: int) -> Evaluated:
        """Every way of one model on a unit that no design and no other way of it beats."""
        opened, ran = self.open(chip), list[Ran]()
        lower, own = self.lower[: self.weighed, :, unit], _nothing(self.weighed, self.weighed)
        with np.errstate(invalid="ignore"):
            order = np.argsort(np.log(lower).sum(axis=0), kind="stable")
        for way in order.tolist():
            name = np.array([unit * self.lanes + way])
            if not self.alive[way, unit] or beaten(steps(own.values), own.numbers, steps(lower[:, [way]]), name)[0]:
                continue
            found = opened.price(0, way, hbm)
            if found.batch_s < np.inf:
                ran.append(Ran(way, found.batch_s, found.dynamic_j, found.batch_s, found.lower_s))
                own.add(int(name[0]), self.exact(unit, ran[-1])[: self.weighed])
        score = min((one.batch_s for one in ran), default=float("inf"))
        return Evaluated(unit, hbm, score, min((one.lower for one in ran), default=float("inf")), tuple(ran))

    def exact(self, unit: int, ran: Ran, lower: bool = False) -> Floats:
        """The values of a way in every measured metric, or where asked for what its schedules prove of them."""
        chip, memory = self.place(unit)
        proved = lower and ran.lower < ran.batch_s * (1 - ROUNDING)
        seconds = ran.lower if proved else ran.batch_s
        joules = float(self.floors[0][self.job.models[0].ways[ran.way].graph, chip]) if proved else ran.dynamic_j
        values = self.lower[:, ran.way, unit].copy()
        for metric, rates in zip(self.asked.runs, self.front_rates, strict=True):
            one = rates.at(self.memories[memory], chip)
            values[self.asked.measured.index(metric)] = float(one.value(np.asarray(seconds), joules))
        return values

    def designs(self, found: Evaluated) -> list[tuple[int, Floats]]:
        """The designs of an opened unit: lane and values."""
        if len(self.asked.runs) > 1:
            return [(ran.way, self.exact(found.chip, ran)) for ran in found.ran]
        if not found.ran:
            return []
        values = self.lower[:, 0, found.chip].copy()
        values[self.first_run] = found.score
        return [(0, values)]

    def take(self, found: Evaluated) -> list[int]:
        """An opened unit: its designs into the archive, its bounds to what was proved; the numbers that came in."""
        unit = found.chip
        came = [
            unit * self.lanes + lane
            for lane, values in self.designs(found)
            if (values <= self.limits).all() and self.archive.add(unit * self.lanes + lane, values)
        ]
        if found.error:
            self.alive[:, unit] = False
        elif len(self.asked.runs) > 1:
            for ran in found.ran:
                self.lower[:, ran.way, unit] = self.exact(unit, ran, lower=True)
                self.alive[ran.way, unit] = False
        else:
            self.lower[self.first_run, 0, unit] = found.lower
            self.alive[:, unit] = False
        return came


def front_state(state: State, asked: Asked) -> FrontState:
    """The front of a search that has its bounds on batch times."""
    job, opened = state.job, state.opened
    devices, sizes = job.models[0].training.devices, list(job.hbm_bytes)
    runs = [
        rates_of(Objective(metric.kind), opened, sizes, devices) for metric in asked.runs if metric.kind is not None
    ]
    lanes = len(job.models[0].ways) if len(asked.runs) > 1 else 1
    units = len(state.memories) * len(opened)
    limits = {metric: limit_of(job, metric, value) for metric, value in asked.within}
    measured = asked.measured
    found = FrontState(
        *(getattr(state, one.name) for one in fields(State)),
        asked=asked,
        front_rates=runs,
        limits=np.array([limits.get(metric, np.inf) for metric in measured]),
        allowed=np.ones(units, np.bool_),
        lower=np.full((len(measured), lanes, units), np.inf),
        alive=np.ones((lanes, units), np.bool_),
        tightened=np.zeros(len(opened), np.bool_),
        archive=_nothing(len(asked.of), len(measured)),
    )
    kept = [job.hbm_bytes[at] for at in state.memories]
    for row, metric in enumerate(measured):
        if metric.kind is None:
            found.lower[row] = known_values(metric, opened, kept).ravel()
    for metric, value in asked.within:
        if metric.kind is None:
            found.allowed &= (known_values(metric, opened, kept) <= value * (1 + TIE)).ravel()
    found.alive &= found.allowed
    found.refresh(np.arange(len(opened)))
    return found
