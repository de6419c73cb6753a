"""All works on chips of clusters: the same :class:`phaze.cost.table.Column` as for chips of version 1.

    tensor_s[w, c] = sum over p of cycles(p, part of c) / (held clock of c) / software_share

The arrays' sustained share is in the cycles and the power limit in the clock, so of the constants only start-ups, HBM's
shares, the row that is kept and ``software_share`` count here. The last is what a software stack leaves of the rate of
single products in training: one number of the stack and the generation of chip.

``one_core`` is one cluster of N: its arrays, lanes and port, and 1/N of the global buffer, its width and HBM's rate, so
that N operators can run at once without asking for more than there is, as :mod:`phaze.cost.parts` has it for cores.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.clustered.parts import product_rows, vector_sides
from phaze.cost.clustered.products import sweep_on_clusters
from phaze.cost.mapping import Product
from phaze.cost.parts import How
from phaze.cost.products import ProductCosts, distinct_rows
from phaze.cost.table import Column
from phaze.cost.vector import VectorWork, sweep_vector
from phaze.cost.work import Work
from phaze.hardware.calibration import Constants
from phaze.hardware.columns import ChipColumns

Floats = NDArray[np.float64]


def one_cluster(chips: ChipColumns) -> ChipColumns:
    """One cluster of every chip, with its share of what all have in common."""
    count = chips.clusters
    return replace(
        chips,
        clusters=np.ones(len(chips)),
        global_bytes=chips.global_bytes / count,
        width=chips.width / count,
        hbm_bytes_per_s=chips.hbm_bytes_per_s / count,
    )


def cost_works_on_clusters(
    works: Sequence[Work], chips: ChipColumns, held_hz: Floats, constants: Constants, how: How = "all_cores"
) -> Column:
    """Every work on every chip, spread over all of it or on one cluster, at the clock that the chip runs at."""
    chips = one_cluster(chips) if how == "one_core" else chips
    products: dict[Product, int] = {}
    vectors: dict[VectorWork, int] = {}
    packed = [tuple(p.packed(constants.rates, constants.grouped_share) for p in work.products) for work in works]
    for work, own in zip(works, packed, strict=True):
        for p in own:
            products.setdefault(p, len(products))
        if work.vector is not None:
            vectors.setdefault(work.vector, len(vectors))
    rows = product_rows(chips, held_hz, constants.hbm_share)
    parts, part_of = distinct_rows(np.column_stack((rows, held_hz)))
    found = sweep_on_clusters(list(products), np.ascontiguousarray(parts[:, :-1]))
    sides, side_of = vector_sides(chips, held_hz, constants.vector_hbm_share, constants.kept_row_bytes)
    return Column(
        works=tuple(works),
        how=how,
        constants=constants,
        products=ProductCosts(
            time_s=found.cycles / parts[:, -1] / constants.software_share,
            hbm_bytes=found.hbm_bytes,
            global_bytes=found.global_bytes,
            core_bytes=found.edge_bytes,
            bound=found.bound,
            port_bytes=found.port_bytes,
        ),
        product_rows=tuple(tuple(products[p] for p in own) for own in packed),
        tensor_part_of=part_of,
        vectors=sweep_vector(list(vectors), sides),
        vector_rows=tuple(-1 if work.vector is None else vectors[work.vector] for work in works),
        vector_part_of=side_of,
        peak_flops=2.0 * chips.clusters * chips.arrays * chips.rows * chips.columns * chips.clock_hz,
    )
