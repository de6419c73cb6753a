"""What works take at least on every chip of a box: the floors of products and vector work between
its corners.

Products have :mod:`phaze.cost.floor`. Vector work only falls with every field, so it takes what it
takes at the high corner, and with v lanes in all no less than its elements over v and its bytes
over 6 v a cycle. A core alone has 1/T of the memories, T being that of the low corner. Joules are
those of the floors' bytes at the prices of the low corner (:mod:`phaze.cost.energy`), whose voltage
is that of the slowest clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.energy import energies_at, prices_of
from phaze.cost.floor import PartBox, product_floors
from phaze.cost.mapping import Product
from phaze.cost.parts import How, array_sides, cores_used, peak_flops, tensor_rows, vector_rows
from phaze.cost.products import ProductCosts, distinct_rows, parts_from
from phaze.cost.table import Column, products_run
from phaze.cost.vector import VectorCosts, VectorWork, sweep_vector, vector_parts_from
from phaze.cost.work import Work
from phaze.hardware.calibration import Constants
from phaze.hardware.technology import Technology

Floats = NDArray[np.float64]
SLACK = 1e-9
"""Sums of joules in another order than those of single chips differ by less."""


@dataclass(frozen=True, slots=True)
class BoxChips:
    """Boxes for costs: both corners as sets of chips, and what all of a chip has at most.

    ``units``, ``lanes``: multiply-accumulates and lane operations a cycle of the fastest clock;
    ``ports``, ``widest_port``: bytes a cycle through all ports, and through one; ``edges``: the
    least bytes a unit and cycle between buffers and arrays. ``low`` holds the slowest clock,
    ``high`` the fastest.
    """

    low: ChipSet
    high: ChipSet
    units: Floats
    lanes: Floats
    ports: Floats
    widest_port: Floats
    edges: Floats

    def __len__(self) -> int:
        return len(self.units)

    def column(self, works: Sequence[Work], constants: Constants, how: How = "all_cores") -> Column:
        """Every work on every box, run one way: no chip of a box takes less, nor moves fewer
        bytes."""
        products: dict[Product, int] = {}
        vectors: dict[VectorWork, int] = {}
        packed = [products_run(work, constants) for work in works]
        product_rows = [
            tuple(products.setdefault(p, len(products)) for p in several) for several in packed
        ]
        for work in works:
            if work.vector is not None:
                vectors.setdefault(work.vector, len(vectors))
        every = np.arange(len(self))
        return Column(
            works=tuple(works),
            how=how,
            constants=constants,
            products=self._products(list(products), constants, how),
            product_rows=tuple(product_rows),
            tensor_part_of=every,
            vectors=self._vectors(list(vectors), constants, how),
            vector_rows=tuple(
                -1 if work.vector is None else vectors[work.vector] for work in works
            ),
            vector_part_of=every,
            peak_flops=peak_flops(self.high, how, self.units),
        )

    def _products(
        self, products: Sequence[Product], constants: Constants, how: How
    ) -> ProductCosts:
        cores, shares = cores_used(
            self.high.tensor_cores, self.high.vector_cores, how, self.low.tensor_cores
        )
        high = parts_from(tensor_rows(self.high, constants, cores, shares))
        # The most bytes that the port of one core passes: with the fewest cores.
        ports = self.widest_port if how == "one_core" else self.ports
        floors = product_floors(
            products, PartBox(high, *array_sides(self.low), self.units, ports, self.edges)
        )
        return replace(floors, time_s=floors.time_s / high.units_per_s / constants.software_share)

    def _vectors(self, works: Sequence[VectorWork], constants: Constants, how: How) -> VectorCosts:
        cores, shares = cores_used(
            self.high.vector_cores, self.high.tensor_cores, how, self.low.vector_cores
        )
        every = vector_rows(self.high, constants, cores, shares)
        rows, of = distinct_rows(every)
        costs, high = sweep_vector(works, vector_parts_from(rows)), vector_parts_from(every)
        lane_rate = np.minimum(self.lanes, high.cores * high.lanes) * high.clock_hz
        time_s = costs.time_s[:, of]
        for row, work in enumerate(works):
            moved = sum(operand.bytes for operand in (*work.reads, *work.writes))
            time_s[row] = np.maximum(
                time_s[row], max(work.operations * work.elements, moved / 6.0) / lane_rate
            )
        nothing = np.zeros((len(works), len(self)))
        moved_bytes = (costs.hbm_bytes[:, of], costs.global_bytes[:, of])
        return VectorCosts(time_s, nothing, nothing, nothing, nothing, *moved_bytes)

    def joules(self, column: Column, work: int, model: Technology) -> Floats:
        """Joules of one work that no chip of a box undercuts."""
        # The floor of bytes at the arrays' edges has what arrays of a core read together.
        prices = replace(
            prices_of(self.low, model, column.constants), edge_share=np.ones(len(self))
        )
        return energies_at(column, work, prices).total() * (1 - SLACK)
