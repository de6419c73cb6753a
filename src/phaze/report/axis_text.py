"""Axes of a space and their values in words, the same in an explanation and on the page."""


def amount(axis: str, value: float) -> str:
    """A value of an axis with its unit."""
    if axis.endswith("buffer") or axis == "registers":
        return f"{value / 2**20:.9g} MiB" if value >= 2**20 else f"{value / 2**10:.9g} KiB"
    if axis.endswith("bandwidth") or axis == "links":
        return f"{value / 1e9:.9g} GB/s"
    return f"{value / 1e9:.9g} GHz" if axis == "clock" else f"{value:.9g}"


def axis_name(axis: str) -> str:
    """An axis as a person calls it."""
    return axis.replace("_", " ").replace("hbm", "HBM")
