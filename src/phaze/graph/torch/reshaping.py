"""Sizes of one rank's part of a tensor after its code has reshaped, split or sliced it.

An axis of ``size`` elements is split as (outer, size / outer): every one of ``outer`` stacked parts
is cut into ``ratio`` pieces, and this rank has one of each. A reshape moves the cut to the axis of
the result that begins inside the cut axis at its outer part:

    (tokens, 3 heads width) with outer 3   ->   (tokens, 3, heads / ratio, width)
    (tokens, heads width)                  ->   (tokens, heads / ratio, width)
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from phaze.errors import PhazeError

Shape = tuple[int, ...]


class Unsplit(PhazeError):
    """What cannot be split over ranks: the reason, with the line of the user's file."""


def aligned(before: Sequence[int], after: Sequence[int]) -> Iterator[tuple[range, range]]:
    """Smallest runs of axes of two shapes with the same number of elements."""
    i = j = 0
    while i < len(before) or j < len(after):
        first_i, first_j = i, j
        left = right = 1
        if i < len(before):
            left, i = left * before[i], i + 1
        if j < len(after):
            right, j = right * after[j], j + 1
        while left != right:
            if left < right and i < len(before):
                left, i = left * before[i], i + 1
            elif j < len(after):
                right, j = right * after[j], j + 1
            else:
                raise Unsplit(f"a tensor of {tuple(before)} does not reshape to {tuple(after)}")
        yield range(first_i, i), range(first_j, j)


def reshaped(
    whole: Shape, after: Shape, part: Shape, outer: dict[int, int]
) -> tuple[Shape, dict[int, int]]:
    """The shape of this rank's result where the whole ``whole`` becomes ``after`` and this rank has
    ``part``; and by axis of the result the number of stacked parts before its cut, where that is
    not 1."""
    result, stacked = list(after), dict[int, int]()
    for axes, results in aligned(whole, after):
        for axis in axes:
            if part[axis] == whole[axis]:
                continue
            begin = math.prod(whole[a] for a in axes if a < axis) * outer.get(axis, 1)
            if part[axis] == 0 or whole[axis] % part[axis]:
                result[_axis_after(whole[axis], begin, results, after)] = part[axis]
                continue
            ratio = whole[axis] // part[axis]
            place = _place(begin, ratio, [after[a] for a in results])
            if place is None:
                raise Unsplit(f"reshaping {whole} to {after} mixes what is split with what is not")
            target, parts = results[place[0]], place[1]
            result[target] //= ratio
            if parts > 1:
                stacked[target] = parts
    return tuple(result), stacked


def _axis_after(size: int, begin: int, results: range, after: Shape) -> int:
    """The axis of the result that is an unevenly split axis as it was."""
    before = 1
    for axis in results:
        if before == begin and after[axis] == size:
            return axis
        before *= after[axis]
    raise Unsplit(f"an axis of {size} is split unevenly")


def _place(begin: int, ratio: int, sizes: Sequence[int]) -> tuple[int, int] | None:
    """The axis of ``sizes`` in which the element ``begin`` lies, and how many parts of it come
    before the cut."""
    before = 1
    for index, size in enumerate(sizes):
        if before <= begin < before * size:
            parts = begin // before
            fits = begin % before == 0 and size % parts == 0 and (size // parts) % ratio == 0
            return (index, parts) if fits else None
        before *= size
    return None


def sliced(index: Any, whole: Shape, part: Shape) -> Any:
    """An index into the whole tensor as one into this rank's part: bounds of slices along a split
    axis are scaled."""
    steps = list(index) if isinstance(index, tuple) else [index]
    if not all(step is None or step is Ellipsis or isinstance(step, int | slice) for step in steps):
        return index
    if Ellipsis in steps:
        place = steps.index(Ellipsis)
        missing = len(whole) - sum(step is not None and step is not Ellipsis for step in steps)
        steps[place : place + 1] = [slice(None)] * missing
    axis, scaled = 0, list[Any]()
    for step in steps:
        if step is None:
            scaled.append(step)
            continue
        scaled.append(step if part[axis] == whole[axis] else _scaled(step, whole[axis], part[axis]))
        axis += 1
    return tuple(scaled)


def _scaled(step: Any, whole: int, part: int) -> slice:
    if isinstance(step, int):
        raise Unsplit("one element is taken of what is split")
    start, stop, stride = step.indices(whole)
    if stride != 1 or part == 0 or whole % part or start % (ratio := whole // part) or stop % ratio:
        raise Unsplit(f"the slice {start}:{stop} does not divide over the ranks")
    return slice(start // ratio, stop // ratio)


def pieces(whole: Shape, parts: Sequence[Shape], local: Shape, axis: int) -> list[int]:
    """The sizes of this rank's parts of a tensor that is split along ``axis`` by its code."""
    sizes = [part[axis] for part in parts]
    if local[axis] == whole[axis]:
        return sizes
    ratio = whole[axis] // max(1, local[axis])
    if any(size % ratio for size in sizes):
        raise Unsplit(f"parts of {sizes} do not divide over {ratio} ranks")
    return [size // ratio for size in sizes]


def broadcast_axes(shape: Shape, result: Shape) -> list[int] | None:
    """By axis of ``shape``, the axis of ``result`` that it broadcasts to; None where it does
    not."""
    shift = len(result) - len(shape)
    if shift < 0 or any(size not in (1, result[axis + shift]) for axis, size in enumerate(shape)):
        return None
    return [axis + shift for axis in range(len(shape))]
