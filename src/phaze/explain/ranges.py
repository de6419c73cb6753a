"""How wrong a constant of the cost model may be before another chip or plan is best; what is best
in the worst case.

A constant c (clock, bandwidth of HBM, of the global buffer, of each level of the network) is scaled
for every chip of the space by a factor f, and these chips, the same ones with the same areas, are
searched again. From f = 1 outwards the factors 1.1, 1.5, 2, 4 and their inverses are tried until
another chip is best; then the border is halved (by ratio) to within 5 %. The same for chip and
plans together:

    range = [f below, f above]: the answer was best at every factor tried between them

A batch takes no less time when a constant is lower, for any chip and any plan. So when every
constant may be up to a share e too high, the worst case of all chips and plans is the same: every
constant times (1 - e); and the best in the worst case is the certified best there.
"""

from collections.abc import Callable
from dataclasses import dataclass

from phaze.explain.question import BestOfChanged, ExplainedRun, best_with, gain, score_on
from phaze.search.boxes.grid import BoxGrid, box_grid
from phaze.search.changed_network import levels_of, with_bandwidths
from phaze.search.chips import SpaceChips
from phaze.search.factors import ConstantFactors
from phaze.search.shared import Shared
from phaze.search.task import SearchJob

OF_CHIPS = ("clock", "HBM bandwidth", "buffer bandwidth")
OUTWARD = (1.1, 1.5, 2.0, 4.0)
"""Factors tried from 1 on: measured constants are off by 10 %, guessed ones by a factor."""
NEAR = 1.05
"""A border is known to 5 %, finer than the constants themselves."""


@dataclass(frozen=True, slots=True)
class Stays:
    """The factors between which the chip stays, and chip and plans; what is best just outside, None
    where it stays."""

    constant: str
    low: float
    high: float
    below: str | None
    above: str | None
    plan_low: float
    plan_high: float
    plan_below: str | None
    plan_above: str | None


@dataclass(frozen=True, slots=True)
class WorstCase:
    """Every constant a share ``error`` lower: the best there with its plans, and what the run's
    chip reaches of it."""

    error: float
    chip: str
    plans: tuple[str, ...]
    gap: float
    relative: float


def constants_of(question: ExplainedRun) -> tuple[str, ...]:
    """The constants of a run: those of its chips, and the bandwidth of every level of its
    network."""
    return (*OF_CHIPS, *(level.name for level in levels_of(question.job, question.chip)))


def _changed(
    question: ExplainedRun, factors: dict[str, float]
) -> tuple[SearchJob, ConstantFactors]:
    """The job with constants times their factors, and the factors of its chips."""
    job, levels = question.job, levels_of(question.job, question.chip)
    clock, hbm, shared = (factors.get(name, 1.0) for name in OF_CHIPS)
    links = [factors.get(level.name, 1.0) for level in levels]
    rates = [
        level.bandwidth_bytes_per_s * factor for level, factor in zip(levels, links, strict=True)
    ]
    changed = job if all(factor == 1.0 for factor in links) else with_bandwidths(job, rates)
    return changed, ConstantFactors(clock, hbm, shared, links[0] if levels[0].of_chip else 1.0)


def scaled(question: ExplainedRun, factors: dict[str, float]) -> tuple[SearchJob, SpaceChips]:
    """The job and its chips with constants times their factors; areas and what is in the space
    stay."""
    job, by = _changed(question, factors)
    return job, question.chips.scaled(by)


def searched(
    question: ExplainedRun, factors: dict[str, float]
) -> tuple[SearchJob, SpaceChips | BoxGrid]:
    """The same, as a search takes it: of a space in boxes all of it, not the chips that they
    left."""
    if not question.boxed:
        return scaled(question, factors)
    job, by = _changed(question, factors)
    return job, box_grid(job.space, by)


def _border(
    best: Callable[[float], BestOfChanged], same: Callable[[BestOfChanged], bool], up: bool
) -> tuple[float, BestOfChanged | None]:
    """The last factor with the same answer in one direction, and the answer that follows."""
    last, other, border = 1.0, None, None
    for step in OUTWARD:
        factor = step if up else 1 / step
        if not same(best(factor)):
            other, border = factor, best(factor)
            break
        last = factor
    while other is not None and max(other / last, last / other) > NEAR:
        factor = (last * other) ** 0.5
        if same(best(factor)):
            last = factor
        else:
            other, border = factor, best(factor)
    return last, border


def _stays(question: ExplainedRun, constant: str, best: Callable[[float], BestOfChanged]) -> Stays:
    def same_chip(best: BestOfChanged) -> bool:
        return best.identity == question.identity

    def same_plan(best: BestOfChanged) -> bool:
        return same_chip(best) and best.plans == question.plans

    (low, below), (high, above) = (_border(best, same_chip, up) for up in (False, True))
    (plan_low, less), (plan_high, more) = (_border(best, same_plan, up) for up in (False, True))

    def plan(best: BestOfChanged | None) -> str | None:
        return None if best is None else "; ".join(best.plans)

    chips = (None if below is None else below.name, None if above is None else above.name)
    return Stays(constant, low, high, *chips, plan_low, plan_high, plan(less), plan(more))


def ranges(question: ExplainedRun, processes: int, tell: Callable[[str], None]) -> list[Stays]:
    """The range of every constant."""
    rows, shared = [], Shared()
    for constant in constants_of(question):
        by_factor = dict[float, BestOfChanged]()

        def best(
            factor: float,
            constant: str = constant,
            by_factor: dict[float, BestOfChanged] = by_factor,
        ) -> BestOfChanged:
            if factor not in by_factor:
                tell(f"{constant} times {factor:.3g}")
                job, chips = searched(question, {constant: factor})
                by_factor[factor] = best_with(job, question.scale, processes, chips, shared)
            return by_factor[factor]

        rows.append(_stays(question, constant, best))
    return rows


def worst_case(question: ExplainedRun, error: float, processes: int) -> WorstCase:
    """The best where every constant is lower by ``error``, and what the run's own chip reaches
    there."""
    factors = dict.fromkeys(constants_of(question), 1.0 - error)
    job, every = searched(question, factors)
    best = best_with(job, question.scale, processes, every)
    job, chips = scaled(question, factors)
    score = score_on(job, question.scale, chips.chip(question.number, question.chip.hbm.size_bytes))
    return WorstCase(error, best.name, best.plans, best.gap, 1.0 + gain(best.score, score))
