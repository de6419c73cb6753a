"""A front: no chip, memory and plan of the space is better than its designs in one metric and no
worse in the others.

One metric T comes with a run: seconds of a batch (of several models their mean), or its joules,
dollars or kilograms of CO2 equivalent. The others are known of a chip with a memory before anything
runs on it: mm2, watts, dollars and kilograms of manufacturing it. A *unit* is a chip with one
memory; where memory counts in no metric, with the most that it may have, which is never slower.
With P the designs and g the gap, the claim is for every unit u and plan of it that takes T within
the limits

    there is p in P:   p_k <= u_k for every known metric k,   (1 - g) p_T <= T, where T is weighed

so every unit has a goal of its own, min( (1 - g) p_T over the p that are no worse in what is known,
the limit of T ), and is proved against it as a chip of a search is (:mod:`.space_proof`). A unit
that no design covers must not fit at all. No design is beaten by another one in all metrics. Values
count as equal within 2^-29 of themselves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Chips
from .limits import making_kgco2e, making_usd
from .means import Mean
from .model import Model
from .reading import cover, listed, number, only, require
from .silicon import power_of
from .space import Grid, Space, chip_named
from .space_proof import LENT, Counted, Open, Solver, Watch

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
KNOWN = ("area", "power", "price", "embodied")
OF_MEMORY = ("price", "embodied", "cost", "carbon")
RUNS = MappingProxyType({
    "throughput": "throughput", "energy": "throughput_per_watt", "cost": "throughput_per_usd",
    "carbon": "throughput_per_kgco2e",
})  # fmt: skip
"""Metrics that come with a run, and the objective whose value each is."""
DESIGN = ("values", "chip", "hbm_bytes", "models")
NEAR, SAME = 1e-9, 2.0**-29
ALIKE = 1.25
"""Units whose goals are within this factor of each other are proved together."""
UnitSolver = Callable[[int, int], Sequence[float]]
"""What all models take on a chip with a memory, by a solver of the caller's own."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The metrics of a front in its order, and its limits: at most so much, at least so much
    throughput."""

    of: tuple[str, ...]
    within: Mapping[str, float]

    @property
    def known(self) -> tuple[str, ...]:
        """The metrics of the front that are known of a unit."""
        return tuple(name for name in self.of if name in KNOWN)

    @property
    def by_memory(self) -> bool:
        """Whether it counts how much memory a chip has."""
        return any(name in OF_MEMORY for name in (*self.of, *self.within))

    @property
    def run(self) -> str:
        """The metric that comes with a run; throughput where none is named, for every design must
        fit."""
        return next((name for name in (*self.of, *self.within) if name in RUNS), "throughput")

    def most(self, batch: float) -> float:
        """The limit of that metric; of throughput as seconds of a batch."""
        if self.run not in self.within:
            return np.inf
        limit = self.within[self.run]
        return (batch / limit if self.run == "throughput" else limit) * (1 + NEAR)


def asked_of(problem: Mapping[str, Any]) -> Asked:
    """What a problem weighs."""
    table = only(problem["front"], "front", ("of", "within"))
    of = tuple(str(name) for name in listed(table["of"], "front.of"))
    within = {
        str(name): number(value, f"front.within.{name}", 1e-300)
        for name, value in table["within"].items()
    }
    named = (*of, *within)
    require(
        set(named) <= {*RUNS, *KNOWN} and 2 <= len(of) == len(set(of)), "front: no such metrics"
    )
    runs = list(dict.fromkeys(name for name in named if name in RUNS))
    cover(len(runs) <= 1, f"fronts of {' and '.join(runs)} together")
    several = len(problem["models"]) > 1
    cover(
        not several or not (runs and runs[0] in within),
        "a limit on what several models take together",
    )
    cover(
        not several or runs in ([], ["throughput"]),
        f"fronts of {runs[0] if runs else ''} of several models",
    )
    return Asked(of, within)


def kind_of(problem: Mapping[str, Any]) -> str:
    """The objective that a problem is proved in: its own, of a front that of its metric of a run,
    of a plan time."""
    if "front" in problem:
        return RUNS[asked_of(problem).run]
    return str(problem["objective"]["kind"]) if "objective" in problem else "throughput"


@dataclass(frozen=True, slots=True)
class Units:
    """Every chip with every memory that counts: their places, and what is known of them, by
    metric."""

    chip: Integers
    memory: Integers
    known: Mapping[str, Floats]


def figures_of(grid: Grid, chips: Chips, hbm_bytes: Floats | float) -> dict[str, Floats]:
    """mm2, watts, dollars and kilograms of chips with memories, by metric."""
    making = [
        f(chips, grid.made, grid.limits.terms, hbm_bytes) for f in (making_usd, making_kgco2e)
    ]
    watts = power_of(chips, grid.made).watts(chips.clock)
    return dict(zip(KNOWN, (chips.area, watts, *making), strict=True))


def units_of(grid: Grid, space: Space, sizes: Sequence[int], asked: Asked) -> Units:
    """The units of a space; chips without a memory of the problem have none."""
    there = np.flatnonzero(space.memory >= 0)
    require(len(there) > 0, "no chip may have a memory of the problem")
    chip, memory = there, space.memory[there]
    if asked.by_memory and not grid.made.stack_bytes:
        rows = [np.flatnonzero(space.memory >= place) for place in range(len(sizes))]
        chip, memory = (
            np.concatenate(rows),
            np.repeat(np.arange(len(sizes)), [len(row) for row in rows]),
        )
    return Units(
        chip, memory, figures_of(grid, space.chips.taken(chip), np.array(sizes, np.float64)[memory])
    )


def design_values(
    grid: Grid,
    sizes: Sequence[int],
    asked: Asked,
    models: Sequence[Model],
    mean: Mean,
    stated: Any,
    where: str,
) -> Floats:
    """A design's metrics in the order of the front, every plan checked, and that they are those it
    states."""
    design = only(stated, where, DESIGN)
    chip, size = answer_chip(grid, sizes, design, where)
    rows = listed(design["models"], f"{where}.models", len(models))
    seconds = [model.answer(row, chip, size) for model, row in zip(models, rows, strict=True)]
    known = {name: float(values[0]) for name, values in figures_of(grid, chip, size).items()}
    known[asked.run] = float(mean.score(np.array(seconds)[:, None])[0])
    values = listed(design["values"], f"{where}.values", len(asked.of))
    for name, value in zip(asked.of, values, strict=True):
        fits = abs(number(value, f"{where}.values") - known[name]) <= NEAR * known[name]
        require(fits, f"{where}: its {name} is {known[name]!r}, not {value!r}")
    for name, limit in asked.within.items():
        if name != asked.run:
            require(known[name] <= limit * (1 + SAME), f"{where}: its {name} is above the limit")
    outside = known[asked.run] > asked.most(mean.batches[0])
    require(
        not outside,
        (
            f"{where}: its {asked.run} is "
            f"{'below' if asked.run == 'throughput' else 'above'} the limit"
        ),
    )
    return np.array([known[name] for name in asked.of])


def answer_chip(
    grid: Grid, sizes: Sequence[int], answer: Mapping[str, Any], where: str
) -> tuple[Chips, float]:
    """The chip that an answer names, and its memory, which it may have."""
    space = chip_named(grid, sizes, answer["chip"])
    require(answer["hbm_bytes"] in sizes, f"{where}.hbm_bytes: no memory of the problem")
    place, most = list(sizes).index(answer["hbm_bytes"]), int(space.memory[0])
    allowed = place == most if grid.made.stack_bytes else place <= most
    require(allowed, f"{where}.hbm_bytes: the chip may not have it")
    return space.chips, float(answer["hbm_bytes"])


def require_undominated(points: Floats) -> None:
    """No design is at least as good as another one in all metrics."""
    for at in range(points.shape[1]):
        beaten = (points[:, at : at + 1] <= points).all(axis=0) & (np.arange(points.shape[1]) != at)
        require(
            not beaten.any(), f"front: design {at + 1} beats design {int(np.argmax(beaten)) + 1}"
        )


def goals_of(units: Units, asked: Asked, points: Floats, gap: float, batch: float) -> Floats:
    """What no plan of a unit may undercut in the metric of a run: 0 where it is outside the limits,
    or where any will do."""
    known = (
        np.stack([units.known[name] for name in asked.known])
        if asked.known
        else np.zeros((0, len(units.chip)))
    )
    rows = [asked.of.index(name) for name in asked.known]
    goal = np.full(len(units.chip), asked.most(batch))
    for at in range(points.shape[1]):
        covers = (points[rows, at][:, None] <= known * (1 + SAME)).all(axis=0)
        taken = points[asked.of.index(asked.run), at] * (1 - gap) if asked.run in asked.of else 0.0
        goal = np.where(covers, np.minimum(goal, taken), goal)
    for name, limit in asked.within.items():
        if name in KNOWN:
            goal = np.where(units.known[name] > limit * (1 + NEAR), 0.0, goal)
    return np.asarray(goal * (1 - SAME))


def _alike(goal: Floats) -> list[Integers]:
    """Units in groups of about the same goal, the least first; those that nothing covers last."""
    names = np.full(len(goal), np.inf)
    finite = np.isfinite(goal) & (goal > 0)
    names[finite] = np.floor(np.log(goal[finite]) / np.log(ALIKE))
    return [
        np.flatnonzero((names == name) & (goal > 0)) for name in np.unique(names[goal > 0]).tolist()
    ]


def prove_units(
    models: Sequence[Model], mean: Mean, space: Space, units: Units, goal: Floats, watch: Watch,
    quick: bool = False, solver: UnitSolver | None = None,
) -> Counted:  # fmt: skip
    """Every unit against its goal; refuses at the first that nothing shows to reach it."""
    counted = Counted(len(goal), space.combinations)
    counted.closed["limits"] = int((goal <= 0).sum())
    steps = models[0].steps
    for index in _alike(goal):
        chips, memory = space.chips.taken(units.chip[index]), units.memory[index]
        bounds = [np.zeros((model.configurations, len(index))) for model in models]
        state = Open(models, mean, chips, memory, goal[index], bounds)
        # Whether anything fits is decided by then: what is sharper later is seconds.
        few = quick or not np.isfinite(goal[index]).all()
        state.close(steps[:2] if few else steps, counted, watch, f"of {len(goal):,} units")
        if quick:
            continue
        lent = None if solver is None else _of_units(solver, units.chip[index], memory)
        for unit in state.left().tolist():
            least, shown = float(goal[index[unit]]), float(mean.score(state.lows()[:, [unit]])[0])
            more = f"nothing shows that {chips.words(unit)} takes {least!r} or more, only {shown!r}"
            require(lent is not None, more)
            if lent is not None:
                state.solve(
                    unit, lent, least, "takes {score!r}, and no design of the front covers that"
                )
                counted.add({LENT: 1})
    return counted


def _of_units(solver: UnitSolver, chip: Integers, memory: Integers) -> Solver:
    """A solver of units by their number."""
    return lambda unit: solver(int(chip[unit]), int(memory[unit]))
