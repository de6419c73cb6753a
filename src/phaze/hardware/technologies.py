"""Process technologies of both versions behind one face: what ``phaze technologies`` lists and shows.

``phaze.technology/1`` prices chips of cores, ``phaze.technology/2`` chips of clusters.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from phaze import documents
from phaze.documents import Reader, plain_value
from phaze.errors import unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.bundled import preset_names, read
from phaze.hardware.technology import Fab, Technology
from phaze.hardware.technology_files import NODE, NODES, TECHNOLOGY, NodeFile, TechnologyFile, node_names, technology_in

MIB = 2**20


@dataclass(frozen=True, slots=True)
class Process:
    """A technology of either version, with what its file says beside its figures."""

    value: Technology
    notes: str | None
    sources: Mapping[str, str]

    @property
    def name(self) -> str:
        return self.value.name

    @property
    def title(self) -> str:
        return self.value.title

    @property
    def schema(self) -> str:
        return NODE.name if self.value.sets_clock else TECHNOLOGY.name

    @property
    def chips_of(self) -> Literal["cores", "clusters"]:
        """The kind of chips that it prices."""
        return "clusters" if self.value.sets_clock else "cores"

    @property
    def mac_mm2(self) -> float:
        return self.value.area.mac_mm2

    @property
    def mac_j(self) -> float:
        return self.value.energy.mac_j

    @property
    def hbm_j_per_byte(self) -> float:
        return self.value.energy.hbm_j_per_byte

    @property
    def static_w_per_mm2(self) -> float:
        """What is drawn whatever runs; of a node leakage alone."""
        return self.value.energy.static_w_per_mm2

    @property
    def fab(self) -> Fab:
        return self.value.fab

    def document(self) -> dict[str, Any]:
        """Plain values in SI units and mm2."""
        document: dict[str, Any] = plain_value(self.value)
        return document

    def rows(self) -> list[tuple[str, str]]:
        """Its figures in words."""
        rows = _cluster_rows(self.value) if self.value.sets_clock else _core_rows(self.value)
        return [*rows, ("wafer", f"{self.fab.wafer_usd:,.0f} USD, {self.fab.defects_per_cm2:g} defects a cm2")]


def _core_rows(value: Technology) -> list[tuple[str, str]]:
    area, energy = value.area, value.energy
    hbm, link = area.hbm_mm2_per_byte_per_s * 1e12, area.link_mm2_per_byte_per_s * 1e12
    return [
        ("MAC unit", f"{area.mac_mm2 * 1e6:,.1f} um2, {energy.mac_j * 1e12:.3f} pJ"),
        ("vector lane", f"{area.lane_mm2 * 1e6:,.1f} um2, {energy.lane_j * 1e12:.3f} pJ"),
        ("1 MiB scratchpad", f"{float(area.scratchpad.at(MIB)):.2f} mm2"),
        ("1 MiB cache", f"{float(area.cache.at(MIB)):.2f} mm2"),
        ("buffer of 1 MiB", f"{float(energy.buffer.at(MIB)) * 1e12:.2f} pJ a byte"),
        ("HBM", f"{hbm:.1f} mm2 a TB/s, {energy.hbm_j_per_byte * 1e12:.1f} pJ a byte"),
        ("links", f"{link:.1f} mm2 a TB/s, {energy.link_j_per_byte * 1e12:.1f} pJ a byte"),
        ("other area", f"{area.other_share:.0%} of the sum"),
        ("static power", f"{energy.static_w_per_mm2:.3f} W a mm2"),
    ]


def _cluster_rows(value: Technology) -> list[tuple[str, str]]:
    area, energy, volts = value.area, value.energy, value.voltage
    parts = (area.control_cluster_mm2, area.control_array_mm2, area.control_lane_mm2)
    control = ", ".join(f"{mm2 * 1e6:,.0f}" for mm2 in parts)
    sram, stored = float(area.scratchpad.at(MIB)), float(energy.buffer.at(MIB)) * 1e12
    network, wire = area.network_mm2 * 1e6, energy.wire_j * 1e12
    reference, most = volts.reference_hz / 1e9, volts.most_hz / 1e9
    return [
        ("MAC unit", f"{area.mac_mm2 * 1e6:,.1f} um2, {energy.mac_j * 1e12:.3f} pJ"),
        ("feed and drain", f"{area.support_mm2 * 1e6:,.1f} um2 a MAC unit, {energy.edge_j * 1e12:.2f} pJ a byte"),
        ("vector lane", f"{area.lane_mm2 * 1e6:,.1f} um2, {energy.lane_j * 1e12:.3f} pJ"),
        ("control", f"{control} um2 a cluster, an array, a lane"),
        ("1 MiB of SRAM", f"{sram:.2f} mm2, {stored:.2f} pJ a byte"),
        ("1 MiB of cache", f"{float(area.cache.at(MIB)):.2f} mm2"),
        ("network", f"{network:,.0f} um2 a byte/cycle and mm, {wire:.2f} pJ a byte and mm"),
        ("HBM", f"{area.ga100.stack_mm2:.1f} mm2 a stack, {energy.hbm_j_per_byte * 1e12:.1f} pJ a byte"),
        ("links", f"{area.ga100.lane_mm2:.3f} mm2 a lane of {8 * area.lane_bytes_per_s / 1e9:g} Gb/s"),
        ("uncore", f"{area.uncore_mm2:.0f} mm2 a die"),
        ("leakage", f"{energy.static_w_per_mm2:.4f} W a mm2"),
        ("voltage", f"1 at {reference:.2f} GHz, {volts.least:g} to {volts.most:g}; at most {most:.2f} GHz"),
    ]


def _process(file: TechnologyFile | NodeFile) -> Process:
    return Process(technology_in(file), file.notes, dict(file.sources))


def processes() -> tuple[Process, ...]:
    """Every bundled technology, those of chips of cores first."""
    cores = [_process(read(TechnologyFile, "technologies", name)) for name in preset_names("technologies")]
    return (*cores, *(_process(read(NodeFile, NODES, name)) for name in node_names()))


def processes_named(text: str, reader: Reader = read_text) -> tuple[Process, ...]:
    """The technologies of a name, one or one of each version; of a path the one that it has."""
    if is_path(text):
        raw, where = reader(text)
        found = documents.parse(raw, documents.notation_of(text, raw), where)
        if found.get("schema") == NODE.name:
            return (_process(documents.check(NodeFile, found, where)),)
        return (_process(documents.check(TechnologyFile, found, where)),)
    named = tuple(one for one in processes() if one.name == text)
    if not named:
        raise unknown_name("", "technology", text, sorted({one.name for one in processes()}))
    return named
