"""A search of a space in boxes: a first incumbent from some chips, then what boxes leave below it,
chip by chip.

1  chips that the best bounds lead to and some spread over the space are searched as a small space;
   from the best of them a climb: all chips one step away along one axis or two, until none of them
   is better
2  the walk (:mod:`phaze.search.boxes.walk`) against that score; a journal keeps what it leaves, so
   that a search that goes on does not do it again
3  the search of what is left
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from phaze.search.boxes.box_bounds import BoxQuestion
from phaze.search.boxes.grid import numbers_of
from phaze.search.boxes.opening import (
    Left,
    chips_numbered,
    first_chips,
    left_chips,
    left_of,
    unlooked,
)
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.search.deadline import OutOfTime
from phaze.search.journal import Journal, NumberedJournal
from phaze.search.state import SearchState

Integers = NDArray[np.int64]
# A search of chips: which, where evaluated ones are kept, and the score of a design that is known
# to be among them.
SearchChips = Callable[[SpaceChips, Journal | None, float], SearchState]
# What a journal calls the chips that a walk left.
NOTE = "boxes"
# Rounds of a climb; each moves every axis by a step at the most, and few have more than a dozen.
ROUNDS = 12


@dataclass(frozen=True, slots=True)
class Incumbent:
    """The best chip known so far, by the number of its combination, and its score."""

    number: int
    score: float


def search_boxes(
    question: BoxQuestion, search_chips: SearchChips, journal: Journal | None
) -> SearchState:
    """The search; where the time is up before all boxes are bounded, the state is that of the first
    chips."""
    left = _noted(journal)
    if left is None:
        outcome = _walked(question, search_chips, journal)
        if isinstance(outcome, SearchState):
            return outcome
        left = outcome
    chips, boxed = left_of(question, left)
    state = search_chips(
        chips, None if journal is None else NumberedJournal(journal, chips), left.score
    )
    state.boxed = boxed
    return state


def _walked(
    question: BoxQuestion, search_chips: SearchChips, journal: Journal | None
) -> Left | SearchState:
    """What the walk leaves, or where there is nothing to walk against the state that says why."""
    job, some = question.job, first_chips(question)
    first = search_chips(some, None, float("inf"))
    best = min(
        first.evaluated.values(), key=lambda result: (result.score, result.chip), default=None
    )
    if first.stopped:
        return _unlooked(question, first)
    if best is None or not best.ran:
        # What fits hardly depends on the chip: then there is nothing that boxes could beat.
        if len(some) and not job.space.memory_limited:
            return _unlooked(question, first)
        return search_chips(enumerate_space(job.space), journal, float("inf"))
    try:
        top = climbed(question, search_chips, Incumbent(some.number(best.chip), best.score))
        left = left_chips(question, top.score, first.cut_at(top.score), top.number)
    except OutOfTime:
        first.stopped = True
        return _unlooked(question, first)
    if journal is not None:
        journal.note(NOTE, json.dumps(left.document(), separators=(",", ":")))
    return left


def _unlooked(question: BoxQuestion, first: SearchState) -> SearchState:
    """The state of the first chips, all others of the space open."""
    numbers = first.chips.numbers
    grid = question.grid
    first.chips = chips_numbered(
        grid.space, np.empty(0, np.int64) if numbers is None else numbers, grid.factors
    )
    first.boxed = unlooked(first.chips)
    return first


def _noted(journal: Journal | None) -> Left | None:
    """What a journal has of a walk that ended."""
    text = None if journal is None else journal.noted(NOTE)
    try:
        return None if text is None else Left.read(json.loads(text))
    except (ValueError, TypeError, KeyError):
        return None  # a walk takes seconds: what cannot be read is walked again


def steps_from(places: Integers, shape: tuple[int, ...]) -> Integers:
    """The places one step away along one axis or along two, [chips, axes]."""
    moves = [(axis, step) for axis, length in enumerate(shape) if length > 1 for step in (-1, 1)]
    pairs = [(first, other) for first, other in combinations(moves, 2) if first[0] != other[0]]
    neighbours = []
    for steps in (*((move,) for move in moves), *pairs):
        place = places.copy()
        for axis, step in steps:
            place[axis] += step
        neighbours.append(place)
    rows = np.array(neighbours, np.int64).reshape(-1, len(shape))
    return np.asarray(rows[((rows >= 0) & (rows < np.array(shape))).all(axis=1)])


def climbed(question: BoxQuestion, search_chips: SearchChips, top: Incumbent) -> Incumbent:
    """A chip that none a step away beats, from one that is known."""
    grid = question.grid
    for _ in range(ROUNDS):
        near = steps_from(np.array(np.unravel_index(top.number, grid.shape), np.int64), grid.shape)
        numbers = (
            np.append(numbers_of(grid, near), top.number) if len(near) else np.array([top.number])
        )
        chips = chips_numbered(grid.space, numbers, grid.factors, counted=False)
        state = search_chips(chips, None, top.score)
        best = min(
            state.evaluated.values(), key=lambda result: (result.score, result.chip), default=None
        )
        if best is None or not best.ran or best.score >= top.score:
            break
        top = Incumbent(chips.number(best.chip), best.score)
    return top
