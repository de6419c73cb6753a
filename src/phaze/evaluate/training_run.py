"""What training on so many tokens takes: days, device hours, money, energy and carbon.

batches      = ceil(tokens / tokens of a batch)
days         = batches x batch time / 86,400 s
device hours = devices of the job x hours, also of those that a plan leaves idle
USD          = device hours x the terms' price of one; unknown where they have none for the chip,
             for what a device
               costs to make is no price that anyone rents it at
kWh          = device hours x power in use x PUE;  power in use is the plan's own energy where that
             was computed,
               else the published TDP, else the estimate of it, times the terms' utilisation
kg CO2e      = kWh x grid intensity + manufacturing carbon over the lifetime, where the chip's
             technology is known
"""

import math
from dataclasses import dataclass
from typing import Any

from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import HOURS_PER_YEAR, Terms


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens to train on, and the terms that price them."""

    tokens: int
    terms: Terms

    def as_read(self) -> dict[str, Any]:
        """The budget as a problem states it: prices of a device hour apart from the constants of
        ownership."""
        prices = sorted(self.terms.device_usd_per_hour.items())
        return {
            "tokens": self.tokens,
            "terms": {"name": self.terms.name, "prices": prices, "terms": self.terms},
        }


@dataclass(frozen=True, slots=True)
class Pace:
    """What one batch is and takes; ``power_w`` is what a device draws, where the energy of the plan
    is known."""

    batch_tokens: int
    batch_s: float
    devices: int
    power_w: float | None = None


def _power(chip: Chip, pace: Pace, terms: Terms) -> tuple[float | None, str]:
    """Watts of a device in use, without PUE, and where they come from."""
    if pace.power_w is not None:
        return pace.power_w, "the energy of the plan"
    share, figures = terms.utilisation, estimates_of(chip)
    if chip.published.tdp_w is not None:
        return chip.published.tdp_w * share, f"{share:.0%} of the TDP, {chip.published.tdp_w:g} W"
    if figures is not None:
        design_w = figures.design_w
        return design_w * share, f"{share:.0%} of the TDP, an estimate of {design_w:.0f} W"
    return None, "neither TDP nor technology of the chip is known"


def _usd(hours: float, chip: Chip, terms: Terms) -> tuple[float | None, str]:
    """Dollars, and what they are made of, or what to give where no price is known."""
    price = terms.price(chip.name)
    if price is None:
        reason = f"the terms '{terms.name}' have no price of a device hour of {chip.name}"
        return None, f"{reason}; give one as device_usd_per_hour of --terms"
    return hours * price, f"{price:g} USD a device hour"


def training_run(budget: Budget, pace: Pace, chip: Chip) -> dict[str, Any]:
    """The document of a whole run: the formulas stand in the module's docstring."""
    terms = budget.terms
    batches = math.ceil(budget.tokens / pace.batch_tokens)
    seconds = batches * pace.batch_s
    hours = pace.devices * seconds / 3600.0
    power_w, power_basis = _power(chip, pace, terms)
    kwh = None if power_w is None else hours * power_w / 1e3 * terms.power_usage_effectiveness
    owned = manufacturing_of(chip, terms)
    usd, usd_basis = _usd(hours, chip, terms)
    embodied = None
    if owned is not None:
        embodied = owned.kgco2e * hours / (terms.lifetime_years * HOURS_PER_YEAR)
    operational = None if kwh is None else kwh * terms.grid_kgco2e_per_kwh
    return {
        "tokens": budget.tokens,
        "batches": batches,
        "days": seconds / 86400.0,
        "device_hours": hours,
        "usd": usd,
        "usd_basis": usd_basis,
        "kwh": kwh,
        "power_basis": power_basis,
        "kgco2e": None if operational is None else operational + (embodied or 0.0),
        "embodied_kgco2e": embodied,
        "terms": {
            "name": terms.name,
            "power_usage_effectiveness": terms.power_usage_effectiveness,
            "grid_kgco2e_per_kwh": terms.grid_kgco2e_per_kwh,
        },
    }
