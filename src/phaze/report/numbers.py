"""Numbers as sections write them, where :mod:`phaze.units` has no word for it."""

EXACT = 1e-9
"""The rounding that ties and proofs allow for: with a gap below it an answer is the best."""


def signed(share: float) -> str:
    """A difference in whole percent with its sign; zero has none."""
    percent = round(100 * share)
    return f"{percent:+d} %" if percent else "0 %"


def percent(share: float | None) -> str:
    """A share to a tenth of a percent; nothing where there is none."""
    return "" if share is None else f"{100 * share:.1f} %"


def signed_percent(share: float | None) -> str:
    """A difference to a tenth of a percent with its sign; nothing where there is none."""
    return "" if share is None else f"{100 * share:+.1f} %"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def ratio_text(ratio: float) -> str:
    """A ratio to a baseline: two decimals, or two digits where these would be zero."""
    return f"{ratio:.2f} ×" if ratio >= 0.095 else f"{ratio:.2g} ×"


def gap_text(gap: float) -> str:
    """A gap of a proof in percent."""
    return "0 %" if gap <= EXACT else f"{100 * gap:.2g} %" if gap < 0.1 else f"{100 * gap:.0f} %"
