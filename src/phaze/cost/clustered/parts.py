"""Chips of clusters as the parts that costs depend on: rows for products in cycles, vector parts in seconds.

A row of products has HBM's bytes a cycle at the clock a chip holds; nothing else in it knows a clock. A vector operator
has all N clusters with l lanes each, fed from registers at 6 bytes a lane and cycle; half of the registers keep a row
between passes.
"""

import numpy as np
from numpy.typing import NDArray

from phaze.cost.products import distinct_rows
from phaze.cost.vector import VectorParts, vector_parts_from
from phaze.hardware.columns import ChipColumns

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def product_rows(chips: ChipColumns, held_hz: Floats, hbm_share: float = 1.0) -> Floats:
    """One row a chip, the columns those of :class:`phaze.cost.clustered.mapping.ClusterPart`."""
    columns = (
        chips.clusters,
        chips.arrays,
        chips.rows,
        chips.columns,
        chips.operand_bytes,
        np.floor(chips.register_bytes / 2.0),
        chips.port,
        chips.fan_out,
        chips.global_bytes,
        chips.width,
        chips.hbm_bytes_per_s * hbm_share / held_hz,
    )
    return np.stack(columns, axis=1)


def cluster_sides(rows: Floats) -> tuple[Floats, Integers]:
    """The distinct cluster sides of product rows, and for every row which of them it has: one front each."""
    return distinct_rows(rows[:, :8])


def vector_sides(
    chips: ChipColumns, held_hz: Floats, hbm_share: float = 1.0, kept_row_bytes: float | None = None
) -> tuple[VectorParts, Integers]:
    """The distinct vector parts, and for every chip which of them it has."""
    kept = 0.5 * chips.register_bytes
    columns = (
        chips.clusters,
        chips.lanes,
        6.0 * chips.lanes * held_hz,
        kept if kept_row_bytes is None else np.minimum(kept_row_bytes, kept),
        held_hz,
        chips.global_bytes,
        chips.width * held_hz,
        chips.hbm_bytes_per_s * hbm_share,
    )
    rows, of = distinct_rows(np.stack(columns, axis=1))
    return vector_parts_from(rows), of
