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
from .fronts import Asked, Units, UnitSolver, figures_of, goals_of, prove_units
from .means import Mean
from .model import Model
from .space import Grid, Space
from .space_proof import Counted, Watch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_LEFT = 1_000_000
"""Chips that boxes may leave: a front has goals everywhere, so more lie near them than near one
answer."""


def prove_front_boxes(
    models: Sequence[Model], mean: Mean, grid: Grid, memories: Sequence[int], asked: Asked,
    points: Floats, gap: float,
    watch: Watch, solver: UnitSolver | None,
) -> Counted:  # fmt: skip
    """Every chip with every memory that counts against its goal; ``solver`` is asked by the number
    of a combination."""
    places = range(len(memories)) if asked.by_memory else range(len(memories) - 1, len(memories))
    counted = Counted(grid.combinations * len(places), grid.combinations)
    sizes, lengths = np.array(memories, np.float64), [len(axis) for axis in grid.axes.values()]

    def units_of(chips: Chips, memory: Integers) -> Units:
        return Units(np.arange(len(chips)), memory, figures_of(grid, chips, sizes[memory]))

    def goals(units: Units) -> Floats:
        return goals_of(units, asked, points, gap, mean.batches[0])

    for place in places:

        def box_goals(bottom: Chips, place: int = place) -> Floats:
            return goals(units_of(bottom, np.full(len(bottom), place)))

        walked = walk(models, mean, grid, memories, box_goals, (), watch, place, MOST_LEFT)
        chips, index = walked.chips(grid)
        counted.boxes += walked.boxes
        counted.add(walked.closed)
        most = grid.limits.memory(chips, memories)
        there = most >= (place if asked.by_memory else 0)
        chips, index = chips.taken(there), index[there]
        memory = np.full(len(chips), place) if asked.by_memory else most[there]
        counted.add({"rules of the space": walked.open - len(chips)})
        if not len(chips):
            continue
        watch(f"{len(chips):,} chips that boxes leave")
        numbers, units = np.ravel_multi_index(tuple(index.T), lengths), units_of(chips, memory)

        def numbered(chip: int, memory: int, numbers: Integers = numbers) -> Sequence[float]:
            return () if solver is None else solver(int(numbers[chip]), memory)

        some = Space(chips, grid.combinations, memory)
        lent = None if solver is None else numbered
        counted.add(prove_units(models, mean, some, units, goals(units), watch, False, lent).closed)
    return counted
