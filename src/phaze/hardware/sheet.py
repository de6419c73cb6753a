"""A chip's data sheet: what it is, and what our models say of its area, power and cost."""

from dataclasses import asdict, dataclass
from typing import Any

from phaze.errors import InfeasibleError
from phaze.hardware.chip import Chip
from phaze.hardware.ownership import Ownership, Terms, ownership_of
from phaze.hardware.power import Power, full_rate_power
from phaze.hardware.technology import Areas, chip_areas
from phaze.hardware.technology_files import technology_of


@dataclass(frozen=True, slots=True)
class Sheet:
    """A chip with its estimates; None where the chip names no technology, and no ownership where it cannot be made."""

    chip: Chip
    areas: Areas | None = None
    power: Power | None = None
    ownership: Ownership | None = None
    obstacle: str | None = None

    @property
    def area_mm2(self) -> float | None:
        return None if self.areas is None else float(self.areas.total())

    @property
    def power_w(self) -> float | None:
        return None if self.power is None else self.power.design_w


def sheet_of(chip: Chip, terms: Terms) -> Sheet:
    """The sheet of ``chip`` in the technology that it names."""
    technology = technology_of(chip)
    if technology is None:
        return Sheet(chip)
    areas, power = chip_areas(technology, chip), full_rate_power(technology, chip)
    try:
        return Sheet(chip, areas, power, ownership_of(chip, technology, terms))
    except InfeasibleError as fault:
        return Sheet(chip, areas, power, obstacle=str(fault))


def sheet_document(sheet: Sheet) -> dict[str, Any]:
    """The sheet as plain values in SI units."""
    chip, owned = sheet.chip, sheet.ownership
    money = ("dies_per_wafer", "yield_share", "die_usd", "hbm_usd", "package_usd", "making_usd", "energy_usd")
    carbon = ("total_usd", "energy_kwh", "embodied_kgco2e", "operational_kgco2e", "total_kgco2e")
    return {
        **asdict(chip),
        "peak_flops": chip.peak_flops,
        "vector_flops": chip.vector_flops,
        "area_mm2": sheet.area_mm2,
        "area_by_component_mm2": None if sheet.areas is None else sheet.areas.by_component(),
        "design_power_w": sheet.power_w,
        "full_rate_power_by_component_w": None if sheet.power is None else sheet.power.by_component(),
        "obstacle": sheet.obstacle,
        "ownership": None if owned is None else {name: getattr(owned, name) for name in (*money, *carbon)},
    }
