"""The tables of technology files: areas and energies of parts, memory curves.

A memory curve is given by sizes and areas. With a ``reference`` the areas count as ratios only, scaled so that the
curve meets the reference: area(size) = reference.area * areas(size) / areas(reference.size).
"""

from typing import Annotated

from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, Mm2, NonNegative, Positive, Share
from phaze.hardware.technology import AreaTable, Curve, EnergyTable, InterfaceAreas

PJ, UM2, GB = 1e-12, 1e-6, 1e9
REGISTER_FILE_BYTES = 8 * 2**20
"""Beyond this, storage beside lanes is a banked SRAM: no register file shipped is larger, TPU VMEM begins at 16 MiB."""


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
            control_cluster_mm2=self.vector_control_um2 * UM2,
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


class InterfacesTable(Document):
    """HBM and link interfaces of one die photo: links by the lane pair, or by the GB/s where lanes are not known."""

    stack_mm2: NonNegative
    lane_mm2: NonNegative = 0.0
    link_mm2_per_gb_per_s: NonNegative = 0.0

    def value(self) -> InterfaceAreas:
        return InterfaceAreas(self.stack_mm2, self.lane_mm2, self.link_mm2_per_gb_per_s / GB)


class PartAreasTable(Document):
    """Areas of parts."""

    mac_um2: Positive
    support_um2: NonNegative
    lane_um2: Positive
    control_lane_um2: NonNegative
    control_cluster_um2: NonNegative
    control_array_um2: NonNegative
    network_um2: Annotated[NonNegative, Field(description="a byte a cycle, and mm of distance")]
    uncore_mm2: NonNegative
    sram: CurveTable
    cache: CurveTable
    ga100: InterfacesTable
    aldebaran: InterfacesTable
    host_lanes: Annotated[int, Field(ge=0, le=1024)]

    def value(self, lane_bytes_per_s: float) -> AreaTable:
        units = ("mac", "support", "lane", "control_lane", "control_cluster", "control_array", "network")
        logic = {f"{name}_mm2": getattr(self, f"{name}_um2") * UM2 for name in units}
        sram = self.sram.area()
        return AreaTable(
            **logic,
            uncore_mm2=self.uncore_mm2,
            core_buffer=sram,
            scratchpad=sram,
            cache=self.cache.area(),
            ga100=self.ga100.value(),
            aldebaran=self.aldebaran.value(),
            host_lanes=self.host_lanes,
            lane_bytes_per_s=lane_bytes_per_s,
            register_file_bytes=REGISTER_FILE_BYTES,
            shared_cluster=True,
        )


class PartEnergiesTable(Document):
    """Energies of parts at the reference voltage, and idle power."""

    mac_pj: Positive
    edge_pj_per_byte: NonNegative
    lane_pj: Positive
    buffer: EnergyCurve
    core_bank: Bytes
    hbm_pj_per_byte: Positive
    link_pj_per_byte: Positive
    leakage_w_per_mm2: NonNegative
    stack_w: NonNegative
    hbm_activity: Share

    def value(self, wire_j: float) -> EnergyTable:
        return EnergyTable(
            mac_j=self.mac_pj * PJ,
            edge_j=self.edge_pj_per_byte * PJ,
            lane_j=self.lane_pj * PJ,
            buffer=self.buffer.energy(),
            core_bank_bytes=self.core_bank,
            wire_j=wire_j,
            hbm_j_per_byte=self.hbm_pj_per_byte * PJ,
            link_j_per_byte=self.link_pj_per_byte * PJ,
            static_w_per_mm2=self.leakage_w_per_mm2,
            stack_w=self.stack_w,
            hbm_activity=self.hbm_activity,
        )
