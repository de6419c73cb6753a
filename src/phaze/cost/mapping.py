"""The values of a product's cost: what is multiplied, the part it runs on, the choices of a
mapping, what it takes.

:mod:`phaze.cost.gemm` says which choices there are and what each costs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from typing import Literal

from phaze.errors import InputError
from phaze.hardware.chip_parts import MULTICAST

Flow = Literal["os-mn", "os-nm", "ws", "is"]
Order = Literal["a", "b", "c", "through"]
Bound = Literal["array", "core buffer", "global buffer", "hbm"]
FLOWS: tuple[Flow, ...] = ("os-mn", "os-nm", "ws", "is")
ORDERS: tuple[Order, ...] = ("a", "b", "c", "through")
SPLITS = (1, 2, 4, 8, 16, 32, 64)
"""Splits of k over cores, as the mapping space is stated: powers of two up to 64."""
ENOUGH = 8
"""Items for each core beyond which splitting k further is not tried."""
SLICE = 64
"""Rows or columns of a streamed operand that the global buffer holds at a time."""
SUM_BYTES = 4
"""Sums are kept in fp32."""
NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Product:
    """A product and its operands' bytes in HBM; ``*_need_bytes``: the operand needs no HBM trip
    when half of the global buffer holds that many bytes (:mod:`phaze.cost.residency`), NEVER if it
    always does. ``bits`` of an operand in products of low precision, ``grouped``: one of many
    experts (:meth:`packed`)."""

    batch: int
    m: int
    n: int
    k: int
    element_bytes: int
    a_bytes: float
    b_bytes: float
    c_bytes: float
    a_need_bytes: float = NEVER
    b_need_bytes: float = NEVER
    c_need_bytes: float = NEVER
    bits: int = 16
    grouped: bool = False

    def __post_init__(self) -> None:
        sizes = self.batch, self.m, self.n, self.k
        if min(sizes) < 0 or max(sizes) > 2**50:
            name = next(
                name for name in ("batch", "m", "n", "k") if not 0 <= getattr(self, name) <= 2**50
            )
            raise InputError(
                f"product.{name}", f"{getattr(self, name)} is out of range", "give 0 to 2^50"
            )
        if self.macs > 2.0**100:
            raise InputError(
                "product", f"{self.macs:.3g} multiply-accumulates", "give at most 2^100"
            )

    @property
    def macs(self) -> float:
        return float(self.batch) * self.m * self.n * self.k

    def packed(self, rates: Sequence[tuple[int, float]], grouped_share: float = 1.0) -> "Product":
        """The product as arrays run it that make r multiply-accumulates of its format where they
        make one of 16 bits: its depth is k / r. Its HBM bytes are as they are; what moves on the
        chip is counted for k / r values, too few, which never bounds arrays that their buffers
        feed. So a higher rate is never slower. A grouped product reaches the share g of the rate:
        its depth is k / (r g)."""
        rate = dict(rates).get(self.bits, 1.0) if self.bits != 16 else 1.0
        if self.grouped and grouped_share != 1.0:
            return replace(self, k=ceil(self.k / grouped_share), grouped=False).packed(rates)
        if rate == 1.0:
            return self
        # Wider operands are fewer values of as many bytes.
        return replace(
            self,
            k=ceil(self.k / rate),
            element_bytes=max(1, round(self.element_bytes * min(1.0, rate))),
        )

    @property
    def of_one_expert(self) -> "Product":
        """A grouped product's share of one expert."""
        each = 1.0 / self.batch
        return replace(
            self,
            batch=1,
            a_bytes=self.a_bytes * each,
            b_bytes=self.b_bytes * each,
            c_bytes=self.c_bytes * each,
        )

    @property
    def empty(self) -> bool:
        return self.batch * self.m * self.n * self.k == 0


def product(batch: int, m: int, n: int, k: int, element_bytes: int = 2) -> Product:
    """A product whose operands each lie once in HBM."""
    e = float(element_bytes)
    return Product(
        batch, m, n, k, element_bytes, e * batch * m * k, e * batch * k * n, e * batch * m * n
    )


@dataclass(frozen=True, slots=True)
class TensorPart:
    """What a product's time depends on: T cores of c arrays R x C with their buffers, the global
    buffer and HBM, all at rates that the chip sustains. Arrays work in ``sustained_share`` of the
    clock's cycles while they have a tile; ``block_cycles`` (k0) are lost for each array-sized block
    of outputs.

    The defaults are those of a plain core: one array, sums in its buffer beside the operands
    (``sum_bytes`` infinite), a port that is never waited for, reads that go to as many cores as
    there are but no more than ``multicast`` each way. A cluster has registers of ``sum_bytes``, a
    port, and reads that reach ``fan_out`` clusters in all.

    Rates are per unit of time, of which ``units_per_s`` are a second. Parts of chips count cycles
    of the clock that they run at, so that chips that differ in that clock alone share their
    mappings.
    """

    cores: int
    rows: int
    columns: int
    buffer_bytes: float
    buffer_bytes_per_s: float
    clock_hz: float
    global_bytes: float
    global_bytes_per_s: float
    hbm_bytes_per_s: float
    block_cycles: float = 0.0
    arrays: int = 1
    sum_bytes: float = NEVER
    port_bytes_per_s: float = NEVER
    latency_cycles: float = 0.0
    fan_out: float = NEVER
    multicast: float = MULTICAST
    sustained_share: float = 1.0
    units_per_s: float = 1.0

    @property
    def macs(self) -> int:
        """Multiply-accumulates a cycle."""
        return self.cores * self.arrays * self.rows * self.columns

    @property
    def array_hz(self) -> float:
        """Cycles in which an array works."""
        return self.clock_hz * self.sustained_share

    @property
    def group(self) -> int:
        """Cores that can share what is read from the global buffer."""
        return int(min(self.fan_out, self.cores))


@dataclass(frozen=True, slots=True)
class CoreOption:
    """A choice of the core side, with what it costs: the arrays of a core in ``teams`` of ``down``
    x ``across``, each of which makes tiles of ``mt`` x ``nt``."""

    flow: Flow
    down: int
    across: int
    teams: int
    mt: int
    nt: int
    kc: int
    ks: int
    gm: int
    gn: int
    array_s: float
    core_s: float
    core_bytes: float
    port_bytes: float
    global_bytes: float

    @property
    def busy_s(self) -> float:
        return max(self.array_s, self.core_s)


@dataclass(frozen=True, slots=True)
class GlobalOption:
    """A choice of the global side: block sizes, HBM bytes, and partial sums that pass through the
    global buffer."""

    order: Order
    mg: int
    ng: int
    kg: int
    resident: bool
    hbm_bytes: float
    sums_bytes: float


@dataclass(frozen=True, slots=True)
class ProductCost:
    """The best mapping and its cost, in the part's unit of time (:meth:`in_seconds`); ``time_s``
    has no start-up. ``workers``: the cores, or teams of their arrays, that make a tile each."""

    core: CoreOption
    chip: GlobalOption
    time_s: float
    global_s: float
    hbm_s: float
    hbm_bytes: float
    global_bytes: float
    workers: int

    def in_seconds(self, units_per_s: float) -> "ProductCost":
        """The same cost where so many units of its time are a second."""
        core = replace(
            self.core,
            array_s=self.core.array_s / units_per_s,
            core_s=self.core.core_s / units_per_s,
        )
        return replace(
            self,
            core=core,
            time_s=self.time_s / units_per_s,
            global_s=self.global_s / units_per_s,
            hbm_s=self.hbm_s / units_per_s,
        )

    @property
    def bound(self) -> Bound:
        """What the time waits for."""
        terms: tuple[tuple[Bound, float], ...] = (
            ("array", self.core.array_s),
            ("hbm", self.hbm_s),
            ("global buffer", self.global_s),
            ("core buffer", self.core.core_s),
        )
        return max(terms, key=lambda term: term[1])[0]
