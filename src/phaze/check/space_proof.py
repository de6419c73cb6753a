"""Every chip of a space: nothing scores below the bound of a certificate.

Chips are bounded by ever sharper and dearer steps, those of a model (:mod:`.model`), until their
bound is reached. The chip that looks best after the first step goes through all of them before any
other: a false claim falls there. No list of chips, reason or count is read; what is proved is
counted here.
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
"""The batch times of all models on a chip, by a solver of the caller's own: what he trusts it with
is his affair."""
LENT = "the caller's own solver"
SEARCHED = "schedules"
"""The step whose place such a solver takes, but on the chip that looks best and on a few."""
FEW = 4
"""Chips that are searched although a solver is lent: seconds each."""


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
    """Chips on their way through the steps, each with its goal: bounds on the batch time of every
    model's configurations."""

    models: Sequence[Model]
    mean: Mean
    chips: Chips
    memory: Integers
    goal: Floats
    bounds: list[Floats]
    near: tuple[float, ...] = ()
    """Of several models the times of the answer: how far each is bounded while nothing is known of
    the others."""

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
            own, some, memory = (
                self.bounds[at][:, index],
                self.chips.taken(index),
                self.memory[index],
            )
            self.bounds[at][:, index] = np.maximum(
                own, self.models[at].bounds(some, memory, goals, step, own)
            )

    def close(self, steps: Sequence[str], counted: "Counted", watch: Watch, what: str) -> None:
        """Some steps one after the other, and how many chips each closed."""
        for step in steps:
            before = len(self.left())
            if before:
                watch(f"{step}: {before:,} {what}")
                self.run(step)
            counted.add({step: before - len(self.left())})

    def solve(self, chip: int, solver: Solver, goal: float, sentence: str) -> None:
        """One chip by a solver of the caller's own; ``sentence``: what is wrong where it does not
        reach a goal."""
        values = solver(chip)
        score = float(self.mean.score(np.array(values)[:, None])[0])
        require(
            score >= goal * (1 - NEAR), f"{self.chips.words(chip)} {sentence.format(score=score)}"
        )
        for bounds, value in zip(self.bounds, values, strict=True):
            bounds[:, chip] = np.maximum(bounds[:, chip], value)


def start(
    models: Sequence[Model],
    mean: Mean,
    space: Space,
    goal: float | Floats,
    near: Sequence[float] = (),
) -> Open:
    """All chips of a space with nothing shown; those without a memory are none."""
    there = space.memory >= 0
    require(bool(there.any()), "no chip may have a memory of the problem")
    bounds = [np.where(there, 0.0, np.inf) * np.ones((m.configurations, 1)) for m in models]
    goals = np.full(len(space.chips), goal)
    return Open(
        models, mean, space.chips, space.memory, goals, bounds, () if mean.plain else tuple(near)
    )


def prove(
    models: Sequence[Model], mean: Mean, space: Space, goals: tuple[float, float],
    watch: Watch, quick: bool = False, solver: Solver | None = None, near: Sequence[float] = (),
) -> Counted:  # fmt: skip
    """Every chip and configuration against the first of ``goals``; refuses where the chip that
    looks best is not shown to reach the second. ``quick`` stops before mappings; chips that no step
    closes are given to ``solver``, if any. ``near``: about what each model takes on good chips; any
    times give bounds that hold, these few rows."""
    state, steps = start(models, mean, space, goals[0] * (1 - NEAR), near), models[0].steps
    counted = Counted(len(space.chips), space.combinations, goals[0], dict.fromkeys(steps, 0))
    counted.closed[steps[0]] = len(space.chips) - len(state.left())
    state.close(steps[:1], counted, watch, "chips")
    left = len(state.left())
    if left:
        best = int(np.argmin(mean.score(state.lows())))
        last = _most_promising(state, best, goals[1], solver)
        counted.add({last: left - len(state.left())})
    state.close(_further(steps, quick, solver), counted, watch, "chips")
    if not quick and len(state.left()) <= FEW:
        state.close([step for step in steps if step == SEARCHED], counted, watch, "chips")
    rest = state.left()
    if solver is not None and not quick and len(rest):
        watch(f"{LENT}: {len(rest):,} chips")
        for chip in rest.tolist():
            state.solve(chip, solver, goals[1], f"scores {{score!r}}, which is below {goals[1]!r}")
        counted.add({LENT: len(rest) - len(state.left())})
        rest = state.left()
    if len(rest):
        scores = mean.score(state.lows()[:, rest])
        worst = int(np.argmin(scores))
        counted.least, counted.first_open = (
            float(scores[worst]),
            space.chips.words(int(rest[worst])),
        )
    return counted


def _further(steps: Sequence[str], quick: bool, solver: Solver | None) -> Sequence[str]:
    """The steps of all chips after the first: the last one searches schedules chip by chip, in
    place of which a solver may be lent."""
    if quick:
        return steps[1:2]
    return [step for step in steps[1:] if step != SEARCHED or solver is None]


def least_times(
    models: Sequence[Model], space: Space, near: Sequence[float], watch: Watch
) -> tuple[float, ...]:
    """The least batch time of each model alone over all chips of a space, no more than what it
    takes in the answer; of models whose last step is exact."""
    bests = []
    for model, seconds in zip(models, near, strict=True):
        state = start([model], Mean("geometric", (1.0,), (1.0,)), space, seconds)
        state.close(
            model.steps,
            Counted(len(space.chips), space.combinations),
            watch,
            f"chips for {model.name} alone",
        )
        bests.append(min(seconds, float(state.lows().min())))
    return tuple(bests)


def _most_promising(state: Open, chip: int, goal: float, solver: Solver | None) -> str:
    """All steps on one chip, whose bounds are kept; the last that it took, which may be the
    caller's solver."""
    one = np.array([chip])
    alone = Open(
        state.models, state.mean, state.chips.taken(one), state.memory[one],
        np.array([goal * (1 - NEAR)]),
        [bounds[:, one] for bounds in state.bounds],
    )  # fmt: skip
    for step in state.models[0].steps[1:]:
        alone.run(step)
        for every, bounds in zip(state.bounds, alone.bounds, strict=True):
            every[:, one] = bounds
        if not len(alone.left()):
            return step
    require(
        solver is not None, f"nothing shows that {state.chips.words(chip)} scores {goal!r} or more"
    )
    if solver is not None:
        state.solve(chip, solver, goal, f"scores {{score!r}}, which is below {goal!r}")
    return LENT
