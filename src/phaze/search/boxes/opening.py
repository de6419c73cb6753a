"""The chips of a space that are worth looking at one by one: all of them, or what is left by the walk over its boxes.

Spaces of chips of cores with more than ``BOXED`` combinations are looked at in boxes. Their chips are then called by
the number of their combination, the last axis running fastest, for nobody counts those before them.
"""

from dataclasses import replace
from math import prod

import numpy as np
from numpy.typing import NDArray

from phaze.search.boxes.box_bounds import BoxQuestion
from phaze.search.boxes.box_grid import BoxGrid, box_grid
from phaze.search.boxes.counts import count_chips
from phaze.search.boxes.walk import Walked, beam, walk
from phaze.search.chips import SpaceChips
from phaze.search.deadline import Deadline
from phaze.search.feasibility import FeasibleChips, in_space
from phaze.search.objective import Scale
from phaze.search.space import Space, grid_of
from phaze.search.spaces import AnySpace, EnumeratedSpace, enumerate_space
from phaze.search.state import WITHIN, BoxedChips
from phaze.search.task import SearchJob

Integers = NDArray[np.int64]
# Below this the bounds of all chips take no longer than those of boxes, and say more of each chip.
BOXED = 1 << 20
# Chips spread over the space that are searched first beside those of the beam.
SPREAD = 512


def is_boxed(space: AnySpace) -> bool:
    """Whether a space is looked at in boxes."""
    return isinstance(space, Space) and prod(len(axis) for axis in grid_of(space).values) > BOXED


def chips_numbered(space: Space, numbers: Integers) -> SpaceChips:
    """Chips of a space by the numbers of their combinations, ascending; what is none of the space is left out."""
    view, counts = box_grid(space), count_chips(space)
    numbers = np.unique(numbers)
    numbers = numbers[(numbers >= 0) & (numbers < prod(view.shape))]
    chips = view.chips(np.stack(np.unravel_index(numbers, view.shape), axis=1))
    kept = in_space(space, chips)
    own, left_out = chips.taken(kept), (counts.area, counts.power, counts.cost)
    feasible = FeasibleChips(own, *left_out, numbers[kept], counts.chips - int(kept.sum()))
    return SpaceChips(space, space.base, space.technology, feasible)


def reopened(space: AnySpace, numbers: Integers) -> EnumeratedSpace:
    """The chips of a run's space: all of them, or of one that is looked at in boxes those that documents name."""
    return chips_numbered(space, numbers) if isinstance(space, Space) and is_boxed(space) else enumerate_space(space)


def first_chips(question: BoxQuestion) -> SpaceChips:
    """Chips to be searched for a first incumbent: those that the best bounds lead to, and some spread over all."""
    view = question.view
    count = prod(view.shape)
    spread = np.arange(0, count, max(1, count // SPREAD), dtype=np.int64)
    return chips_numbered(view.space, np.concatenate([view.numbers(beam(question)), spread]))


def box_question(job: SearchJob, scale: Scale, deadline: Deadline) -> BoxQuestion:
    """The job, its space in boxes."""
    if not isinstance(job.space, Space):
        raise AssertionError("only spaces of chips of cores are looked at in boxes")
    view: BoxGrid = box_grid(job.space)
    return BoxQuestion(job, scale, view, tuple(job.memories(job.objective.needs_energy)), deadline)


def left_chips(question: BoxQuestion, best: float, cut: float, with_chip: int) -> tuple[SpaceChips, BoxedChips]:
    """The chips that boxes leave, and how the others were pruned; ``with_chip``, by number, is always among them."""
    found: Walked = walk(question, cut, best * (1 + WITHIN))
    numbers = np.append(question.view.numbers(found.places), with_chip)
    chips = chips_numbered(question.view.space, numbers)
    near = min(int(found.near), chips.kept.others)
    return chips, BoxedChips(chips.kept.others, found.least, near)


def unlooked(chips: SpaceChips) -> BoxedChips:
    """The others of a space where the time was up before its boxes were bounded."""
    return BoxedChips(chips.kept.others, 0.0, chips.kept.others, pruned=False)


def nothing_left_out(chips: SpaceChips) -> SpaceChips:
    """Some chips of a space as a small space of their own."""
    return replace(chips, kept=replace(chips.kept, area=0, power=0, cost=0, others=0))
