"""A walk over boxes of a space, whatever its chips are made of: what it found, and how boxes left open are halved."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .reading import require

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
BATCH = 4_096
"""Boxes bounded at once."""
MOST_LEFT = 50_000
"""Chips that may be left to the steps of a proof: with more the claim is taken to be false."""


@dataclass(slots=True)
class Boxed:
    """What a walk over boxes found: how many were bounded, combinations closed by each reason, chips left."""

    combinations: int
    boxes: int = 0
    closed: dict[str, int] = field(default_factory=dict)
    left: list[Integers] = field(default_factory=list)

    @property
    def open(self) -> int:
        return sum(len(one) for one in self.left)

    @property
    def words(self) -> str:
        """How far the walk is."""
        return f"{self.boxes:,} boxes, {sum(self.closed.values()):,} combinations closed, {self.open:,} chips left"

    def count(self, reason: str, low: Integers, high: Integers) -> None:
        """Combinations of boxes that are closed."""
        sizes = (high - low + 1).astype(object).prod(axis=1) if len(low) else np.zeros(0, object)
        self.closed[reason] = self.closed.get(reason, 0) + int(sum(sizes.tolist()))


def halves_of_open(
    found: Boxed, low: Integers, high: Integers, ratios: Sequence[Floats], goal: float, most: int = MOST_LEFT
) -> list[tuple[Integers, Integers]]:
    """What is still to be walked of boxes that a bound left open: chips alone in theirs are left, others halved."""
    alone = (low == high).all(axis=1)
    if alone.any():
        found.left.append(low[alone])
        require(found.open <= most, f"nothing shows that {most:,} chips score {goal!r} or more")
    low, high = low[~alone], high[~alone]
    return [halved(low, high, ratios)] if len(low) else []


def halved(low: Integers, high: Integers, ratios: Sequence[Floats]) -> tuple[Integers, Integers]:
    """Every box in two, along the axis whose ends lie furthest apart by ratio."""
    wide = np.stack([np.log(own[high[:, at]] / own[low[:, at]]) for at, own in enumerate(ratios)], axis=1)
    axis, every = np.argmax(np.where(high > low, wide + 1e-9, -1.0), axis=1), np.arange(len(low))
    middle = (low[every, axis] + high[every, axis]) // 2
    left, right = high.copy(), low.copy()
    left[every, axis], right[every, axis] = middle, middle + 1
    return np.concatenate([low, right]), np.concatenate([left, high])
