"""What chips are made in, of both schemas of technologies the same values (docs/technology.md,
docs/silicon.md).

phaze.technology/2 states them for chips of clusters. phaze.technology/1, the form of the paper's
area table, is read into the same: a share for all else scales every area, an activity scales every
joule of the design power, a core has no port and no wires of its own, its buffer is filled by what
the global buffer reads, its links take energy by the byte that they send, and its voltage does not
change.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .reading import cover, listed, number, positive, require, whole

Floats = NDArray[np.float64]
SPARE_EVERY = 12.0
"""One more cluster is built for every twelve: docs/silicon.md."""
CLUSTERS = frozenset({"accelerator", "node", "base_node", "software_of"})
DESIGN = frozenset({
    "name", "title", "clock_hz", "technology", "clusters", "global_buffer", "hbm", "links", "built",
    "sustained_w",
    "cluster", "clock_basis", "published", "measured", "formats", "host_bytes_per_s",
})  # fmt: skip
NODE = frozenset({"name", "title", "area", "energy", "voltage", "fab"})


def known_keys(table: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    """With a key that is not listed this checker would not know what a table means."""
    more = sorted(set(table) - keys)
    cover(not more, f"{where}.{more[0] if more else ''}, which this checker does not know")


@dataclass(frozen=True, slots=True)
class Curve:
    """Straight lines between points; below the first through the origin or level, beyond the last
    its slope."""

    sizes: Floats
    values: Floats
    through_origin: bool

    def scaled(self, factor: float) -> "Curve":
        """All values times a factor."""
        return replace(self, values=factor * self.values)

    def __call__(self, size: Floats) -> Floats:
        slope = (self.values[-1] - self.values[-2]) / (self.sizes[-1] - self.sizes[-2])
        inside = np.interp(size, self.sizes, self.values)
        beyond = self.values[-1] + slope * (size - self.sizes[-1])
        first = self.values[0] * size / self.sizes[0] if self.through_origin else self.values[0]
        return np.where(
            size > self.sizes[-1], beyond, np.where(size < self.sizes[0], first, inside)
        )


def curve_of(table: Mapping[str, Any], where: str, factor: float = 1.0) -> Curve:
    """A curve that rises, all its values times a factor."""
    sizes = [positive(size, where) for size in listed(table["sizes_bytes"], where)]
    values = [number(value, where) for value in listed(table["values"], where, len(sizes))]
    rising = all(a < b for a, b in pairwise(sizes)) and all(a <= b for a, b in pairwise(values))
    require(len(sizes) > 1 and rising, f"{where}: the curve does not rise")
    return Curve(np.array(sizes), factor * np.array(values), bool(table["through_origin"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """mm2, joules, volts and the fab of what a chip is made of; what has a default is that of a
    chip of cores.

    ``built_share`` of the clusters in use are built, and one more for every ``spare_every``;
    registers up to 8 MiB have ``register_files`` times their size. The network takes ``port_mm2``
    of a port's byte a cycle and a mm, and ``width_mm2`` of the global buffer's. ``row_edge`` and
    ``column_edge``: bytes a cycle at a row and a column of an array; ``width_busy``: the share of
    the global buffer's width that is always counted busy, ``vector_moves``: how often vector work
    moves a byte of HBM across the die. ``activity``: the share of its greatest power that a design
    counts. ``sends_awake``: links draw by the second, not by the byte that they send;
    ``port_fills``: buffers are filled through ports, not by reads of the global buffer.
    ``stack_bytes`` is 0 where a chip may have any memory of a problem.
    """

    mac_mm2: float
    lane_mm2: float
    vector_unit_mm2: float
    buffer_mm2: Curve
    shared_mm2: Curve
    link_mm2: float
    mac_j: float
    lane_j: float
    hbm_j: float
    link_j: float
    buffer_j: Curve
    bank_bytes: float
    leakage_w_per_mm2: float
    fab: Mapping[str, Any]
    clock_hz: float
    port_mm2: float = 0.0
    width_mm2: float = 0.0
    row_edge: float = 2.0
    column_edge: float = 6.0
    width_busy: float = 1.0
    vector_moves: float = 0.0
    array_mm2: float = 0.0
    stack_mm2: float = 0.0
    hbm_mm2: float = 0.0
    uncore_mm2: float = 0.0
    register_files: float = 1.0
    shared_built: float = 1.0
    built_share: float = 1.0
    spare_every: float = np.inf
    edge_j: float = 0.0
    wire_j: float = 0.0
    stack_w: float = 0.0
    hbm_activity: float = 1.0
    activity: float = 1.0
    sends_awake: bool = False
    port_fills: bool = False
    volts_slope: float = 0.0
    volts_least: float = 0.0
    reference_hz: float = 1.0
    most_hz: float = np.inf
    dies: int = 1
    fan_out: int = 0
    broadcast: bool = False
    stack_bytes: int = 0
    stack_rate: float = 0.0
    generation: str = ""

    def built(self, count: Floats) -> Floats:
        """How many are built of so many in use."""
        return np.asarray(self.built_share * count + np.ceil(count / self.spare_every))

    def banked_j(self, size: Floats) -> Floats:
        """Joules of a byte of a buffer in banks."""
        return self.buffer_j(np.minimum(size, self.bank_bytes))

    @property
    def sent_j(self) -> float:
        """Joules of a byte that a link sends, beside what it draws always."""
        return 0.0 if self.sends_awake else self.link_j

    @property
    def designed(self) -> "Technology":
        """With the joules that a design counts."""
        if self.activity == 1.0:
            return self
        names = ("mac_j", "lane_j", "hbm_j", "link_j")
        joules = {name: self.activity * getattr(self, name) for name in names}
        return replace(self, **joules, buffer_j=self.buffer_j.scaled(self.activity))


def _rates(table: Mapping[str, Any], where: str, factor: float, **names: str) -> dict[str, Any]:
    """Fields of a technology by their names in a table, all times a factor."""
    return {field: factor * number(table[name], f"{where}.{name}") for field, name in names.items()}


def _energies(table: Mapping[str, Any], leakage: str) -> dict[str, Any]:
    """What both schemas say of energy."""
    names = {
        "mac_j": "mac_j",
        "lane_j": "lane_j",
        "hbm_j": "hbm_j_per_byte",
        "link_j": "link_j_per_byte",
    }
    return {
        **_rates(table, "energy", 1.0, **names, leakage_w_per_mm2=leakage),
        "buffer_j": curve_of(table["buffer"], "energy.buffer"),
        "bank_bytes": positive(table["core_bank_bytes"], "energy.core_bank_bytes"),
    }


def process_of(chip: Mapping[str, Any], process: Mapping[str, Any]) -> Technology:
    """A phaze.technology/1 for a chip of cores."""
    area, energy, silicon = process["area"], process["energy"], chip["silicon"]
    share = 1.0 + number(area["other_share"], "area.other_share")
    memory = "cache" if chip["global_buffer"]["cache"] else "scratchpad"
    rates = _rates(
        area, "area", share, vector_unit_mm2="vector_control_mm2",
        width_mm2="network_mm2_per_byte_per_cycle",
        link_mm2="link_mm2_per_byte_per_s",
    )  # fmt: skip
    hbm = number(silicon["hbm_built"], "silicon.hbm_built") * number(
        area["hbm_mm2_per_byte_per_s"], "area.hbm_mm2"
    )
    return Technology(
        **rates,
        **_energies(energy, "static_w_per_mm2"),
        activity=positive(energy["design_activity"], "energy.design_activity"),
        mac_mm2=share * positive(area["mac_mm2"], "area.mac_mm2"),
        lane_mm2=share * positive(area["lane_mm2"], "area.lane_mm2"),
        hbm_mm2=share * hbm,
        buffer_mm2=curve_of(area["core_buffer"], "area.core_buffer", share),
        shared_mm2=curve_of(area[memory], f"area.{memory}", share),
        shared_built=number(silicon["global_buffer_built"], "silicon.global_buffer_built"),
        built_share=positive(silicon["cores_built"], "silicon.cores_built"),
        fab=process["fab"],
        dies=whole(silicon["dies"], "silicon.dies", 1),
        clock_hz=positive(chip["clock_hz"], "chip.clock_hz"),
    )


def node_of(table: Mapping[str, Any]) -> Technology:
    """A phaze.technology/2 for a chip of clusters on one die that was not measured."""
    known_keys(table, CLUSTERS, "base.clusters")
    chip, node = table["accelerator"], table["node"]
    known_keys(chip, DESIGN, "accelerator")
    known_keys(node, NODE, "node")
    # Chips of a space have one die; what else lies on that of the base is none of theirs.
    dies = chip["built"]["dies"], chip["built"]["base_dies"]
    require(table["base_node"] is None and dies == (1, 0), "accelerator.built: it has several dies")
    cover(
        all(value is None for value in chip["measured"].values()), "a base chip that was measured"
    )
    area, energy, voltage, shared, hbm = (
        node["area"],
        node["energy"],
        node["voltage"],
        chip["global_buffer"],
        chip["hbm"],
    )
    rates = _rates(
        area, "area", 1.0, array_mm2="control_array_mm2", vector_unit_mm2="control_cluster_mm2",
        port_mm2="network_mm2",
    )  # fmt: skip
    more = _rates(
        energy,
        "energy",
        1.0,
        edge_j="edge_j",
        wire_j="wire_j",
        stack_w="stack_w",
        hbm_activity="hbm_activity",
    )
    fixed = _rates(
        area,
        "area",
        1.0,
        unit="support_mm2",
        lane="control_lane_mm2",
        uncore="uncore_mm2",
        host="host_lanes",
    )
    faces = _rates(
        area["ga100"],
        "ga100",
        1.0,
        stack="stack_mm2",
        lane="lane_mm2",
        link="link_mm2_per_byte_per_s",
    )
    lane_rate = positive(
        chip["links"]["lane_bytes_per_s"] or area["lane_bytes_per_s"], "lane_bytes_per_s"
    )
    slope, reference = (
        positive(voltage["slope"], "voltage.slope"),
        positive(voltage["reference_hz"], "reference_hz"),
    )
    memory, stacks = (
        "cache" if shared["cache"] is True else "sram",
        whole(hbm["stacks"], "hbm.stacks", 1),
    )
    return Technology(
        **rates,
        **more,
        **_energies(energy, "leakage_w_per_mm2"),
        sends_awake=True,
        port_fills=True,
        row_edge=2.0,
        column_edge=2.0,
        width_busy=0.0,
        vector_moves=1.0,
        mac_mm2=positive(area["mac_mm2"], "area.mac_mm2") + fixed["unit"],
        lane_mm2=positive(area["lane_mm2"], "area.lane_mm2") + fixed["lane"],
        stack_mm2=faces["stack"],
        link_mm2=faces["lane"] / lane_rate + faces["link"],
        uncore_mm2=fixed["uncore"] + fixed["host"] * faces["lane"],
        buffer_mm2=curve_of(area["sram"], "area.sram"),
        register_files=2.0,
        shared_mm2=curve_of(area[memory], f"area.{memory}"),
        spare_every=SPARE_EVERY,
        volts_slope=slope,
        volts_least=positive(voltage["least"], "voltage.least"),
        reference_hz=reference,
        most_hz=reference * (1.0 + (positive(voltage["most"], "voltage.most") - 1.0) / slope),
        fab=node["fab"],
        clock_hz=positive(chip["clock_hz"], "clock_hz"),
        fan_out=whole(shared["fan_out"], "fan_out", 1),
        broadcast=chip["clusters"]["broadcast"] is True,
        stack_bytes=whole(hbm["size_bytes"], "hbm.size_bytes", 1) // stacks,
        stack_rate=positive(hbm["bandwidth_bytes_per_s"], "hbm.bandwidth") / stacks,
        generation=str(hbm["generation"]),
    )


def technology_of(base: Mapping[str, Any]) -> Technology:
    """What the base chip of a space is made in."""
    clusters = base.get("clusters")
    return process_of(base, base["process"]) if clusters is None else node_of(clusters)
