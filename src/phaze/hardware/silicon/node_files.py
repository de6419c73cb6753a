"""Process nodes as files (``phaze.technology/2``): in full, or as another node times factors.

A memory curve is given by sizes and ratios and scaled to meet a ``reference``, as in version 1.
"""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Document, Format, Hertz, NonNegative, Positive, Reader, Share
from phaze.errors import InputError
from phaze.files import read_text
from phaze.hardware.files import Name, Sources, Text
from phaze.hardware.library import preset_names, read
from phaze.hardware.silicon.node import (
    Factors,
    InterfaceAreas,
    Node,
    PartAreas,
    PartEnergies,
    Voltage,
    scaled,
)
from phaze.hardware.technology import Fab
from phaze.hardware.technology_files import GB, PJ, UM2, CurveTable, EnergyCurve, FabFile

KIND = "silicon/technologies"


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


class VoltageTable(Document):
    """The voltage over the clock."""

    reference: Hertz
    slope: Positive
    least: Positive
    most: Annotated[Positive, Field(ge=1)]


class FactorsTable(Document):
    """This node over its base."""

    logic: Positive
    sram: Positive
    analog: Positive
    energy: Positive


class NodeFile(Document):
    """A process node (``phaze.technology/2``)."""

    schema_: Annotated[Literal["phaze.technology/2"], Field(alias="schema")]
    name: Name
    title: Text
    base: Name | None = None
    factors: FactorsTable | None = None
    area: PartAreasTable | None = None
    energy: PartEnergiesTable | None = None
    wire_pj_per_byte_mm: NonNegative
    lane: BytesPerSecond
    voltage: VoltageTable
    fab: FabFile
    notes: Text | None = None
    sources: Sources = Field(default_factory=dict)

    @model_validator(mode="after")
    def _full_or_scaled(self) -> "NodeFile":
        full = self.area is not None and self.energy is not None
        named = self.base is not None and self.factors is not None
        some = any(x is not None for x in ((self.base, self.factors) if full else (self.area, self.energy)))
        if full == named or some:
            raise ValueError("give either area and energy, or base and factors")
        return self

    def value(self, base: Node | None = None) -> Node:
        """The node; ``base`` is the one it names."""
        voltage = Voltage(**self.voltage.model_dump(exclude={"reference"}), reference_hz=self.voltage.reference)
        fab = Fab(**self.fab.model_dump())
        if self.factors is not None and base is not None:
            found = scaled(base, Factors(**self.factors.model_dump()))
            area = replace(found.area, lane_bytes_per_s=self.lane)
            energy = replace(found.energy, wire_j=self.wire_pj_per_byte_mm * PJ)
            return Node(self.name, self.title, area, energy, voltage, fab)
        return Node(self.name, self.title, self._areas(), self._energies(), voltage, fab)

    def _areas(self) -> PartAreas:
        table = self.area
        if table is None:
            raise AssertionError("a full node has areas")
        return PartAreas(
            mac_mm2=table.mac_um2 * UM2,
            support_mm2=table.support_um2 * UM2,
            lane_mm2=table.lane_um2 * UM2,
            control_lane_mm2=table.control_lane_um2 * UM2,
            control_cluster_mm2=table.control_cluster_um2 * UM2,
            control_array_mm2=table.control_array_um2 * UM2,
            network_mm2=table.network_um2 * UM2,
            uncore_mm2=table.uncore_mm2,
            sram=table.sram.area(),
            cache=table.cache.area(),
            ga100=table.ga100.value(),
            aldebaran=table.aldebaran.value(),
            host_lanes=table.host_lanes,
            lane_bytes_per_s=self.lane,
        )

    def _energies(self) -> PartEnergies:
        table = self.energy
        if table is None:
            raise AssertionError("a full node has energies")
        return PartEnergies(
            mac_j=table.mac_pj * PJ,
            edge_j=table.edge_pj_per_byte * PJ,
            lane_j=table.lane_pj * PJ,
            buffer=table.buffer.energy(),
            core_bank_bytes=table.core_bank,
            wire_j=self.wire_pj_per_byte_mm * PJ,
            hbm_j_per_byte=table.hbm_pj_per_byte * PJ,
            link_j_per_byte=table.link_pj_per_byte * PJ,
            leakage_w_per_mm2=table.leakage_w_per_mm2,
            stack_w=table.stack_w,
            hbm_activity=table.hbm_activity,
        )


NODE = Format("phaze.technology/2", NodeFile, "a process for phaze.chip/2: parts, voltage, wafer")


def node_names() -> tuple[str, ...]:
    """The bundled nodes."""
    return preset_names(KIND)


def load_node(text: str, reader: Reader = read_text) -> Node:
    """A node by preset name or path; its base is a bundled node in full."""
    return node_in(read(NodeFile, KIND, text, reader))


def node_in(file: NodeFile) -> Node:
    """The node of a checked file."""
    if file.base is None:
        return file.value()
    base = read(NodeFile, KIND, file.base)
    if base.base is not None:
        raise InputError(f"{file.name}: base", f"'{file.base}' is itself scaled", "name a node that is given in full")
    return file.value(base.value())
