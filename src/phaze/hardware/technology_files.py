"""Technology files (``phaze.technology/1``): a process as TOML, with a source for every number.

A memory curve is given by sizes and areas. With a ``reference`` the areas count as ratios only, scaled so that the
curve meets the reference: area(size) = reference.area * areas(size) / areas(reference.size).
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, Format, Mm2, NonNegative, Positive, Reader, Share
from phaze.files import read_text
from phaze.hardware.chip import Chip
from phaze.hardware.files import Name, Sources, Text
from phaze.hardware.library import read
from phaze.hardware.technology import AreaTable, Curve, EnergyTable, Fab, Technology

PJ, UM2, GB = 1e-12, 1e-6, 1e9


class ReferenceTable(Document):
    """A size whose area is known."""

    size: Bytes
    area: Mm2


class CurveTable(Document):
    """A figure at several sizes of a memory: ``values`` in mm2 (areas) or pJ a byte (energies)."""

    sizes: Annotated[list[Bytes], Field(min_length=2, max_length=64)]
    values: Annotated[list[Positive], Field(min_length=2, max_length=64)]
    reference: ReferenceTable | None = None

    @model_validator(mode="after")
    def _rising(self) -> "CurveTable":
        if len(self.sizes) != len(self.values):
            raise ValueError(f"give as many values as sizes ({len(self.values)} and {len(self.sizes)})")
        if self.sizes != sorted(set(self.sizes)) or self.values != sorted(self.values):
            raise ValueError("give sizes and values in rising order")
        return self

    def area(self) -> Curve:
        curve = Curve(tuple(self.sizes), tuple(self.values), through_origin=True)
        if self.reference is None:
            return curve
        return curve.scaled(self.reference.area / float(curve.at(self.reference.size)))

    def energy(self) -> Curve:
        return Curve(tuple(self.sizes), tuple(v * PJ for v in self.values), through_origin=False)


class AreaFile(Document):
    """Areas by component."""

    mac_um2: Positive
    lane_um2: Positive
    vector_control_um2: NonNegative
    core_buffer: CurveTable
    scratchpad: CurveTable
    cache: CurveTable | None = None
    network_mm2_per_byte_per_cycle: NonNegative
    hbm_mm2_per_gb_per_s: NonNegative
    link_mm2_per_gb_per_s: NonNegative
    other_share: Share

    def value(self) -> AreaTable:
        return AreaTable(
            mac_mm2=self.mac_um2 * UM2,
            lane_mm2=self.lane_um2 * UM2,
            vector_control_mm2=self.vector_control_um2 * UM2,
            core_buffer=self.core_buffer.area(),
            scratchpad=self.scratchpad.area(),
            cache=(self.cache or self.scratchpad).area(),
            network_mm2_per_byte_per_cycle=self.network_mm2_per_byte_per_cycle,
            hbm_mm2_per_byte_per_s=self.hbm_mm2_per_gb_per_s / GB,
            link_mm2_per_byte_per_s=self.link_mm2_per_gb_per_s / GB,
            other_share=self.other_share,
        )


class EnergyCurve(CurveTable):
    """Energies at several sizes: figures as they stand, for which no known area is a reference."""

    @model_validator(mode="after")
    def _as_they_stand(self) -> "EnergyCurve":
        if self.reference is not None:
            raise ValueError("energies are not scaled, so leave reference out")
        return self


class EnergyFile(Document):
    """Energies by component, static power by area."""

    mac_pj: Positive
    lane_pj: Positive
    buffer: EnergyCurve
    core_bank: Bytes
    hbm_pj_per_byte: Positive
    link_pj_per_byte: Positive
    static_w_per_mm2: NonNegative
    design_activity: Share

    def value(self) -> EnergyTable:
        return EnergyTable(
            mac_j=self.mac_pj * PJ,
            lane_j=self.lane_pj * PJ,
            buffer=self.buffer.energy(),
            core_bank_bytes=self.core_bank,
            hbm_j_per_byte=self.hbm_pj_per_byte * PJ,
            link_j_per_byte=self.link_pj_per_byte * PJ,
            static_w_per_mm2=self.static_w_per_mm2,
            design_activity=self.design_activity,
        )


class FabFile(Document):
    """The wafer: price, defects, carbon."""

    wafer_usd: Positive
    wafer_diameter_mm: Positive
    defects_per_cm2: NonNegative
    energy_kwh_per_cm2: NonNegative
    gas_kgco2e_per_cm2: NonNegative
    materials_kgco2e_per_cm2: NonNegative


class TechnologyFile(Document):
    """A process technology (``phaze.technology/1``)."""

    schema_: Annotated[Literal["phaze.technology/1"], Field(alias="schema")]
    name: Name
    title: Text
    area: AreaFile
    energy: EnergyFile
    fab: FabFile
    notes: Text | None = None
    sources: Sources = Field(default_factory=dict)

    def value(self) -> Technology:
        fab = Fab(**self.fab.model_dump())
        return Technology(self.name, self.title, self.area.value(), self.energy.value(), fab)


TECHNOLOGY = Format("phaze.technology/1", TechnologyFile, "a process: area, energy, wafer")


def load_technology(text: str, reader: Reader = read_text) -> Technology:
    """A technology by preset name or path."""
    return read(TechnologyFile, "technologies", text, reader).value()


def technology_of(chip: Chip) -> Technology | None:
    """The technology of a chip: the one that was read with it, or the one that it names; chips of clusters have a node
    instead."""
    if chip.clusters is not None:
        return None
    if chip.process is not None or chip.technology is None:
        return chip.process
    return load_technology(chip.technology)
