"""The chips next to the answer: one axis one step up or down, all else equal, inside the space or not."""

from dataclasses import dataclass

import numpy as np

from phaze.explain.question import Question, gain, score_on
from phaze.search.chips import SpaceChips
from phaze.search.keep import Kept, combinations_at, refusals
from phaze.search.space import FIELDS, grid_of


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chip one step away; ``refused`` says why it is not in the space; ``gain`` is -1 where a model does not fit."""

    axis: str
    value: float
    chip: str
    area_mm2: float
    refused: str | None
    gain: float


def _places(question: Question) -> tuple[tuple[str, ...], list[int], tuple[int, ...]]:
    """The axes, the chip's place on each, and how long each is."""
    grid, chips = grid_of(question.job.space), question.opened.chips
    fields = dict(zip(FIELDS, chips.__slots__, strict=True))
    places = [
        int(np.flatnonzero(axis == getattr(chips, fields[name])[question.number])[0])
        for name, axis in zip(grid.names, grid.values, strict=True)
    ]
    return grid.names, places, tuple(len(axis) for axis in grid.values)


def neighbours(question: Question) -> list[Neighbour]:
    """Every neighbour along every axis, its gain computed exactly."""
    names, places, shape = _places(question)
    space, values = question.job.space, grid_of(question.job.space).values
    steps = [
        (at, place) for at in range(len(names)) for place in (places[at] - 1, places[at] + 1) if 0 <= place < shape[at]
    ]
    if not steps:
        return []
    numbers = [int(np.ravel_multi_index((*places[:at], place, *places[at + 1 :]), shape)) for at, place in steps]
    chips = combinations_at(space, numbers)
    opened = SpaceChips(space, question.opened.base, question.opened.technology, Kept(chips, 0, 0, 0))
    found = []
    for at, ((axis, place), refused) in enumerate(zip(steps, refusals(space, chips), strict=True)):
        score = score_on(question.job, question.scale, opened.chip(at, question.chip.hbm.size_bytes))
        found.append(
            Neighbour(
                names[axis],
                float(values[axis][place]),
                opened.name(at),
                float(chips.area_mm2[at]),
                refused,
                gain(question.score, score),
            )
        )
    return found
