"""The reference path of a job: one chip at a time, every pass scheduled, every configuration placed
by the general solver.

No bounds, no structures, no arrays over chips, nothing remembered. ``phaze verify`` takes it for
chips that the independent checker leaves open, and to write a result anew from what it names
(:mod:`phaze.search.view_check`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from phaze.hardware.chip import Chip
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.hardware.technology import Technology
from phaze.search.chips import SpaceChips
from phaze.search.objective import Rates, Scale
from phaze.search.problem import has_plan
from phaze.search.rates import chip_rates
from phaze.search.reference import OpenLayers, best_offer
from phaze.search.task import Configuration, ModelTask, Networks, SearchJob, networks_of

# Ten times what bounds are lowered by for rounding: the reference path adds in another order.
NEAR = 1e-8


@dataclass(frozen=True, slots=True)
class ReferencePath:
    """The reference path of a job."""

    job: SearchJob
    scale: Scale
    chips: SpaceChips
    networks: Networks

    def rates(self, chip: int, hbm: int) -> Rates:
        """The rates of a chip and memory, by the formulas for one chip; infinite where it may not
        have it."""
        value, most = self.chips.chip(chip, self.job.hbm_bytes[hbm]), self.job.space.limits["usd"]
        rates = chip_rates(self.job.objective, value, self.job.models[0].training.devices)
        manufacture = None if most is None else manufacturing_of(value, load_terms())
        dear = most is not None and (manufacture is None or manufacture.usd > most * (1 + 1e-12))
        # A chip of clusters has the memory of its stacks and no other.
        other = value.hbm.size_bytes != self.job.hbm_bytes[hbm]
        return replace(rates, rate=np.asarray(np.inf)) if dear or other else rates

    @property
    def energy(self) -> Technology | None:
        """The energies of the space's chips, where they count."""
        return self.chips.space.technology if self.job.objective.needs_energy else None

    def values(
        self, chip: int, memories: Sequence[int], cut: float = float("inf")
    ) -> list[list[float]]:
        """The models' values on a chip with each of some memories: every pass scheduled, every
        configuration placed; above ``cut`` that at least, for one model where time alone counts."""
        value = self.chips.chip(chip, self.job.hbm_bytes[-1])
        models = [self._scheduled(task, value) for task in self.networks.tasks_of(chip)]
        every = []
        for hbm in memories:
            rates = self.rates(chip, hbm)
            if not float(rates.rate) < np.inf:
                every.append([float("inf")] * len(models))
                continue
            last_s = float(rates.last_s(cut, 0.0)) if cut < np.inf and len(models) == 1 else np.inf
            offers = [
                best_offer(layers, rates, self.job.hbm_bytes[hbm], last_s=last_s)
                for layers in models
            ]
            every.append([float("inf") if offer is None else offer.value for offer in offers])
        return every

    def _scheduled(self, task: ModelTask, chip: Chip) -> OpenLayers:
        """The layers of all graphs of a model, every pass scheduled: no bound of theirs is
        needed."""
        layers = OpenLayers(task, chip, self.energy)
        for graph in range(len(task.graphs)):
            layers.exact(graph)
        return layers

    def exact(self, chip: int, memories: Sequence[int], cut: float = float("inf")) -> list[float]:
        """The score of a chip with each of some memories, or ``cut`` where that is less and there
        is one model."""
        scores = [
            float(self.scale.score(np.array(values))) for values in self.values(chip, memories, cut)
        ]
        return [min(score, cut) for score in scores] if len(self.job.models) == 1 else scores

    def fits(self, task: ModelTask, configuration: Configuration, hbm_bytes: int) -> bool:
        """Whether a configuration of a model fits into a memory, whatever its layers take."""
        return has_plan(task, configuration, hbm_bytes)

    @property
    def memories(self) -> list[int]:
        """The memories that count: the most is enough where they are free."""
        return self.job.memories(self.job.objective.needs_energy)


def reference_path_of(job: SearchJob, scale: Scale, chips: SpaceChips) -> ReferencePath:
    """The reference path, with the models on every link of the space."""
    return ReferencePath(
        job, scale, chips, networks_of(job.models, job.space, chips.link_bytes_per_s)
    )
