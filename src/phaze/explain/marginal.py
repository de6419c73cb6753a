"""What more of a resource buys: the answer recomputed with the next unit of it, and with a
tenth more.

HBM, its bandwidth and the global buffer's act on the chip that was found; every level of the
network and devices on the job (a cluster grows as that of a study; where it cannot, there is no
such row); area, and power and price where the space limits them, on the space, in which the best
chip is searched again. Each number is a difference of two exact scores; none is a derivative.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from phaze.errors import InputError
from phaze.explain.changed_space import best_of_changed
from phaze.explain.question import ExplainedRun, gain, scores_on, with_budget
from phaze.hardware.chip import Chip
from phaze.hardware.converted import changed_chip
from phaze.search.changed_network import levels_of, with_bandwidths, with_devices
from phaze.search.task import SearchJob

GIB, GB = 2**30, 1e9


@dataclass(frozen=True, slots=True)
class Marginal:
    """A resource, how much of it there is and is added, what that buys, and the chip that is best
    then."""

    resource: str
    unit: str
    now: float
    more: float
    gain: float
    chip: str


# A resource of a chip or of its job: name, unit, how much there is in units, and both with another
# amount of it, None where there cannot be so much.
Resource = tuple[str, str, float, Callable[[float], tuple[SearchJob, Chip] | None]]


def _on_chip(question: ExplainedRun) -> list[Resource]:
    """Resources of the chip."""
    chip, job = question.chip, question.job
    return [
        ("HBM", "GiB", chip.hbm.size_bytes / GIB,
         lambda units: (job, changed_chip(chip, hbm_bytes=round(units * GIB)))),
        ("HBM bandwidth", "GB/s", chip.hbm.bandwidth_bytes_per_s / GB,
         lambda units: (job, changed_chip(chip, hbm_bytes_per_s=units * GB))),
        ("buffer bandwidth", "GB/s", chip.global_bytes_per_s / GB,
         lambda units: (job, changed_chip(chip, global_bytes_per_s=units * GB))),
    ]  # fmt: skip


def _on_job(question: ExplainedRun) -> list[Resource]:
    """Resources of the job: every level of its network, innermost first, and its devices."""
    job, levels = question.job, levels_of(question.job, question.chip)
    rates = [level.bandwidth_bytes_per_s for level in levels]

    def faster(number: int, units: float) -> tuple[SearchJob, Chip]:
        network = with_bandwidths(job, [*rates[:number], units * GB, *rates[number + 1 :]])
        return network, (
            changed_chip(question.chip, link_bytes_per_s=units * GB)
            if levels[number].of_chip
            else question.chip
        )

    def larger(units: float) -> tuple[SearchJob, Chip] | None:
        network = with_devices(job, round(units))
        return None if network is None else (network, question.chip)

    on_job: list[Resource] = [
        (level.name, "GB/s", level.bandwidth_bytes_per_s / GB, partial(faster, number))
        for number, level in enumerate(levels)
    ]
    return [*on_job, ("devices", "", float(job.models[0].training.devices), larger)]


def marginals(
    question: ExplainedRun, processes: int, tell: Callable[[str], None]
) -> list[Marginal]:
    """Each resource with one more unit and with a tenth more; whole units where they are
    counted."""
    tell("more of each resource")
    rows, changes = list[tuple[str, str, float, float]](), list[tuple[SearchJob, Chip]]()
    for name, unit, now, changed in (*_on_chip(question), *_on_job(question)):
        tenth = max(1.0, float(round(now / 10))) if unit in ("", "GiB") else now / 10
        for more in dict.fromkeys((1.0, tenth)):
            pair = changed(now + more)
            if pair is not None:
                rows.append((name, unit, now, more))
                changes.append(pair)
    scores = scores_on(question.scale, changes)
    values = [
        Marginal(*row, gain(question.score, score), question.chip.name)
        for row, score in zip(rows, scores, strict=True)
    ]
    limits = question.job.space.limits
    for name, unit, rule, limit in (
        ("area", "mm2", "area", question.chips.area_budget()),
        ("power", "W", "power", limits["power"]),
        ("price", "USD", "usd", limits["usd"]),
    ):
        for more in () if limit is None else (1.0, limit / 10):
            tell(f"{name}, {more:.3g} {unit} more")
            try:
                job = with_budget(question.job, rule, (limit or 0.0) + more)
            except InputError:  # a die beyond a reticle: there is no more to be had
                continue
            best = best_of_changed(question, job, processes)
            if best is None:
                raise AssertionError("the answer is within a wider limit too")
            values.append(
                Marginal(
                    name, unit, limit or 0.0, more, gain(question.score, best.score), best.name
                )
            )
    return values
