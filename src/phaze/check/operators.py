"""Operators on chips: seconds L on one core, P spread over all (docs/cost.md, One core, all cores).

spread    T (or V) cores with the whole of the memories; a fused operator has min(T, V) of each
one core  one core with 1/T (or 1/V) of the global buffer, of its bandwidth and of HBM's
seconds   start-up + max(sum of products, vector work)
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .kernels import Kernels, kernels_of
from .mappings import exact
from .products import TensorParts, core_parts, least
from .reading import cover, listed, number, positive, whole
from .space import Chips
from .vectors import VectorParts, vector_seconds
from .works import COLLECTIVES, Product, Work

Floats = NDArray[np.float64]
CONSTANTS = frozenset({
    "basis", "matrix_share", "hbm_share", "vector_hbm_share", "start_up_s", "vector_start_up_s", "block_cycles",
    "kept_row_bytes", "software_share", "clock_hz", "attention", "rates", "grouped_share",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Constants:
    """What hardware reaches of its peaks; ``clock``: the one measured of a given chip, ``rated``: that of its peak."""

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

    def packed(self, p: Product) -> Product:
        """A product as arrays run its format."""
        return p.packed(dict(self.rates), self.grouped)


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
    )


def collective_seconds(work: tuple[str, int, int, int, int], level: Mapping[str, Any]) -> float:
    """A collective over a group within one switch: the best of ring, halving-doubling (not of NCCL) and tree."""
    kind, size, group, *_ = work
    cover(kind in COLLECTIVES, f"the collective {kind}")
    if group <= 1:
        return 0.0
    rounds, rate = COLLECTIVES[kind], positive(level["bandwidth_bytes_per_s"], "bandwidth")
    step, share, doublings = number(level["latency_s"], "latency"), (group - 1) / group, np.log2(group)
    ways = [rounds * ((group - 1) * step + share * size / rate)]
    if group & (group - 1) == 0 and level["library"] != "nccl":
        ways.append(rounds * (doublings * step + share * size / rate))
    if kind == "all_reduce":
        ways.append(rounds * (doublings * step + size / rate))
    return float(min(ways))


def _shares(chips: Chips, own: Floats, other: Floats, way: str) -> tuple[Floats, Floats]:
    """How many cores of a kind an operator has, and into how many shares the memories are cut."""
    if way == "one core":
        return np.ones(len(chips)), own
    return (np.minimum(own, other) if way == "paired" else own), np.ones(len(chips))


def _tensor(chips: Chips, constants: Constants, way: str) -> TensorParts:
    cores, shares = _shares(chips, chips.tensor_cores, chips.vector_cores, way)
    return core_parts(
        cores, chips.rows, chips.columns, chips.tensor_buffer, chips.clock * (2.0 * chips.rows + 6.0 * chips.columns),
        chips.clock * constants.matrix_share, np.full(len(chips), constants.lost), chips.global_buffer / shares,
        chips.global_bandwidth / shares, chips.hbm_bandwidth * constants.hbm_share / shares,
    )  # fmt: skip


def _vector(chips: Chips, constants: Constants, way: str) -> VectorParts:
    cores, shares = _shares(chips, chips.vector_cores, chips.tensor_cores, way)
    return VectorParts(
        cores, chips.lanes, chips.clock * 6.0 * chips.lanes, np.minimum(constants.kept_row, 0.5 * chips.vector_buffer),
        chips.clock, chips.global_buffer / shares, chips.global_bandwidth / shares,
        chips.hbm_bandwidth * constants.vector_hbm_share / shares,
    )  # fmt: skip


def distinct(columns: Sequence[Floats]) -> tuple[list[Floats], NDArray[np.int64]]:
    """The different rows of some columns, and which of them every row is."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, of = np.unique(column, return_inverse=True)
        codes, inverse = np.unique(codes * len(values) + of, return_inverse=True)
        codes = inverse.astype(np.int64)
    _, first, of_all = np.unique(codes, return_index=True, return_inverse=True)
    return [column[first] for column in columns], of_all.astype(np.int64)


class Costs:
    """The seconds of works on some chips, each distinct product and vector work once a part.

    ``mapped``: products by their best mapping, else by what none undercuts.
    """

    def __init__(self, chips: Chips, constants: Constants, level: Mapping[str, Any], mapped: bool) -> None:
        cover(constants.software == 1.0, "a stack's software share on chips of cores")
        self.chips, self.constants, self.level = chips, constants, level
        self._product: Callable[[Product, TensorParts], Floats] = exact if mapped else least
        self._tensor_parts, self._vector_parts = dict[str, Any](), dict[str, Any]()
        self._known: dict[tuple[Any, str], Floats] = {}

    def _of_product(self, p: Product, way: str) -> Floats:
        if way not in self._tensor_parts:
            every = _tensor(self.chips, self.constants, way)
            columns, of = distinct([getattr(every, f.name) for f in fields(every)])
            self._tensor_parts[way] = TensorParts(*columns), of
        parts, of = self._tensor_parts[way]
        if (p, way) not in self._known:
            self._known[p, way] = self._product(p, parts)
        return np.asarray(self._known[p, way][of])

    def _of_lanes(self, work: Any, way: str) -> Floats:
        if way not in self._vector_parts:
            every = _vector(self.chips, self.constants, way)
            columns, of = distinct([getattr(every, f.name) for f in fields(every)])
            self._vector_parts[way] = VectorParts(*columns), of
        parts, of = self._vector_parts[way]
        if (work, way) not in self._known:
            self._known[work, way] = vector_seconds(work, parts)
        return np.asarray(self._known[work, way][of])

    def seconds(self, work: Work, way: str) -> Floats:
        """Seconds of a work on every chip; ``way`` one core, or spread (paired where it is fused)."""
        count = len(self.chips)
        if work.core == "none":
            return np.zeros(count)
        if work.collective is not None:
            return np.full(count, collective_seconds(work.collective, self.level))
        if way == "spread" and work.core == "both":
            way = "paired"
        return self.on_cores(work, way)

    def on_cores(self, work: Work, way: str) -> Floats:
        """Seconds of a work that cores run: on one, on all (``spread``), or on as many of either kind (``paired``)."""
        if work.kernel is not None and self.constants.kernels is not None:
            cover(way == "spread", "measured attention kernels on one core")
            peak = 2.0 * self.chips.tensor_cores * self.chips.rows * self.chips.columns * self.chips.clock
            return np.asarray(self.constants.kernels.seconds(work.kernel, peak))
        total = np.zeros(len(self.chips))
        for p in work.products:
            total = total + self._of_product(self.constants.packed(p), way)
        if work.lanes is not None:
            total = np.maximum(total, self._of_lanes(work.lanes, way))
        start = self.constants.vector_start_up if work.core == "vector" else self.constants.start_up
        return np.asarray(start + total)

    def both(self, works: Sequence[Work]) -> tuple[Floats, Floats]:
        """L and P of some works, [works, chips]."""
        shape = (len(works), len(self.chips))
        one, spread = np.empty(shape), np.empty(shape)
        for at, work in enumerate(works):
            one[at], spread[at] = self.seconds(work, "one core"), self.seconds(work, "spread")
        return one, spread
