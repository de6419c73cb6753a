"""What a chip costs to own: money and carbon of making it, and of running it.

For dies of area A mm2 on a wafer of radius R mm (:func:`dies_per_wafer`, :func:`die_yield`):

    dies per wafer  N = pi (R^2 - R sqrt(2 A)) / A                  (rounded down, at least 1 if it fits at all)
    yield           Y = (1 + A D / alpha)^(-alpha)                  (negative binomial; A in cm2, D defects a cm2)
    die             = wafer price / (N Y)
    making, USD     = dies * die + HBM GB * price + package
    running, USD    = power * utilisation * PUE * hours * price a kWh
    making, kgCO2e  = dies * A (fab grid * fab energy + gases + materials) / Y + HBM GB * c_hbm + package
    running, kgCO2e = energy * grid
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from phaze.documents import Document, Format, NonNegative, Positive, Reader, Share
from phaze.errors import InfeasibleError
from phaze.files import read_text
from phaze.hardware.bundled import read
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import chip_areas, full_rate_power
from phaze.hardware.keys import Name, Sources, Text
from phaze.hardware.technology import Fab

HOURS_PER_YEAR = 8766.0
"""365.25 days."""
GB = 1e9


@dataclass(frozen=True, slots=True)
class Terms:
    """The constants of ownership that are not the process's own."""

    yield_clustering: float
    hbm_usd_per_gb: float
    package_usd: float
    lifetime_years: float
    utilisation: float
    power_usage_effectiveness: float
    electricity_usd_per_kwh: float
    grid_kgco2e_per_kwh: float
    fab_grid_kgco2e_per_kwh: float
    hbm_kgco2e_per_gb: float
    package_kgco2e: float


@dataclass(frozen=True, slots=True)
class RunTerms:
    """What a whole training run is priced with: prices of a device hour by chip, and the constants of ownership."""

    name: str
    prices: tuple[tuple[str, float], ...]
    terms: Terms

    def price(self, chip: str) -> float | None:
        """USD of a device hour of a chip, else that of ``any``."""
        known = dict(self.prices)
        return known.get(chip, known.get("any"))


class TermsFile(Document):
    """Ownership constants (``phaze.ownership/1``)."""

    schema_: Annotated[Literal["phaze.ownership/1"], Field(alias="schema")]
    name: Name
    title: Text
    yield_clustering: Positive
    hbm_usd_per_gb: NonNegative
    package_usd: NonNegative
    lifetime_years: Positive
    utilisation: Share
    power_usage_effectiveness: Annotated[Positive, Field(ge=1)]
    electricity_usd_per_kwh: NonNegative
    grid_kgco2e_per_kwh: NonNegative
    fab_grid_kgco2e_per_kwh: NonNegative
    hbm_kgco2e_per_gb: NonNegative
    package_kgco2e: NonNegative
    device_usd_per_hour: Annotated[Mapping[str, NonNegative], Field(default_factory=dict)]
    notes: Text | None = None
    sources: Sources = Field(default_factory=dict)

    def value(self) -> Terms:
        apart = {"schema_", "name", "title", "device_usd_per_hour", "notes", "sources"}
        return Terms(**self.model_dump(exclude=apart))


OWNERSHIP = Format("phaze.ownership/1", TermsFile, "prices, lifetime and carbon intensities")


@dataclass(frozen=True, slots=True)
class Ownership:
    """Money (USD) and carbon (kgCO2e) of one device over its lifetime."""

    dies_per_wafer: int
    yield_share: float
    die_usd: float
    hbm_usd: float
    package_usd: float
    energy_usd: float
    energy_kwh: float
    embodied_kgco2e: float
    operational_kgco2e: float
    links_usd: float = 0.0

    @property
    def making_usd(self) -> float:
        """Dies, HBM, package, and of a chip of clusters what joins its links to others."""
        return self.die_usd + self.hbm_usd + self.package_usd + self.links_usd

    @property
    def total_usd(self) -> float:
        """Making and running."""
        return self.making_usd + self.energy_usd

    @property
    def total_kgco2e(self) -> float:
        """Making and running."""
        return self.embodied_kgco2e + self.operational_kgco2e


def load_terms(text: str = "default") -> Terms:
    """Ownership constants by preset name or path."""
    return read(TermsFile, "ownership", text).value()


def load_run_terms(text: str = "default", reader: Reader = read_text) -> RunTerms:
    """What a training run is priced with, by preset name or path."""
    file = read(TermsFile, "ownership", text, reader)
    return RunTerms(file.name, tuple(sorted(file.device_usd_per_hour.items())), file.value())


def dies_per_wafer(area_mm2: float, diameter_mm: float) -> int:
    """Whole dies of ``area_mm2`` on a round wafer; 0 if none fits."""
    radius = diameter_mm / 2
    return max(0, math.floor(math.pi * (radius**2 - radius * math.sqrt(2 * area_mm2)) / area_mm2))


def die_yield(area_mm2: float, defects_per_cm2: float, clustering: float) -> float:
    """Share of dies without a defect, negative binomial."""
    return float((1 + area_mm2 / 100 * defects_per_cm2 / clustering) ** -clustering)


def _good_dies(area_mm2: float, fab: Fab, terms: Terms) -> tuple[int, float]:
    count = dies_per_wafer(area_mm2, fab.wafer_diameter_mm)
    if count == 0:
        raise InfeasibleError(
            f"A die of {area_mm2:.0f} mm2 does not fit a wafer of {fab.wafer_diameter_mm:.0f} mm; "
            "split the chip into more dies.",
            {"needed_mm2": area_mm2, "wafer_diameter_mm": fab.wafer_diameter_mm},
        )
    return count, die_yield(area_mm2, fab.defects_per_cm2, terms.yield_clustering)


def lifetime_kwh(power_w: float, terms: Terms) -> float:
    """Energy of a device over its life, with what cooling and conversion take."""
    hours = terms.lifetime_years * HOURS_PER_YEAR
    return power_w / 1e3 * terms.utilisation * terms.power_usage_effectiveness * hours


def fab_kgco2e_per_cm2(fab: Fab, terms: Terms) -> float:
    """Carbon of making a cm2 of die, good or not."""
    per_cm2 = terms.fab_grid_kgco2e_per_kwh * fab.energy_kwh_per_cm2
    return per_cm2 + fab.gas_kgco2e_per_cm2 + fab.materials_kgco2e_per_cm2


def ownership_of(chip: Chip, terms: Terms, average_w: float | None = None) -> Ownership:
    """Cost and carbon of a chip of cores whose process was read with it; power is ``average_w``, or else the design
    power estimate."""
    areas = chip_areas(chip)
    if chip.process is None or areas is None:
        raise AssertionError(f"{chip.name} names no process")
    fab, dies = chip.process.fab, chip.built.dies
    die_mm2 = areas.total / dies
    count, good = _good_dies(die_mm2, fab, terms)
    power_w = full_rate_power(chip).design_w if average_w is None else average_w
    energy_kwh = lifetime_kwh(power_w, terms)
    hbm_gb = chip.hbm.size_bytes / GB
    carbon_per_cm2 = fab_kgco2e_per_cm2(fab, terms)
    return Ownership(
        dies_per_wafer=count,
        yield_share=good,
        die_usd=dies * fab.wafer_usd / (count * good),
        hbm_usd=hbm_gb * terms.hbm_usd_per_gb,
        package_usd=terms.package_usd,
        energy_usd=energy_kwh * terms.electricity_usd_per_kwh,
        energy_kwh=energy_kwh,
        embodied_kgco2e=dies * die_mm2 / 100 * carbon_per_cm2 / good
        + hbm_gb * terms.hbm_kgco2e_per_gb
        + terms.package_kgco2e,
        operational_kgco2e=energy_kwh * terms.grid_kgco2e_per_kwh,
    )
