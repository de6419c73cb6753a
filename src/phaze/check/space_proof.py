"""Every chip of a space: nothing scores below the bound of a certificate.

Chips are bounded by ever sharper and dearer steps, those of a model (:mod:`.model`), until their
bound is reached. The chip that looks best after the first step goes through all of them before any
other: a false claim falls there. No list of chips, reason or count is read; what is proved is
counted here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np
from numpy.typing import NDArray

from .chips import Chips
from .energy import Goals, Shown
from .means import Mean
from .model import Model
from .reading import require
from .space import Space

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
ROUNDING = 1e-9
"""Scores are sums in another order than phaze has them."""
Watch = Callable[[str], None]
Solver = Callable[[int, int], Sequence[Sequence[Sequence[float]]]]
"""Of a chip with a memory what every model takes, for each of its plans that count the values of
all that counts, by a solver of the caller's own: what he trusts it with is his affair."""
LENT = "the caller's own solver"
SEARCHED = "schedules"
"""The step whose place such a solver takes, but on the chip that looks best and on a few."""
FEW = 4
"""Chips that are searched although a solver is lent: seconds each."""
Near = tuple[tuple[float, ...], ...]
"""Of several models what each takes on a good chip, [models, kinds]."""


@dataclass(slots=True)
class Counted:
    """How many chips each step closed, and the score that none is shown to undercut;
    ``by_memory``: each chip once for every memory."""

    chips: int
    combinations: int
    least: float = 0.0
    closed: dict[str, int] = field(default_factory=dict)
    first_open: str = ""
    boxes: int = 0
    by_memory: bool = False

    def add(self, closed: Mapping[str, int]) -> None:
        """What further steps closed."""
        for step, count in closed.items():
            self.closed[step] = self.closed.get(step, 0) + count


@dataclass(slots=True)
class Open:
    """Chips on their way through the steps, each with its goals: what is shown of every model's
    configurations.

    ``means``: how the models count together, by what counts. ``near``: of several models what each
    takes in the answer [models, kinds]: how far it is bounded while nothing is known of the others.
    """

    models: Sequence[Model]
    means: Sequence[Mean]
    chips: Chips
    memory: Integers
    goals: Goals
    shown: list[Shown]
    near: Near = ()

    def lows(self) -> Floats:
        """What no configuration undercuts, [kinds, models, chips]."""
        return np.stack([shown.values.min(axis=0) for shown in self.shown], axis=1)

    def scores(self) -> Floats:
        """What no chip undercuts, [kinds, chips]."""
        lows = self.lows()
        return np.stack([mean.score(low) for mean, low in zip(self.means, lows, strict=True)])

    def left(self) -> Integers:
        """Chips with a corner that none of their plans is shown to leave."""
        corners, scores = self.goals.corners, self.scores()
        reached = (scores[:, None, :] >= corners).any(axis=0)
        for shown in self.shown:
            reached |= shown.corners.all(axis=0)
        return np.flatnonzero((self.goals.open & ~reached).any(axis=0))

    def run(self, step: str) -> None:
        """One step over the chips that are left."""
        for number, values in enumerate(self.near):
            # Without times of the others a model would be bounded without end.
            index = self.left()
            index = index[self.lows()[0, number, index] == 0]
            corners = np.repeat(np.array(values)[:, None, None], len(index), axis=2)
            goals = Goals(corners, np.ones(corners.shape[1:], bool))
            self._bound(number, index, goals, step, False)
        for number in range(len(self.models)):
            index = self.left()
            self._bound(number, index, self._goals_of(number, index), step, True)

    def _goals_of(self, number: int, index: Integers) -> Goals:
        """What a model must not reach on some chips, all others at what none of them undercuts."""
        lows, goals = self.lows()[:, :, index], self.goals.taken(index)
        corners = [
            mean.threshold(low, number, goal)
            for mean, low, goal in zip(self.means, lows, goals.corners, strict=True)
        ]
        # Room for rounding: what reaches the threshold must bring the score to its goal.
        several = len(self.models) > 1
        return replace(goals, corners=np.stack(corners) * (1 + ROUNDING * several))

    def _bound(self, number: int, index: Integers, goals: Goals, step: str, of_proof: bool) -> None:
        """Sharpen what is shown of one model on some chips, as far as its goals, which are those of
        the proof or others."""
        if not len(index):
            return
        known = self.shown[number].taken(index)
        if not of_proof:
            known = Shown(known.values, np.zeros((len(known.values), 1, len(index)), bool))
        chips, memory = self.chips.taken(index), self.memory[index]
        more = self.models[number].bounds(chips, memory, goals, step, known)
        if not of_proof:
            more = Shown(more.values, self.shown[number].corners[:, :, index])
        self.shown[number].sharpen(np.arange(len(known.values)), index, more)

    def close(self, steps: Sequence[str], counted: "Counted", watch: Watch, what: str) -> None:
        """Some steps one after the other, and how many chips each closed."""
        for step in steps:
            before = len(self.left())
            if before:
                watch(f"{step}: {before:,} {what}")
                self.run(step)
            counted.add({step: before - len(self.left())})

    def solve(
        self, chip: int, values: Sequence[Sequence[Sequence[float]]], goal: Floats, sentence: str
    ) -> None:
        """One chip by what a solver of the caller's own says that each model's plans take;
        ``sentence``: what is wrong where some leave corners [kinds, corners]."""
        beaten = np.zeros(len(self.goals.open), bool)
        for scores in _together(values, self.means):
            inside = (scores[:, None] < goal * (1 - ROUNDING)).all(axis=0)
            words = f"{self.chips.words(chip)} {sentence.format(score=float(scores[0]))}"
            require(not inside.any(), words)
            beaten |= (scores[:, None] < self.goals.corners[:, :, chip]).all(axis=0)
        for shown, plans in zip(self.shown, values, strict=True):
            least = np.min(np.array([*plans, [np.inf] * len(self.means)], float), axis=0)
            shown.values[:, :, chip] = np.maximum(shown.values[:, :, chip], least)
            shown.corners[:, ~beaten, chip] = True


def _together(
    values: Sequence[Sequence[Sequence[float]]], means: Sequence[Mean]
) -> Iterator[Floats]:
    """The scores of every way to run the models, a plan of each."""
    for plans in product(*values):
        table = np.array(plans, float)
        yield np.array([float(mean.score(table[:, [kind]])[0]) for kind, mean in enumerate(means)])


def start(
    models: Sequence[Model],
    means: Sequence[Mean],
    space: Space,
    goals: Goals,
    near: Near = (),
) -> Open:
    """All chips of a space with nothing shown; those without a memory are none."""
    there = space.memory >= 0
    require(bool(there.any()), "no chip may have a memory of the problem")
    shown = []
    for model in models:
        values = np.zeros((model.configurations, len(means), len(there)))
        values[:, :, ~there] = np.inf
        corners = np.zeros((model.configurations, *goals.open.shape), bool)
        shown.append(Shown(values, corners))
    several = near if len(models) > 1 else ()
    return Open(models, means, space.chips, space.memory, goals, shown, several)


def one_goal(goal: Floats) -> Goals:
    """For every chip one value that none of its plans may undercut."""
    return Goals(goal[None, None], np.ones((1, len(goal)), bool))


def prove(
    models: Sequence[Model], mean: Mean, space: Space, bounds: tuple[float, float],
    watch: Watch, quick: bool = False, solver: Solver | None = None,
    near: Near = (),
) -> Counted:  # fmt: skip
    """Every chip and configuration against the first of ``bounds``; refuses where the chip that
    looks best is not shown to reach the second. ``quick`` stops before mappings; chips that no step
    closes are given to ``solver``, if any. ``near``: about what each model takes on good chips; any
    values give bounds that hold, these few rows."""
    goals, steps = one_goal(np.full(len(space.chips), bounds[0] * (1 - ROUNDING))), models[0].steps
    state = start(models, [mean], space, goals, near)
    counted = Counted(len(space.chips), space.combinations, bounds[0], dict.fromkeys(steps, 0))
    counted.closed[steps[0]] = len(space.chips) - len(state.left())
    state.close(steps[:1], counted, watch, "chips")
    left = len(state.left())
    if left:
        last = _most_promising(state, space, bounds[1], solver)
        counted.add({last: left - len(state.left())})
    state.close(_further(steps, quick, solver), counted, watch, "chips")
    if not quick and len(state.left()) <= FEW:
        state.close([step for step in steps if step == SEARCHED], counted, watch, "chips")
    rest = state.left()
    if solver is not None and not quick and len(rest):
        watch(f"{LENT}: {len(rest):,} chips")
        for chip in rest.tolist():
            _lend(state, chip, space, solver, bounds[1])
        counted.add({LENT: len(rest) - len(state.left())})
        rest = state.left()
    if len(rest):
        scores = state.scores()[0, rest]
        worst = int(np.argmin(scores))
        counted.least = float(scores[worst])
        counted.first_open = space.chips.words(int(rest[worst]))
    return counted


def _further(steps: Sequence[str], quick: bool, solver: Solver | None) -> Sequence[str]:
    """The steps of all chips after the first: the last one searches schedules chip by chip, in
    place of which a solver may be lent."""
    if quick:
        return steps[1:2]
    return [step for step in steps[1:] if step != SEARCHED or solver is None]


def _lend(state: Open, chip: int, space: Space, solver: Solver, goal: float) -> None:
    """One chip by the caller's own solver."""
    values = solver(int(space.number[chip]), int(space.memory[chip]))
    sentence = f"scores {{score!r}}, which is below {goal!r}"
    state.solve(chip, values, np.array([[goal]]), sentence)


def _most_promising(state: Open, space: Space, goal: float, solver: Solver | None) -> str:
    """All steps on the chip that looks best, and what they show of it; the last that it took, which
    may be the caller's solver."""
    chip = int(np.argmin(state.scores()[0]))
    index = np.array([chip])
    alone = Open(
        state.models, state.means, state.chips.taken(index), state.memory[index],
        one_goal(np.array([goal * (1 - ROUNDING)])), [shown.taken(index) for shown in state.shown],
        state.near,
    )  # fmt: skip
    for step in state.models[0].steps[1:]:
        alone.run(step)
        for shown, more in zip(state.shown, alone.shown, strict=True):
            shown.values[:, :, index] = more.values
        if not len(alone.left()):
            return step
    words = f"nothing shows that {state.chips.words(chip)} scores {goal!r} or more"
    require(solver is not None, words)
    if solver is not None:
        _lend(state, chip, space, solver, goal)
    return LENT
