"""How the chips of a space were closed, and what that proves."""

from collections.abc import Mapping
from html import escape
from types import MappingProxyType
from typing import Any

from phaze.report.page.frame import bar, swatch, table

MEANING: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "area": ("other", "combinations outside of the area that the space allows"),
        "power": ("other", "combinations above the design power that the space allows"),
        "cost": ("other", "combinations above the price that the space allows"),
        "memory": ("hbm", "no plan fits into its memory"),
        "bound": ("tensor", "a lower bound on its time proves that it cannot be better"),
        "evaluated": ("good", "evaluated: exact schedules and placements"),
        "failed": ("bad", "its evaluation failed; its bound counts"),
        "open": ("vector", "not looked at: the search was stopped"),
    }
)


# The rounding that ties and proofs allow for: below it an answer is the best.
EXACT = 1e-9


def gap_words(gap: float) -> str:
    """A gap as a person reads it."""
    return f"{100 * gap:.2g} %" if gap > EXACT else "0 %"


def proved_words(gap: float) -> str:
    """How far an answer is proved."""
    return "optimal" if gap <= EXACT else f"to {gap_words(gap)}"


def better_words(gap: float) -> str:
    """What a gap says of all other chips."""
    return "is better" if gap <= EXACT else f"is better by more than {gap_words(gap)}"


def certificate(proof: Mapping[str, Any], run: str) -> str:
    """Counts by reason, the gap, and how to check it."""
    counts = {reason: count for reason, count in proof["closed"].items() if count}
    total = sum(counts.values()) or 1
    bars, left = "", 0.0
    for reason, count in counts.items():
        bars += bar(left, max(3e-3, count / total), MEANING[reason][0])
        left += count / total
    rows = [
        (f"{swatch(MEANING[reason][0])}{escape(reason)}", escape(MEANING[reason][1]), f"{count:,}")
        for reason, count in counts.items()
    ]
    said = (
        f"Nothing in the space {better_words(proof['gap'])}: the least bound of all chips is "
        f"{proof['lower_bound']:.9g}, a gap of {proof['gap']:.2g} of the score; {proof['asked_gap']:g} was asked for."
    )
    again = f"<p>Check it by the slow, plain path: <code>phaze verify {escape(run)}</code></p>"
    listed = table(("excluded by", "why", "chips"), rows, left=2)
    return f'<p>{escape(said)}</p><div class="stack"><svg>{bars}</svg></div>{listed}{again}'
