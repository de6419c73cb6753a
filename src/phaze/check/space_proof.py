"""Every chip of a space: nothing scores below the bound of a certificate.

Chips are bounded by ever sharper and dearer steps, those of a model (:mod:`.model`),
until their bound is reached. The chip that looks best after the first step goes through all of them before any other: a
false claim falls there. No list of chips, reason or count is read; what is proved is counted here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .chips import Chips
from .means import Mean
from .model import Model
from .reading import require
from .space import Space

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NEAR = 1e-9
"""Scores are sums in another order than phaze has them."""
Watch = Callable[[str], None]
Solver = Callable[[int], Sequence[float]]
"""The batch times of all models on a chip, by a solver of the caller's own: what he trusts it with is his affair."""
LENT = "the caller's own solver"


@dataclass(slots=True)
class Counted:
    """How many chips each step closed, and the score that none is shown to undercut."""

    chips: int
    combinations: int
    least: float = 0.0
    closed: dict[str, int] = field(default_factory=dict)
    first_open: str = ""
    boxes: int = 0

    def add(self, closed: Mapping[str, int]) -> None:
        """What further steps closed."""
        for step, count in closed.items():
            self.closed[step] = self.closed.get(step, 0) + count


@dataclass(slots=True)
class Open:
    """Chips on their way through the steps, each with its goal: bounds on the batch time of every model's
    configurations."""

    models: Sequence[Model]
    mean: Mean
    chips: Chips
    memory: Integers
    goal: Floats
    bounds: list[Floats]
    near: tuple[float, ...] = ()
    """Of several models the times of the answer: how far each is bounded while nothing is known of the others."""

    def lows(self) -> Floats:
        """What no configuration undercuts, [models, chips]."""
        return np.stack([own.min(axis=0) for own in self.bounds])

    def left(self) -> Integers:
        """Chips that are not shown to be above the goal."""
        return np.flatnonzero(self.mean.score(self.lows()) < self.goal)

    def run(self, step: str) -> None:
        """One step over the chips that are left."""
        for at, seconds in enumerate(self.near):
            # Without times of the others a model would be bounded without end.
            index = self.left()
            index = index[self.lows()[at, index] == 0]
            self._bound(at, index, np.full(len(index), seconds), step)
        for at in range(len(self.models)):
            index = self.left()
            goals = self.mean.threshold(self.lows()[:, index], at, self.goal[index])
            # Room for rounding: what reaches the threshold must bring the score to its goal.
            self._bound(at, index, goals * (1 + NEAR * (not self.mean.plain)), step)

    def _bound(self, at: int, index: Integers, goals: Floats, step: str) -> None:
        """Bounds of one model on some chips, each as far as its goal."""
        if len(index):
            own, some, memory = self.bounds[at][:, index], self.chips.taken(index), self.memory[index]
            self.bounds[at][:, index] = np.maximum(own, self.models[at].bounds(some, memory, goals, step, own))


def start(models: Sequence[Model], mean: Mean, space: Space, goal: float | Floats, near: Sequence[float] = ()) -> Open:
    """All chips of a space with nothing shown; those without a memory are none."""
    there = space.memory >= 0
    require(bool(there.any()), "no chip may have a memory of the problem")
    bounds = [np.where(there, 0.0, np.inf) * np.ones((m.configurations, 1)) for m in models]
    goals = np.full(len(space.chips), goal)
    return Open(models, mean, space.chips, space.memory, goals, bounds, () if mean.plain else tuple(near))


def prove(
    models: Sequence[Model], mean: Mean, space: Space, goals: tuple[float, float],
    watch: Watch, quick: bool = False, solver: Solver | None = None, near: Sequence[float] = (),
) -> Counted:  # fmt: skip
    """Every chip and configuration against the first of ``goals``; refuses where the chip that looks best is not shown
    to reach the second. ``quick`` stops before mappings; chips that no step closes are given to ``solver``, if any.
    ``near``: about what each model takes on good chips; any times give bounds that hold, these few rows."""
    state, steps = start(models, mean, space, goals[0] * (1 - NEAR), near), models[0].steps
    counted = Counted(len(space.chips), space.combinations, goals[0], dict.fromkeys(steps, 0))
    for step in steps[:2] if quick else steps:
        before = state.left()
        if len(before):
            watch(f"{step}: {len(before):,} chips")
            state.run(step)
        left = state.left()
        counted.closed[step] += len(before) - len(left)
        if step == steps[0]:
            counted.closed[step] += len(space.chips) - len(before)
            if len(left):
                last = _most_promising(state, int(np.argmin(mean.score(state.lows()))), goals[1], solver)
                counted.closed[last] = counted.closed.get(last, 0) + int(len(state.left()) < len(left))
                left = state.left()
    if solver is not None and not quick and len(left):
        watch(f"{LENT}: {len(left):,} chips")
        for at in left.tolist():
            _solved(state, at, goals[1], solver)
        still = state.left()
        counted.closed[LENT], left = counted.closed.get(LENT, 0) + len(left) - len(still), still
    if len(left):
        scores = mean.score(state.lows()[:, left])
        worst = int(np.argmin(scores))
        counted.least, counted.first_open = float(scores[worst]), space.chips.words(int(left[worst]))
    return counted


def _solved(state: Open, at: int, goal: float, solver: Solver) -> None:
    """One chip by a solver of the caller's own."""
    values = solver(at)
    score = float(state.mean.score(np.array(values)[:, None])[0])
    require(score >= goal * (1 - NEAR), f"{state.chips.words(at)} scores {score!r}, which is below {goal!r}")
    for own, value in zip(state.bounds, values, strict=True):
        own[:, at] = np.maximum(own[:, at], value)


def _most_promising(state: Open, at: int, goal: float, solver: Solver | None) -> str:
    """All steps on one chip, whose bounds are kept; the last that it took, which may be the caller's solver."""
    one = np.array([at])
    alone = Open(
        state.models, state.mean, state.chips.taken(one), state.memory[one], np.array([goal * (1 - NEAR)]),
        [own[:, one] for own in state.bounds],
    )  # fmt: skip
    for step in state.models[0].steps[1:]:
        alone.run(step)
        for own, bounds in zip(state.bounds, alone.bounds, strict=True):
            own[:, one] = bounds
        if not len(alone.left()):
            return step
    require(solver is not None, f"nothing shows that {state.chips.words(at)} scores {goal!r} or more")
    if solver is not None:
        _solved(state, at, goal, solver)
    return LENT
