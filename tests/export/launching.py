"""Launch files of a framework by its key, for the tests."""

from phaze.export.flag import deviations, launch_text, read
from phaze.export.frameworks import BY_KEY
from phaze.export.launch import Launch
from phaze.export.source import PlannedSplit


def written(key: str, split: PlannedSplit) -> str:
    """The launch file of a plan."""
    return launch_text(BY_KEY[key], split)


def not_as_planned(key: str, split: PlannedSplit) -> list[str]:
    """What the framework does otherwise than planned."""
    return deviations(BY_KEY[key], split)


def read_back(key: str, text: str, devices: int | None = None) -> Launch:
    """The launch that a file describes."""
    return read(BY_KEY[key], text, "launch file", devices)
