"""Process technologies of both versions behind one face: what ``phaze technologies`` lists and
shows.

``phaze.technology/1`` prices chips of cores, ``phaze.technology/2`` chips of clusters.
"""

from phaze import documents
from phaze.documents import Reader
from phaze.errors import unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.bundled import preset_names
from phaze.hardware.technology import (
    CORES,
    NODE,
    CoreTechnology,
    Technology,
    load_node,
    load_technology,
    node_in,
    node_names,
)

MIB = 2**20


def technology_rows(technology: Technology) -> list[tuple[str, str]]:
    """Its figures in words."""
    rows = _cluster_rows(technology) if technology.sets_clock else _core_rows(technology)
    fab = technology.fab
    return [*rows, ("wafer", f"{fab.wafer_usd:,.0f} USD, {fab.defects_per_cm2:g} defects a cm2")]


def _core_rows(technology: Technology) -> list[tuple[str, str]]:
    area, energy = technology.area, technology.energy
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


def _cluster_rows(technology: Technology) -> list[tuple[str, str]]:
    area, energy, volts = technology.area, technology.energy, technology.voltage
    parts = (area.control_cluster_mm2, area.control_array_mm2, area.control_lane_mm2)
    control = ", ".join(f"{mm2 * 1e6:,.0f}" for mm2 in parts)
    sram, stored = float(area.scratchpad.at(MIB)), float(energy.buffer.at(MIB)) * 1e12
    network, wire = area.network_mm2 * 1e6, technology.wire_j * 1e12
    reference, most = volts.reference_hz / 1e9, volts.most_hz / 1e9
    return [
        ("MAC unit", f"{area.mac_mm2 * 1e6:,.1f} um2, {energy.mac_j * 1e12:.3f} pJ"),
        (
            "feed and drain",
            f"{area.support_mm2 * 1e6:,.1f} um2 a MAC unit, {energy.edge_j * 1e12:.2f} pJ a byte",
        ),
        ("vector lane", f"{area.lane_mm2 * 1e6:,.1f} um2, {energy.lane_j * 1e12:.3f} pJ"),
        ("control", f"{control} um2 a cluster, an array, a lane"),
        ("1 MiB of SRAM", f"{sram:.2f} mm2, {stored:.2f} pJ a byte"),
        ("1 MiB of cache", f"{float(area.cache.at(MIB)):.2f} mm2"),
        ("network", f"{network:,.0f} um2 a byte/cycle and mm, {wire:.2f} pJ a byte and mm"),
        (
            "HBM",
            f"{area.ga100.stack_mm2:.1f} mm2 a stack, {energy.hbm_j_per_byte * 1e12:.1f} pJ a byte",
        ),
        (
            "links",
            (
                f"{area.ga100.lane_mm2:.3f} mm2 a lane of "
                f"{8 * technology.lane_bytes_per_s / 1e9:g} Gb/s"
            ),
        ),
        ("uncore", f"{area.uncore_mm2:.0f} mm2 a die"),
        ("leakage", f"{energy.static_w_per_mm2:.4f} W a mm2"),
        (
            "voltage",
            f"1 at {reference:.2f} GHz, {volts.least:g} to {volts.most:g}; at most {most:.2f} GHz",
        ),
    ]


def technologies() -> tuple[Technology, ...]:
    """Every bundled technology, those of chips of cores first."""
    return (*map(load_technology, preset_names(CORES)), *map(load_node, node_names()))


def technologies_named(text: str, reader: Reader = read_text) -> tuple[Technology, ...]:
    """The technologies of a name, one or one of each version; of a path the one that it has."""
    if is_path(text):
        raw, where = reader(text)
        document = documents.parse(raw, documents.notation_of(text, raw), where)
        if document.get("schema") == NODE.name:
            return (node_in(document, where),)
        return (documents.check(CoreTechnology, document, where),)
    bundled = technologies()
    named = tuple(technology for technology in bundled if technology.name == text)
    if not named:
        raise unknown_name(
            "", "technology", text, sorted({technology.name for technology in bundled})
        )
    return named
