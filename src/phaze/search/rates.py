"""The rates of an objective for every chip and memory of a space, or for one chip (:class:`Rates`)."""

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.hardware.chip import Chip
from phaze.hardware.ownership import HOURS_PER_YEAR, Terms, load_terms, ownership_of
from phaze.hardware.technology import Technology, chip_areas
from phaze.hardware.technology_files import technology_of
from phaze.search.chips import SpaceChips
from phaze.search.objective import Objective, Rates
from phaze.search.owned import making_kgco2e, making_usd

Floats = NDArray[np.float64]
J_PER_KWH = 3.6e6


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


def _allowed(opened: SpaceChips, technology: Technology, terms: Terms, hbm_bytes: list[int]) -> Floats:
    """1 where chip and memory are within the space's price, else infinite, [memories, chips]."""
    most = opened.space.keep.most_usd
    if most is None:
        return np.broadcast_to(1.0, (len(hbm_bytes), len(opened)))
    dies = opened.base.silicon.dies
    usd = np.stack([making_usd(opened.chips, dies, technology.fab, terms, size) for size in hbm_bytes])
    return np.where(usd <= most * (1 + 1e-12), 1.0, np.inf)


def rates_of(objective: Objective, opened: SpaceChips, hbm_bytes: list[int], devices: int) -> Rates:
    """The rates of every memory and chip."""
    terms, technology, chips = load_terms(), opened.technology, opened.chips
    allowed = _allowed(opened, technology, terms, hbm_bytes)
    weight, delays = _weight(objective, terms), objective.delays
    if objective.kind == "throughput":
        return Rates(allowed, weight, delays)
    static_w = technology.energy.static_w_per_mm2 * chips.area_mm2
    rate = np.broadcast_to(devices * static_w * weight, allowed.shape)
    if objective.needs_hbm:
        making = making_usd if objective.kind == "throughput_per_usd" else making_kgco2e
        dies = opened.base.silicon.dies
        made = np.stack([making(chips, dies, technology.fab, terms, size) for size in hbm_bytes])
        rate = rate + devices * _a_second(made, terms)
    return Rates(np.asarray(rate * allowed), weight, delays)


def chip_rates(objective: Objective, chip: Chip, devices: int) -> Rates:
    """The rates of one chip with its own memory, by the formulas for one chip."""
    terms, weight = load_terms(), _weight(objective, load_terms())
    if objective.kind == "throughput":
        return Rates(np.asarray(1.0), weight, objective.delays)
    technology = technology_of(chip)
    if technology is None:
        raise InputError("objective.baseline", f"{chip.name} names no technology", "choose a chip that does")
    rate = devices * technology.energy.static_w_per_mm2 * float(chip_areas(technology, chip).total()) * weight
    if objective.needs_hbm:
        owned = ownership_of(chip, technology, terms)
        making = owned.making_usd if objective.kind == "throughput_per_usd" else owned.embodied_kgco2e
        rate += devices * float(_a_second(np.asarray(making), terms))
    return Rates(np.asarray(rate), weight, objective.delays)
