r"""The boxes of a space against designs that are known of a front: what a design closes as a whole
is pruned.

    area, power, price, carbon of making   of the low corner of a box, with each memory
    metrics of a run                       the bounds of a search on the box
                                           (:mod:`phaze.search.boxes.box_bounds`); of several
                                           metrics the least of all configurations in each

No chip of a box has less, so a box is closed where with every memory it is above a limit, or some
design closes its bounds as it closes those of a unit (:mod:`phaze.front.order`). Where a design
equals them in every metric it does not, for the box may hold the one that comes first by number.
Bounds on batch times are computed only as far as designs that are no worse elsewhere leave a
chance.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.front.measures import limit_of
from phaze.front.metrics import Metric, RequestedMetrics
from phaze.front.order import closed, steps
from phaze.search.boxes.box_bounds import BoxQuestion, box_times, box_values
from phaze.search.boxes.corners import Corners, corners_of
from phaze.search.boxes.grid import Boxes
from phaze.search.objective import Objective, Rates, Scale
from phaze.search.rates import rates_of
from phaze.search.state import TIE

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FrontBoxes:
    """The boxes of a front's space, and the designs that are known, [metrics of the front,
    designs]; ``scales`` by metric of a run."""

    question: BoxQuestion
    metrics: RequestedMetrics
    scales: tuple[Scale, ...]
    points: Floats

    def pruned(self, boxes: Boxes) -> Flags:
        """Which boxes hold no design of the front but those that are known."""
        corners = corners_of(self.question.grid, boxes)
        lower, out = self._known_bounds(corners)
        pruned = np.asarray(out.all(axis=0))
        some = np.flatnonzero(~pruned)
        if len(some):
            pruned[some] = self._closed(
                boxes.taken(some), corners.taken(some), lower[:, :, some], out[:, some]
            )
        return pruned

    def _known_bounds(self, corners: Corners) -> tuple[Floats, Flags]:
        """Lower bounds [metrics measured, memories, boxes], those of a run zero, and what is above
        a limit on what is known of it [memories, boxes]."""
        sizes = [self.question.job.hbm_bytes[memory] for memory in self.question.memories]
        measured = self.metrics.measured
        lower = np.zeros((len(measured), len(sizes), len(corners)))
        for row, metric in enumerate(measured):
            if metric.kind is None:
                lower[row] = known_of(metric, corners, sizes)
        out = np.zeros(lower.shape[1:], np.bool_)
        for metric, value in self.metrics.within:
            if metric.kind is None:
                out |= known_of(metric, corners, sizes) > value * (1 + TIE)
        return lower, out

    def _closed(self, boxes: Boxes, corners: Corners, lower: Floats, out: Flags) -> Flags:
        question, metrics = self.question, self.metrics
        job, every = question.job, np.ones(len(boxes), np.bool_)
        sizes, devices = list(job.hbm_bytes), job.models[0].training.devices
        kinds = [metric.kind for metric in metrics.runs if metric.kind is not None]
        each = [rates_of(Objective(kind), corners, sizes, devices) for kind in kinds]
        rates = [
            Rates(run_rates.rate[list(question.memories)], run_rates.weight, run_rates.delays)
            for run_rates in each
        ]
        measured, cuts = list(zip(rates, self.scales, strict=True)), self._cuts(lower)
        times, reach = box_times(question, boxes), (cuts.max(axis=0), cuts.min(axis=0))
        rows = [metrics.measured.index(metric) for metric in metrics.runs]
        lower[rows] = box_values(question, times, measured, reach, every, False)
        closed_boxes = self._hopeless(lower, out)
        left = ~closed_boxes & np.isfinite(reach[0])
        if len(metrics.runs) == 1 and left.any():
            finer = box_values(question, times, measured, reach, left, True)
            lower[rows] = np.maximum(lower[rows], finer)
            closed_boxes = self._hopeless(lower, out)
        return closed_boxes

    def _cuts(self, lower: Floats) -> Floats:
        """The score that boxes must not exceed with each memory, [memories, boxes]: a limit, and
        what designs no worse elsewhere have; infinite where several metrics come with a run."""
        runs, weighed = self.metrics.runs, len(self.metrics.of)
        row, limits = self.metrics.measured.index(runs[0]), self._limits()
        cuts = np.full(lower.shape[1:], np.inf if len(runs) > 1 else limits[row])
        if len(runs) > 1 or row >= weighed:
            return cuts
        others = [index for index in range(weighed) if index != row]
        designs, bounds = steps(self.points[others]), steps(lower[others])
        room = 1 - self.question.job.gap if self.question.job.gap > 0 else 1 + TIE
        for index in range(self.points.shape[1]):
            covered = (designs[:, index, None, None] <= bounds).all(axis=0)
            cuts = np.where(covered, np.minimum(cuts, self.points[row, index] * room), cuts)
        return cuts

    def _limits(self) -> Floats:
        named = {
            metric: limit_of(self.question.job, metric, value)
            for metric, value in self.metrics.within
        }
        return np.array([named.get(metric, np.inf) for metric in self.metrics.measured])

    def _hopeless(self, lower: Floats, out: Flags) -> Flags:
        """Boxes that with every memory are above a limit, do not fit, or are closed by a design."""
        flat, weighed = lower.reshape(len(lower), -1), len(self.metrics.of)
        beyond = ~(flat <= self._limits()[:, None]).all(axis=0) | ~np.isfinite(flat).all(axis=0)
        numbers, run = (
            np.arange(self.points.shape[1]),
            np.array([metric.kind is not None for metric in self.metrics.of]),
        )
        first = np.full(flat.shape[1], -1)
        closed_lanes = closed(
            steps(self.points), numbers, flat[:weighed], first, run, self.question.job.gap
        )
        return np.asarray(((beyond | closed_lanes).reshape(out.shape) | out).all(axis=0))


def known_of(metric: Metric, corners: Corners, sizes: list[int]) -> Floats:
    """What no chip of boxes is below in a metric that is known of it, with each memory, [memories,
    boxes]."""
    if metric.name in ("price", "embodied"):
        making = corners.making_usd if metric.name == "price" else corners.making_kgco2e
        return np.stack([making(size) for size in sizes])
    values = corners.area_mm2 if metric.name == "area" else corners.rated_w
    return np.broadcast_to(values, (len(sizes), len(values)))
