"""A front of a space that is searched in boxes: designs of some chips, then what boxes leave
beside them.

1  a coarse grid, some values of each axis, is a small space with a front; from its designs a climb:
   the front of all chips a step away along one axis or two, until it is the same, or some rounds
   are over
2  the walk over boxes (:mod:`phaze.search.boxes.walk`): what these designs close as a whole is
   pruned (:mod:`phaze.front.box_designs`), what is left are chips; a journal keeps both
3  the front of these chips and the designs that boxes were held against. Those are evaluated first,
   so that what a box was pruned by is a design of the front, or beaten by one

In journals chips are called by the number of their combination, units by memory * combinations +
that.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.front.box_designs import FrontBoxes
from phaze.front.state import FrontState
from phaze.search.boxes.box_bounds import BoxQuestion
from phaze.search.boxes.grid import BoxGrid, numbers_of
from phaze.search.boxes.opening import chips_numbered, unlooked
from phaze.search.boxes.searching import NOTE, steps_from
from phaze.search.boxes.walk import chips_left
from phaze.search.chips import SpaceChips
from phaze.search.deadline import Deadline, OutOfTime
from phaze.search.evaluated import Evaluated
from phaze.search.journal import Journal, PrunedChip
from phaze.search.state import BoxedChips

Integers = NDArray[np.int64]
# Combinations of the coarse grid: its front takes about as long as the walk.
COARSE = 1 << 15
# Rounds of a climb; each moves every axis by a step at the most.
ROUNDS = 8
# How near to another a design may be that the climb leaves out: the front of what boxes leave has
# them all.
NEARLY = 0.002
Place = tuple[int, int]
"""A unit by its memory and the number of its combination."""
# A front of chips: which, where evaluated ones are kept, units to evaluate first, the gap, whether
# it is the answer.
FrontChips = Callable[[SpaceChips, Journal | None, list[int], float, bool], FrontState]


@dataclass(slots=True)
class UnitJournal:
    """A journal by the numbers of units in documents, for a front that has some chips of a space by
    place."""

    journal: Journal
    chips: SpaceChips
    combinations: int

    def evaluated(self) -> dict[int, Evaluated]:
        """Every unit evaluated so far that is one of them."""
        units = {}
        for number, result in self.journal.evaluated().items():
            memory, combination = divmod(number, self.combinations)
            if (index := self.chips.index_of(combination)) is not None:
                unit = memory * len(self.chips) + index
                units[unit] = replace(result, chip=unit)
        return units

    def named(self, unit: int) -> int:
        """What documents call a unit."""
        memory, index = divmod(unit, len(self.chips))
        return memory * self.combinations + self.chips.number(index)

    def add(self, results: Iterable[Evaluated]) -> None:
        """Keep a round."""
        self.journal.add(replace(result, chip=self.named(result.chip)) for result in results)

    def note(self, key: str, text: str) -> None:
        """Keep a text."""
        self.journal.note(key, text)

    def noted(self, key: str) -> str | None:
        """A text that was kept."""
        return self.journal.noted(key)


@dataclass(slots=True)
class _Remembered:
    """What a climb has evaluated, so that a round does not do it again."""

    rows: dict[int, Evaluated] = field(default_factory=dict)

    def evaluated(self) -> dict[int, Evaluated]:
        return self.rows

    def add(self, results: Iterable[Evaluated]) -> None:
        self.rows |= {result.chip: result for result in results}

    def note(self, key: str, text: str) -> None:
        raise AssertionError("a climb has no note")

    def noted(self, key: str) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class _Left:
    """What a walk leaves: the designs that it held boxes against, and chips by number."""

    designs: tuple[Place, ...]
    numbers: tuple[int, ...]

    def document(self) -> dict[str, Any]:
        return {"designs": self.designs, "numbers": self.numbers}

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "_Left":
        designs = tuple((int(memory), int(number)) for memory, number in document["designs"])
        return cls(designs, tuple(int(number) for number in document["numbers"]))


def front_boxes(
    question: BoxQuestion,
    against: Callable[[FrontState, Deadline], FrontBoxes],
    front_chips: FrontChips,
    journal: Journal | None,
) -> FrontState:
    """The front; ``against`` holds boxes against the designs of a state, until a moment. Where the
    time is up before all boxes are bounded, it is that of the coarse grid, all other chips open."""
    grid, left = question.grid, _noted(journal)
    if left is None:
        climb, gap = _Remembered(), max(question.job.gap, NEARLY)
        first = _of(
            grid, front_chips, climb, coarse(grid.shape, COARSE), gap, question.deadline.is_set
        )
        if first.stopped:
            return _unlooked(question, first)
        try:
            top = _climbed(grid, front_chips, climb, first, gap)
            places = chips_left(grid, against(top, first.deadline).pruned)
        except OutOfTime:
            first.stopped = True
            return _unlooked(question, first)
        left = _Left(designs_of(top), tuple(numbers_of(grid, places).tolist()))
        if not left.designs and not left.numbers:
            return _unlooked(question, first)
        if journal is not None:
            journal.note(NOTE, json.dumps(left.document(), separators=(",", ":")))
    numbers = np.array([*left.numbers, *(number for _, number in left.designs)], np.int64)
    chips = chips_numbered(grid.space, numbers, grid.factors)
    designs = [(memory, chips.index_of(number)) for memory, number in left.designs]
    units = [memory * len(chips) + index for memory, index in designs if index is not None]
    unit_journal = None if journal is None else UnitJournal(journal, chips, prod(grid.shape))
    state = front_chips(chips, unit_journal, units, question.job.gap, True)
    done = [state.evaluated.get(unit) for unit in units]
    # Without the designs that closed them boxes are as if nobody had looked.
    whole = all(result is not None and not result.error for result in done)
    state.boxed = BoxedChips(chips.total - len(chips)) if whole else unlooked(chips)
    return state


def _of(
    grid: BoxGrid,
    front_chips: FrontChips,
    climb: _Remembered,
    numbers: Integers,
    gap: float,
    last: bool = False,
) -> FrontState:
    """The front of some chips by number; ``last``: it may be the answer."""
    chips = chips_numbered(grid.space, numbers, grid.factors, counted=False)
    return front_chips(chips, UnitJournal(climb, chips, prod(grid.shape)), [], gap, last)


def _climbed(
    grid: BoxGrid, front_chips: FrontChips, climb: _Remembered, first: FrontState, gap: float
) -> FrontState:
    """A front that no chip a step away changes by more than a gap, or that some rounds found."""
    top, looked = first, coarse(grid.shape, COARSE)
    for _ in range(ROUNDS if len(first.archive.numbers) else 0):
        on_front = np.unique([number for _, number in designs_of(top)])
        places = np.stack(np.unravel_index(on_front, grid.shape), axis=1)
        near = np.unique(
            numbers_of(grid, np.concatenate([steps_from(place, grid.shape) for place in places]))
        )
        fresh = np.setdiff1d(near, looked)
        if not len(fresh):
            break
        state = _of(grid, front_chips, climb, np.union1d(on_front, fresh), gap)
        if designs_of(state) == designs_of(top):
            break
        top, looked = state, np.union1d(looked, fresh)
    return top


def coarse(shape: tuple[int, ...], most: int) -> Integers:
    """Combinations by number of some values of each axis; the longest axes lose most."""
    places = [np.arange(length) for length in shape]
    while prod(len(values) for values in places) > max(1, most):
        longest = max(range(len(places)), key=lambda axis: len(places[axis]))
        values = places[longest]
        places[longest] = values[np.linspace(0, len(values) - 1, len(values) // 2).astype(np.int64)]
    every = np.stack(np.meshgrid(*places, indexing="ij")).reshape(len(shape), -1)
    return np.asarray(np.ravel_multi_index(tuple(every), shape), np.int64)


def named_units(state: FrontState, closed: Sequence[PrunedChip]) -> Iterator[PrunedChip]:
    """Units as a journal calls them."""
    chips, count = state.chips, len(state.chips)
    if chips.numbers is None:
        yield from closed
        return
    combinations = prod(len(axis) for axis in state.job.space.axis_points().values())
    for unit in closed:
        yield unit._replace(
            chip=unit.chip // count * combinations + chips.number(unit.chip % count)
        )


def designs_of(state: FrontState) -> tuple[Place, ...]:
    """The units of a front's designs, each once."""
    units = np.unique(state.archive.numbers // state.span)
    pairs = [state.place(int(unit)) for unit in units]
    return tuple(sorted((memory, state.chips.number(chip)) for chip, memory in pairs))


def _unlooked(question: BoxQuestion, first: FrontState) -> FrontState:
    """A front of some chips, all others of the space open."""
    grid, numbers = question.grid, first.chips.numbers
    first.job = question.job
    first.chips = chips_numbered(
        grid.space, np.empty(0, np.int64) if numbers is None else numbers, grid.factors
    )
    first.boxed = unlooked(first.chips)
    return first


def _noted(journal: Journal | None) -> _Left | None:
    """What a journal has of a walk that ended."""
    text = None if journal is None else journal.noted(NOTE)
    try:
        return None if text is None else _Left.read(json.loads(text))
    except (ValueError, TypeError, KeyError):
        return None  # what cannot be read is walked again
