"""The plain path of a front: any chip, memory and way in every metric, by the formulas for one chip."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.front.answer import shown_value
from phaze.front.metrics import Asked, Metric
from phaze.hardware.ownership import load_terms, ownership_of
from phaze.hardware.power import full_rate_power
from phaze.hardware.technology import chip_areas
from phaze.search.energy import Electricity
from phaze.search.objective import Objective
from phaze.search.plain import PlainPlan, layers_on, planned
from phaze.search.rates import chip_rates
from phaze.search.verify import NEAR, Plain

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PlainFront:
    """The plain path of a front, and the designs that it names, as scores [metrics, designs]."""

    plain: Plain
    asked: Asked
    points: Floats
    memories: tuple[int, ...]

    @property
    def chips(self) -> int:
        return len(self.plain.opened)

    def electricity(self, chip: int) -> Electricity:
        task = self.plain.networks.tasks_of(chip)[0]
        return Electricity(self.plain.opened.technology.energy, task.training.link_bytes_per_s)

    def known(self, metric: Metric, chip: int, hbm: int) -> float:
        """What is known of a chip with a memory, by the formulas for one chip."""
        value, technology = self.plain.opened.chip(chip, self.plain.job.hbm_bytes[hbm]), self.plain.opened.technology
        if metric.name == "area":
            return float(chip_areas(technology, value).total())
        if metric.name == "power":
            return full_rate_power(technology, value).design_w
        owned = ownership_of(value, technology, load_terms())
        return owned.making_usd if metric.name == "price" else owned.embodied_kgco2e

    def run(self, metric: Metric, chip: int, hbm: int, seconds: Sequence[float], joules: Sequence[float]) -> float:
        """A metric of a run from seconds and joules of a batch of each model."""
        if metric.kind is None:
            raise AssertionError(f"{metric.name} does not come with a run")
        value = self.plain.opened.chip(chip, self.plain.job.hbm_bytes[hbm])
        rates = chip_rates(Objective(metric.kind), value, self.plain.job.models[0].training.devices)
        own = [float(rates.value(np.asarray(s), j)) for s, j in zip(seconds, joules, strict=True)]
        return float(self.plain.scale.score(np.array(own)))

    def values(self, chip: int, hbm: int, seconds: Sequence[float], joules: Sequence[float]) -> Floats:
        """All measured metrics of one way of running the models."""
        return np.array(
            [
                self.known(metric, chip, hbm) if metric.kind is None else self.run(metric, chip, hbm, seconds, joules)
                for metric in self.asked.measured
            ]
        )

    def inside(self, chip: int, hbm: int, values: Floats) -> bool:
        """Whether values are within the limits."""
        job = self.plain.job
        for metric, limit in self.asked.within:
            if metric.kind is None:
                own = self.known(metric, chip, hbm)
            else:
                own = shown_value(job, metric, float(values[self.asked.measured.index(metric)]))
            if own < limit * (1 - NEAR) if metric.more else own > limit * (1 + NEAR):
                return False
        return True

    def covered(self, values: Floats, gap: float) -> bool:
        """Whether a design of the front is no worse, to the gap in metrics of a run."""
        run = np.array([metric.kind is not None for metric in self.asked.of])
        room = np.where(run, values[: len(run)] / (1 - gap), values[: len(run)]) * (1 + NEAR)
        return bool((self.points <= room[:, None]).all(axis=0).any())

    def exact(self, chip: int, hbm: int) -> list[Floats]:
        """Every way of running the models on a unit that may count, exactly; of several models the best ways."""
        tasks, electricity = self.plain.networks.tasks_of(chip), self.electricity(chip)
        value, size = self.plain.opened.chip(chip, self.plain.job.hbm_bytes[-1]), self.plain.job.hbm_bytes[hbm]
        plans: list[list[PlainPlan]] = []
        for task in tasks:
            layers = [layers_on(graph, value, electricity) for graph in task.graphs]
            found = (planned(task, way, layers[way.graph], size, electricity) for way in task.ways)
            plans.append([plan for plan in found if plan is not None])
        if not all(plans):
            return []
        if len(tasks) == 1:
            return [self.values(chip, hbm, [plan.plan.batch_s], [plan.dynamic_j]) for plan in plans[0]]
        metric = self.asked.runs[0]
        best = [min(own, key=lambda plan: self._alone(metric, chip, hbm, plan)) for own in plans]
        return [self.values(chip, hbm, [p.plan.batch_s for p in best], [p.dynamic_j for p in best])]

    def _alone(self, metric: Metric, chip: int, hbm: int, plan: PlainPlan) -> float:
        value = self.plain.opened.chip(chip, self.plain.job.hbm_bytes[hbm])
        rates = chip_rates(Objective(metric.kind or "throughput"), value, self.plain.job.models[0].training.devices)
        return float(rates.value(np.asarray(plan.plan.batch_s), plan.dynamic_j))
