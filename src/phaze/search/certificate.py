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

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from phaze.documents import digest
from phaze.search.evaluation import Evaluated
from phaze.search.journal import Closed
from phaze.search.keep import Kept
from phaze.search.state import State

REASONS = ("area", "power", "cost", "memory", "bound", "evaluated", "failed", "open")


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


def closed_chips(state: State) -> list[Closed]:
    """Every chip of the space, in order."""
    scores, cut = state.scores(), state.cut
    second = "cut" if state.job.rules == "cluster" else "dual"
    found = []
    for chip, bound in enumerate(scores.tolist()):
        opened = state.evaluated.get(chip)
        step = second if chip in state.dual else "cheap"
        if opened is not None and opened.error:
            found.append(Closed(chip, "failed", _plain(opened.lower), step))
        elif not isfinite(bound if opened is None else opened.lower):
            found.append(Closed(chip, "memory", None, step))
        elif opened is not None:
            found.append(Closed(chip, "evaluated", opened.lower, "exact"))
        else:
            found.append(Closed(chip, "bound" if bound > cut else "open", bound, step))
    return found


def _plain(value: float) -> float | None:
    return value if isfinite(value) else None


def digest_of(closed: Sequence[Closed], evaluated: Sequence[Evaluated]) -> str:
    """One number for the list of closed chips and for what was found of the opened ones: nothing of it can change."""
    rows = [[one.chip, one.reason, one.bound, one.step] for one in closed]
    opened = [[one.chip, one.document()] for one in sorted(evaluated, key=lambda one: one.chip)]
    return digest([rows, opened])


def certificate_of(
    closed: Sequence[Closed], evaluated: Sequence[Evaluated], best: float, asked_gap: float, kept: Kept
) -> Certificate:
    """The certificate of a list of closed chips; ``kept`` knows what the space's rules left out."""
    lower = min((one.bound for one in closed if one.bound is not None), default=best)
    lower = min(lower, best)
    counts = Counter(one.reason for one in closed)
    counts |= {"area": kept.area, "power": kept.power, "cost": kept.cost}
    by_reason = {reason: counts.get(reason, 0) for reason in REASONS}
    gap = max(0.0, 1.0 - lower / best)
    return Certificate(gap, asked_gap, lower, by_reason, len(closed), digest_of(closed, evaluated))
