"""Small words that all pages share."""


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def times_words(ratio: float) -> str:
    """A ratio to a baseline: two decimals, or two digits where these would say nothing."""
    return f"{ratio:.2f} ×" if ratio >= 0.095 else f"{ratio:.2g} ×"
