"""The walk over the boxes of a space: what no score can beat is pruned as a whole, what is left are
chips.

    1  a beam: from the whole space down, the boxes of the best bounds are cut in two until they are
       single chips; with some chips spread over the space they are searched as a small space, which
       gives a first incumbent
    2  the walk: boxes whose bound is above the cut-off are pruned, others cut in two; the tree
       covers the space by construction. First the cheap bound, then the bottleneck table or the
       best cuts for what it leaves
    3  chips that stand alone in a box are left to the search, which goes on as in a small space

The cut-off is that of the first incumbent, so what is pruned depends on neither workers nor
interruptions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.search.boxes.box_bounds import BoxQuestion, box_scores, box_times
from phaze.search.boxes.corners import corners_of
from phaze.search.boxes.grid import Boxes, BoxGrid, halves, joined, trimmed, whole

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
# Boxes bounded in one piece: enough that arrays are long, few enough that they are some MB.
BATCH = 4_096
# Boxes that the beam keeps at each step; more find no better incumbent, and take longer.
BEAM = 256
# The space is cut into so many boxes before any is bounded: larger ones are never pruned.
FIRST = 1_024


@dataclass(slots=True)
class Walked:
    """What a walk found: boxes considered, the least bound of those pruned, combinations of pruned
    boxes whose bound is near the best score, and places of the chips that are left, [chips,
    axes]."""

    places: Integers
    boxes: int = 0
    least: float = float("inf")
    near: float = 0.0


def inside(grid: BoxGrid, boxes: Boxes) -> Boxes:
    """Boxes that may hold a chip of the space, no larger than what fits."""
    boxes = boxes.taken(corners_of(grid, boxes).feasible())
    if not len(boxes):
        return boxes
    boxes = trimmed(grid, boxes)
    return boxes.taken(corners_of(grid, boxes).feasible())


def first_boxes(grid: BoxGrid) -> Boxes:
    """The space in so many boxes that bounds have a chance."""
    boxes, alone = inside(grid, whole(grid)), list[Boxes]()
    while len(boxes) and len(boxes) < FIRST:
        single = boxes.alone
        alone.append(boxes.taken(single))
        boxes = boxes.taken(~single)
        boxes = inside(grid, halves(grid, boxes)) if len(boxes) else boxes
    return joined([boxes, *alone])


def _bounds(question: BoxQuestion, boxes: Boxes, cut: float, near: float) -> Floats:
    """Bounds of boxes, the finer one for what the cheap one leaves open."""
    times = box_times(question, boxes)
    scores = box_scores(question, times, cut, near, np.ones(len(boxes), np.bool_), False)
    left = scores <= cut
    if left.any():
        finer = box_scores(question, times, cut, near, left, True)
        scores = np.maximum(scores, finer)
    return scores


def beam(question: BoxQuestion) -> Integers:
    """Places of the chips that the best bounds lead to, [chips, axes]; some may be none of the
    space."""
    grid = question.grid
    boxes = first_boxes(grid)
    while len(boxes):
        times = box_times(question, boxes)
        scores = box_scores(question, times, 0.0, np.inf, np.ones(len(boxes), np.bool_), False)
        boxes = boxes.taken(np.argsort(scores, kind="stable")[:BEAM])
        single = boxes.alone
        if single.all():
            break
        boxes = joined([boxes.taken(single), inside(grid, halves(grid, boxes.taken(~single)))])
    return boxes.low


def _batches(boxes: Boxes) -> Iterator[Boxes]:
    for start in range(0, len(boxes), BATCH):
        yield boxes.taken(slice(start, start + BATCH))


def chips_left(grid: BoxGrid, pruned: Callable[[Boxes], Flags]) -> Integers:
    """Places of the chips that stand alone in boxes which ``pruned`` leaves, [chips, axes]; others
    are cut in two."""
    waiting, left = list(_batches(first_boxes(grid))), [np.empty((0, len(grid.values)), np.int64)]
    while waiting:
        boxes = waiting.pop()
        while len(boxes) < BATCH and waiting:  # arrays that are long cost less by the box
            boxes = joined([boxes, waiting.pop()])
        if len(boxes) > BATCH:
            waiting.append(boxes.taken(slice(BATCH, None)))
            boxes = boxes.taken(slice(0, BATCH))
        boxes = boxes.taken(~pruned(boxes))
        single = boxes.alone
        left.append(boxes.low[single])
        boxes = boxes.taken(~single)
        if len(boxes):
            split = inside(grid, halves(grid, boxes))
            waiting += list(_batches(split)) if len(split) else []
    return np.concatenate(left)


def walk(question: BoxQuestion, cut: float, near: float) -> Walked:
    """Prune the boxes of a space against a cut-off; ``near``: up to which score bounds of pruned
    boxes matter."""
    walked = Walked(np.empty((0, len(question.grid.values)), np.int64))

    def pruned(boxes: Boxes) -> Flags:
        walked.boxes += len(boxes)
        scores = _bounds(question, boxes, cut, near)
        out = scores > cut
        walked.least = min(walked.least, float(scores[out].min(initial=np.inf)))
        walked.near += float(boxes.taken(out & (scores <= near)).sizes.sum())
        return np.asarray(out)

    walked.places = chips_left(question.grid, pruned)
    return walked
