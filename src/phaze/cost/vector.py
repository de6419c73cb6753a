"""Vector operators: one formula over the operator table.

For V cores of l lanes at clock f, an operator over ``elements`` in ``rows`` of L = elements / rows
that takes ``o`` lane operations an element (``operations`` of the kind in :mod:`phaze.graph.opset`;
a fused one: of all its members):

    steps    = ceil(elements / (V l))                                     element-wise, moves
             (:func:`lane_steps`)
             = ceil(rows / (V floor(l/L)))                               rows shorter than the lanes
             = min over w of ceil(rows w / V) ceil(L / (w l)) + 2 log2 w  a row over w cores, powers of two up to V
    t_lanes  = o steps / f
    fetched  = passes, where a row of 4 L bytes is longer than a core keeps; else 1
             (``PASSES``)
    t_buffer = (fetched reads + writes) / (V buffer bandwidth)
    t_global = (fetched reads + writes) / global bandwidth
    t_hbm    = (fetched reads + writes, without what half of the global buffer still holds) / HBM
             bandwidth
    time     = max(t_lanes, t_buffer, t_global, t_hbm)
             (:func:`sweep_vector`)

Look-ups by row (``gather``, ``scatter``, embeddings) move whole bursts of 64 bytes for every row.
All terms only fall with V, l, f, the bandwidths and buffers; none is below its elements over the
lanes or its bytes over the bandwidth.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import ceil
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from phaze.cost.mapping import NEVER

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

PASSES: Mapping[str, int] = MappingProxyType(
    {
        "softmax": 2,
        "softmax_backward": 2,
        "layer_norm": 2,
        "layer_norm_backward": 2,
        "batch_norm": 2,
        "batch_norm_backward": 2,
        "sort": 2,
    }
)
"""How often a kind goes over a row that no core keeps: once to gather its sums or extremes, once to
apply them."""
ROW_KINDS: frozenset[str] = frozenset({"embedding", "embedding_backward", "gather", "scatter"})
BURST_BYTES = 64
"""The least that HBM delivers at once."""
AT_ONCE = 1 << 15
"""Works times parts that are swept at once: larger arrays leave the processor's caches."""


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes of one operand, and what must fit in half of the global buffer for it to need no HBM
    trip."""

    bytes: float
    need_bytes: float = NEVER


NOTHING = Moved(0.0)


@dataclass(frozen=True, slots=True)
class VectorWork:
    """``operations`` lane operations for each of ``elements``; ``rows`` 0 where no row is reduced
    or normalised."""

    elements: int
    rows: int
    operations: float
    passes: int
    reads: tuple[Moved, ...]
    writes: tuple[Moved, ...]


@dataclass(frozen=True, slots=True)
class VectorParts:
    """One array per field: V cores of ``lanes`` with buffers, the longest row kept, global buffer,
    HBM."""

    cores: Integers
    lanes: Integers
    buffer_bytes_per_s: Floats
    kept_row_bytes: Floats
    clock_hz: Floats
    global_bytes: Floats
    global_bytes_per_s: Floats
    hbm_bytes_per_s: Floats

    def __len__(self) -> int:
        return len(self.cores)

    def stacked(self) -> Floats:
        """All fields as the columns of one array."""
        return np.stack(
            [np.asarray(getattr(self, f.name), dtype=np.float64) for f in fields(self)], axis=1
        )


def vector_parts_from(rows: Floats) -> VectorParts:
    """The parts whose fields are the columns of ``rows``."""
    cores, lanes = (rows[:, i].astype(np.int64) for i in range(2))
    return VectorParts(
        cores, lanes, *(np.ascontiguousarray(rows[:, i]) for i in range(2, rows.shape[1]))
    )


@dataclass(frozen=True, slots=True)
class VectorCosts:
    """Arrays over (work, part): seconds without start-up, by what they wait for, and bytes."""

    time_s: Floats
    lanes_s: Floats
    buffer_s: Floats
    global_s: Floats
    hbm_s: Floats
    hbm_bytes: Floats
    global_bytes: Floats


def whole_bursts(bytes_moved: float, rows: int) -> float:
    """Bytes that HBM moves for ``rows`` scattered rows of together ``bytes_moved``."""
    return (
        rows * BURST_BYTES * float(ceil(bytes_moved / rows / BURST_BYTES)) if rows else bytes_moved
    )


def lane_steps(elements: Integers, rows: Integers, cores: Integers, lanes: Integers) -> Floats:
    """Steps in which all lanes of all cores work on one element each, [works, parts]; the formulas
    stand in the docstring above."""
    elements, rows = elements[:, None], rows[:, None]
    steps = np.ceil(elements / (cores.astype(np.float64) * lanes))
    rowed = np.flatnonzero((rows != 0) & (rows != elements) & (elements != 0))
    if len(rowed):
        steps[rowed] = _row_steps(elements[rowed], rows[rowed], cores, lanes)
    return steps


def _row_steps(elements: Integers, rows: Integers, cores: Integers, lanes: Integers) -> Floats:
    """Of works whose rows are reduced or normalised."""
    length = -(-elements // rows)
    packed = np.ceil(rows / (cores.astype(np.float64) * np.maximum(lanes // length, 1)))
    least = np.full(packed.shape, np.inf)
    for power in range(int(cores.max()).bit_length()):
        spread = 2**power
        steps = (
            np.ceil(rows * float(spread) / cores) * np.ceil(length / (float(spread) * lanes))
            + 2.0 * power
        )
        least = np.minimum(least, np.where(spread <= cores, steps, np.inf))
    return np.where(lanes >= length, np.minimum(packed, least), least)


def _hbm(moved: Sequence[tuple[Moved, ...]], held_bytes: Floats) -> Floats:
    """Bytes of the operands of each work that the buffers do not hold, [works, parts]."""
    most = max(map(len, moved))
    total = np.zeros((len(moved), len(held_bytes)))
    for place in range(most):
        own = [one[place] if place < len(one) else NOTHING for one in moved]
        size, need = (
            np.array([getattr(m, name) for m in own])[:, None] for name in ("bytes", "need_bytes")
        )
        total += np.where(need <= held_bytes, 0.0, size)
    return total


def sweep_vector(works: Sequence[VectorWork], parts: VectorParts) -> VectorCosts:
    """The cost of every work on every part."""
    out = np.zeros((7, len(works), len(parts)))
    together = max(1, AT_ONCE // max(1, len(parts)))
    for first in range(0, len(works), together):
        out[:, first : first + together] = _swept(works[first : first + together], parts)
    return VectorCosts(*out)


def _swept(works: Sequence[VectorWork], parts: VectorParts) -> tuple[Floats, ...]:
    half = 0.5 * parts.global_bytes
    elements, rows = (
        np.array([getattr(work, name) for work in works], np.int64) for name in ("elements", "rows")
    )
    operations, passes = (
        np.array([getattr(work, name) for work in works], np.float64)[:, None]
        for name in ("operations", "passes")
    )
    length = np.divide(elements, rows, out=np.ones(len(works)), where=rows != 0)[:, None]
    fetched = np.where(4.0 * length > parts.kept_row_bytes, passes, 1.0)
    reads = np.array([sum(m.bytes for m in work.reads) for work in works])[:, None]
    writes = np.array([sum(m.bytes for m in work.writes) for work in works])[:, None]
    moved = fetched * reads + writes
    hbm = fetched * _hbm([work.reads for work in works], half) + _hbm(
        [work.writes for work in works], half
    )
    lanes_s = operations * lane_steps(elements, rows, parts.cores, parts.lanes) / parts.clock_hz
    buffer_s = moved / (parts.cores * parts.buffer_bytes_per_s)
    global_s, hbm_s = moved / parts.global_bytes_per_s, hbm / parts.hbm_bytes_per_s
    time_s = np.maximum(np.maximum(lanes_s, buffer_s), np.maximum(global_s, hbm_s))
    return time_s, lanes_s, buffer_s, global_s, hbm_s, hbm, moved
