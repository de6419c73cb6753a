"""The answer of a search beside a named chip on an equal basis: the study's baseline, with the
space's constants.

ratio of a model  = throughput on the answer / throughput on the baseline, both with the best
                  placement
ratio of several  = geometric mean by weight
band              = ratio x (1 +- sqrt(2) b), were the errors b of both chips independent; constants
                  are shared, so
                    most of the error is common and the band is wide
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from typing import Any

from phaze.errors import PhazeError
from phaze.evaluate.layers import SchedulingEffort
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.shipped import shipped_file
from phaze.placement.answer import document_of
from phaze.report.step_time import Step
from phaze.report.view_model import accounted
from phaze.schedule.solve import PartMemo
from phaze.search.candidates import ChipToCompare, candidates_of
from phaze.search.compare import best_offers
from phaze.search.reference import Offer
from phaze.search.task import ModelTask, SearchJob, tasks_for


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """The baseline: its name, what people call it and its whole title, each model's throughput on
    it (None where nothing fits) and ratio, its die, and where the time of each model goes on it."""

    key: str
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


def called(name: str) -> str:
    """What people call a chip that was shipped; the name of any other."""
    return {one.name: one.title for one in shipped_file().chips}.get(name, name)


def die_of(chip: Chip) -> float | None:
    """The die of a chip as published, else as modelled."""
    shipped = {one.name: one.die for one in shipped_file().chips}
    if chip.name in shipped:
        return float(shipped[chip.name])
    figures = estimates_of(chip)
    return None if figures is None else float(figures.area_mm2)


def _mean(ratios: Sequence[float | None], weights: Sequence[float]) -> float | None:
    if any(ratio is None for ratio in ratios):
        return None
    return exp(
        sum(w * log(ratio) for w, ratio in zip(weights, ratios, strict=True) if ratio)
        / sum(weights)
    )


def _steps(task: ModelTask, offer: Offer, chip: Chip, parts: PartMemo) -> tuple[Step, ...]:
    """Where the time of a model goes on the baseline."""
    model, job = task.graphs[offer.configuration.graph].model, task.training
    document, effort = document_of(offer.plan), SchedulingEffort(parts=parts)
    _, steps = accounted(
        model, task.setting(chip), document, job.devices, job.batch, chip.name, effort=effort
    )
    return steps


@dataclass(frozen=True, slots=True)
class PricedChip:
    """A chip under a job: each model's throughput with its best plan, where its time goes (nothing
    where it does not fit), how far off that may be, and the die."""

    throughputs: tuple[float | None, ...]
    steps: tuple[tuple[Step, ...], ...]
    band: float
    die_mm2: float | None


def priced_on(job: SearchJob, chip: Chip) -> PricedChip:
    """A named chip priced as a search of the job prices its own."""
    candidate = candidates_of(job, [ChipToCompare(chip)])[0]
    rates: list[float | None] = []
    steps: list[tuple[Step, ...]] = []
    parts: PartMemo = {}
    for task in tasks_for(job, candidate.chip, candidate.own_links):
        offer = best_offers(task, candidate.chip, ("searched",), None, job.objective, parts)[
            "searched"
        ]
        rates.append(None if offer is None else task.training.batch / offer.plan.batch_s)
        steps.append(() if offer is None else _steps(task, offer, candidate.chip, parts))
    return PricedChip(tuple(rates), tuple(steps), candidate.trust.band, die_of(chip))


def comparison_from(
    result: Mapping[str, Any],
    name: str,
    title: str,
    throughputs: Sequence[float | None],
    steps: Sequence[Sequence[Step]],
    band: float,
    die_mm2: float | None,
) -> BaselineComparison:
    """A named chip beside the answer, from its throughputs of the answer's models."""
    own = [float(model["throughput_per_s"]) for model in result["models"]]
    ratios = [ours / base if base else None for ours, base in zip(own, throughputs, strict=True)]
    mean = _mean(ratios, [float(model["weight"]) for model in result["models"]])
    waterfalls = tuple(tuple(rows) or None for rows in steps)
    return BaselineComparison(
        name,
        called(name),
        title,
        tuple(throughputs),
        tuple(ratios),
        mean,
        band,
        die_mm2,
        waterfalls,
    )


def baseline_comparison(job: SearchJob, result: Mapping[str, Any]) -> BaselineComparison | None:
    """The study's baseline priced as the search priced its chips; None where there is none to
    price."""
    if job.baseline is None:
        return None
    try:
        found = priced_on(job, job.baseline)
    except PhazeError:
        return None
    chip = job.baseline
    return comparison_from(
        result, chip.name, chip.title, found.throughputs, found.steps, found.band, found.die_mm2
    )
