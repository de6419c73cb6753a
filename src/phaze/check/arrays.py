"""An array and its part of a tile (docs/cost.md, Products): cycles, bytes at its edges, and the
ladders of extents."""

import numpy as np
from numpy.typing import NDArray

from .products import SUM

Floats = NDArray[np.float64]
Flow = tuple[Floats, Floats, Floats, bool]
"""What lies on rows and on columns, the depth of slices, whether sums stay."""


def doublings(start: int, end: int) -> list[int]:
    """start, 2 start, ... below ``end``, and ``end``."""
    found = []
    while start < end:
        found.append(start)
        start *= 2
    return [*found, end]


def deepest(least: Floats, most: float, room: Floats) -> Floats:
    """The greatest of least, 2 least, ... below ``most``, and ``most``, within ``room``; 0 where
    none is."""
    steps = np.floor(np.log2(np.maximum(room, 1e-300) / least))
    found = least * np.exp2(steps)
    found = np.where(found > room, found / 2, np.where(2 * found <= room, 2 * found, found))
    return np.asarray(np.where(room < least, 0.0, np.where(room >= most, most, found)))


def array_cycles(rows: int, columns: int, flow: Flow, kt: float) -> Floats:
    """Cycles of an array for its part of a tile of depth ``kt``."""
    streamed, held, deep, stay = flow
    r, c = float(rows), float(columns)
    if not stay:
        return np.asarray(np.ceil(kt / r) * np.ceil(held / c) * np.maximum(streamed, r))
    folds, slices = np.ceil(streamed / r) * np.ceil(held / c), np.maximum(np.minimum(deep, kt), 1.0)
    visits = np.ceil(kt / slices)
    several = folds * ((visits - 1) * slices + np.maximum(kt - (visits - 1) * slices, r))
    return np.where(folds == 1, max(kt, r), several)


def edge_bytes(rows: int, columns: int, e: float, flow: Flow, kt: float) -> Floats:
    """Bytes between an array and its buffer for the same."""
    streamed, held, deep, stay = flow
    r, c, sums = float(rows), float(columns), SUM * streamed * held
    if not stay:
        return np.asarray(
            e * kt * held + e * kt * streamed * np.ceil(held / c) + sums * np.ceil(kt / r)
        )
    folds, visits = (
        np.ceil(streamed / r) * np.ceil(held / c),
        np.ceil(kt / np.maximum(np.minimum(deep, kt), 1.0)),
    )
    moved = e * kt * (streamed * np.ceil(held / c) + held * np.ceil(streamed / r))
    return np.asarray(moved + sums * np.where(folds == 1, 1.0, visits))
