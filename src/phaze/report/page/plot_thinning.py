"""Which of very many designs are drawn.

Beyond ``MOST`` designs those that lie in the same cell of a grid over all figures are drawn as one,
which says for how many it stands; exact ones and fronts are always kept.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.report.drawings import Column
from phaze.report.page.script_numbers import LEVELS, levels

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MOST = 24_000
"""Points drawn one by one: 2 bytes for each figure of each, within the size of a page."""
CELLS = 96
"""Cells of a grid along each axis at first, fewer until the points are few enough."""


def front(axis: Floats, height: Floats) -> Integers:
    """The designs than which none is both lower on the axis and higher."""
    order = np.lexsort((-height, axis))
    rising = np.maximum.accumulate(height[order])
    first = np.ones(len(order), bool)
    first[1:] = height[order][1:] > rising[:-1]
    return np.asarray(order[first], dtype=np.int64)


def thinned(
    columns: Sequence[Column], exact: NDArray[np.bool_], best: int
) -> tuple[Integers, Integers]:
    """The designs that are drawn, and for how many each stands; the first column is the height."""
    count = len(exact)
    if count <= MOST:
        return np.arange(count), np.ones(count, np.int64)
    always = exact.copy()
    for axis in columns[1:]:
        always[front(axis.values, columns[0].values)] = True
    always[best] = True
    cells = CELLS
    while True:
        key = np.zeros(count, np.int64)
        for column in columns:
            low, high = float(column.values.min()), float(column.values.max())
            key = key * cells + np.minimum(
                cells - 1, levels(column.values, low, high) * cells // (LEVELS + 1)
            )
        _, first, which, size = np.unique(
            key, return_index=True, return_inverse=True, return_counts=True
        )
        index = np.union1d(first, np.flatnonzero(always))
        if len(index) <= MOST or cells <= 4:
            extra = ~np.isin(index, first)
            stands_for = np.where(extra, 1, size[which[index]])
            # What is drawn for itself is not counted by the one that stands for its cell too.
            place = np.searchsorted(index, first[which[index[extra]]])
            np.subtract.at(stands_for, place, 1)
            return index, stands_for
        cells = cells * 3 // 4
