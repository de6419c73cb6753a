"""What training on so many tokens takes: days, device hours, money, energy and carbon.

batches      = ceil(tokens / tokens of a batch)
days         = batches x batch time / 86,400 s
device hours = devices of the job x hours, also of those that a plan leaves idle
USD          = device hours x the terms' price of one; where they have none for the chip, manufacturing over its
               lifetime and electricity: a cost without margins, hosts and network
kWh          = device hours x power in use x PUE;  power in use is the plan's own energy where that was computed,
               else the published TDP, else the estimate of it, times the terms' utilisation
kg CO2e      = kWh x grid intensity + manufacturing carbon over the lifetime, where the chip's technology is known
"""

import math
from typing import Any

from phaze.dataclass import dataclass
from phaze.hardware.chip import Chip
from phaze.hardware.figures import Making, figures_of, making_of
from phaze.hardware.ownership import HOURS_PER_YEAR, RunTerms


@dataclass(frozen=True, slots=True)
class Budget:
    """Tokens to train on, and the terms that price them."""

    tokens: int
    terms: RunTerms


@dataclass(frozen=True, slots=True)
class Pace:
    """What one batch is and takes; ``power_w`` is what a device draws, where the energy of the plan is known."""

    batch_tokens: int
    batch_s: float
    devices: int
    power_w: float | None = None


def _power(chip: Chip, pace: Pace, terms: RunTerms) -> tuple[float | None, str]:
    """Watts of a device in use, without PUE, and where they come from."""
    if pace.power_w is not None:
        return pace.power_w, "the energy of the plan"
    share, figures = terms.terms.utilisation, figures_of(chip)
    if chip.published.tdp_w is not None:
        return chip.published.tdp_w * share, f"{share:.0%} of the TDP, {chip.published.tdp_w:g} W"
    if figures is not None:
        design_w = figures.design_w
        return design_w * share, f"{share:.0%} of the TDP, an estimate of {design_w:.0f} W"
    return None, "neither TDP nor technology of the chip is known"


def _usd(hours: float, kwh: float | None, chip: Chip, owned: Making | None, terms: RunTerms) -> tuple[Any, str]:
    """Dollars, and what they are made of."""
    price = terms.price(chip.name)
    if price is not None:
        return hours * price, f"{price:g} USD a device hour"
    if owned is None or kwh is None:
        return None, "the terms have no price of a device hour, and no technology of the chip is known"
    life_h = terms.terms.lifetime_years * HOURS_PER_YEAR
    usd = owned.usd * hours / life_h + kwh * terms.terms.electricity_usd_per_kwh
    return usd, (
        f"manufacturing over {terms.terms.lifetime_years:g} years and electricity at "
        f"{terms.terms.electricity_usd_per_kwh:g} USD a kWh, without margins, hosts and network"
    )


def training_run(budget: Budget, pace: Pace, chip: Chip) -> dict[str, Any]:
    """The document of a whole run: the formulas stand in the module's docstring."""
    terms = budget.terms
    batches = math.ceil(budget.tokens / pace.batch_tokens)
    seconds = batches * pace.batch_s
    hours = pace.devices * seconds / 3600.0
    power_w, power_basis = _power(chip, pace, terms)
    kwh = None if power_w is None else hours * power_w / 1e3 * terms.terms.power_usage_effectiveness
    owned = making_of(chip, terms.terms)
    usd, usd_basis = _usd(hours, kwh, chip, owned, terms)
    embodied = None
    if owned is not None:
        embodied = owned.kgco2e * hours / (terms.terms.lifetime_years * HOURS_PER_YEAR)
    operational = None if kwh is None else kwh * terms.terms.grid_kgco2e_per_kwh
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
            "power_usage_effectiveness": terms.terms.power_usage_effectiveness,
            "grid_kgco2e_per_kwh": terms.terms.grid_kgco2e_per_kwh,
        },
    }
