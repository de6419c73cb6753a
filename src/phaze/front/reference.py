"""The reference path of a front: any chip, memory and configuration in every metric, by the
formulas for one chip."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.front.answer import shown_value
from phaze.front.metrics import Metric, RequestedMetrics
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.search.configurations import ChipConfigurations
from phaze.search.objective import Objective, Scale
from phaze.search.rates import chip_rates
from phaze.search.reference_path import NEAR, ReferencePath

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReferenceFront:
    """The reference path of a front; ``scales`` by metric of a run."""

    plain: ReferencePath
    metrics: RequestedMetrics
    scales: tuple[Scale, ...]
    memories: tuple[int, ...]

    @property
    def chips(self) -> int:
        return len(self.plain.chips)

    def configurations(self, chip: int) -> list[ChipConfigurations]:
        """The models on a chip."""
        value, table = (
            self.plain.chips.chip(chip, self.plain.job.hbm_bytes[-1]),
            self.plain.chips.space.technology,
        )
        return [
            ChipConfigurations(task, value, table) for task in self.plain.networks.tasks_of(chip)
        ]

    def unit_value(self, metric: Metric, chip: int, hbm: int) -> float:
        """What is known of a chip with a memory, by the formulas for one chip."""
        value = self.plain.chips.chip(chip, self.plain.job.hbm_bytes[hbm])
        figures, manufacture = estimates_of(value), manufacturing_of(value, load_terms())
        if figures is None or manufacture is None:
            raise AssertionError(f"{value.name}: a chip of a space names a process")
        values = {
            "area": figures.area_mm2,
            "power": figures.design_w,
            "price": manufacture.usd,
            "embodied": manufacture.kgco2e,
        }
        return values[metric.name]

    def plans(self, chip: int, hbm: int) -> list[list[list[float]]]:
        """By model what the fastest plan of every configuration that fits takes in each metric of a
        run."""
        every, size = list[list[list[float]]](), self.plain.job.hbm_bytes[hbm]
        for model in self.configurations(chip):
            plans = [model.plan(choice, size) for choice in model.task.configurations]
            pairs = [(plan.plan.batch_s, plan.dynamic_j) for plan in plans if plan is not None]
            table = self.configuration_values(chip, hbm, pairs)
            every.append([[float(value) for value in values] for values in table.T])
        return every

    def configuration_values(
        self, chip: int, hbm: int, configurations: Sequence[tuple[float, float]]
    ) -> Floats:
        """Configurations of one model by the seconds and joules of a batch, in every metric of a
        run [metrics, configurations]."""
        value, devices = (
            self.plain.chips.chip(chip, self.plain.job.hbm_bytes[hbm]),
            self.plain.job.models[0].training,
        )
        kinds = [metric.kind for metric in self.metrics.runs if metric.kind is not None]
        rates = [chip_rates(Objective(kind), value, devices.devices) for kind in kinds]
        return np.array(
            [[float(rate.value(np.asarray(s), j)) for s, j in configurations] for rate in rates]
        )

    def measured(self, chip: int, hbm: int, runs: Sequence[float]) -> Floats:
        """All measured metrics of a unit, those of a run as given."""
        of_runs = dict(zip(self.metrics.runs, runs, strict=True))
        return np.array(
            [
                of_runs[m] if m in of_runs else self.unit_value(m, chip, hbm)
                for m in self.metrics.measured
            ]
        )

    def values(
        self, chip: int, hbm: int, seconds: Sequence[float], joules: Sequence[float]
    ) -> Floats:
        """All measured metrics of one configuration of running the models."""
        pairs = zip(seconds, joules, strict=True)
        model_values = np.stack(
            [self.configuration_values(chip, hbm, [pair])[:, 0] for pair in pairs]
        )
        return self.measured(
            chip,
            hbm,
            [float(scale.score(model_values[:, index])) for index, scale in enumerate(self.scales)],
        )

    def inside(self, chip: int, hbm: int, values: Floats) -> bool:
        """Whether values are within the limits."""
        job = self.plain.job
        for metric, limit in self.metrics.within:
            if metric.kind is None:
                shown = self.unit_value(metric, chip, hbm)
            else:
                shown = shown_value(job, metric, float(values[self.metrics.measured.index(metric)]))
            if shown < limit * (1 - NEAR) if metric.more else shown > limit * (1 + NEAR):
                return False
        return True
