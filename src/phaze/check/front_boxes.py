"""A front of a space with more chips than anyone could look at: boxes, each against what covers all
that it holds.

What is known of a chip (mm2, watts, dollars and kilograms of making it) is in no chip of a box less
than in the box (:func:`.fronts.figures_of`). A design that is no worse than the box is no worse
than any chip of it, and the goal of the box (:mod:`.fronts`) is not below that of any chip: a box
whose bound reaches it is closed. Boxes are walked for every memory that counts; chips that stand
alone in theirs go through the steps of a proof, each against its own goal.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from .boxes import BoxClaim
from .chips import Boxes
from .energy import Goals
from .fronts import Staircase, Units, figures_of, prove_units
from .means import Mean
from .model import Model
from .space import Grid
from .space_proof import Counted, Near, Solver, Watch

Integers = NDArray[np.int64]


def prove_front_boxes(
    models: Sequence[Model], means: Sequence[Mean], grid: Grid, memories: Sequence[int],
    stairs: Staircase, near: Near, watch: Watch, solver: Solver | None,
) -> Counted:  # fmt: skip
    """Every chip with every memory that counts against its corners; ``solver`` is called with the
    number of a combination."""
    sizes = np.array(memories, np.float64)

    def goals(boxes: Boxes, memory: Integers) -> Goals:
        figures = figures_of(grid, boxes, sizes[memory])
        return stairs.goals(Units(boxes, np.arange(len(boxes)), memory, figures))

    by_memory = stairs.asked.by_memory and not grid.made.stack_bytes
    claim = BoxClaim(models, means, grid, memories, by_memory, goals, near, watch)
    counted = Counted(grid.combinations * len(claim.places), grid.combinations)
    for space in claim.left(counted):
        figures = figures_of(grid, space.chips, sizes[space.memory])
        units = Units(space.chips, space.number, space.memory, figures)
        rest = prove_units(models, means, stairs, units, watch, near, False, solver)
        counted.add(rest.closed)
    return counted
