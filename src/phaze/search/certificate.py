"""The certificate: how every chip of a space was closed, the bound of all, and the gap that is
left.

area, power, cost   combinations of the axes that the space's rules leave out
memory     no configuration of some model fits on any number of its devices, or no memory of the
           study is within the space's price: its bound is infinite
bound      its lower bound is above the cut-off, best * (1 - gap asked for): steps "cheap" and
           "dual" (under rules cluster "cut")
evaluated  opened: exact schedules and placements; its lower bound is what these proved
failed     opened, and its evaluation raised an error: its bound stays
open       only in a run that was stopped early

lower bound = least over all chips of the bound that closed it, and the best score itself
gap         = 1 - lower bound / best score
near        = chips within 1 % of the best score: at least those evaluated whose score is, at most
            those whose lower
              bound is
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.problem import table_decides
from phaze.search.pruned import BATCH, REASONS, STEPS, PrunedChips
from phaze.search.state import WITHIN, BoxedChips, SearchState


@dataclass(frozen=True, slots=True)
class Near:
    """How flat the optimum is: between so many chips are within 1 % of the best score."""

    at_least: int
    at_most: int

    def document(self) -> dict[str, Any]:
        return {"within": WITHIN, "at_least": self.at_least, "at_most": self.at_most}


@dataclass(frozen=True, slots=True)
class Certificate:
    """Counts by reason, the global bound, the gap, near ties."""

    gap: float
    asked_gap: float
    lower_bound: float
    closed: dict[str, int]
    chips: int
    near: Near

    def document(self) -> dict[str, Any]:
        return {
            "gap": self.gap,
            "asked_gap": self.asked_gap,
            "lower_bound": self.lower_bound,
            "closed": self.closed,
            "chips": self.chips,
            "near": self.near.document(),
        }


def closed_chips(state: SearchState, best: float | None = None) -> PrunedChips:
    """Every chip of the space, in order; ``best`` is the score of the answer, else that of the best
    evaluated chip."""
    bounds, cut = state.scores(), state.cut if best is None else state.cut_at(best)
    steps = np.full(len(bounds), STEPS.index("cheap"), np.uint8)
    steps[list(state.dual)] = STEPS.index("dual" if table_decides(state.job) else "cut")
    fit, far = np.isfinite(bounds), bounds > cut
    names = [REASONS.index(name) for name in ("memory", "bound", "open")]
    reasons = np.select([~fit, far], names[:2], names[2]).astype(np.uint8)
    for chip, opened in state.evaluated.items():
        bounds[chip] = opened.lower
        reason = "evaluated" if np.isfinite(opened.lower) else "memory"
        reasons[chip] = REASONS.index("failed" if opened.error else reason)
        if not opened.error and reason == "evaluated":
            steps[chip] = STEPS.index("exact")
    return PrunedChips(reasons, bounds, steps, state.chips.numbers)


def evaluated_chips(state: SearchState) -> list[Evaluated]:
    """Every evaluated chip, by the number that documents call it."""
    return [replace(one, chip=state.chips.number(one.chip)) for one in state.evaluated.values()]


@dataclass(frozen=True, slots=True)
class _Sums:
    least: float
    counts: Counter[str]
    below: int


def _summed(closed: Sequence[PrunedChip], near: float) -> _Sums:
    """In one pass over the list: the least bound, chips by reason, chips whose bound is at most
    ``near``."""
    if isinstance(closed, PrunedChips):
        least = float(closed.bounds.min(initial=np.inf))
        fits = np.isfinite(closed.bounds) & (closed.bounds <= near)
        return _Sums(least, Counter(closed.counts()), int(fits.sum()))
    least, counts, below = float("inf"), Counter[str](), 0
    every = iter(closed)
    while some := list(islice(every, BATCH)):
        bounds = [one.bound for one in some if one.bound is not None]
        least = min(least, min(bounds, default=least))
        below += sum(bound <= near for bound in bounds)
        counts.update(one.reason for one in some)
    return _Sums(least, counts, below)


def certificate_of(
    closed: Sequence[PrunedChip],
    evaluated: Sequence[Evaluated],
    best: float,
    asked_gap: float,
    left_out: Mapping[str, int],
    boxed: BoxedChips | None = None,
) -> Certificate:
    """The certificate of a list of closed chips; ``left_out``: combinations that the space's rules
    leave out, ``boxed`` chips that are in no list because whole boxes of them were pruned."""
    boxed = boxed or BoxedChips()
    sums, reach = _summed(closed, best * (1 + WITHIN)), best * (1 + WITHIN)
    reached = max(1, sum(one.score <= reach and not one.error for one in evaluated))
    lower = min(sums.least, boxed.least, best)
    by_reason = {reason: sums.counts.get(reason, 0) + left_out.get(reason, 0) for reason in REASONS}
    by_reason["bound" if boxed.pruned else "open"] += boxed.chips
    gap = max(0.0, 1.0 - lower / best)
    near = Near(reached, max(reached, sums.below + boxed.near))
    return Certificate(gap, asked_gap, lower, by_reason, len(closed) + boxed.chips, near)
