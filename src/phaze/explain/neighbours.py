"""The chips next to the answer: one axis one step up or down, all else equal, inside the space or not."""

from dataclasses import dataclass

import numpy as np

from phaze.explain.question import Question, gain, scores_on


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chip one step away; ``refused`` says why it is not in the space; ``gain`` is -1 where a model does not fit."""

    axis: str
    value: float
    chip: str
    area_mm2: float
    refused: str | None
    gain: float


def _places(question: Question) -> list[int]:
    """The chip's place on each axis."""
    values = question.opened.axis_values()
    points = question.job.space.axis_points()
    return [int(np.flatnonzero(axis == values[name][question.number])[0]) for name, axis in points.items()]


def neighbours(question: Question) -> list[Neighbour]:
    """Every neighbour along every axis, its gain computed exactly."""
    points, places = question.job.space.axis_points(), _places(question)
    names, values = tuple(points), tuple(points.values())
    shape = tuple(len(axis) for axis in values)
    steps = [
        (at, place) for at in range(len(names)) for place in (places[at] - 1, places[at] + 1) if 0 <= place < shape[at]
    ]
    if not steps:
        return []
    numbers = [int(np.ravel_multi_index((*places[:at], place, *places[at + 1 :]), shape)) for at, place in steps]
    opened = question.opened.at(numbers)
    chips = [opened.chip(at, question.chip.hbm.size_bytes) for at in range(len(steps))]
    scores = scores_on(question.scale, [(question.job, chip) for chip in chips])
    found = []
    for at, ((axis, place), refused, score) in enumerate(zip(steps, opened.refusals(), scores, strict=True)):
        found.append(
            Neighbour(
                names[axis],
                float(values[axis][place]),
                opened.name(at),
                float(opened.area_mm2[at]),
                refused,
                gain(question.score, score),
            )
        )
    return found
