"""Operators on chips (docs/cost.md, One core, all cores; docs/silicon.md): seconds and joules.

seconds    start-up + max(sum over products of cycles / clock / software share, vector work)
all        T tensor and V vector cores, or all N clusters for both, with the whole of the memories
paired     as many cores of either kind, min(T, V)
one core   one core with 1/T (or 1/V) of the global buffer, of its bandwidth and of HBM's

A core is a cluster of one array without a port. Lanes are fed at 6 bytes a lane and cycle; half of
a core's buffer, or of a cluster's registers, keeps a row. A box of chips is a chip at its high
corner that takes no more than any of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Boxes, Chips, least_of
from .kernels import Kernels, kernels_of
from .mappings import exact, exact_bytes
from .products import LATENCY, SUSTAINED, BoxParts, TensorParts, least, least_bytes, tensor_parts
from .reading import cover, listed, number, positive, whole
from .silicon import Prices
from .vectors import VectorParts, vector_bytes, vector_seconds
from .works import Lanes, Product, Work

Floats = NDArray[np.float64]
NOTHING = ("none", "network")
CONSTANTS = frozenset({
    "basis", "matrix_share", "hbm_share", "vector_hbm_share", "start_up_s", "vector_start_up_s",
    "block_cycles",
    "kept_row_bytes", "software_share", "clock_hz", "attention", "rates", "grouped_share",
    "expert_start_s",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Constants:
    """What hardware reaches of its peaks; ``clock``: the one measured of a given chip, ``rated``:
    that of its peak."""

    matrix_share: float
    hbm_share: float
    vector_hbm_share: float
    start_up: float
    vector_start_up: float
    lost: float
    kept_row: float
    software: float = 1.0
    rates: tuple[tuple[int, float], ...] = ()
    grouped: float = 1.0
    clock: float | None = None
    kernels: Kernels | None = None
    rated: float | None = None
    expert: float | None = None

    def run(self, p: Product) -> tuple[int, Product]:
        """A product as arrays run its format, and how often: once, or one expert after another where
        each has a kernel."""
        count = p.experts if self.expert is not None else 0
        product = p.expert() if count else p
        return max(count, 1), product.packed(dict(self.rates), self.grouped)

    def started(self, p: Product) -> float:
        """Seconds in which the kernels of its experts start: of each, and in few bits of the cast
        before it."""
        kernels = p.experts * (2 if p.bits < 16 else 1)
        return kernels * (self.expert or 0.0)


def constants_of(table: Mapping[str, Any]) -> Constants:
    """The constants that a problem states."""
    cover(set(table) <= CONSTANTS, "constants: a key that this checker does not know")
    kept = table["kept_row_bytes"]
    rates = [listed(row, "rates", 2) for row in listed(table["rates"], "rates")]
    return Constants(
        positive(table["matrix_share"], "matrix_share"),
        positive(table["hbm_share"], "hbm_share"),
        positive(table["vector_hbm_share"], "vector_hbm_share"),
        number(table["start_up_s"], "start_up_s"),
        number(table["vector_start_up_s"], "vector_start_up_s"),
        number(table["block_cycles"], "block_cycles"),
        np.inf if kept is None else number(kept, "kept_row_bytes"),
        positive(table["software_share"], "software_share"),
        tuple((whole(bits, "rates", 1), positive(rate, "rates")) for bits, rate in rates),
        positive(table["grouped_share"], "grouped_share"),
        None if table["clock_hz"] is None else positive(table["clock_hz"], "constants.clock_hz"),
        kernels_of(table["attention"]),
        expert=_seconds(table["expert_start_s"]),
    )


def _seconds(value: Any) -> float | None:
    return None if value is None else number(value, "expert_start_s")


def _cores(chips: Chips, kind: str, way: str) -> tuple[Floats, Floats]:
    """How many clusters or vector units an operator has, and into how many shares the memories are
    cut."""
    each = np.ones(len(chips))
    if way == "one core":
        return each, getattr(least_of(chips), kind)
    return (
        np.minimum(chips.clusters, chips.vector_units) if way == "paired" else getattr(chips, kind)
    ), each


def _arrays(chips: Chips, constants: Constants, way: str, fan_out: int) -> TensorParts:
    """What products run on."""
    fetched = chips.hbm_bandwidth * constants.hbm_share / chips.clock
    cores, shares = _cores(chips, "clusters", way)
    more: dict[str, float] = {"array_rate": constants.matrix_share, "lost": constants.lost}
    if not chips.of_cores:
        more = {
            "array_rate": SUSTAINED,
            "latency": LATENCY,
            "fan_out": float(fan_out),
            "multicast": np.inf,
        }
    parts = tensor_parts(
        cores, chips.rows, chips.columns, chips.operands, chips.global_buffer / shares,
        chips.global_width / shares,
        fetched / shares, arrays=chips.arrays, sums=chips.sums, port=chips.port, **more,
    )  # fmt: skip
    if not isinstance(chips, Boxes):
        return parts
    units = np.minimum(chips.unit_rate / chips.clock, parts.cores * chips.macs)
    corner = {field.name: getattr(parts, field.name) for field in fields(parts)}
    return BoxParts(
        **corner, least_rows=chips.least.rows, least_columns=chips.least.columns,
        unit_rate=parts.array_rate * units,
        all_ports=chips.all_ports,
    )  # fmt: skip


def _lanes(chips: Chips, constants: Constants, way: str) -> VectorParts:
    """What vector work runs on."""
    cores, shares = _cores(chips, "vector_units", way)
    return VectorParts(
        cores, chips.lanes, 6.0 * chips.lanes * chips.clock,
        np.minimum(constants.kept_row, 0.5 * chips.registers),
        chips.clock, chips.global_buffer / shares, chips.global_bandwidth / shares,
        chips.hbm_bandwidth * constants.vector_hbm_share / shares,
        chips.lane_rate if isinstance(chips, Boxes) else np.full(len(chips), np.inf),
    )  # fmt: skip


def _distinct(columns: Sequence[Floats]) -> tuple[list[Floats], NDArray[np.int64]]:
    """The different rows of some columns, and which of them every row is."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, of = np.unique(column, return_inverse=True)
        codes, inverse = np.unique(codes * len(values) + of, return_inverse=True)
        codes = inverse.astype(np.int64)
    _, first, of_all = np.unique(codes, return_index=True, return_inverse=True)
    return [column[first] for column in columns], of_all.astype(np.int64)


class Costs:
    """What works take on some chips, each distinct product and vector work once a part.

    ``mapped``: products by their best mapping, else by what none undercuts; ``way``: all, paired or
    one core, of chips of cores; ``prices``: joules count, ``with_bytes``: so do bytes.
    """

    def __init__(
        self, chips: Chips, constants: Constants, mapped: bool, way: str = "all", fan_out: int = 0,
        prices: Prices | None = None, with_bytes: bool = False,
    ) -> None:  # fmt: skip
        self.constants, self.way, self.prices, self._mapped = constants, way, prices, mapped
        self._with_bytes = with_bytes or prices is not None
        self._hbm_bandwidth = chips.hbm_bandwidth
        arrays, lanes = _arrays(chips, constants, way, fan_out), _lanes(chips, constants, way)
        rated = chips.clock if constants.rated is None else constants.rated
        self.peak = 2.0 * arrays.units * rated
        columns, self._array = _distinct(
            [*(getattr(arrays, f.name) for f in fields(arrays)), chips.clock]
        )
        self._arrays, self._clock = type(arrays)(*columns[:-1]), columns[-1]
        columns, self._lane = _distinct([getattr(lanes, f.name) for f in fields(lanes)])
        self._lanes = VectorParts(*columns)
        self._products, self._vectors = dict[Product, list[Floats]](), dict[Lanes, list[Floats]]()

    def _product(self, p: Product) -> list[Floats]:
        """Seconds on every chip; where bytes count HBM, global, edge and port bytes."""
        if p not in self._products:
            if not self._with_bytes:
                cycles, moved = (exact if self._mapped else least)(p, self._arrays), []
            else:
                cycles, *moved = (exact_bytes if self._mapped else least_bytes)(p, self._arrays)
            self._products[p] = [cycles / self._clock / self.constants.software, *moved]
        return [each[self._array] for each in self._products[p]]

    def _vector(self, lanes: Lanes) -> list[Floats]:
        """Seconds on every chip; where bytes count those through the global buffer, and from and
        to HBM."""
        if lanes not in self._vectors:
            more = vector_bytes(lanes, self._lanes) if self._with_bytes else ()
            self._vectors[lanes] = [vector_seconds(lanes, self._lanes), *more]
        return [each[self._lane] for each in self._vectors[lanes]]

    def seconds(self, work: Work) -> Floats:
        """Seconds of a work on every chip; collectives and what no core runs take nothing here."""
        total = np.zeros(len(self._array))
        if work.core in NOTHING:
            return total
        if work.kernel is not None and self.constants.kernels is not None:
            return np.asarray(self.constants.kernels.seconds(work.kernel, self.peak))
        for p in work.products:
            times, product = self.constants.run(p)
            total = total + times * self._product(product)[0]
        if work.lanes is not None:
            total = np.maximum(total, self._vector(work.lanes)[0])
        total = total + sum(map(self.constants.started, work.products))
        start = self.constants.vector_start_up if work.core == "vector" else self.constants.start_up
        return np.asarray(total + start)

    def hbm_seconds(self, work: Work) -> tuple[Floats, Floats]:
        """What the bytes of its products, and of its vector work, take of all of HBM."""
        products, lanes = np.zeros(len(self._array)), np.zeros(len(self._array))
        for p in work.products:
            times, product = self.constants.run(p)
            products = products + times * self._product(product)[1]
        if work.lanes is not None:
            lanes = self._vector(work.lanes)[2]
        shares = self.constants.hbm_share, self.constants.vector_hbm_share
        return products / (shares[0] * self._hbm_bandwidth), lanes / (
            shares[1] * self._hbm_bandwidth
        )

    def joules(self, work: Work) -> Floats:
        """Joules of a work on every chip."""
        prices, total = self.prices, np.zeros(len(self._array))
        if work.core in NOTHING or prices is None:
            return total
        total = prices.mac * sum(float(p.batch) * p.m * p.n * p.k for p in work.products)
        for p in work.products:
            times, product = self.constants.run(p)
            _, hbm, moved, edge, port = (times * each for each in self._product(product))
            total = total + prices.edge * edge + prices.port * port + prices.filled * moved
            total = total + prices.shared * (moved + hbm) + prices.hbm * hbm
        if work.lanes is not None:
            _, moved, fetched = self._vector(work.lanes)
            total = (
                total
                + prices.lane * (work.lanes.operations * work.lanes.elements)
                + prices.vector * moved
            )
            total = total + prices.shared * (moved + fetched) + prices.hbm * fetched
        return np.asarray(total)
