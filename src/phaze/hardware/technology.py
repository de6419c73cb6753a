"""A process technology: areas, energies, voltage over the clock, and wafers, with a source for
every number.

:mod:`phaze.hardware.area` and :mod:`phaze.hardware.power` say what each stands for.
``phaze.technology/1`` (the paper's areas among them) has no voltage and states the share of its
full rate that a chip holds at its design power; ``phaze.technology/2`` has a voltage, and a power
limit sets the clock. A file of version 2 gives a process in full, or as another one (``base``)
times four factors (:meth:`Node.scaled`):

    logic    multiply-accumulate units, lanes, control, network, half of the uncore
    sram     operand buffers, registers, global buffer, caches
    analog   HBM and link interfaces, half of the uncore
    energy   joules at the reference voltage; wires have their own figure, HBM and links none

Voltage over the clock, of the voltage at the reference clock: V(f) = max(least, 1 + slope (f /
reference - 1)), which ends at ``most``: no part of the node runs beyond that clock
(:attr:`Voltage.most_hz`).
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from pydantic import ConfigDict, Field, model_validator

from phaze import documents
from phaze.documents import BytesPerSecond, Document, Format, Hertz, NonNegative, Positive, Reader
from phaze.errors import InputError, unknown_name
from phaze.files import read_text
from phaze.hardware.bundled import bundled, keys_of, preset_names
from phaze.hardware.keys import Name, Sources, Text
from phaze.hardware.technology_tables import (
    Array,
    CoreAreas,
    CoreEnergies,
    PartAreas,
    PartEnergies,
    Pj,
)
from phaze.values import FrozenTable, replace

CORES, NODES = "technologies", "silicon/technologies"
"""Where processes lie: those of chips of cores, and those whose power limit sets the clock."""
LOGIC = (
    "mac_mm2", "support_mm2", "lane_mm2", "control_lane_mm2", "control_cluster_mm2",
    "control_array_mm2", "network_mm2",
)  # fmt: skip


class Voltage(Document):
    """The voltage over the clock, as a share of that at the reference clock."""

    reference_hz: Annotated[Hertz, Field(alias="reference")]
    slope: Positive
    least: Positive
    most: Annotated[Positive, Field(ge=1)]

    def at(self, clock_hz: ArrayLike) -> Array:
        """V(f) of the module's docstring."""
        clock = np.asarray(clock_hz, dtype=np.float64)
        volts: Array = np.maximum(self.least, 1.0 + self.slope * (clock / self.reference_hz - 1.0))
        return volts

    @property
    def most_hz(self) -> float:
        """The clock that the greatest voltage allows."""
        return (
            self.reference_hz * (1.0 + (self.most - 1.0) / self.slope)
            if self.slope
            else float("inf")
        )


CONSTANT_VOLTAGE = Voltage.model_construct(reference_hz=1.0, slope=0.0, least=1.0, most=1.0)
"""The same voltage at every clock."""


class Fab(Document):
    """The wafer: price, defects, carbon."""

    wafer_usd: Positive
    wafer_diameter_mm: Positive
    defects_per_cm2: NonNegative
    energy_kwh_per_cm2: NonNegative
    gas_kgco2e_per_cm2: NonNegative
    materials_kgco2e_per_cm2: NonNegative


class Factors(Document):
    """This node over its base: areas of logic, SRAM and analog parts, energy at the reference
    voltage."""

    logic: Positive
    sram: Positive
    analog: Positive
    energy: Positive


class Process(Document):
    """What both formats state of a process beside its tables.

    ``sets_clock``: a power limit sets the clock of its chips. ``prices_stacks``: HBM is priced by
    the stack of its generation, else by the GB. ``links_share``: of what joins a chip's links to
    others that its price has. ``port_fills``: what fills the buffers of a cluster, operands of
    vector units among it, is counted at its port, else where the global buffer is read.
    ``open_question``: what its areas leave open (docs/silicon.md).
    """

    name: Name
    title: Text
    fab: Fab
    notes: Text | None = None
    sources: Sources = Field(default_factory=FrozenTable)


class CoreTechnology(Process):
    """A process technology (``phaze.technology/1``)."""

    schema_: Annotated[Literal["phaze.technology/1"], Field(alias="schema")]
    area: CoreAreas
    energy: CoreEnergies

    sets_clock: ClassVar[bool] = False
    prices_stacks: ClassVar[bool] = False
    links_share: ClassVar[float] = 0.0
    port_fills: ClassVar[bool] = False
    open_question: ClassVar[str | None] = None
    voltage: ClassVar[Voltage] = CONSTANT_VOLTAGE
    wire_j: ClassVar[float] = 0.0
    lane_bytes_per_s: ClassVar[float] = float("inf")

    @property
    def sent_j_per_byte(self) -> float:
        """What a byte that is sent takes beside idle power."""
        return self.energy.link_j_per_byte

    def as_read(self) -> dict[str, Any]:
        """The figures as documents state them."""
        names = ("name", "title", "area", "energy", "fab")
        return {name: getattr(self, name) for name in names}


def _in_full_or_scaled(schema: dict[str, Any]) -> None:
    """In the JSON schema of a node: areas and energies may be those of its base."""
    schema["required"] = [key for key in schema["required"] if key not in ("area", "energy")]


class Node(Process):
    """A process node (``phaze.technology/2``), whose power limit sets the clock of its chips.

    ``wire_j``: a byte and mm. ``lane_bytes_per_s``: of one SerDes lane.
    """

    model_config = ConfigDict(json_schema_extra=_in_full_or_scaled)

    schema_: Annotated[Literal["phaze.technology/2"], Field(alias="schema")]
    base: Name | None = None
    factors: Factors | None = None
    area: PartAreas
    energy: PartEnergies
    wire_j: Annotated[Pj, Field(alias="wire_pj_per_byte_mm")]
    lane_bytes_per_s: Annotated[BytesPerSecond, Field(alias="lane")]
    voltage: Voltage

    sets_clock: ClassVar[bool] = True
    prices_stacks: ClassVar[bool] = True
    links_share: ClassVar[float] = 1.0
    port_fills: ClassVar[bool] = True
    open_question: ClassVar[str | None] = (
        "how much compute fits a die depends on TPU v4i, of which only an upper bound is published"
    )
    # SerDes never sleep and are drawn always.
    sent_j_per_byte: ClassVar[float] = 0.0

    @model_validator(mode="after")
    def _full_or_scaled(self) -> "Node":
        if (self.base is None) != (self.factors is None):
            raise ValueError(EITHER)
        return self

    def scaled(self) -> "Node":
        """The node with the areas and energies of its base, which it was read with, times its
        factors."""
        by, area, energy = self.factors, self.area, self.energy
        if by is None:
            return self
        areas: dict[str, Any] = {name: getattr(area, name) * by.logic for name in LOGIC}
        areas |= {name: getattr(area, name).scaled(by.sram) for name in ("sram", "cache")}
        areas |= {name: getattr(area, name).scaled(by.analog) for name in ("ga100", "aldebaran")}
        areas["uncore_mm2"] = area.uncore_mm2 * (by.logic + by.analog) / 2.0
        energies: dict[str, Any] = {
            name: getattr(energy, name) * by.energy for name in ("mac_j", "edge_j", "lane_j")
        }
        energies["buffer"] = energy.buffer.scaled(by.energy)
        return replace(self, area=replace(area, **areas), energy=replace(energy, **energies))

    def as_read(self) -> dict[str, Any]:
        """The figures as documents state them."""
        energy = self.energy
        return {
            "name": self.name,
            "title": self.title,
            "area": {**dict(self.area), "lane_bytes_per_s": self.lane_bytes_per_s},
            "energy": {
                "mac_j": energy.mac_j,
                "edge_j": energy.edge_j,
                "lane_j": energy.lane_j,
                "buffer": energy.buffer,
                "core_bank_bytes": energy.core_bank_bytes,
                "wire_j": self.wire_j,
                "hbm_j_per_byte": energy.hbm_j_per_byte,
                "link_j_per_byte": energy.link_j_per_byte,
                "leakage_w_per_mm2": energy.leakage_w_per_mm2,
                "stack_w": energy.stack_w,
                "hbm_activity": energy.hbm_activity,
            },
            "voltage": self.voltage,
            "fab": self.fab,
        }


Technology = CoreTechnology | Node
EITHER = "give either area and energy, or base and factors"
TECHNOLOGY = Format("phaze.technology/1", CoreTechnology, "a process: area, energy, wafer")
NODE = Format("phaze.technology/2", Node, "a process for phaze.chip/2: parts, voltage, wafer")


def node_names() -> tuple[str, ...]:
    """The bundled technologies of chips of clusters."""
    return preset_names(NODES)


def load_technology(text: str, reader: Reader = read_text) -> CoreTechnology:
    """A technology of chips of cores by preset name or path."""
    return documents.check(CoreTechnology, *keys_of(CORES, text, reader, "technology"))


def load_node(text: str, reader: Reader = read_text) -> Node:
    """A technology of chips of clusters by preset name or path."""
    return node_in(*keys_of(NODES, text, reader, "technology"))


def node_in(raw: Mapping[str, Any], where: str) -> Node:
    """The node that a file states; one that names a base has its areas and energies, times
    factors."""
    return documents.check(Node, _on_base(raw, where), where).scaled()


def _on_base(raw: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The keys of a node with the areas and energies of its base, which is a bundled one in
    full."""
    base = raw.get("base")
    if base is None:
        return raw
    if "area" in raw or "energy" in raw:
        raise InputError(where, "base beside area or energy cannot be used", EITHER)
    if base not in node_names():
        raise unknown_name(f"{where}: base", "technology", str(base), node_names())
    below = bundled(f"presets/{NODES}/{base}.toml")
    if "base" in below:
        raise InputError(
            f"{where}: base", f"'{base}' is itself scaled", "name a node that is given in full"
        )
    return {**raw, "area": below["area"], "energy": below["energy"]}
