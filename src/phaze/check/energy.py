"""Energy of runs under rules cluster, and what a score makes of it (docs/search.md, docs/cost.md,
Energy).

A batch takes T seconds and D joules beyond static power; with K devices of s watts, a weight of a
joule and what each second of a device's making counts,

    value = (rate T + weight D) T^p,      rate = K (s weight + making / life)
                                          (:class:`Rates`)

and rises with T and with D. A work takes, with its bytes at every level as its fastest mapping
moves them (of equals the one that moves least to HBM, then least through the global buffer, then
the first),

    mac M + edge E + port P + lane O + vector V + shared (G + H) + hbm H           (:class:`Prices`)

with M multiply-accumulates, E bytes at the arrays' edges, P through ports of clusters, O lane
operations, V bytes of vector work, G through the global buffer, H to HBM. A batch takes M t c times
the joules of all layers with what is recomputed, and those of the optimizer's step.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Chips
from .limits import making_kgco2e, making_usd
from .reading import number, positive
from .silicon import energies_of
from .technology import technology_of

Floats = NDArray[np.float64]
KINDS = (
    "throughput",
    "throughput_per_watt",
    "throughput_per_usd",
    "throughput_per_kgco2e",
    "energy_delay",
)
J_PER_KWH, SECONDS_A_YEAR = 3.6e6, 365.25 * 24 * 3600.0


@dataclass(frozen=True, slots=True)
class Prices:
    """Joules of each thing on every chip, and watts that it draws whatever runs."""

    mac: Floats
    edge: Floats
    port: Floats
    lane: Floats
    vector: Floats
    shared: Floats
    hbm: Floats
    static: Floats

    def taken(self, index: NDArray[Any]) -> "Prices":
        """Those of some chips."""
        return Prices(*(getattr(self, f.name)[index] for f in fields(self)))


def prices_of(chips: Chips, space: Mapping[str, Any]) -> Prices:
    """What chips of a space take."""
    return Prices(*energies_of(chips, technology_of(space["base"])))


@dataclass(frozen=True, slots=True)
class Rates:
    """What a second and a joule of a batch count on every chip, and the power p of a further factor
    T."""

    rate: Floats
    weight: float
    delays: int

    def taken(self, index: NDArray[Any]) -> "Rates":
        return Rates(self.rate[index], self.weight, self.delays)

    def value(self, seconds: Floats, joules: Floats) -> Floats:
        """Of batches that take so much."""
        with np.errstate(invalid="ignore"):
            found = (self.rate * seconds + self.weight * joules) * seconds**self.delays
        return np.where(np.isinf(seconds), np.inf, found)

    def longest(self, value: Floats, joules: Floats) -> Floats:
        """The seconds with which a batch of so many joules has a value; 0 where none has as
        little."""
        rest = self.weight * joules
        if self.delays:
            return np.asarray(
                (np.sqrt(rest * rest + 4 * self.rate * value) - rest) / (2 * self.rate)
            )
        return np.maximum(0.0, (value - rest) / self.rate)


@dataclass(frozen=True, slots=True)
class Objective:
    """What is minimised where not time alone counts, for so many devices."""

    kind: str
    devices: int
    space: Mapping[str, Any]
    terms: Mapping[str, Any]

    def rates(self, chips: Chips, prices: Prices) -> Rates:
        """The rates of chips, each with its own memory."""
        money, carbon = self.kind == "throughput_per_usd", self.kind == "throughput_per_kgco2e"
        if not (money or carbon):
            return Rates(self.devices * prices.static, 1.0, int(self.kind == "energy_delay"))
        key = "electricity_usd_per_kwh" if money else "grid_kgco2e_per_kwh"
        weight = (
            number(self.terms[key], key)
            * positive(self.terms["power_usage_effectiveness"], "PUE")
            / J_PER_KWH
        )
        life = positive(self.terms["lifetime_years"], "lifetime_years") * SECONDS_A_YEAR
        making = making_usd if money else making_kgco2e
        made = making(chips, technology_of(self.space["base"]), self.terms, 0.0)
        return Rates(self.devices * (prices.static * weight + made / life), weight, 0)
