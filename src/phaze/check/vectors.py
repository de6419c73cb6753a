"""Vector work on many parts of chips at once, exactly (docs/cost.md, Vector operators)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .works import Lanes, Moved

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VectorParts:
    """One array a field: cores, their lanes and buffers, the longest row they keep, and the
    memories' shares; lane operations a second that are known to be exceeded nowhere."""

    cores: Floats
    lanes: Floats
    core_rate: Floats
    kept_row: Floats
    clock: Floats
    buffer: Floats
    global_rate: Floats
    hbm_rate: Floats
    lane_rate: Floats


def _steps(work: Lanes, parts: VectorParts) -> Floats:
    """Steps of all lanes: by elements, or by rows, several to a core or one over a power of two of
    cores."""
    if work.elements == 0:
        return np.zeros(len(parts.cores))
    if work.rows in (0, work.elements):
        return np.asarray(np.ceil(work.elements / (parts.cores * parts.lanes)))
    length, spread, exponent = -(-work.elements // work.rows), 1.0, 0
    several = np.floor(parts.lanes / length)
    packed = np.ceil(work.rows / (parts.cores * np.maximum(several, 1.0)))
    least = np.where(several >= 1, packed, np.inf)
    while spread <= parts.cores.max():
        rounds = np.ceil(work.rows * spread / parts.cores)
        steps = rounds * np.ceil(length / (spread * parts.lanes)) + 2.0 * exponent
        least = np.minimum(least, np.where(spread <= parts.cores, steps, np.inf))
        spread, exponent = spread * 2, exponent + 1
    return least


def _fetched(moved: tuple[Moved, ...], half: Floats) -> Floats:
    """Bytes that half of the global buffer does not hold."""
    total = np.zeros(len(half))
    for size, need in moved:
        total += size * (need > half)
    return total


def vector_bytes(work: Lanes, parts: VectorParts) -> tuple[Floats, Floats]:
    """Bytes through cores and global buffer, and those from and to HBM, on every part."""
    length = work.elements / work.rows if work.rows else 1.0
    passes = np.where(work.twice & (4.0 * length > parts.kept_row), 2.0, 1.0)
    moved = passes * sum(size for size, _ in work.reads) + sum(size for size, _ in work.writes)
    half = 0.5 * parts.buffer
    return moved, passes * _fetched(work.reads, half) + _fetched(work.writes, half)


def vector_seconds(work: Lanes, parts: VectorParts) -> Floats:
    """Seconds on every part, without start-up."""
    moved, fetched = vector_bytes(work, parts)
    once = sum(size for size, _ in (*work.reads, *work.writes))
    busy = np.maximum(
        work.operations * _steps(work, parts) / parts.clock, moved / (parts.cores * parts.core_rate)
    )
    busy = np.maximum(busy, max(work.operations * work.elements, once / 6.0) / parts.lane_rate)
    return np.asarray(
        np.maximum(busy, np.maximum(moved / parts.global_rate, fetched / parts.hbm_rate))
    )
