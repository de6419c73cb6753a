"""How wrong a constant of the cost model may be before another chip is best, and what is best in the worst case.

A constant c (clock, bandwidth of HBM, of the global buffer, of the links) is scaled for every chip by a factor f, and
the space is searched again. From f = 1 outwards the factors 1.1, 1.5, 2, 4 and their inverses are tried until another
chip is best; then the border is halved (by ratio) to within 5 %:

    range = [f below, f above]: the answer was best at every factor tried between them

A batch takes no less time when a constant is lower, for any chip and any plan. So when every constant may be up to a
share e too high, the worst case of all chips and plans is the same: every constant times (1 - e); and the best in the
worst case is the certified best there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from phaze.explain.question import Found, Question, best_with, gain, score_on
from phaze.hardware.chip import Chip
from phaze.search.task import Job, at_link

CONSTANTS = ("clock", "HBM bandwidth", "buffer bandwidth", "link")
OUTWARD = (1.1, 1.5, 2.0, 4.0)
NEAR = 1.05


@dataclass(frozen=True, slots=True)
class Stays:
    """The factors between which the answer stays, and what is best just outside; None where it stays to the end."""

    constant: str
    low: float
    high: float
    below: str | None
    above: str | None


@dataclass(frozen=True, slots=True)
class WorstCase:
    """Every constant a share ``error`` lower: the best there, and what the answer of the run reaches relative to it."""

    error: float
    chip: str
    gap: float
    relative: float


def scaled(question: Question, factors: dict[str, float]) -> Job:
    """The job with constants times their factors, for every chip."""
    job, base = question.job, question.opened.base
    axes, update = job.space.axes, dict[str, list[float]]()
    for name, field, value in (
        ("clock", "clock", base.clock_hz),
        ("HBM bandwidth", "hbm_bandwidth", base.hbm.bandwidth_bytes_per_s),
        ("buffer bandwidth", "global_bandwidth", base.global_buffer.bandwidth_bytes_per_s),
    ):
        if factors.get(name, 1.0) != 1.0:
            update[field] = [value * factors[name]]
    link = factors.get("link", 1.0)
    models = tuple(at_link(task, task.training.link_bytes_per_s * link) for task in job.models)
    return replace(job, models=models, space=job.space.model_copy(update={"axes": axes.model_copy(update=update)}))


def constants_of(question: Question) -> tuple[str, ...]:
    """The constants that are not axes of the space."""
    axes = question.job.space.axes
    given = {
        "clock": axes.clock,
        "HBM bandwidth": axes.hbm_bandwidth,
        "buffer bandwidth": axes.global_bandwidth,
        "link": axes.links,
    }
    return tuple(name for name in CONSTANTS if given[name] is None)


def _border(question: Question, best: Callable[[float], Found], up: bool) -> tuple[float, str | None]:
    """The last factor with the same chip in one direction, and the chip that follows."""
    same, other, name = 1.0, None, None
    for step in OUTWARD:
        factor = step if up else 1 / step
        found = best(factor)
        if found.identity != question.identity:
            other, name = factor, found.name
            break
        same = factor
    while other is not None and max(other / same, same / other) > NEAR:
        factor = (same * other) ** 0.5
        found = best(factor)
        if found.identity == question.identity:
            same = factor
        else:
            other, name = factor, found.name
    return same, name


def ranges(question: Question, processes: int, tell: Callable[[str], None]) -> list[Stays]:
    """The range of every constant."""
    found = []
    for constant in constants_of(question):

        def best(factor: float, constant: str = constant) -> Found:
            tell(f"{constant} times {factor:.3g}")
            return best_with(scaled(question, {constant: factor}), question.scale, processes)

        (low, below), (high, above) = _border(question, best, up=False), _border(question, best, up=True)
        found.append(Stays(constant, low, high, below, above))
    return found


def _slower(chip: Chip, factor: float) -> Chip:
    """A chip at another clock: its core buffers, which are fed by the cycle, with it."""
    tensor, vector = chip.tensor_core, chip.vector_core
    fed = [replace(m, bandwidth_bytes_per_s=m.bandwidth_bytes_per_s * factor) for m in (tensor.buffer, vector.buffer)]
    return replace(
        chip,
        clock_hz=chip.clock_hz * factor,
        tensor_core=replace(tensor, buffer=fed[0]),
        vector_core=replace(vector, buffer=fed[1]),
    )


def worst_case(question: Question, error: float, processes: int) -> WorstCase:
    """The best where every constant is lower by ``error``, and what the run's own chip reaches there."""
    job = scaled(question, dict.fromkeys(constants_of(question), 1.0 - error))
    best = best_with(job, question.scale, processes)
    chip, names, low = question.chip, constants_of(question), 1.0 - error
    if "clock" in names:
        chip = _slower(chip, low)
    if "HBM bandwidth" in names:
        chip = replace(chip, hbm=replace(chip.hbm, bandwidth_bytes_per_s=chip.hbm.bandwidth_bytes_per_s * low))
    if "buffer bandwidth" in names:
        shared = chip.global_buffer
        chip = replace(chip, global_buffer=replace(shared, bandwidth_bytes_per_s=shared.bandwidth_bytes_per_s * low))
    own = score_on(job, question.scale, chip)
    return WorstCase(error, best.name, best.gap, 1.0 + gain(best.score, own))
