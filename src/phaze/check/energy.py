"""Energy of runs, and what scores make of it (docs/search.md, docs/cost.md, Energy).

A batch takes T seconds and D joules beyond static power; with K devices of s watts, a weight of a
joule and what each second of a device's making counts,

    value = (rate T + weight D) T^p,      rate = K (s weight + making / life)
                                          (:class:`Rates`)

and rises with T and with D; of throughput it is T. A work takes, with its bytes at every level as
its fastest mapping moves them (of equals the one that moves least to HBM, then least through the
global buffer, then the first),

    mac M + edge E + port P + filled F + lane O + vector V + shared (G + H) + hbm H
                                          (:class:`.silicon.Prices`)

with M multiply-accumulates, E bytes at the arrays' edges, P through ports of clusters, F between
cores and the global buffer, O lane operations, V bytes of vector work, G through the global buffer,
H to HBM. What a batch takes beside its works: :mod:`.plan_energy`.

A plan is to be shown to have no *corner* of values for itself: it reaches one of them in every
corner (:class:`Goals`). A search has one corner of one value; a front of several metrics of a run
one for every gap between its designs.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Chips
from .limits import making_kgco2e, making_usd
from .reading import number, positive
from .silicon import prices_of
from .technology import technology_of

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
KINDS = (
    "throughput",
    "throughput_per_watt",
    "throughput_per_usd",
    "throughput_per_kgco2e",
    "energy_delay",
)
OF_MEMORY = frozenset({"throughput_per_usd", "throughput_per_kgco2e"})
"""Kinds in which manufacturing a memory counts."""
J_PER_KWH, SECONDS_A_YEAR = 3.6e6, 365.25 * 24 * 3600.0


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
            value = (self.rate * seconds + self.weight * joules) * seconds**self.delays
        return np.where(np.isinf(seconds), np.inf, value)

    def longest(self, value: Floats, joules: Floats) -> Floats:
        """The seconds with which a batch of so many joules has a value; 0 where none has as
        little."""
        rest = self.weight * joules
        with np.errstate(invalid="ignore"):
            if self.delays:
                root = np.sqrt(rest * rest + 4 * self.rate * value)
                seconds = (root - rest) / (2 * self.rate)
            else:
                seconds = np.maximum(0.0, (value - rest) / self.rate)
        return np.where(np.isinf(value), np.inf, seconds)


@dataclass(frozen=True, slots=True)
class Objectives:
    """What of a run counts, one after the other, for so many devices."""

    kinds: tuple[str, ...]
    devices: int
    space: Mapping[str, Any]
    terms: Mapping[str, Any]

    @property
    def of_energy(self) -> bool:
        """Whether anything but time counts."""
        return self.kinds != ("throughput",)

    def rates(self, chips: Chips, hbm_bytes: Floats) -> tuple[Rates, ...]:
        """The rates of every kind, of chips with these memories."""
        return tuple(self._rates(kind, chips, hbm_bytes) for kind in self.kinds)

    def _rates(self, kind: str, chips: Chips, hbm_bytes: Floats) -> Rates:
        if kind == "throughput":
            return Rates(np.ones(len(chips)), 0.0, 0)
        made = technology_of(self.space["base"])
        static = prices_of(chips, made).static
        if kind not in OF_MEMORY:
            return Rates(self.devices * static, 1.0, int(kind == "energy_delay"))
        money = kind == "throughput_per_usd"
        key = "electricity_usd_per_kwh" if money else "grid_kgco2e_per_kwh"
        overhead = positive(self.terms["power_usage_effectiveness"], "PUE")
        weight = number(self.terms[key], key) * overhead / J_PER_KWH
        life = positive(self.terms["lifetime_years"], "lifetime_years") * SECONDS_A_YEAR
        making = making_usd if money else making_kgco2e
        manufacturing = making(chips, made, self.terms, hbm_bytes)
        return Rates(self.devices * (static * weight + manufacturing / life), weight, 0)


@dataclass(frozen=True, slots=True)
class Goals:
    """Corners that no plan of a chip may have for itself, [kinds, corners, chips], and which of
    them are still to be shown, [corners, chips]."""

    corners: Floats
    open: Flags

    def taken(self, index: NDArray[Any]) -> "Goals":
        """Those of some chips."""
        return Goals(self.corners[:, :, index], self.open[:, index])

    def seconds(self, rates: tuple[Rates, ...], joules: Floats) -> Floats:
        """From how many seconds on a plan of so many joules reaches one value of a corner,
        [corners, chips]."""
        every = [
            rate.longest(values, joules) for rate, values in zip(rates, self.corners, strict=True)
        ]
        return np.asarray(np.min(every, axis=0))

    def limit(self, rates: tuple[Rates, ...], joules: Floats) -> Floats:
        """From how many on it does in every corner that is open."""
        return np.asarray(np.where(self.open, self.seconds(rates, joules), 0.0).max(axis=0))


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of configurations: values that no plan undercuts [configurations, kinds,
    chips], and corners of which none has one for itself [configurations, corners, chips]."""

    values: Floats
    corners: Flags

    def taken(self, index: NDArray[Any]) -> "Shown":
        """Of some chips."""
        return Shown(self.values[:, :, index], self.corners[:, :, index])

    def sharpen(self, rows: NDArray[Any], index: NDArray[Any], more: "Shown") -> None:
        """Add what is shown of some configurations on some chips."""
        values = np.ix_(rows, np.arange(self.values.shape[1]), index)
        corners = np.ix_(rows, np.arange(self.corners.shape[1]), index)
        self.values[values] = np.maximum(self.values[values], more.values)
        self.corners[corners] |= more.corners
