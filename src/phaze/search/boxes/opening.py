"""The chips of a space that are worth looking at one by one: all of them, or what is left by the
walk over its boxes.

Spaces with more than ``BOXED`` combinations are searched in boxes. Their chips are then called by
the number of their combination, the last axis running fastest, for nobody counts those before them.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.search.boxes.box_bounds import BoxQuestion
from phaze.search.boxes.counts import count_left_out
from phaze.search.boxes.grid import BoxGrid, box_grid, numbers_of
from phaze.search.boxes.walk import Walked, beam, walk
from phaze.search.chips import SpaceChips, chips_at, enumerate_space
from phaze.search.deadline import Deadline
from phaze.search.factors import AS_THEY_ARE, ConstantFactors
from phaze.search.feasibility import NOTHING_LEFT_OUT
from phaze.search.objective import Scale
from phaze.search.space import Space
from phaze.search.state import WITHIN, BoxedChips
from phaze.search.task import SearchJob

Integers = NDArray[np.int64]
# Below this the bounds of all chips take no longer than those of boxes, and say more of each chip.
BOXED = 1 << 20
# Chips spread over the space that are searched first beside those of the beam.
SPREAD = 512
# Combinations of which those that are chips are bounded one by one, whatever their boxes say: a
# cloud that can be seen.
SAMPLE = 6_000


def is_boxed(space: Space) -> bool:
    """Whether a space is searched in boxes."""
    return prod(len(axis) for axis in space.axis_points().values()) > BOXED


def chips_numbered(
    space: Space, numbers: Integers, factors: ConstantFactors = AS_THEY_ARE, counted: bool = True
) -> SpaceChips:
    """Chips of a space by the numbers of their combinations, ascending; what is none of the space
    is left out.

    ``counted``: the other chips of the space are counted; else these stand for a small space of
    their own.
    """
    shape = tuple(len(axis) for axis in space.axis_points().values())
    counts = count_left_out(space) if counted else NOTHING_LEFT_OUT
    chips = len(space) - sum(counts.values()) if counted else 0
    numbers = np.unique(numbers)
    numbers = numbers[(numbers >= 0) & (numbers < prod(shape))]
    kept_chips = chips_at(space, numbers)
    return replace(kept_chips, rules=counts, others=max(0, chips - len(kept_chips))).scaled(factors)


def reopened(space: Space, numbers: Integers) -> SpaceChips:
    """The chips of a run's space: all of them, or of one that is searched in boxes those that
    documents name."""
    return chips_numbered(space, numbers) if is_boxed(space) else enumerate_space(space)


def first_chips(question: BoxQuestion) -> SpaceChips:
    """Chips to be searched for a first incumbent: those that the best bounds lead to, and some
    spread over all."""
    grid = question.grid
    count = prod(grid.shape)
    spread = np.arange(0, count, max(1, count // SPREAD), dtype=np.int64)
    numbers = np.concatenate([numbers_of(grid, beam(question)), spread])
    return chips_numbered(grid.space, numbers, grid.factors, counted=False)


def box_question(
    job: SearchJob, scale: Scale, deadline: Deadline, grid: BoxGrid | None = None
) -> BoxQuestion:
    """The job, its space in boxes; ``grid`` where constants of its chips are others."""
    grid = box_grid(job.space) if grid is None else grid
    return BoxQuestion(job, scale, grid, tuple(job.memories(job.objective.needs_energy)), deadline)


@dataclass(frozen=True, slots=True)
class Left:
    """What a walk leaves: the number and score of the incumbent, the chips by number, the least
    bound of pruned boxes, and combinations of pruned boxes whose bound is near the score."""

    chip: int
    score: float
    numbers: tuple[int, ...]
    least: float
    near: float

    def document(self) -> dict[str, Any]:
        """Plain values; an infinite bound is null."""
        return {**asdict(self), "least": None if self.least == float("inf") else self.least}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "Left":
        least = float("inf") if document["least"] is None else float(document["least"])
        numbers = tuple(int(number) for number in document["numbers"])
        return cls(
            int(document["chip"]), float(document["score"]), numbers, least, float(document["near"])
        )


def left_chips(question: BoxQuestion, best: float, cut: float, with_chip: int) -> Left:
    """The chips that boxes leave, and how the others were pruned; ``with_chip``, by number, is
    always among them."""
    walked: Walked = walk(question, cut, best * (1 + WITHIN))
    numbers = np.append(numbers_of(question.grid, walked.places), with_chip)
    return Left(with_chip, best, tuple(numbers.tolist()), walked.least, walked.near)


def sampled(grid: BoxGrid) -> Integers:
    """Combinations by number, every so manieth: what pages show of a space beside the chips that
    its boxes left."""
    count = prod(grid.shape)
    step = max(1, count // SAMPLE)
    # Odd, so that it shares no factor with axes of 2, 4, 8 ... values and meets all of them.
    return np.arange(0, count, step + 1 - step % 2, dtype=np.int64)


def left_of(question: BoxQuestion, left: Left) -> tuple[SpaceChips, BoxedChips]:
    """The chips that a walk left, a sample, and the others of the space."""
    grid = question.grid
    numbers = np.concatenate([np.array(left.numbers, np.int64), sampled(grid)])
    chips = chips_numbered(grid.space, numbers, grid.factors)
    others = chips.total - len(chips)
    return chips, BoxedChips(others, left.least, min(int(left.near), others))


def unlooked(chips: SpaceChips) -> BoxedChips:
    """The others of a space where the time was up before its boxes were bounded."""
    others = chips.total - len(chips)
    return BoxedChips(others, 0.0, others, pruned=False)
