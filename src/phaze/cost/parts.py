"""The distinct tensor and vector parts that sets of chips are made of.

A part is what a cost depends on. ``how`` says which cores an operator has and what it may use:

    all_cores   T (or V) cores, the whole global buffer, all bandwidth
    one_core    one core, and 1/T (or 1/V) of the global buffer, its bandwidth and HBM's: as many operators as there are
                cores of a kind can then run at once without asking for more than there is
    paired      min(T, V) cores of each kind, the whole global buffer, all bandwidth: a fused operator under the
                rules of the ICML 2024 paper

A cluster is a core of both kinds. Its tensor part counts cycles, and HBM's bytes a cycle at the clock that the chip
runs at are all in it that knows a clock. Half of the registers hold
sums, or keep a row between the passes of a vector operator, whose l lanes they feed at 6 bytes a lane and cycle. So of
the constants ``matrix_share`` and ``block_cycles`` count on plain cores alone.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.mapping import LATENCY_CYCLES, NEVER, SUSTAINED_SHARE
from phaze.cost.products import TensorParts, distinct_rows, part_rows, parts_from
from phaze.cost.vector import VectorParts, vector_parts_from
from phaze.hardware.calibration import Constants
from phaze.hardware.columns import ChipColumns

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
How = Literal["all_cores", "one_core", "paired"]


def cores_used(count: Floats, other: Floats, how: How, least: Floats | None = None) -> tuple[Floats, Floats]:
    """How many cores of a kind an operator has, and into how many shares the memories are cut; ``least``: cores of a
    kind that there are at least, where ``count`` are the most."""
    each = np.ones(len(count))
    if how == "one_core":
        return each, count if least is None else least
    return (count if how == "all_cores" else np.minimum(count, other)), each


def array_sides(chips: ChipSet) -> tuple[Floats, Floats]:
    """Rows and columns of the arrays of every chip."""
    return chips.columns.rows, chips.columns.columns


def peak_flops(chips: ChipSet, how: How, most_units: Floats | float = NEVER) -> Floats:
    """FLOP/s of the tensor cores that an operator has, as the data sheet counts them; of so many units at most."""
    cores, _ = cores_used(chips.tensor_cores, chips.vector_cores, how)
    return np.asarray(2.0 * np.minimum(cores * chips.columns.macs, most_units) * chips.columns.clock_hz)


def _core_rows(chips: ChipColumns, constants: Constants, cores: Floats, shares: Floats) -> Floats:
    return part_rows(
        cores=cores,
        rows=chips.rows,
        columns=chips.columns,
        buffer_bytes=chips.operand_bytes,
        buffer_bytes_per_s=chips.operand_bytes_per_s,
        clock_hz=chips.clock_hz,
        sustained_share=constants.matrix_share,
        global_bytes=chips.global_bytes / shares,
        global_bytes_per_s=chips.global_bytes_per_s / shares,
        hbm_bytes_per_s=chips.hbm_bytes_per_s * constants.hbm_share / shares,
        block_cycles=constants.block_cycles,
    )


def _cluster_rows(chips: ChipSet, constants: Constants, cores: Floats, shares: Floats) -> Floats:
    clusters, clock_hz = chips.columns, chips.running_hz(constants)
    return part_rows(
        cores=cores,
        arrays=clusters.arrays,
        rows=clusters.rows,
        columns=clusters.columns,
        buffer_bytes=clusters.operand_bytes,
        buffer_bytes_per_s=2.0 * clusters.rows + 6.0 * clusters.columns,
        sum_bytes=np.floor(clusters.register_bytes / 2.0),
        port_bytes_per_s=clusters.port,
        latency_cycles=LATENCY_CYCLES,
        clock_hz=1.0,
        sustained_share=SUSTAINED_SHARE,
        fan_out=clusters.fan_out,
        multicast=clusters.fan_out,
        global_bytes=clusters.global_bytes / shares,
        global_bytes_per_s=clusters.width / shares,
        hbm_bytes_per_s=clusters.hbm_bytes_per_s / shares * constants.hbm_share / clock_hz,
        units_per_s=clock_hz,
    )


def tensor_rows(chips: ChipSet, constants: Constants, cores: Floats, shares: Floats) -> Floats:
    """The tensor part of every chip with so many cores and memories cut into so many shares, as a row."""
    if chips.of_clusters:
        return _cluster_rows(chips, constants, cores, shares)
    return _core_rows(chips.columns, constants, cores, shares)


def tensor_parts(chips: ChipSet, constants: Constants, how: How = "all_cores") -> tuple[TensorParts, Integers]:
    """The distinct tensor parts, and for every chip which of them it has."""
    cores, shares = cores_used(chips.tensor_cores, chips.vector_cores, how)
    rows, of = distinct_rows(tensor_rows(chips, constants, cores, shares))
    return parts_from(rows), of


def vector_rows(chips: ChipSet, constants: Constants, cores: Floats, shares: Floats) -> Floats:
    """The vector part of every chip with so many cores and memories cut into so many shares, as a row."""
    longest = NEVER if constants.kept_row_bytes is None else constants.kept_row_bytes
    clusters, clock_hz = chips.columns, chips.running_hz(constants)
    if chips.of_clusters:
        columns = (
            cores,
            clusters.lanes,
            6.0 * clusters.lanes * clock_hz,
            np.minimum(longest, 0.5 * clusters.register_bytes),
            clock_hz,
            clusters.global_bytes / shares,
            clusters.width / shares * clock_hz,
            clusters.hbm_bytes_per_s / shares * constants.vector_hbm_share,
        )
    else:
        columns = (
            cores,
            clusters.lanes,
            clusters.register_bytes_per_s,
            np.minimum(longest, 0.5 * clusters.register_bytes),
            clusters.clock_hz,
            clusters.global_bytes / shares,
            clusters.global_bytes_per_s / shares,
            clusters.hbm_bytes_per_s * constants.vector_hbm_share / shares,
        )
    return np.stack(columns, axis=1)


def vector_parts(chips: ChipSet, constants: Constants, how: How = "all_cores") -> tuple[VectorParts, Integers]:
    """The distinct vector parts, and for every chip which of them it has."""
    cores, shares = cores_used(chips.vector_cores, chips.tensor_cores, how)
    rows, of = distinct_rows(vector_rows(chips, constants, cores, shares))
    return vector_parts_from(rows), of
