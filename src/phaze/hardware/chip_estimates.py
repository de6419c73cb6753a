"""What our models say of one chip: area, power, energies, and what making it takes.

Where a process sets the clock, power is that at the clock held and making is priced with links;
else power is the estimate of a TDP. Whoever asks for a figure asks here, and does not ask which of
them it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from phaze.hardware.chip import Chip
from phaze.hardware.clocked import chip_areas, clocked, full_rate_power
from phaze.hardware.manufacturing import Manufacturing, manufacturing_of
from phaze.hardware.ownership import Terms, lifetime_kwh
from phaze.hardware.technology import Technology


@dataclass(frozen=True, slots=True)
class ChipEstimates:
    """mm2 by part and in all, watts that are drawn whatever runs, design power and its parts, and
    the process, whose energies operators take.

    The design power of a chip of clusters is what it draws at the clock that it holds, its parts
    those of a large product; of cores the parts are every component at its full rate.
    """

    technology: Technology
    parts_mm2: Mapping[str, float]
    area_mm2: float
    static_w: float
    design_w: float
    power_parts_w: Mapping[str, float]

    @property
    def process(self) -> str:
        return self.technology.name


@dataclass(frozen=True, slots=True)
class Ownership:
    """Money (USD) and carbon (kgCO2e) of one device over its lifetime.

    running, USD    = power * utilisation * PUE * hours * price a kWh
    running, kgCO2e = energy * grid
    """

    making: Manufacturing
    energy_usd: float
    energy_kwh: float
    operational_kgco2e: float

    @property
    def total_usd(self) -> float:
        """Making and running."""
        return self.making.usd + self.energy_usd

    @property
    def total_kgco2e(self) -> float:
        """Making and running."""
        return self.making.kgco2e + self.operational_kgco2e


def estimates_of(chip: Chip) -> ChipEstimates | None:
    """The figures of a chip; None where it names no process."""
    technology, areas, figures = chip.process, chip_areas(chip), clocked(chip)
    if technology is None or areas is None:
        return None
    if figures is not None:
        idle_w = figures.power.idle_w
        return ChipEstimates(
            technology, areas.by_part(), areas.total, idle_w, figures.held_w, figures.parts_w
        )
    static_w, full = technology.energy.static_w_per_mm2 * areas.total, full_rate_power(chip)
    components = full.by_component()
    return ChipEstimates(
        technology, areas.by_component(), areas.total, static_w, full.design_w, components
    )


def ownership_of(chip: Chip, terms: Terms, average_w: float | None = None) -> Ownership | None:
    """Cost and carbon of a chip over its life at ``average_w``, or else at its design power; None
    where it names no process. Raises where no die fits a wafer."""
    making, figures = manufacturing_of(chip, terms), estimates_of(chip)
    if making is None or figures is None:
        return None
    energy_kwh = lifetime_kwh(figures.design_w if average_w is None else average_w, terms)
    return Ownership(
        making=making,
        energy_usd=energy_kwh * terms.electricity_usd_per_kwh,
        energy_kwh=energy_kwh,
        operational_kgco2e=energy_kwh * terms.grid_kgco2e_per_kwh,
    )
