r"""Which design beats which. Values are compared in steps of 2^-30 of themselves, so that rounding
decides nothing:

    q(v) = the bits of v without the last 22 of its mantissa,     v <= w  implies  q(v) <= q(w)
    p beats u       q(p_k) <= q(u_k) in every metric k, and less in one, or p has the lower number
    p closes u      p beats every design whose values are no less than the lower bounds l of u

The first is an order in which no two designs are equal, so the front, all designs that none beats,
is one set, whatever order designs are considered. With a gap g > 0, p closes u when q(p_k) <= q(l_k
/ (1 - g)) in the metrics of a run, and q(p_k) <= q(l_k) in the others.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
DROPPED = 22
"""Bits of the mantissa: what is left are steps of 2^-30 of a value."""


def steps(values: Floats) -> Integers:
    """q of values that are not negative."""
    return np.asarray(np.ascontiguousarray(values, np.float64).view(np.int64) >> DROPPED)


def beaten(points: Integers, numbers: Integers, others: Integers, their: Integers) -> Flags:
    """Which of ``others`` [metrics, others] some of ``points`` [metrics, points] beats; both in
    steps."""
    flags = np.zeros(others.shape[1], np.bool_)
    for index in range(points.shape[1]):
        point = points[:, index][:, None]
        below = (point <= others).all(axis=0)
        same = below & (point == others).all(axis=0)
        flags |= below & ~(same & (numbers[index] >= their))
    return flags


def closed(
    points: Integers, numbers: Integers, lower: Floats, their: Integers, run: Flags, gap: float
) -> Flags:
    """Which designs of lower bounds ``lower`` [metrics, designs] some point closes; ``run`` are
    metrics of a run."""
    if gap == 0.0:
        return beaten(points, numbers, steps(lower), their)
    raised = steps(np.where(run[:, None], lower / (1 - gap), lower))
    flags = np.zeros(lower.shape[1], np.bool_)
    for index in range(points.shape[1]):
        flags |= (points[:, index][:, None] <= raised).all(axis=0)
    return flags


def undominated(values: Floats, numbers: Integers) -> Integers:
    """Positions of the designs [metrics, designs] that none of the others beats."""
    rounded = steps(values)
    # In this order a design is beaten by one before it or by none: less or equal everywhere is then
    # enough.
    order = np.lexsort((numbers, *rounded[::-1]))
    chosen, front = list[int](), np.empty(rounded.shape, np.int64)
    for index in order.tolist():
        if not (front[:, : len(chosen)] <= rounded[:, index, None]).all(axis=0).any():
            front[:, len(chosen)] = rounded[:, index]
            chosen.append(index)
    return np.array(sorted(chosen), np.int64)


def shortfall(points: Floats, lower: Floats, run: Flags) -> float:
    """The least gap at which points close every design of ``lower``; 1 where none could, 0 where it
    is below a step."""
    rounded, most = steps(points), 0.0
    raised = steps(lower)
    for design in range(lower.shape[1]):
        inside = (rounded[~run] <= raised[~run, design][:, None]).all(axis=0)
        if not inside.any():
            return 1.0
        short = np.maximum(0.0, 1.0 - lower[run, design][:, None] / points[run][:, inside])
        short[rounded[run][:, inside] <= raised[run, design][:, None]] = 0.0
        most = max(most, float(short.max(axis=0, initial=0.0).min()))
        if most >= 1.0:
            return 1.0
    return most if most > 2.0**-30 else 0.0
