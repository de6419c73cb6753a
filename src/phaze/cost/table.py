"""All works on all chips: times, bytes and energies as arrays, each distinct part costed once.

For work w on chip c, with the products p of w, the constants of the chip, and one of the ways to
run of :mod:`phaze.cost.parts`:

    tensor_s[w, c] = sum over p of time(p, tensor part of c) / (units a second of c's part) /
    software_share vector_s[w, c] = time(vector work of w, vector part of c)
    time_s[w, c]   = start-up + max(tensor_s, vector_s)
                   (:meth:`Column.time_s`)
                     of a measured attention kernel: start + max((FLOP + extra keys x FLOP of a key)
                     / share, FLOP / most) / peak of c

``software_share`` is what a software stack leaves, in training, of the rate of single products on a
chip of clusters: one number of the stack and the generation of chip. Where every expert has a
kernel of its own (``expert_start_s``), a grouped product is those of its experts one after another,
each of which starts so long, and start-up is that of the work and these. A network work takes
``network_s``, which the caller has from :mod:`phaze.cost.collective`: it depends on no chip part.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.mapping import Product
from phaze.cost.parts import How, peak_flops, tensor_parts, vector_parts
from phaze.cost.products import ProductCosts, sweep_products
from phaze.cost.vector import VectorCosts, VectorWork, sweep_vector
from phaze.cost.work import Work
from phaze.hardware.calibration import Constants

PLAIN_BITS = 16
"""Operands of so many bits are cast from none."""
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Column:
    """The works run one way (``how``): costs by distinct part, gathered to chips when asked for."""

    works: tuple[Work, ...]
    how: How
    constants: Constants
    products: ProductCosts
    product_rows: tuple[tuple[int, ...], ...]
    tensor_part_of: Integers
    vectors: VectorCosts
    vector_rows: tuple[int, ...]
    vector_part_of: Integers
    peak_flops: Floats

    def taken(self, index: Integers) -> "Column":
        """The works on the chips of ``index``."""
        return replace(
            self,
            tensor_part_of=self.tensor_part_of[index],
            vector_part_of=self.vector_part_of[index],
            peak_flops=self.peak_flops[index],
        )

    def tensor_parts_s(self, work: int) -> Floats:
        """Seconds of the products of one work on every distinct tensor part."""
        return self._on_parts(self.products.time_s, work)

    def vector_parts_s(self, work: int) -> Floats:
        """Seconds of the vector work of one work on every distinct vector part."""
        row = self.vector_rows[work]
        return np.zeros(self.vectors.time_s.shape[1]) if row < 0 else self.vectors.time_s[row]

    def _on_parts(self, values: Floats, work: int) -> Floats:
        total: Floats = np.zeros(values.shape[1])
        for row in self.product_rows[work]:
            total = total + values[row]
        return total

    def _tensor(self, values: Floats, work: int) -> Floats:
        return self._on_parts(values, work)[self.tensor_part_of]

    def _vector(self, values: Floats, work: int) -> Floats:
        row = self.vector_rows[work]
        return np.zeros(len(self.vector_part_of)) if row < 0 else values[row][self.vector_part_of]

    def time_s(self, work: int) -> Floats:
        """Seconds of one work on every chip; zero for what no core runs."""
        core = self.works[work].core
        if core in ("none", "network"):
            return np.zeros(len(self.tensor_part_of))
        kernel, rates = self.works[work].attention, self.constants.attention
        if kernel is not None and rates is not None:
            rate = rates.rate(kernel.backward, kernel.width)
            flops = kernel.flops + rate.extra_keys * kernel.key_flops
            slowest = max(flops / rate.share, kernel.flops / rate.most)
            return np.asarray(rate.start_s + slowest / self.peak_flops)
        start_up_s = (
            self.constants.vector_start_up_s if core == "vector" else self.constants.start_up_s
        )
        tensor, vector = (
            self._tensor(self.products.time_s, work),
            self._vector(self.vectors.time_s, work),
        )
        own_start_s = expert_starts(self.works[work].products) * (
            self.constants.expert_start_s or 0
        )
        return start_up_s + own_start_s + np.maximum(tensor, vector)

    def times_s(self) -> Floats:
        """Seconds of all works on every chip, (work, chip)."""
        found = np.empty((len(self.works), len(self.tensor_part_of)))
        for work in range(len(self.works)):
            found[work] = self.time_s(work)
        return found

    def tensor_hbm_bytes(self, work: int) -> Floats:
        """Bytes that its products move from and to HBM."""
        return self._tensor(self.products.hbm_bytes, work)

    def vector_hbm_bytes(self, work: int) -> Floats:
        """Bytes that its vector work moves from and to HBM."""
        return self._vector(self.vectors.hbm_bytes, work)

    def hbm_bytes(self, work: int) -> Floats:
        return self.tensor_hbm_bytes(work) + self.vector_hbm_bytes(work)

    def tensor_global_bytes(self, work: int) -> Floats:
        """Bytes that its products move from and to the global buffer."""
        return self._tensor(self.products.global_bytes, work)

    def global_bytes(self, work: int) -> Floats:
        return self.tensor_global_bytes(work) + self.vector_bytes(work)

    def core_bytes(self, work: int) -> Floats:
        """Bytes between the tensor cores' buffers and their arrays."""
        return self._tensor(self.products.core_bytes, work)

    def port_bytes(self, work: int) -> Floats:
        """Bytes through the ports of the tensor cores."""
        return self._tensor(self.products.port_bytes, work)

    def vector_bytes(self, work: int) -> Floats:
        """Bytes through the vector cores' buffers."""
        return self._vector(self.vectors.global_bytes, work)


def expert_starts(products: Sequence[Product]) -> int:
    """How often a kernel of one expert starts where each has its own: one for every expert of a
    grouped product, and in few bits one more that casts its rows."""
    return sum(
        p.batch if p.bits >= PLAIN_BITS else 2 * p.batch
        for p in products
        if p.grouped and not p.empty
    )


def products_run(work: Work, constants: Constants) -> tuple[Product, ...]:
    """The products of a work as arrays run them; of a grouped one those of its experts one after
    another where each has a kernel of its own."""
    runs = list[Product]()
    for p in work.products:
        apart = constants.expert_start_s is not None and p.grouped and not p.empty
        each = (p.of_one_expert if apart else p).packed(constants.rates, constants.grouped_share)
        runs += [each] * (p.batch if apart else 1)
    return tuple(runs)


def cost_works(
    works: Sequence[Work], chips: ChipSet, constants: Constants, how: How = "all_cores"
) -> Column:
    """Every work on every chip."""
    packed = [products_run(work, constants) for work in works]
    products: dict[Product, int] = {}
    vectors: dict[VectorWork, int] = {}
    for work, parts_of_work in zip(works, packed, strict=True):
        for p in parts_of_work:
            products.setdefault(p, len(products))
        if work.vector is not None:
            vectors.setdefault(work.vector, len(vectors))
    tensor, tensor_of = tensor_parts(chips, constants, how)
    vector, vector_of = vector_parts(chips, constants, how)
    costs = sweep_products(list(products), tensor)
    return Column(
        works=tuple(works),
        how=how,
        constants=constants,
        products=replace(
            costs, time_s=costs.time_s / tensor.units_per_s / constants.software_share
        ),
        product_rows=tuple(tuple(products[p] for p in parts_of_work) for parts_of_work in packed),
        tensor_part_of=tensor_of,
        vectors=sweep_vector(list(vectors), vector),
        vector_rows=tuple(-1 if work.vector is None else vectors[work.vector] for work in works),
        vector_part_of=vector_of,
        peak_flops=peak_flops(chips, how),
    )


@dataclass(frozen=True, slots=True)
class CostTable:
    """What a scheduler needs: each distinct work on one core and spread over all of them.

    ``rows[i]`` is the work of operator i of the sequence that the table was made from.
    """

    works: tuple[Work, ...]
    rows: tuple[int, ...]
    one_core: Column
    all_cores: Column
    paired: Column

    def taken(self, index: Integers) -> "CostTable":
        """The works on the chips of ``index``; parts that none of them has stay."""
        columns = (column.taken(index) for column in (self.one_core, self.all_cores, self.paired))
        return CostTable(self.works, self.rows, *columns)

    def hbm_s(self, work: int, hbm_bytes_per_s: Floats) -> Floats:
        """Seconds that a work's bytes, the least of both ways to run, take from HBM at the
        bandwidth it can reach.

        Products and vector work reach shares of their own of the data sheet's bandwidth.
        """
        constants = self.all_cores.constants
        columns = (self.one_core, self.all_cores)
        tensor = [column.tensor_hbm_bytes(work) for column in columns]
        vector = [column.vector_hbm_bytes(work) for column in columns]
        tensor_s = np.minimum(*tensor) / (constants.hbm_share * hbm_bytes_per_s)
        return np.asarray(
            tensor_s + np.minimum(*vector) / (constants.vector_hbm_share * hbm_bytes_per_s)
        )

    def spread_s(self, work: int, paired: bool) -> Floats:
        """All-core seconds; ``paired``: a fused operator has min(T, V) cores of each kind."""
        column = self.paired if paired and self.works[work].core == "both" else self.all_cores
        return column.time_s(work)


def cost_table(operators: Sequence[Work], chips: ChipSet, constants: Constants) -> CostTable:
    """The table of a sequence of operators' works, equal works costed once."""
    rows: dict[Work, int] = {}
    of = tuple(rows.setdefault(work, len(rows)) for work in operators)
    works = tuple(rows)
    spread = cost_works(works, chips, constants, "all_cores")
    paired = spread
    # Where there are as many cores of one kind as of the other, a fused operator has all of both.
    if np.any(chips.tensor_cores != chips.vector_cores):
        fused = tuple(work if work.core == "both" else Work("none") for work in works)
        paired = cost_works(fused, chips, constants, "paired")
    return CostTable(works, of, cost_works(works, chips, constants, "one_core"), spread, paired)
