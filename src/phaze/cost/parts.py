"""Chips as arrays, and the distinct tensor and vector parts that they are made of.

A part is what a cost depends on. ``how`` says which cores an operator has and what it may use:

    all_cores   T (or V) cores, the whole global buffer, all bandwidth
    one_core    one core, and 1/T (or 1/V) of the global buffer, its bandwidth and HBM's: as many operators as there are
                cores of a kind can then run at once without asking for more than there is
    paired      min(T, V) cores of each kind, the whole global buffer, all bandwidth: a fused operator under the
                rules of the ICML 2024 paper
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaze.cost.products import TensorParts, distinct_rows, parts_from
from phaze.cost.vector import VectorParts, vector_parts_from
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
How = Literal["all_cores", "one_core", "paired"]


@dataclass(frozen=True, slots=True)
class ChipArrays:
    """One array per field, all of one length; peaks as the data sheet has them."""

    tensor_cores: Floats
    rows: Floats
    columns: Floats
    tensor_buffer_bytes: Floats
    tensor_buffer_bytes_per_s: Floats
    vector_cores: Floats
    lanes: Floats
    vector_buffer_bytes: Floats
    vector_buffer_bytes_per_s: Floats
    global_bytes: Floats
    global_bytes_per_s: Floats
    hbm_bytes_per_s: Floats
    clock_hz: Floats

    def __len__(self) -> int:
        return len(self.tensor_cores)

    def taken(self, index: Integers) -> "ChipArrays":
        """The chips of ``index``."""
        return ChipArrays(*(getattr(self, f.name)[index] for f in fields(self)))


def chip_arrays(chips: Sequence[Chip]) -> ChipArrays:
    """Chips one by one as arrays."""
    rows = [
        (
            c.tensor_cores, c.tensor_core.rows, c.tensor_core.columns,
            c.tensor_core.buffer.size_bytes, c.tensor_core.buffer.bandwidth_bytes_per_s,
            c.vector_cores, c.vector_core.lanes,
            c.vector_core.buffer.size_bytes, c.vector_core.buffer.bandwidth_bytes_per_s,
            c.global_buffer.size_bytes, c.global_buffer.bandwidth_bytes_per_s, c.hbm.bandwidth_bytes_per_s, c.clock_hz,
        )
        for c in chips
    ]  # fmt: skip
    return ChipArrays(*np.array(rows, dtype=np.float64).reshape(-1, len(fields(ChipArrays))).T)


def varied(
    base: Chip,
    *,
    tensor_cores: Integers,
    rows: Integers,
    columns: Integers,
    tensor_buffer_bytes: Floats,
    vector_cores: Integers,
    lanes: Integers,
    vector_buffer_bytes: Floats,
    global_bytes: Integers,
) -> ChipArrays:
    """Chips like ``base`` but for these fields; core buffers feed their arrays and lanes fully."""
    each = np.ones(len(rows))
    return ChipArrays(
        tensor_cores=tensor_cores * each,
        rows=rows * each,
        columns=columns * each,
        tensor_buffer_bytes=tensor_buffer_bytes * each,
        tensor_buffer_bytes_per_s=base.clock_hz * (2.0 * rows + 6.0 * columns),
        vector_cores=vector_cores * each,
        lanes=lanes * each,
        vector_buffer_bytes=vector_buffer_bytes * each,
        vector_buffer_bytes_per_s=base.clock_hz * 6.0 * lanes * each,
        global_bytes=global_bytes * each,
        global_bytes_per_s=base.global_buffer.bandwidth_bytes_per_s * each,
        hbm_bytes_per_s=base.hbm.bandwidth_bytes_per_s * each,
        clock_hz=base.clock_hz * each,
    )


def _cores(own: Floats, other: Floats, how: How) -> tuple[Floats, Floats]:
    """How many cores of a kind an operator has, and into how many shares the memories are cut."""
    if how == "all_cores":
        return own, np.ones(len(own))
    return (np.ones(len(own)), own) if how == "one_core" else (np.minimum(own, other), np.ones(len(own)))


def peak_flops(chips: ChipArrays, how: How) -> Floats:
    """FLOP/s of the tensor cores that an operator has, as the data sheet counts them."""
    cores, _ = _cores(chips.tensor_cores, chips.vector_cores, how)
    return np.asarray(2.0 * cores * chips.rows * chips.columns * chips.clock_hz)


def tensor_parts(chips: ChipArrays, constants: Constants, how: How) -> tuple[TensorParts, Integers]:
    """The distinct tensor parts, and for every chip which of them it has."""
    cores, shares = _cores(chips.tensor_cores, chips.vector_cores, how)
    columns = (
        cores,
        chips.rows,
        chips.columns,
        chips.tensor_buffer_bytes,
        chips.tensor_buffer_bytes_per_s,
        chips.clock_hz * constants.matrix_share,
        chips.global_bytes / shares,
        chips.global_bytes_per_s / shares,
        chips.hbm_bytes_per_s * constants.hbm_share / shares,
        np.full(len(chips), constants.block_cycles),
    )
    rows, of = distinct_rows(np.stack(columns, axis=1))
    return parts_from(rows), of


def vector_parts(chips: ChipArrays, constants: Constants, how: How) -> tuple[VectorParts, Integers]:
    """The distinct vector parts, and for every chip which of them it has."""
    cores, shares = _cores(chips.vector_cores, chips.tensor_cores, how)
    kept = constants.kept_row_bytes
    columns = (
        cores,
        chips.lanes,
        chips.vector_buffer_bytes_per_s,
        0.5 * chips.vector_buffer_bytes if kept is None else np.minimum(kept, 0.5 * chips.vector_buffer_bytes),
        chips.clock_hz,
        chips.global_bytes / shares,
        chips.global_bytes_per_s / shares,
        chips.hbm_bytes_per_s * constants.vector_hbm_share / shares,
    )
    rows, of = distinct_rows(np.stack(columns, axis=1))
    return vector_parts_from(rows), of
