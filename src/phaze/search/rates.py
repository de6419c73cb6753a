"""The rates of an objective for every chip and memory of a space, or for one chip
(:class:`Rates`)."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import HOURS_PER_YEAR, Terms, load_terms
from phaze.search.objective import Objective, Rates
from phaze.search.space import Space

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# 1,000 W for 3,600 s.
J_PER_KWH = 3.6e6


class Rated(Protocol):
    """What rates ask of chips."""

    def __len__(self) -> int: ...

    @property
    def space(self) -> Space: ...

    def allowed(self, hbm_bytes: int) -> NDArray[np.bool_]: ...

    def static_w(self) -> Floats: ...

    def making_usd(self, hbm_bytes: int) -> Floats: ...

    def making_kgco2e(self, hbm_bytes: int) -> Floats: ...


def _weight(objective: Objective, terms: Terms) -> float:
    """What a joule counts."""
    if objective.kind == "throughput":
        return 0.0
    if not objective.needs_hbm:
        return 1.0
    money = objective.kind == "throughput_per_usd"
    a_kwh = terms.electricity_usd_per_kwh if money else terms.grid_kgco2e_per_kwh
    return a_kwh * terms.power_usage_effectiveness / J_PER_KWH


def _a_second(making: Floats, terms: Terms) -> Floats:
    """What a chip's making counts for each second that it serves."""
    return making / (terms.lifetime_years * HOURS_PER_YEAR * 3600.0)


def _allowed(chips: Rated, hbm_bytes: list[int]) -> Floats:
    """1 where a chip may have a memory, else infinite, [memories, chips]."""
    if not chips.space.memory_limited:
        return np.broadcast_to(1.0, (len(hbm_bytes), len(chips)))
    return np.where(np.stack([chips.allowed(size) for size in hbm_bytes]), 1.0, np.inf)


def alike(allowed: NDArray[np.bool_]) -> Iterator[tuple[Integers, Integers]]:
    """Of [memories, chips]: which memories and which chips have each other; chips that may have
    none are left out."""
    if allowed.all():
        yield np.arange(len(allowed)), np.arange(allowed.shape[1])
        return
    kinds, of = np.unique(allowed, axis=1, return_inverse=True)
    for kind in range(kinds.shape[1]):
        if kinds[:, kind].any():
            yield np.flatnonzero(kinds[:, kind]), np.flatnonzero(of.ravel() == kind)


def rates_of(objective: Objective, chips: Rated, hbm_bytes: list[int], devices: int) -> Rates:
    """The rates of every memory and chip."""
    terms, allowed = load_terms(), _allowed(chips, hbm_bytes)
    weight, delays = _weight(objective, terms), objective.delays
    if objective.kind == "throughput":
        return Rates(allowed, weight, delays)
    rate = np.broadcast_to(devices * chips.static_w() * weight, allowed.shape)
    if objective.needs_hbm:
        making = chips.making_usd if objective.kind == "throughput_per_usd" else chips.making_kgco2e
        manufacture = np.stack([making(size) for size in hbm_bytes])
        rate = rate + devices * _a_second(manufacture, terms)
    return Rates(np.asarray(rate * allowed), weight, delays)


def chip_rates(objective: Objective, chip: Chip, devices: int) -> Rates:
    """The rates of one chip with its own memory, by the formulas for one chip."""
    terms, weight = load_terms(), _weight(objective, load_terms())
    if objective.kind == "throughput":
        return Rates(np.asarray(1.0), weight, objective.delays)
    figures = estimates_of(chip)
    if figures is None:
        raise InputError(
            "objective.baseline", f"{chip.name} names no technology", "choose a chip that does"
        )
    rate = devices * figures.static_w * weight
    manufacture = manufacturing_of(chip, terms) if objective.needs_hbm else None
    if manufacture is not None:
        making = manufacture.usd if objective.kind == "throughput_per_usd" else manufacture.kgco2e
        rate += devices * float(_a_second(np.asarray(making), terms))
    return Rates(np.asarray(rate), weight, objective.delays)
