"""A front of a space with more chips than anyone could look at: boxes, each against what covers all
that it holds.

What is known of a chip (mm2, watts, dollars and kilograms of making it) only rises with every axis
but the clock, which needs less network; so nothing in a box has less than its low corner with the
least area. A design that is no worse than that corner is no worse than any chip of the box, and the
goal of the corner (:mod:`.fronts`) is not below that of any chip: a box whose bound reaches it is
closed. Boxes are walked for every memory that counts; chips that stand alone in theirs go through
the steps of a proof, each against its own goal.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .boxes import walk
from .chips import Chips
from .energy import Goals
from .fronts import Staircase, Units, figures_of, prove_units
from .means import Mean
from .model import Model
from .space import Grid
from .space_proof import Counted, Near, Solver, Watch

Integers = NDArray[np.int64]
MOST_LEFT = 1_000_000
"""Chips that boxes may leave: a front has goals everywhere, so more lie near them than near one
answer."""


def prove_front_boxes(
    models: Sequence[Model], means: Sequence[Mean], grid: Grid, memories: Sequence[int],
    stairs: Staircase, near: Near, watch: Watch, solver: Solver | None,
) -> Counted:  # fmt: skip
    """Every chip with every memory that counts against its corners; ``solver`` is called with the
    number of a combination."""
    by_memory = stairs.asked.by_memory and not grid.made.stack_bytes
    places: list[int | None] = list(range(len(memories))) if by_memory else [None]
    counted = Counted(grid.combinations * len(places), grid.combinations)
    sizes, lengths = np.array(memories, np.float64), [len(axis) for axis in grid.axes.values()]

    def units_of(chips: Chips, number: Integers, memory: Integers) -> Units:
        return Units(chips, number, memory, figures_of(grid, chips, sizes[memory]))

    for place in places:

        def box_goals(bottom: Chips, place: int | None = place) -> Goals:
            memory = np.full(len(bottom), 0 if place is None else place)
            return stairs.goals(units_of(bottom, np.arange(len(bottom)), memory))

        walked = walk(models, means, grid, memories, box_goals, near, watch, place, MOST_LEFT)
        chips, index = walked.chips(grid)
        counted.boxes += walked.boxes
        counted.add(walked.closed)
        most = grid.limits.memory(chips, memories)
        there = most >= (0 if place is None else place)
        chips, index, most = chips.taken(there), index[there], most[there]
        memory = most if place is None else np.full(len(chips), place)
        counted.add({"rules of the space": walked.open - len(chips)})
        if not len(chips):
            continue
        watch(f"{len(chips):,} chips that boxes leave")
        units = units_of(chips, np.ravel_multi_index(tuple(index.T), lengths), memory)
        rest = prove_units(models, means, stairs, units, watch, near, False, solver)
        counted.add(rest.closed)
    return counted
