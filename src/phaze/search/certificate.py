"""The certificate: how every chip of a space was closed, the bound of all, and the gap that is left.

area, power, cost   combinations of the axes that the space's rules leave out
memory     no way of running some model fits on any number of its devices, or no memory of the study is within the
           space's price: its bound is infinite
bound      its lower bound is above the cut-off, best * (1 - gap asked for): steps "cheap" and "dual" (under
           rules cluster "cut")
evaluated  opened: exact schedules and placements; its lower bound is what these proved
failed     opened, and its evaluation raised an error: its bound stays
open       only in a run that was stopped early

lower bound = least over all chips of the bound that closed it, and the best score itself
gap         = 1 - lower bound / best score
"""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from phaze.documents import compact
from phaze.search.closed import BATCH, REASONS, STEPS, ClosedChips
from phaze.search.evaluation import Evaluated
from phaze.search.journal import Closed
from phaze.search.keep import Kept
from phaze.search.state import State


@dataclass(frozen=True, slots=True)
class Certificate:
    """Counts by reason, the global bound, the gap, and the digest of the list of closed chips."""

    gap: float
    asked_gap: float
    lower_bound: float
    closed: dict[str, int]
    chips: int
    list_digest: str

    def document(self) -> dict[str, Any]:
        return {
            "gap": self.gap,
            "asked_gap": self.asked_gap,
            "lower_bound": self.lower_bound,
            "closed": self.closed,
            "chips": self.chips,
            "list_digest": self.list_digest,
        }


def closed_chips(state: State) -> ClosedChips:
    """Every chip of the space, in order."""
    bounds, cut = state.scores(), state.cut
    steps = np.full(len(bounds), STEPS.index("cheap"), np.uint8)
    steps[list(state.dual)] = STEPS.index("cut" if state.job.rules == "cluster" else "dual")
    fit, far = np.isfinite(bounds), bounds > cut
    names = [REASONS.index(name) for name in ("memory", "bound", "open")]
    reasons = np.select([~fit, far], names[:2], names[2]).astype(np.uint8)
    for chip, opened in state.evaluated.items():
        bounds[chip] = opened.lower
        reason = "evaluated" if np.isfinite(opened.lower) else "memory"
        reasons[chip] = REASONS.index("failed" if opened.error else reason)
        if not opened.error and reason == "evaluated":
            steps[chip] = STEPS.index("exact")
    return ClosedChips(reasons, bounds, steps)


def digest_of(closed: Sequence[Closed], evaluated: Sequence[Evaluated]) -> str:
    """One number for the list of closed chips and for what was found of the opened ones: nothing of it can change."""
    return _summed(closed, evaluated)[0]


def _summed(closed: Sequence[Closed], evaluated: Sequence[Evaluated]) -> tuple[str, float, Counter[str]]:
    """In one pass over the list: its digest, the least bound, chips by reason.

    The digest is that of the document [[chip, reason, bound, step] ..., [chip, what was found] ...], never held whole.
    """
    total, least, counts = hashlib.sha256(b"[["), float("inf"), Counter[str]()
    every = iter(closed)
    before = b""
    while some := list(islice(every, BATCH)):
        rows = compact([[one.chip, one.reason, one.bound, one.step] for one in some])
        total.update(before + rows[1:-1])
        before = b","
        least = min(least, min((one.bound for one in some if one.bound is not None), default=least))
        counts.update(one.reason for one in some)
    opened = [[one.chip, one.document()] for one in sorted(evaluated, key=lambda one: one.chip)]
    total.update(b"]," + compact(opened) + b"]")
    return total.hexdigest(), least, counts


def certificate_of(
    closed: Sequence[Closed], evaluated: Sequence[Evaluated], best: float, asked_gap: float, kept: Kept
) -> Certificate:
    """The certificate of a list of closed chips; ``kept`` knows what the space's rules left out."""
    list_digest, least, counts = _summed(closed, evaluated)
    lower = min(least, best)
    left_out = {"area": kept.area, "power": kept.power, "cost": kept.cost}
    by_reason = {reason: counts.get(reason, 0) + left_out.get(reason, 0) for reason in REASONS}
    gap = max(0.0, 1.0 - lower / best)
    return Certificate(gap, asked_gap, lower, by_reason, len(closed), list_digest)
