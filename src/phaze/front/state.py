"""A front under way: lower bounds of every design in every metric, what was evaluated, and the
designs that none beats.

A unit is a chip with one memory, numbered memory * chips + chip; these numbers stand where a search
has chips, in the journal too. Where one metric comes with a run, a unit has one lane: the best of
all configurations to run the models on it. Where several do, each configuration of a model is a
lane of its own, for none of them need be best in all. Several models then share one lane again,
whose bounds are the least of all configurations in each metric; an evaluated unit has as many
designs as there are combinations of configurations that none beats (:mod:`phaze.front.combine`).
``lower`` is [metrics, lanes, units].

What an evaluated unit ran is one entry for the best configuration of each model, or where several
metrics come with a run one for each configuration that may be in a design, the configurations of
all models numbered one model after the other.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from phaze.front.archive import Archive, no_designs
from phaze.front.combine import combined
from phaze.front.measures import limit_of
from phaze.front.metrics import RequestedMetrics, known_values
from phaze.front.order import closed, steps
from phaze.schedule.problem import ROUNDING
from phaze.search.evaluated import Evaluated, ModelRun
from phaze.search.evaluation import evaluate
from phaze.search.objective import Objective, Rates, Scale
from phaze.search.rates import rates_of
from phaze.search.state import TIE, SearchState
from phaze.search.work_item import failed

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
# More combinations of configurations than any unit has that none of the others beats: room for
# their numbers.
COMBINATIONS = 1 << 20


@dataclass(slots=True, kw_only=True)
class FrontState(SearchState):
    """A front under way: ``front_rates`` and ``front_scales`` of the metrics of a run, ``limits``
    of all measured.

    ``allowed`` are the units within the limits on what is known of them.
    """

    metrics: RequestedMetrics
    front_rates: list[Rates]
    front_scales: tuple[Scale, ...]
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
    def several(self) -> bool:
        """Whether several metrics come with a run, so that a unit may have several designs."""
        return len(self.metrics.runs) > 1

    @property
    def span(self) -> int:
        """How many numbers each unit has for its designs."""
        return COMBINATIONS if self.several and len(self.job.models) > 1 else self.lanes

    @property
    def weighed(self) -> int:
        """How many of the measured metrics, the first ones, are those of the front."""
        return len(self.metrics.of)

    @property
    def run_metrics(self) -> Flags:
        """Which metrics of the front come with a run."""
        return np.array([metric.kind is not None for metric in self.metrics.of])

    @property
    def first_run(self) -> int:
        """Where the first metric of a run stands among those measured."""
        return self.metrics.measured.index(self.metrics.runs[0])

    def place(self, unit: int) -> tuple[int, int]:
        """Chip and memory (its position among those evaluated) of a unit."""
        return unit % len(self.chips), unit // len(self.chips)

    def scored(self) -> Floats:
        """The bound of every unit in the first metric of a run."""
        return np.asarray(self.lower[self.first_run].min(axis=0))

    @property
    def cut(self) -> float:
        """Each unit has a cut-off of its own (:meth:`cut_of`)."""
        return float("inf")

    def vectors(self, index: Integers) -> Floats:
        """Lower bounds of some chips in the metrics of a run, [runs, lanes, memories, chips], from
        times and joules."""
        bounds = []
        for scale, values in zip(self.front_scales, self.configuration_bounds(index), strict=True):
            if self.several and len(values) == 1:
                bounds.append(values[0])
            else:
                bounds.append(scale.score(np.stack([value.min(axis=0) for value in values]))[None])
        return np.stack(bounds)

    def configuration_bounds(self, index: Integers) -> list[list[Floats]]:
        """Lower bounds on some chips, by metric of a run and model [configurations, memories,
        chips]."""
        bounds = []
        for rates in self.front_rates:
            some, values = (
                Rates(rates.rate[self.memories][:, index], rates.weight, rates.delays),
                list[Floats](),
            )
            for model, task in enumerate(self.job.models):
                graphs = [configuration.graph for configuration in task.configurations]
                joules = self.floors[model][graphs][:, index] if rates.weight else np.zeros((1, 1))
                values.append(some.value(self.bounds[model][:, :, index], joules[:, None, :]))
            bounds.append(values)
        return bounds

    def refresh(self, index: Integers) -> None:
        """Bounds of some chips anew; lanes that no longer have a chance are closed. Evaluated units
        keep theirs."""
        chips, count = len(self.chips), len(self.memories)
        units = (np.arange(count)[:, None] * chips + index[None, :]).ravel()
        fresh = self.vectors(index).reshape(len(self.metrics.runs), self.lanes, -1)
        unopened = ~np.isin(units, list(self.evaluated))
        for metric, bounds in zip(self.metrics.runs, fresh, strict=True):
            self.lower[self.metrics.measured.index(metric)][:, units[unopened]] = bounds[
                :, unopened
            ]
        self.close(units, self.archive.numbers, self.archive.values)

    def close(self, units: Integers, numbers: Integers, values: Floats) -> None:
        """Close what these designs leave no chance among ``units``, and what is above a limit."""
        lane, place = np.nonzero(self.alive[:, units])
        unit = units[place]
        out = self.hopeless(self.lower[:, lane, unit], unit * self.span + lane, numbers, values)
        self.alive[lane[out], unit[out]] = False

    def hopeless(self, lower: Floats, names: Integers, numbers: Integers, values: Floats) -> Flags:
        """What of these lower bounds [metrics, lanes] is above a limit, or closed by some of these
        designs."""
        out = ~(lower <= self.limits[:, None]).all(axis=0) | ~np.isfinite(lower).all(axis=0)
        designs, weighed = steps(values[: self.weighed]), lower[: self.weighed]
        return np.asarray(
            out | closed(designs, numbers, weighed, names, self.run_metrics, self.job.gap)
        )

    def cut_of(self, unit: int) -> float:
        """The score that a unit with one lane must not exceed: its limit, and what designs no worse
        elsewhere have."""
        row = self.first_run
        cut = float(self.limits[row])
        if row >= self.weighed:
            return cut
        others = [index for index in range(self.weighed) if index != row]
        values = self.archive.values
        inside = (steps(values[others]) <= steps(self.lower[others, 0, unit])[:, None]).all(axis=0)
        best = float(values[row][inside].min(initial=np.inf))
        return min(cut, best * (1 - self.job.gap if self.job.gap > 0 else 1 + TIE))

    def evaluate(self, chip: int, cut: float) -> Evaluated:
        """A unit (``chip`` is its number): its best configurations against its cut-off, or all with
        a chance."""
        number, memory = self.place(chip)
        hbm = self.memories[memory]
        try:
            return (
                self._ways(chip, number, memory)
                if self.several
                else self._best(chip, number, memory, cut)
            )
        except Exception as fault:
            return failed(chip, hbm, float(self.scored()[chip]), f"{type(fault).__name__}: {fault}")

    def _best(self, unit: int, chip: int, memory: int, cut: float) -> Evaluated:
        """The best configurations of all models on a unit."""
        index = np.array([chip])
        bounds = [
            self.values(model, index)[:, memory : memory + 1, 0]
            for model in range(len(self.bounds))
        ]
        floors = [floor[:, chip] for floor in self.floors]
        best = evaluate(
            self.open(chip), bounds, floors, [self.memories[memory]], min(cut, self.cut_of(unit))
        )
        return replace(best, chip=unit)

    def _ways(self, unit: int, chip: int, memory: int) -> Evaluated:
        """Every configuration of every model on a unit that may be in a design: that neither a
        design of the front closes, all other models at their best, nor another configuration of its
        model beats."""
        evaluation, ran, first = self.open(chip), list[ModelRun](), 0
        bounds = self.configuration_bounds(np.array([chip]))
        models = range(len(self.job.models))
        values = [np.stack([bound[model][:, memory, 0] for bound in bounds]) for model in models]
        least = [bound.min(axis=1) for bound in values]
        for model, value in enumerate(values):
            reached = np.empty((len(value), 0))
            with np.errstate(divide="ignore"):
                order = np.argsort(np.log(value).sum(axis=0), kind="stable").tolist()
            for configuration in order:
                bound = value[:, configuration]
                if self._left_out(unit, model, bound, least) or self._beaten(reached, bound):
                    continue
                priced = evaluation.price(model, configuration, self.memories[memory])
                if priced.batch_s < np.inf:
                    batch_s, number = priced.batch_s, first + configuration
                    ran.append(ModelRun(number, batch_s, priced.dynamic_j, batch_s, priced.lower_s))
                    reached = np.append(reached, self.run_values(unit, [ran[-1]])[0], axis=1)
            if not reached.shape[1]:
                ran = []
                break
            least[model], first = reached.min(axis=1), first + value.shape[1]
        score = min((run.batch_s for run in ran), default=float("inf"))
        lower = min((run.lower for run in ran), default=float("inf"))
        return Evaluated(unit, self.memories[memory], score, lower, tuple(ran))

    def _left_out(self, unit: int, model: int, bounds: Floats, least: Sequence[Floats]) -> bool:
        """Whether no design with a configuration of these bounds in the metrics of a run has a
        chance."""
        values = np.stack(
            [bounds if index == model else model_least for index, model_least in enumerate(least)]
        )
        lower = self._measured(
            unit,
            [float(scale.score(values[:, index])) for index, scale in enumerate(self.front_scales)],
        )
        name = np.array([(unit + 1) * self.span - 1])
        return bool(
            self.hopeless(lower[:, None], name, self.archive.numbers, self.archive.values)[0]
        )

    @staticmethod
    def _beaten(values: Floats, bounds: Floats) -> bool:
        """Whether some of these values are no worse than the bounds in every metric of a run."""
        return bool((steps(values) <= steps(bounds)[:, None]).all(axis=0).any())

    def _measured(self, unit: int, runs: Sequence[float]) -> Floats:
        """Every measured metric of a unit, those of a run as given."""
        values = self.lower[:, 0, unit].copy()
        values[[self.metrics.measured.index(metric) for metric in self.metrics.runs]] = runs
        return values

    def model_and_configuration(self, number: int) -> tuple[int, int]:
        """The model and its configuration, of one numbered through all models."""
        for model, task in enumerate(self.job.models):
            if number < len(task.configurations):
                return model, number
            number -= len(task.configurations)
        raise AssertionError("no configuration of that number")

    def run_values(self, unit: int, ran: Sequence[ModelRun], lower: bool = False) -> list[Floats]:
        """By model the values of its configurations among ``ran`` in every metric of a run,
        [metrics, configurations]; ``lower``: what their schedules prove of them. Only models that
        ran."""
        chip, memory = self.place(unit)
        by_model: dict[int, list[list[float]]] = {}
        for run in ran:
            model, configuration = self.model_and_configuration(run.configuration)
            proved = lower and run.lower < run.batch_s * (1 - ROUNDING)
            graph = self.job.models[model].configurations[configuration].graph
            joules = float(self.floors[model][graph, chip]) if proved else run.dynamic_j
            seconds = np.asarray(run.lower if proved else run.batch_s)
            rates = [
                metric_rates.at(self.memories[memory], chip) for metric_rates in self.front_rates
            ]
            by_model.setdefault(model, []).append(
                [float(metric_rates.value(seconds, joules)) for metric_rates in rates]
            )
        return [np.array(by_model[model]).T for model in sorted(by_model)]

    def designs(self, result: Evaluated) -> list[tuple[int, tuple[ModelRun, ...], Floats]]:
        """The designs of an evaluated unit: position, the configuration of each model, and
        values."""
        if not result.ran:
            return []
        if not self.several:
            return [(0, result.ran, self._measured(result.chip, [result.score]))]
        models: dict[int, list[ModelRun]] = {}
        for run in result.ran:
            model, configuration = self.model_and_configuration(run.configuration)
            models.setdefault(model, []).append(replace(run, configuration=configuration))
        combinations, scores = combined(self.run_values(result.chip, result.ran), self.front_scales)
        chosen = [
            tuple(models[model][place] for model, place in enumerate(combination))
            for combination in combinations.T.tolist()
        ]
        order = sorted(
            range(len(chosen)), key=lambda index: [ran.configuration for ran in chosen[index]]
        )
        alone = len(models) == 1
        return [
            (
                chosen[index][0].configuration if alone else place,
                chosen[index],
                self._measured(result.chip, scores[:, index].tolist()),
            )
            for place, index in enumerate(order)
        ]

    def take(self, result: Evaluated) -> list[int]:
        """An evaluated unit: its designs into the archive, its bounds to what was proved; the
        numbers that came in."""
        unit = result.chip
        came = [
            unit * self.span + place
            for place, _, values in self.designs(result)
            if (values <= self.limits).all() and self.archive.add(unit * self.span + place, values)
        ]
        self.alive[:, unit] = False
        if not self.several and not result.error:
            self.lower[self.first_run, 0, unit] = result.lower
        elif len(self.job.models) == 1:
            for run in result.ran:
                runs = self.run_values(unit, [run], lower=True)[0][:, 0]
                self.lower[:, run.configuration, unit] = self._measured(unit, runs.tolist())
        return came


def front_state(
    state: SearchState, metrics: RequestedMetrics, scales: Sequence[Scale]
) -> FrontState:
    """The front of a search that has its bounds on batch times; ``scales`` by metric of a run."""
    job, chips = state.job, state.chips
    devices, sizes = job.models[0].training.devices, list(job.hbm_bytes)
    runs = [
        rates_of(Objective(metric.kind), chips, sizes, devices)
        for metric in metrics.runs
        if metric.kind is not None
    ]
    lanes = (
        len(job.models[0].configurations) if len(metrics.runs) > 1 and len(job.models) == 1 else 1
    )
    units = len(state.memories) * len(chips)
    limits = {metric: limit_of(job, metric, value) for metric, value in metrics.within}
    measured = metrics.measured
    front = FrontState(
        *(getattr(state, column.name) for column in fields(SearchState)),
        metrics=metrics,
        front_rates=runs,
        front_scales=tuple(scales),
        limits=np.array([limits.get(metric, np.inf) for metric in measured]),
        allowed=np.ones(units, np.bool_),
        lower=np.full((len(measured), lanes, units), np.inf),
        alive=np.ones((lanes, units), np.bool_),
        tightened=np.zeros(len(chips), np.bool_),
        archive=no_designs(len(metrics.of), len(measured)),
    )
    hbm_bytes = [job.hbm_bytes[memory] for memory in state.memories]
    for row, metric in enumerate(measured):
        if metric.kind is None:
            front.lower[row] = known_values(metric, chips, hbm_bytes).ravel()
    for metric, value in metrics.within:
        if metric.kind is None:
            front.allowed &= (known_values(metric, chips, hbm_bytes) <= value * (1 + TIE)).ravel()
    front.alive &= front.allowed
    front.refresh(np.arange(len(chips)))
    return front
