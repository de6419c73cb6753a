"""Technology files (``phaze.technology/1`` and ``/2``): a process as TOML, with a source for every number.

A file of version 2 gives a process in full, or as another one (``base``) times factors.
"""

from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze.documents import BytesPerSecond, Document, Format, NonNegative, Reader
from phaze.errors import InputError
from phaze.files import read_text
from phaze.hardware.bundled import preset_names, read
from phaze.hardware.keys import Name, Sources, Text
from phaze.hardware.technology import Fab, Factors, Technology, Voltage, scaled
from phaze.hardware.technology_tables import (
    PJ,
    AreaFile,
    EnergyFile,
    PartAreasTable,
    PartEnergiesTable,
)
from phaze.values import FrozenTable

NODES = "silicon/technologies"
"""Where processes lie whose power limit sets the clock."""


class TechnologyFile(Document):
    """A process technology (``phaze.technology/1``)."""

    schema_: Annotated[Literal["phaze.technology/1"], Field(alias="schema")]
    name: Name
    title: Text
    area: AreaFile
    energy: EnergyFile
    fab: Fab
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)

    def value(self) -> Technology:
        area, energy = self.area.value(), self.energy.value()
        return Technology(self.name, self.title, area, energy, self.fab, notes=self.notes, sources=self.sources)


class NodeFile(Document):
    """A process node (``phaze.technology/2``)."""

    schema_: Annotated[Literal["phaze.technology/2"], Field(alias="schema")]
    name: Name
    title: Text
    base: Name | None = None
    factors: Factors | None = None
    area: PartAreasTable | None = None
    energy: PartEnergiesTable | None = None
    wire_pj_per_byte_mm: NonNegative
    lane: BytesPerSecond
    voltage: Voltage
    fab: Fab
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)

    @model_validator(mode="after")
    def _full_or_scaled(self) -> "NodeFile":
        full = self.area is not None and self.energy is not None
        named = self.base is not None and self.factors is not None
        some = any(x is not None for x in ((self.base, self.factors) if full else (self.area, self.energy)))
        if full == named or some:
            raise ValueError("give either area and energy, or base and factors")
        return self

    def value(self, base: Technology | None = None) -> Technology:
        """The process; ``base`` is the one it names."""
        wire_j = self.wire_pj_per_byte_mm * PJ
        if self.factors is not None and base is not None:
            times = scaled(base, self.factors)
            area = replace(times.area, lane_bytes_per_s=self.lane)
            energy = replace(times.energy, wire_j=wire_j)
        elif self.area is not None and self.energy is not None:
            area, energy = self.area.value(self.lane), self.energy.value(wire_j)
        else:
            raise AssertionError("a process in full has areas and energies")
        return Technology(self.name, self.title, area, energy, self.fab, self.voltage, self.notes, self.sources)


TECHNOLOGY = Format("phaze.technology/1", TechnologyFile, "a process: area, energy, wafer")
NODE = Format("phaze.technology/2", NodeFile, "a process for phaze.chip/2: parts, voltage, wafer")


def load_technology(text: str, reader: Reader = read_text) -> Technology:
    """A technology of chips of cores by preset name or path."""
    return read(TechnologyFile, "technologies", text, reader).value()


def load_node(text: str, reader: Reader = read_text) -> Technology:
    """A technology of chips of clusters by preset name or path; its base is a bundled one in full."""
    return technology_in(read(NodeFile, NODES, text, reader))


def node_names() -> tuple[str, ...]:
    """The bundled technologies of chips of clusters."""
    return preset_names(NODES)


def technology_in(file: TechnologyFile | NodeFile) -> Technology:
    """The technology of a checked file."""
    if isinstance(file, TechnologyFile) or file.base is None:
        return file.value()
    base = read(NodeFile, NODES, file.base)
    if base.base is not None:
        raise InputError(f"{file.name}: base", f"'{file.base}' is itself scaled", "name a node that is given in full")
    return file.value(base.value())
