r"""The metrics of any design from what a batch takes on it, and the lower bounds of all units as a
front closes them.

A unit is a chip with one of the memories that count, numbered memory * chips + chip. What a
finished front proves follows from its designs and from :class:`Listed`, the bounds of every unit:
where one metric comes with a run they are the list of closed units itself, so that whoever has the
list can derive the proof.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.front.metrics import Metric, RequestedMetrics, known_values
from phaze.search.chips import SpaceChips
from phaze.search.objective import Objective, Rates, Scale
from phaze.search.rates import rates_of
from phaze.search.state import TIE
from phaze.search.task import SearchJob

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


def batch_of(job: SearchJob) -> float:
    """Sequences of a batch, by which seconds become throughput; of several models 1."""
    return float(job.models[0].training.batch) if len(job.models) == 1 else 1.0


def limit_of(job: SearchJob, metric: Metric, value: float) -> float:
    """A limit as a score: at least so much throughput is at most so many seconds."""
    return (batch_of(job) / value if metric.more else value) * (1 + TIE)


@dataclass(frozen=True, slots=True)
class Measures:
    """What the metrics of a front are computed from: rates and scales of a run's metrics, and what
    is known of every unit."""

    job: SearchJob
    metrics: RequestedMetrics
    scales: tuple[Scale, ...]
    memories: tuple[int, ...]
    rates: tuple[Rates, ...]
    unit_values: dict[str, Floats]

    @property
    def chips(self) -> int:
        return int(self.rates[0].rate.shape[1])

    def unit(self, chip: int, hbm: int) -> int:
        """The unit of a chip and a memory; a memory that does not count stands for the one that
        does."""
        place = self.memories.index(hbm) if hbm in self.memories else len(self.memories) - 1
        return place * self.chips + chip

    def values(
        self, chip: int, hbm: int, seconds: Sequence[float], joules: Sequence[float]
    ) -> Floats:
        """Every measured metric of a design whose models take these seconds and joules a batch."""
        values = np.empty(len(self.metrics.measured))
        for row, metric in enumerate(self.metrics.measured):
            if metric.kind is None:
                values[row] = self.unit_values[metric.name][self.unit(chip, hbm)]
                continue
            run = self.metrics.runs.index(metric)
            rates = self.rates[run].at(hbm, chip)
            model_values = [
                float(rates.value(np.asarray(s), j)) for s, j in zip(seconds, joules, strict=True)
            ]
            values[row] = float(self.scales[run].score(np.array(model_values)))
        return values

    def limits(self) -> Floats:
        """The limit of every measured metric, infinite where there is none."""
        named = {metric: limit_of(self.job, metric, value) for metric, value in self.metrics.within}
        return np.array([named.get(metric, np.inf) for metric in self.metrics.measured])

    def allowed(self) -> Flags:
        """The units within the limits on what is known of them."""
        allowed = np.ones(len(self.memories) * self.chips, np.bool_)
        for metric, value in self.metrics.within:
            if metric.kind is None:
                allowed &= self.unit_values[metric.name] <= value * (1 + TIE)
        return allowed


def measures_of(
    job: SearchJob,
    metrics: RequestedMetrics,
    scales: Sequence[Scale],
    chips: SpaceChips,
    memories: Sequence[int],
) -> Measures:
    """The measures of a front; ``scales`` by metric of a run."""
    devices, sizes = job.models[0].training.devices, list(job.hbm_bytes)
    kinds = [metric.kind for metric in metrics.runs if metric.kind is not None]
    rates = tuple(rates_of(Objective(kind), chips, sizes, devices) for kind in kinds)
    named = {*metrics.of, *(metric for metric, _ in metrics.within)}
    hbm_bytes = [sizes[memory] for memory in memories]
    unit_values = {
        m.name: known_values(m, chips, hbm_bytes).ravel() for m in named if m.kind is None
    }
    return Measures(job, metrics, tuple(scales), tuple(memories), rates, unit_values)


@dataclass(frozen=True, slots=True)
class Listed:
    """Lower bounds [metrics measured, lanes, units] with limits, allowed units, designs [metrics
    measured, designs]."""

    metrics: RequestedMetrics
    gap: float
    lower: Floats
    limits: Floats
    allowed: Flags
    points: Floats

    @property
    def weighed(self) -> int:
        return len(self.metrics.of)

    @property
    def run_metrics(self) -> Flags:
        """Which metrics of the front come with a run."""
        return np.array([metric.kind is not None for metric in self.metrics.of])

    @property
    def inside(self) -> Flags:
        """The lanes of units [lanes, units] that may lie within the limits."""
        with np.errstate(invalid="ignore"):
            return np.asarray((self.lower <= self.limits[:, None, None]).all(axis=0) & self.allowed)

    @property
    def bounds(self) -> Floats:
        """The bounds of those that may and that fit, [metrics of the front, lanes of units]."""
        lane, unit = np.nonzero(self.inside & np.isfinite(self.lower).all(axis=0))
        return self.lower[: self.weighed, lane, unit]


def listed_from(measures: Measures, bounds: Floats, points: Floats) -> Listed:
    """What a list of closed units says, ``bounds`` by unit, where one metric comes with a run."""
    metrics = measures.metrics
    lower = np.stack(
        [bounds if m.kind is not None else measures.unit_values[m.name] for m in metrics.measured]
    )
    return Listed(
        metrics, measures.job.gap, lower[:, None, :], measures.limits(), measures.allowed(), points
    )
