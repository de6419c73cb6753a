"""The chips next to the answer: one axis one step up or down, all else equal, inside the space or
not."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.explain.question import ExplainedRun, gain, scores_on
from phaze.search.chips import SpaceChips


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A chip one step away; ``refused`` says why it is not in the space; ``gain`` is -1 where a
    model does not fit. ``here`` is what the answer has of the axis, ``over`` the share by which it
    exceeds its limit of area, power or price, 0 where it exceeds none."""

    axis: str
    value: float
    chip: str
    area_mm2: float
    refused: str | None
    gain: float
    over: float
    here: float


NEAR, WORTH = 0.1, 0.005
"""A near miss exceeds a limit by at most a tenth (dies that the constants have not seen are off by
more, ``phaze validate --silicon``) and gains half a percent, more than ties and roundings do."""


def near_misses(rows: Sequence[Neighbour]) -> list[Neighbour]:
    """Better chips one step away that a limit of the space refuses by little, the most gain
    first."""
    refused = [row for row in rows if row.refused and 0 < row.over <= NEAR and row.gain >= WORTH]
    return sorted(refused, key=lambda row: -row.gain)


def _over(question: ExplainedRun, chips: SpaceChips) -> NDArray[np.float64]:
    """By how much each chip exceeds the limits of the space, as a share of them."""
    limits, most = question.job.space.limits, question.job.hbm_bytes[-1]
    over = chips.area_mm2 / question.chips.area_budget() - 1
    for limit, column in (
        (limits["power"], chips.design_w()),
        (limits["usd"], chips.making_usd(most)),
    ):
        over = over if limit is None else np.maximum(over, column / limit - 1)
    return np.maximum(over, 0.0)


def _places(question: ExplainedRun) -> list[int]:
    """The chip's place on each axis."""
    values = question.chips.axis_values()
    points = question.job.space.axis_points()
    return [
        int(np.flatnonzero(axis == values[name][question.number])[0])
        for name, axis in points.items()
    ]


def _scores(question: ExplainedRun, space_chips: SpaceChips) -> list[float]:
    """The score of each chip; infinite where leakage, HBM and links alone draw more than the chip
    may: it holds no clock, so nothing runs on it."""
    scores = [np.inf] * len(space_chips)
    running = [int(index) for index in np.flatnonzero(space_chips.held_hz > 0)]
    if not running:
        return scores
    chips = [space_chips.chip(index, question.chip.hbm.size_bytes) for index in running]
    priced = scores_on(question.scale, [(question.job, chip) for chip in chips])
    for index, score in zip(running, priced, strict=True):
        scores[index] = score
    return scores


def neighbours(question: ExplainedRun) -> list[Neighbour]:
    """Every neighbour along every axis, its gain computed exactly."""
    points, places = question.job.space.axis_points(), _places(question)
    names, values = tuple(points), tuple(points.values())
    shape = tuple(len(axis) for axis in values)
    steps = [
        (index, place)
        for index in range(len(names))
        for place in (places[index] - 1, places[index] + 1)
        if 0 <= place < shape[index]
    ]
    if not steps:
        return []
    numbers = [
        int(np.ravel_multi_index((*places[:index], place, *places[index + 1 :]), shape))
        for index, place in steps
    ]
    chips = question.chips.at(numbers)
    scores = _scores(question, chips)
    rows, over = [], _over(question, chips)
    for index, ((axis, place), refused, score) in enumerate(
        zip(steps, chips.refusals(), scores, strict=True)
    ):
        rows.append(
            Neighbour(
                names[axis],
                float(values[axis][place]),
                chips.name(index),
                float(chips.area_mm2[index]),
                refused,
                gain(question.score, score),
                float(over[index]),
                float(values[axis][places[axis]]),
            )
        )
    return rows
