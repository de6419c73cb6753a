"""A front of a space with more chips than anyone could look at: boxes, each against what covers all that it holds.

What is known of a chip (mm2, watts, dollars and kilograms of making it) only rises with every axis but the clock, which
needs less network; so nothing in a box has less than its low corner with the least area. A design that is no worse than
that corner is no worse than any chip of the box, and the goal of the corner (:mod:`.fronts`) is not below that of any
chip: a box whose bound reaches it is closed. Boxes are walked for every memory that counts; chips that stand alone in
theirs go through the steps of a proof, each against its own goal.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .boxes import Grid, walk
from .fronts import Asked, Units, UnitSolver, goals_of, known_of, prove_units
from .limits import design_watts, making_kgco2e, making_usd
from .means import Mean
from .proof import Counted, Watch
from .published import Model
from .reading import require
from .space import Chips, Space

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_LEFT = 1_000_000
"""Chips that boxes may leave: a front has goals everywhere, so more lie near them than near one answer."""


def box_figures(grid: Grid, low: Integers, high: Integers, hbm_bytes: float) -> dict[str, Floats]:
    """mm2, watts, dollars and kilograms that no chip of a box with a memory goes below."""
    area, base = grid.least_area(low, high), grid.space["base"]
    bottom = grid.corner(low)
    watts = design_watts(replace(bottom, area=np.minimum(area, bottom.area)), base["process"])
    made = [f(area, base, grid.limits.terms, hbm_bytes) for f in (making_usd, making_kgco2e)]
    return {"area": area, "power": watts, "price": made[0], "embodied": made[1]}


def numbers_of(grid: Grid, chips: Chips) -> Integers:
    """Chips by the numbers of their combinations, the last axis running fastest."""
    places = [np.searchsorted(values, getattr(chips, name)) for name, values in grid.axes.items()]
    return np.asarray(np.ravel_multi_index(tuple(places), [len(values) for values in grid.axes.values()]))


def prove_boxes(
    problem: Mapping[str, Any], model: Model, mean: Mean, grid: Grid, asked: Asked, points: Floats, gap: float,
    watch: Watch, solver: UnitSolver | None,
) -> Counted:  # fmt: skip
    """Every chip with every memory that counts against its goal; ``solver`` is asked by the number of a combination."""
    memories = list(problem["hbm_bytes"])
    places = range(len(memories)) if asked.by_memory else range(len(memories) - 1, len(memories))
    counted = Counted(grid.combinations * len(places), grid.combinations)
    for place in places:
        size = float(memories[place])

        def goals(low: Integers, high: Integers, at: int = place, hbm_bytes: float = size) -> Floats:
            every = np.arange(len(low))
            figures = box_figures(grid, low, high, hbm_bytes)
            return goals_of(Units(every, np.full(len(low), at), figures), asked, points, gap, mean.batches[0])

        found = walk(model, grid, place, goals, watch, MOST_LEFT)
        total = sum(found.closed.values()) + found.open
        require(total == grid.combinations, f"boxes cover {total} of {grid.combinations} combinations")
        counted.boxes += found.boxes
        _add(counted, found.closed)
        if not found.open:
            continue
        chips = grid.limits.kept(grid.corner(np.concatenate(found.left)))
        most = grid.limits.memory(chips, memories)
        there = most >= (place if asked.by_memory else 0)
        chips, memory = chips.taken(there), np.full(int(there.sum()), place) if asked.by_memory else most[there]
        _add(counted, {"rules of the space": found.open - len(chips)})
        if len(chips):
            watch(f"{len(chips):,} chips that boxes leave")
            _add(counted, _proved(problem, model, mean, grid, asked, points, gap, watch, solver, chips, memory))
    return counted


def _proved(
    problem: Mapping[str, Any], model: Model, mean: Mean, grid: Grid, asked: Asked, points: Floats, gap: float,
    watch: Watch, solver: UnitSolver | None, chips: Chips, memory: Integers,
) -> dict[str, int]:  # fmt: skip
    """Chips one by one, by what closed them."""
    every, some = np.arange(len(chips)), Space(chips, grid.combinations, memory)
    units = Units(every, memory, known_of(problem, some, list(problem["hbm_bytes"]), every, memory))
    goals, numbers = goals_of(units, asked, points, gap, mean.batches[0]), numbers_of(grid, chips)
    own = None if solver is None else lambda chip, at: solver(int(numbers[chip]), at)
    return prove_units([model], mean, some, units, goals, watch, False, own).closed


def _add(counted: Counted, closed: Mapping[str, int]) -> None:
    for step, count in closed.items():
        counted.closed[step] = counted.closed.get(step, 0) + count
