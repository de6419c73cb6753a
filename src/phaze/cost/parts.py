"""The distinct tensor and vector parts that sets of chips are made of.

A part is what a cost depends on. ``how`` says which cores an operator has and what it may use:

    all_cores   T (or V) cores, the whole global buffer, all bandwidth
    one_core    one core, and 1/T (or 1/V) of the global buffer, its bandwidth and HBM's: as many
                operators as there are cores of a kind can then run at once without asking for more
                than there is
    paired      min(T, V) cores of each kind, the whole global buffer, all bandwidth: a fused
                operator under the rules of the ICML 2024 paper

A cluster is a core of both kinds. A tensor part counts cycles, and HBM's bytes a cycle at the clock
that the chip runs at are all in it that knows a clock, so that chips that differ in their clock
alone share their mappings. Half of the registers keep a row between the passes of a vector
operator. Of the constants ``matrix_share`` and ``block_cycles`` count where what arrays sustain is
what was measured of the chip.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.mapping import NEVER
from phaze.cost.products import TensorParts, distinct_rows, part_rows, parts_from
from phaze.cost.vector import VectorParts, vector_parts_from
from phaze.hardware.calibration import Constants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
How = Literal["all_cores", "one_core", "paired"]


def cores_used(
    count: Floats, other: Floats, how: How, least: Floats | None = None
) -> tuple[Floats, Floats]:
    """How many cores of a kind an operator has, and into how many shares the memories are cut;
    ``least``: cores of a kind that there are at least, where ``count`` are the most."""
    each = np.ones(len(count))
    if how == "one_core":
        return each, count if least is None else least
    return (count if how == "all_cores" else np.minimum(count, other)), each


def array_sides(chips: ChipSet) -> tuple[Floats, Floats]:
    """Rows and columns of the arrays of every chip."""
    return chips.columns.rows, chips.columns.columns


def peak_flops(chips: ChipSet, how: How, most_units: Floats | float = NEVER) -> Floats:
    """FLOP/s of the tensor cores that an operator has, as the data sheet counts them; of so many
    units at most."""
    cores, _ = cores_used(chips.tensor_cores, chips.vector_cores, how)
    return np.asarray(
        2.0 * np.minimum(cores * chips.columns.macs, most_units) * chips.columns.clock_hz
    )


def tensor_rows(chips: ChipSet, constants: Constants, cores: Floats, shares: Floats) -> Floats:
    """The tensor part of every chip with so many cores and memories cut into so many shares, as a
    row."""
    columns, clock_hz = chips.columns, chips.running_hz(constants)
    return part_rows(
        cores=cores,
        arrays=columns.arrays,
        rows=columns.rows,
        columns=columns.columns,
        buffer_bytes=columns.operand_bytes,
        buffer_bytes_per_s=columns.operand_bytes_per_cycle / columns.arrays,
        sum_bytes=columns.sum_bytes,
        port_bytes_per_s=columns.port,
        latency_cycles=columns.latency_cycles,
        clock_hz=1.0,
        sustained_share=chips.sustained_share(constants),
        block_cycles=np.where(columns.sustained_share > 0, 0.0, constants.block_cycles),
        fan_out=columns.fan_out,
        multicast=columns.multicast,
        global_bytes=columns.global_bytes / shares,
        global_bytes_per_s=columns.width / shares,
        hbm_bytes_per_s=columns.hbm_bytes_per_s / shares * constants.hbm_share / clock_hz,
        units_per_s=clock_hz,
    )


def tensor_parts(
    chips: ChipSet, constants: Constants, how: How = "all_cores"
) -> tuple[TensorParts, Integers]:
    """The distinct tensor parts, and for every chip which of them it has."""
    cores, shares = cores_used(chips.tensor_cores, chips.vector_cores, how)
    rows, of = distinct_rows(tensor_rows(chips, constants, cores, shares))
    return parts_from(rows), of


def vector_rows(chips: ChipSet, constants: Constants, cores: Floats, shares: Floats) -> Floats:
    """The vector part of every chip with so many cores and memories cut into so many shares, as a
    row."""
    longest = NEVER if constants.kept_row_bytes is None else constants.kept_row_bytes
    columns, clock_hz = chips.columns, chips.running_hz(constants)
    fields = (
        cores,
        columns.lanes,
        columns.register_bytes_per_cycle * clock_hz,
        np.minimum(longest, 0.5 * columns.register_bytes),
        clock_hz,
        columns.global_bytes / shares,
        columns.width / shares * clock_hz,
        columns.hbm_bytes_per_s / shares * constants.vector_hbm_share,
    )
    return np.stack(fields, axis=1)


def vector_parts(
    chips: ChipSet, constants: Constants, how: How = "all_cores"
) -> tuple[VectorParts, Integers]:
    """The distinct vector parts, and for every chip which of them it has."""
    cores, shares = cores_used(chips.vector_cores, chips.tensor_cores, how)
    rows, of = distinct_rows(vector_rows(chips, constants, cores, shares))
    return vector_parts_from(rows), of
