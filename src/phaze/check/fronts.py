"""A front: no chip, memory and plan of the space is better than its designs in one metric and no
worse in the others.

Metrics of a *run* come with a plan: seconds of a batch (of several models their mean), its joules,
dollars or kilograms of CO2 equivalent. The others are known of a chip with a memory before anything
runs on it: mm2, watts, dollars and kilograms of manufacturing it. A *unit* is a chip with one
memory; where memory counts in no metric, with the most that it may have, which is never slower.
With P the designs and g the gap, the claim is for every unit u and plan of it that takes x_k within
the limits

    there is p in P:   p_k <= u_k for every known metric k,   (1 - g) p_k <= x_k for every other

so with the designs that are no worse than a unit in what is known, a plan of it must not be below
all of them in some metric each. What they leave open is a staircase, whose *corners* are maximal:
no plan may be below a corner in all metrics of a run (:func:`_corners`); of one metric there is one
corner, the least of the designs, less the gap. Every unit is proved against its corners as a chip
of a search is against its bound (:mod:`.space_proof`). A unit that no design covers must not fit
within the limits at all. A front whose time was up may have the gap 1: of other units it claims
nothing. No design is beaten by another one in all metrics. Values count as equal
within 2^-29 of themselves.

Of several models a metric of a run is their mean, and limits of it are stated as it is proved: the
baseline that a study's limit counts relative to is no part of a proof.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Chips
from .energy import Goals
from .limits import making_kgco2e, making_usd
from .means import Mean
from .model import Model
from .reading import listed, number, only, positive, require
from .space import Grid, Space, chip_named
from .space_proof import LENT, Counted, Near, Solver, Watch, one_goal, start

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
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
CONFIGURATIONS = 32
"""As many flags of a corner are expected of a model."""
MOST_CELLS = 200_000_000
"""Numbers that corners of units may hold at once; more units are taken in turn."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The metrics of a front in its order, its limits (at most so much, at least so much
    throughput), and those of metrics of a run as they are proved, ``most``."""

    of: tuple[str, ...]
    within: Mapping[str, float]
    most: Mapping[str, float]

    @property
    def known(self) -> tuple[str, ...]:
        """The metrics of the front that are known of a unit."""
        return tuple(name for name in self.of if name in KNOWN)

    @property
    def by_memory(self) -> bool:
        """Whether it counts how much memory a chip has."""
        return any(name in OF_MEMORY for name in (*self.of, *self.within))

    @property
    def runs(self) -> tuple[str, ...]:
        """The metrics that come with a run; throughput where none is named, for every design must
        fit."""
        named = dict.fromkeys(name for name in (*self.of, *self.within) if name in RUNS)
        return tuple(named) or ("throughput",)

    @property
    def limits(self) -> Floats:
        """The limits of these, as they are proved."""
        return np.array([self.most.get(name, np.inf) * (1 + NEAR) for name in self.runs])


def named_metrics(problem: Mapping[str, Any]) -> tuple[tuple[str, ...], dict[str, float]]:
    """The metrics that a front weighs, and its limits."""
    table = only(problem["front"], "front", ("of", "within"))
    of = tuple(str(name) for name in listed(table["of"], "front.of"))
    within = {
        str(name): number(value, f"front.within.{name}", 1e-300)
        for name, value in table["within"].items()
    }
    known = {*of, *within} <= {*RUNS, *KNOWN}
    require(known and 2 <= len(of) == len(set(of)), "front: no such metrics")
    return of, within


def asked_of(problem: Mapping[str, Any], certificate: Mapping[str, Any]) -> Asked:
    """What a problem weighs. Limits of metrics of a run follow from it unless models count relative
    to a baseline: then they are as the certificate states them."""
    of, within = named_metrics(problem)
    limited, models = [name for name in within if name in RUNS], problem["models"]
    if "limits" in certificate:
        limits = only(certificate["limits"], "limits", limited)
        most = {name: number(value, f"limits.{name}", 1e-300) for name, value in limits.items()}
        return Asked(of, within, most)
    batch = positive(models[0]["training"]["batch"], "batch") if len(models) == 1 else 1.0
    return Asked(
        of,
        within,
        {name: batch / within[name] if name == "throughput" else within[name] for name in limited},
    )


def kinds_of(problem: Mapping[str, Any]) -> tuple[str, ...]:
    """The objectives that a problem is proved in: its own, of a front those of its metrics of a
    run, of a plan time."""
    if "front" in problem:
        of, within = named_metrics(problem)
        return tuple(RUNS[name] for name in Asked(of, within, {}).runs)
    if "objective" not in problem:
        return ("throughput",)
    return (str(problem["objective"]["kind"]),)


@dataclass(frozen=True, slots=True)
class Units:
    """Every chip with every memory that counts: the chips, their numbers, the places of memories,
    and what is known of them, by metric."""

    chips: Chips
    number: Integers
    memory: Integers
    known: Mapping[str, Floats]

    def __len__(self) -> int:
        return len(self.number)

    def taken(self, index: Integers) -> "Units":
        """Some of them."""
        known = {name: values[index] for name, values in self.known.items()}
        return Units(self.chips.taken(index), self.number[index], self.memory[index], known)


def figures_of(grid: Grid, chips: Chips, hbm_bytes: Floats | float) -> dict[str, Floats]:
    """mm2, watts, dollars and kilograms of chips with memories, by metric; of boxes what none of
    their chips goes below."""
    making = [
        f(chips, grid.made, grid.limits.terms, hbm_bytes) for f in (making_usd, making_kgco2e)
    ]
    return dict(zip(KNOWN, (chips.area, grid.limits.watts(chips), *making), strict=True))


def units_of(grid: Grid, space: Space, sizes: Sequence[int], asked: Asked) -> Units:
    """The units of a space; chips without a memory of the problem have none."""
    require(bool((space.memory >= 0).any()), "no chip may have a memory of the problem")
    if asked.by_memory and not grid.made.stack_bytes:
        space = space.with_every_memory(len(sizes))
    there = np.flatnonzero(space.memory >= 0)
    memory, chips = space.memory[there], space.chips.taken(there)
    figures = figures_of(grid, chips, np.array(sizes, np.float64)[memory])
    return Units(chips, space.number[there], memory, figures)


@dataclass(frozen=True, slots=True)
class Design:
    """A design: its metrics in the order of the front, and those of a run; and what each model
    takes, [models, kinds]."""

    values: Floats
    runs: Floats
    taken: tuple[tuple[float, ...], ...]


def checked_design(
    grid: Grid,
    sizes: Sequence[int],
    asked: Asked,
    models: Sequence[Model],
    means: Sequence[Mean],
    stated: Any,
    where: str,
) -> Design:
    """A design, every plan checked, and that its metrics are those it states."""
    design = only(stated, where, DESIGN)
    chip, size = answer_chip(grid, sizes, design, where)
    rows = listed(design["models"], f"{where}.models", len(models))
    pairs = zip(models, rows, strict=True)
    taken = tuple(model.answer(row, chip, size) for model, row in pairs)
    metrics = {name: float(values[0]) for name, values in figures_of(grid, chip, size).items()}
    for kind, (name, mean) in enumerate(zip(asked.runs, means, strict=True)):
        metrics[name] = float(mean.score(np.array(taken)[:, [kind]])[0])
    values = listed(design["values"], f"{where}.values", len(asked.of))
    for name, value in zip(asked.of, values, strict=True):
        fits = abs(number(value, f"{where}.values") - metrics[name]) <= NEAR * metrics[name]
        require(fits, f"{where}: its {name} is {metrics[name]!r}, not {value!r}")
    for name, limit in asked.within.items():
        if name in KNOWN:
            inside = metrics[name] <= limit * (1 + SAME)
            require(inside, f"{where}: its {name} is above the limit")
    for name, most in zip(asked.runs, asked.limits, strict=True):
        side = "below" if name == "throughput" else "above"
        require(metrics[name] <= most, f"{where}: its {name} is {side} the limit")
    runs = np.array([metrics[name] for name in asked.runs])
    return Design(np.array([metrics[name] for name in asked.of]), runs, taken)


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
    for place in range(points.shape[1]):
        others = np.arange(points.shape[1]) != place
        beaten = (points[:, place : place + 1] <= points).all(axis=0) & others
        require(
            not beaten.any(),
            f"front: design {place + 1} beats design {int(np.argmax(beaten)) + 1}",
        )


def _corners(points: Floats, limits: Floats) -> Floats:
    """The maximal corners of what points leave open below limits, [metrics, corners]: for each
    point every corner above it gives way to one for each metric, which is that of the point."""
    corners = limits[:, None]
    for point in _least_points(points).T:
        above = (point[:, None] < corners).all(axis=0)
        lowered = []
        for metric, value in enumerate(point):
            part = corners[:, above].copy()
            part[metric] = value
            lowered.append(part)
        corners = _without_lesser(np.concatenate([corners[:, ~above], *lowered], axis=1), 1.0)
    return corners[:, (corners > 0).all(axis=0)] * (1 - SAME)


def _without_lesser(points: Floats, sign: float) -> Floats:
    """The points that no other is no less than in all metrics; with the sign -1 no more than."""
    points = np.unique(points, axis=1)
    signed = sign * points
    less = np.asarray((signed[:, :, None] <= signed[:, None, :]).all(axis=0))
    np.fill_diagonal(less, False)
    return np.asarray(points[:, ~less.any(axis=1)])


def _least_points(points: Floats) -> Floats:
    """The points that no other is no more than in all metrics."""
    return _without_lesser(points, -1.0)


@dataclass(frozen=True, slots=True)
class Staircase:
    """What the designs of a front leave open: their metrics, as many as are known first; those of a
    run less the gap, weighed ones only."""

    asked: Asked
    known: Floats
    weighed: Floats
    """[metrics of a run, designs]; 0 in those that are limited and not weighed."""

    def covered(self, units: "Units") -> Flags:
        """Which designs are no worse than units in all that is known, [designs, units]."""
        values = [units.known[name] * (1 + SAME) for name in self.asked.known]
        if not values:
            return np.ones((self.known.shape[1], len(units)), bool)
        return np.asarray((self.known[:, :, None] <= np.stack(values)[:, None, :]).all(axis=0))

    def outside(self, units: "Units") -> Flags:
        """Which units are beyond a limit of what is known."""
        outside = np.zeros(len(units), bool)
        for name, limit in self.asked.within.items():
            if name in KNOWN:
                outside |= units.known[name] > limit * (1 + NEAR)
        return outside

    def least(self, units: "Units") -> Floats:
        """Of one metric of a run the corner of every unit; 0 where it has none."""
        goal = np.full(len(units), self.asked.limits[0])
        for place in range(self.known.shape[1]):
            covers = Staircase(self.asked, self.known[:, [place]], self.weighed).covered(units)[0]
            goal = np.where(covers, np.minimum(goal, self.weighed[0, place]), goal)
        return np.asarray(np.where(self.outside(units), 0.0, goal) * (1 - SAME))

    def groups(self, units: "Units") -> Iterator[tuple[Integers, Floats]]:
        """Units by what covers them, with the corners that they share [metrics, corners]; none of
        those that are outside, or covered whatever they take."""
        inside = np.flatnonzero(~self.outside(units))
        patterns, group_of = np.unique(self.covered(units)[:, inside], axis=1, return_inverse=True)
        for group, pattern in enumerate(patterns.T):
            corners = _corners(self.weighed[:, pattern], self.asked.limits)
            if corners.shape[1]:
                yield inside[group_of.ravel() == group], corners

    def goals(self, units: "Units") -> Goals:
        """The corners of all units, those of a unit with fewer than others filled up with closed
        ones."""
        if len(self.asked.runs) == 1:
            goal = self.least(units)
            return Goals(goal[None, None], (goal > 0)[None])
        groups = list(self.groups(units))
        most = max((corners.shape[1] for _, corners in groups), default=1)
        every = np.zeros((len(self.asked.runs), most, len(units)))
        is_open = np.zeros((most, len(units)), bool)
        for index, corners in groups:
            every[:, : corners.shape[1], index] = corners[:, :, None]
            is_open[: corners.shape[1], index] = True
        return Goals(every, is_open)


def staircase_of(asked: Asked, designs: Sequence[Design], gap: float) -> Staircase:
    """What some designs leave open."""
    values = np.stack([design.values for design in designs], axis=1)
    known = values[[asked.of.index(name) for name in asked.known]]
    runs = np.stack([design.runs for design in designs], axis=1) * (1 - gap)
    counts = np.array([name in asked.of for name in asked.runs])
    return Staircase(asked, known, np.where(counts[:, None], runs, 0.0))


def _alike(stairs: Staircase, units: Units) -> Iterator[tuple[Integers, Goals]]:
    """Units with their goals: those of one metric of a run by how much these are, the least first,
    those that nothing covers last; of several by what covers them."""
    if len(stairs.asked.runs) == 1:
        goal = stairs.least(units)
        names = np.full(len(goal), np.inf)
        finite = np.isfinite(goal) & (goal > 0)
        names[finite] = np.floor(np.log(goal[finite]) / np.log(ALIKE))
        for name in np.unique(names[goal > 0]).tolist():
            index = np.flatnonzero((names == name) & (goal > 0))
            yield index, one_goal(goal[index])
        return
    for index, corners in stairs.groups(units):
        most = max(1, MOST_CELLS // (corners.shape[1] * CONFIGURATIONS))
        for begin in range(0, len(index), most):
            some = index[begin : begin + most]
            wide = np.repeat(corners[:, :, None], len(some), axis=2)
            yield some, Goals(wide, np.ones(wide.shape[1:], bool))


def prove_units(
    models: Sequence[Model], means: Sequence[Mean], stairs: Staircase, units: Units, watch: Watch,
    near: Near, quick: bool = False, solver: Solver | None = None,
) -> Counted:  # fmt: skip
    """Every unit against its corners; refuses at the first that nothing shows to leave none."""
    counted = Counted(len(units), len(units))
    left = 0
    steps = models[0].steps
    for index, goals in _alike(stairs, units):
        left += len(index)
        some = units.taken(index)
        space = Space(some.chips, len(index), some.memory, some.number)
        state = start(models, means, space, goals, near)
        # Whether anything fits is decided by then: what is sharper later is seconds.
        few = quick or not np.isfinite(goals.corners).any(axis=(0, 1)).all()
        state.close(steps[:2] if few else steps, counted, watch, f"of {len(units):,} units")
        for unit in () if quick else state.left().tolist():
            shown, corners = state.scores()[:, unit], goals.corners[:, :, unit]
            words = some.chips.words(unit)
            least = ", ".join(f"{value!r}" for value in shown.tolist())
            more = (
                f"nothing shows that {words} has no plan below {corners.T.tolist()}: only {least}"
            )
            require(solver is not None, more)
            if solver is not None:
                values = solver(int(some.number[unit]), int(some.memory[unit]))
                sentence = "takes {score!r}, and no design of the front covers that"
                state.solve(unit, values, corners, sentence)
                counted.add({LENT: 1})
    counted.closed["limits"] = len(units) - left
    return counted
