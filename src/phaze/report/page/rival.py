"""The answer of a search beside a named chip on an equal basis: the study's baseline, with the space's constants.

ratio of a model  = throughput on the answer / throughput on the baseline, both with the best placement
ratio of several  = geometric mean by weight
band              = ratio x (1 +- sqrt(2) b), were the errors b of both chips independent; constants are shared, so
                    most of the error is common and the band is wide
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

from phaze.errors import PhazeError
from phaze.hardware.chip import Chip
from phaze.hardware.figures import figures_of
from phaze.hardware.shipped import shipped_file
from phaze.placement.answer import document_of
from phaze.report.view_model import accounted
from phaze.report.waterfall import Step
from phaze.search.candidates import ChipToCompare, candidates_of
from phaze.search.compare import best_offers
from phaze.search.reference import Offer
from phaze.search.task import ModelTask, SearchJob, tasks_for


@dataclass(frozen=True, slots=True)
class Rival:
    """The baseline: its name, each model's throughput on it (None where nothing fits) and ratio, its die, and where the
    time of each model goes on it."""

    name: str
    title: str
    throughputs: tuple[float | None, ...]
    ratios: tuple[float | None, ...]
    mean: float | None
    band: float
    die_mm2: float | None
    steps: tuple[tuple[Step, ...] | None, ...] = ()

    @property
    def ends(self) -> tuple[float, float] | None:
        """The mean with its band, were the errors independent."""
        if self.mean is None or not self.band:
            return None
        off = sqrt(2) * self.band
        return self.mean * (1 - off), self.mean * (1 + off)


def die_of(chip: Chip) -> float | None:
    """The die of a chip as published, else as modelled."""
    shipped = {one.name: one.die for one in shipped_file().chips}
    if chip.name in shipped:
        return float(shipped[chip.name])
    figures = figures_of(chip)
    return None if figures is None else float(figures.area_mm2)


def _mean(ratios: Sequence[float | None], weights: Sequence[float]) -> float | None:
    if any(ratio is None for ratio in ratios):
        return None
    return exp(sum(w * log(ratio) for w, ratio in zip(weights, ratios, strict=True) if ratio) / sum(weights))


def _steps(task: ModelTask, offer: Offer, chip: Chip) -> tuple[Step, ...]:
    """Where the time of a model goes on the baseline."""
    model, job = task.graphs[offer.configuration.graph].model, task.training
    _, steps = accounted(model, job.setting(chip), document_of(offer.plan), job.devices, job.batch, chip.name)
    return steps


def rival_of(job: SearchJob, result: Mapping[str, Any]) -> Rival | None:
    """The study's baseline priced as the search priced its chips; None where there is none to price."""
    if job.baseline is None:
        return None
    candidate = candidates_of(job, [ChipToCompare(job.baseline)])[0]
    found: list[float | None] = []
    steps: list[tuple[Step, ...] | None] = []
    try:
        for task in tasks_for(job, candidate.chip, candidate.own_links):
            offer = best_offers(task, candidate.chip, ("searched",), None, job.objective)["searched"]
            found.append(None if offer is None else task.training.batch / offer.plan.batch_s)
            steps.append(None if offer is None else _steps(task, offer, candidate.chip))
    except PhazeError:
        return None
    own = [float(model["throughput_per_s"]) for model in result["models"]]
    ratios = [None if base is None else ours / base for ours, base in zip(own, found, strict=True)]
    mean = _mean(ratios, [float(model["weight"]) for model in result["models"]])
    chip = job.baseline
    name = chip.name
    band, die_mm2 = candidate.trust.band, die_of(chip)
    return Rival(name, chip.title, tuple(found), tuple(ratios), mean, band, die_mm2, tuple(steps))
