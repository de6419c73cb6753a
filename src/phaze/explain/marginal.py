"""What more of a resource buys: the answer computed again with the next unit of it, and with a tenth more.

HBM, its bandwidth and the global buffer's act on the chip that was found; links and devices on the job; area, and power
and price where the space limits them, on the space, in which the best chip is searched again. Each number is a
difference of two exact scores; none is a derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from phaze.explain.question import Question, best_with, gain, score_on, with_budget
from phaze.search.keep import area_budget
from phaze.search.task import Job, at_link

GIB, GB = 2**30, 1e9


@dataclass(frozen=True, slots=True)
class Marginal:
    """A resource, how much of it there is and is added, what that buys, and the chip that is best then."""

    resource: str
    unit: str
    now: float
    more: float
    gain: float
    chip: str


def _with_link(job: Job, link_bytes_per_s: float) -> Job:
    return replace(job, models=tuple(at_link(task, link_bytes_per_s) for task in job.models))


def _with_devices(job: Job, devices: int) -> Job:
    models = tuple(replace(task, training=replace(task.training, devices=devices)) for task in job.models)
    return replace(job, models=models)


def _on_chip(question: Question) -> list[tuple[str, str, float, Callable[[float], float]]]:
    """Resources of the chip or the job: name, unit, how much there is in units, and the score with another amount."""
    chip, job, scale = question.chip, question.job, question.scale
    shared, training = chip.global_buffer, job.models[0].training

    def hbm_size(units: float) -> float:
        size = round(units * GIB)
        return score_on(job, scale, replace(chip, hbm=replace(chip.hbm, size_bytes=size)))

    def hbm_rate(units: float) -> float:
        return score_on(job, scale, replace(chip, hbm=replace(chip.hbm, bandwidth_bytes_per_s=units * GB)))

    def shared_rate(units: float) -> float:
        return score_on(job, scale, replace(chip, global_buffer=replace(shared, bandwidth_bytes_per_s=units * GB)))

    def link_rate(units: float) -> float:
        faster = replace(chip, links=replace(chip.links, bandwidth_bytes_per_s=units * GB))
        return score_on(_with_link(job, units * GB), scale, faster)

    def devices(units: float) -> float:
        return score_on(_with_devices(job, round(units)), scale, chip)

    return [
        ("HBM", "GiB", chip.hbm.size_bytes / GIB, hbm_size),
        ("HBM bandwidth", "GB/s", chip.hbm.bandwidth_bytes_per_s / GB, hbm_rate),
        ("buffer bandwidth", "GB/s", shared.bandwidth_bytes_per_s / GB, shared_rate),
        ("link", "GB/s", training.link_bytes_per_s / GB, link_rate),
        ("devices", "", float(training.devices), devices),
    ]


def marginals(question: Question, processes: int, tell: Callable[[str], None]) -> list[Marginal]:
    """Each resource with one more unit and with a tenth more; whole units where they are counted."""
    found = []
    for name, unit, now, scored in _on_chip(question):
        tell(name)
        tenth = max(1.0, float(round(now / 10))) if unit in ("", "GiB") else now / 10
        for more in dict.fromkeys((1.0, tenth)):
            new = gain(question.score, scored(now + more))
            found.append(Marginal(name, unit, now, more, new, question.chip.name))
    keep = question.job.space.keep
    for name, unit, rule, limit in (
        ("area", "mm2", "most_area", area_budget(question.job.space)),
        ("power", "W", "most_power", keep.most_power),
        ("price", "USD", "most_usd", keep.most_usd),
    ):
        for more in () if limit is None else (1.0, limit / 10):
            tell(f"{name}, {more:.3g} {unit} more")
            best = best_with(with_budget(question.job, rule, (limit or 0.0) + more), question.scale, processes)
            found.append(Marginal(name, unit, limit or 0.0, more, gain(question.score, best.score), best.name))
    return found
