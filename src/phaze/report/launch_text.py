"""A launch file as a page shows it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaunchText:
    """A framework's file for a plan; ``text`` is empty where it is refused. ``deviations``: what
    will be otherwise."""

    key: str
    name: str
    file: str
    text: str
    refused: str
    deviations: tuple[str, ...]
