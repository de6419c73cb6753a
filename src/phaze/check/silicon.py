"""The chips of a space of clusters (docs/formats.md, phaze.space/2; docs/silicon.md): area, power and the clock held.

A combination of the axes, the last running fastest, builds N + ceil(N / 12) clusters, has ports of the least power of
two at least width / N, and runs at the greatest clock, found by 50 halvings, at which neither a large product nor a
vector operator draws more than the limit. It is a chip of the space if

    least_share most_area <= area <= most_area,   die = max(area, edge of its stacks) <= most_area
    power at no clock within the limit,   held >= clock / 2,   watts <= most_w_per_mm2 area,   USD <= most_usd

A chip has the memory of its stacks and no other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .limits import curve, die_usd
from .reading import cover, listed, number, positive, require, whole

Floats = NDArray[np.float64]
AXES = (
    "clusters", "arrays", "rows", "columns", "lanes", "operand_buffer", "registers", "global_buffer", "global_width",
    "hbm_stacks", "links",
)  # fmt: skip
REAL = ("global_width", "links")
MOST_COMBINATIONS = 10_000_000
"""Columns of more take more memory than a small machine has."""
CHUNK = 1 << 18
"""Combinations built at a time: tens of MB."""
SPARES, HALVINGS, LEAST_SHARE = 12.0, 50, 0.5
REGISTER_FILE, STACK_EDGE, RETICLE, ASPECT = 8.0 * 2**20, 10.5, 33.0, 1.25
MOST_SHARING, OPERAND = 8.0, 2.0
STACK_USD = MappingProxyType({"hbm2": 120.0, "hbm2e": 160.0, "hbm3": 198.0, "hbm3e": 238.0})
LINK_USD_PER_GB = 0.25 + 0.15
"""A switch port and a cable for a GB/s, one way."""
DESIGN = frozenset({
    "name", "title", "clock_hz", "technology", "clusters", "global_buffer", "hbm", "links", "built", "sustained_w",
    "cluster", "clock_basis", "published", "measured", "formats", "host_bytes_per_s",
})  # fmt: skip
NODE = frozenset({"name", "title", "area", "energy", "voltage", "fab"})
KEEP = frozenset({"most_area", "least_share", "sustained_power", "most_w_per_mm2", "most_usd"})
BUILT = MappingProxyType({
    "dies": 1, "base_dies": 0, "base_technology": None, "interfaces": "ga100", "second_cache_bytes": 0,
    "die_link_bytes_per_s": 0.0,
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Clusters:
    """Chips of clusters, one array for each field; ``clock`` is the one held, ``sums`` half of the registers."""

    clusters: Floats
    arrays: Floats
    rows: Floats
    columns: Floats
    lanes: Floats
    operand_buffer: Floats
    registers: Floats
    global_buffer: Floats
    global_width: Floats
    hbm_stacks: Floats
    links: Floats
    port: Floats
    hbm_bandwidth: Floats
    clock: Floats
    area: Floats

    def __len__(self) -> int:
        return len(self.area)

    def taken(self, index: NDArray[Any]) -> "Clusters":
        """The chips of ``index``."""
        return Clusters(*(getattr(self, f.name)[index] for f in fields(self)))

    def words(self, at: int) -> str:
        """One of them in words."""
        n, a, r, c, lanes = (int(getattr(self, name)[at]) for name in AXES[:5])
        mib, stacks, gbs = self.global_buffer[at] / 2**20, int(self.hbm_stacks[at]), self.links[at] / 1e9
        return f"{n} clusters of {a} arrays of {r} x {c} and {lanes} lanes, {mib:g} MiB, {stacks} stacks, {gbs:g} GB/s"

    @property
    def operands(self) -> Floats:
        """Bytes of a cluster's operand buffer."""
        return self.operand_buffer * self.arrays

    @property
    def sums(self) -> Floats:
        """Bytes of a cluster that hold sums."""
        return np.floor(self.registers / 2.0)


@dataclass(frozen=True, slots=True)
class Silicon:
    """Base chip and node of a space, read strictly."""

    area: Mapping[str, Any]
    energy: Mapping[str, Any]
    voltage: Mapping[str, Any]
    fab: Mapping[str, Any]
    clock: float
    lane_rate: float
    fan_out: int
    broadcast: bool
    cache: bool
    stack_bytes: int
    stack_rate: float
    generation: str


def _known(table: Mapping[str, Any], keys: frozenset[str], where: str) -> None:
    more = sorted(set(table) - keys)
    cover(not more, f"{where}.{more[0] if more else ''}, which this checker does not know")


def silicon_of(base: Mapping[str, Any]) -> Silicon:
    """The base chip of a space of clusters, and its node."""
    own = base["clusters"]
    _known(own, frozenset({"accelerator", "node", "base_node", "software_of"}), "base.clusters")
    chip, node = own["accelerator"], own["node"]
    _known(chip, DESIGN, "accelerator")
    _known(node, NODE, "node")
    cover(own["base_node"] is None, "base dies of another node")
    for key, value in BUILT.items():
        cover(chip["built"][key] == value, f"accelerator.built.{key} = {chip['built'][key]!r}")
    cover(all(value is None for value in chip["measured"].values()), "a base chip that was measured")
    hbm, stacks = chip["hbm"], whole(chip["hbm"]["stacks"], "hbm.stacks", 1)
    return Silicon(
        node["area"], node["energy"], node["voltage"], node["fab"], positive(chip["clock_hz"], "clock_hz"),
        positive(chip["links"]["lane_bytes_per_s"] or node["area"]["lane_bytes_per_s"], "lane_bytes_per_s"),
        whole(chip["global_buffer"]["fan_out"], "fan_out", 1), chip["clusters"]["broadcast"] is True,
        chip["global_buffer"]["cache"] is True, whole(hbm["size_bytes"], "hbm.size_bytes", 1) // stacks,
        positive(hbm["bandwidth_bytes_per_s"], "hbm.bandwidth") / stacks, str(hbm["generation"]),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Areas:
    """mm2 of all clusters built, and of the die's parts."""

    clusters: Floats
    total: Floats


def built_of(chips: Clusters) -> Floats:
    return np.asarray(chips.clusters + np.ceil(chips.clusters / SPARES))


def areas_of(chips: Clusters, own: Silicon) -> _Areas:
    def rate(name: str, table: Mapping[str, Any] = own.area) -> float:
        return number(table[name], f"area.{name}")

    built, macs = built_of(chips), chips.arrays * chips.rows * chips.columns
    arrays = built * (macs * (rate("mac_mm2") + rate("support_mm2")))
    lanes = chips.lanes * (rate("lane_mm2") + rate("control_lane_mm2"))
    vector = built * (lanes + rate("control_cluster_mm2") + chips.arrays * rate("control_array_mm2"))
    file = 2.0 * curve(own.area["sram"], np.minimum(chips.registers, REGISTER_FILE), "area.sram")
    registers = np.maximum(file, curve(own.area["sram"], chips.registers, "area.sram"))
    buffers = built * (curve(own.area["sram"], chips.operands, "area.sram") + registers)
    shared = curve(own.area["cache" if own.cache else "sram"], chips.global_buffer, "area.cache")
    faces = own.area["ga100"]
    stacks = chips.hbm_stacks * rate("stack_mm2", faces)
    links = (chips.links / own.lane_rate + rate("host_lanes")) * rate("lane_mm2", faces)
    links = links + chips.links * rate("link_mm2_per_byte_per_s", faces)
    rest = arrays + vector + buffers + shared + stacks + links + rate("uncore_mm2")
    network = rate("network_mm2") * (built * chips.port) * np.sqrt(rest)
    return _Areas(arrays + vector + buffers, rest + network)


def edges_of(chips: Clusters, broadcast: bool) -> Floats:
    """Operand bytes a cycle at the edges of a cluster's arrays, arranged as they need least."""
    if not broadcast:
        return OPERAND * chips.arrays * (chips.rows + chips.columns)
    least = np.full(len(chips), np.inf)
    for across in range(1, int(chips.arrays.max()) + 1):
        there = chips.arrays % across == 0
        least = np.where(there, np.minimum(least, chips.arrays // across * chips.rows + across * chips.columns), least)
    return OPERAND * least


def volts_of(clock: Floats, voltage: Mapping[str, Any]) -> Floats:
    """The voltage of every clock, of that at the reference clock."""
    slope, reference = positive(voltage["slope"], "slope"), positive(voltage["reference_hz"], "reference_hz")
    return np.maximum(positive(voltage["least"], "least"), 1.0 + slope * (clock / reference - 1.0))


@dataclass(frozen=True, slots=True)
class Power:
    """Watts whatever the clock, and joules of a cycle, of a large product and of a vector operator."""

    product_w: Floats
    product_j: Floats
    vector_w: Floats
    vector_j: Floats

    def at(self, clock: Floats, voltage: Mapping[str, Any]) -> Floats:
        """Watts at a clock: the greater of the two."""
        square = volts_of(clock, voltage) ** 2
        product = self.product_w + self.product_j * clock * square
        return np.asarray(np.maximum(product, self.vector_w + self.vector_j * clock * square))


def power_of(chips: Clusters, own: Silicon, areas: _Areas) -> Power:
    def rate(name: str) -> float:
        return number(own.energy[name], f"energy.{name}")

    def banked(size: Floats) -> Floats:
        return curve(own.energy["buffer"], np.minimum(size, bank), "energy.buffer")

    bank, macs = positive(own.energy["core_bank_bytes"], "core_bank_bytes"), chips.arrays * chips.rows * chips.columns
    operand, shared = banked(chips.operands), curve(own.energy["buffer"], chips.global_buffer, "energy.buffer")
    inside = rate("wire_j") * np.sqrt(areas.clusters / built_of(chips)) / 2.0
    across = operand + rate("wire_j") * np.sqrt(areas.total) / 2.0
    tile = np.maximum(chips.sums / 8.0, macs)
    delivered = chips.clusters * np.minimum(chips.port, 4.0 * macs / np.sqrt(tile))
    reads = delivered / np.minimum(MOST_SHARING, np.sqrt(np.minimum(float(own.fan_out), chips.clusters)))
    reads = np.minimum(chips.global_width, reads)
    edges = chips.clusters * (edges_of(chips, own.broadcast) * (operand + rate("edge_j") + inside))
    product = chips.clusters * (macs * rate("mac_j")) + edges + reads * shared + delivered * across
    idle = rate("leakage_w_per_mm2") * areas.total + chips.hbm_stacks * rate("stack_w")
    idle = idle + chips.links * rate("link_j_per_byte")
    lane = rate("lane_j") + 3.0 * OPERAND * banked(chips.registers)
    memory = rate("hbm_j_per_byte")
    return Power(
        idle + rate("hbm_activity") * chips.hbm_bandwidth * memory, product,
        idle + chips.hbm_bandwidth * (memory + shared + across), chips.clusters * (chips.lanes * lane),
    )  # fmt: skip


def held_of(count: int, own: Silicon, power: Power, limit: float) -> Floats:
    """The clock that every chip holds within the limit."""
    slope, most = positive(own.voltage["slope"], "slope"), positive(own.voltage["most"], "most")
    top = min(own.clock, positive(own.voltage["reference_hz"], "reference_hz") * (1.0 + (most - 1.0) / slope))
    high, low = np.full(count, top), np.zeros(count)
    full = power.at(high, own.voltage) <= limit
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fits = power.at(middle, own.voltage) <= limit
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(full, top, low)


def port_of(width: Floats, clusters: Floats) -> Floats:
    """Bytes a cycle of a cluster's port: the least power of two at least width / N."""
    port, share = np.ones(len(width)), width / clusters
    while (port < share).any():
        port = np.where(port < share, 2.0 * port, port)
    return port


def _combined(axes: Mapping[str, Floats], own: Silicon, start: int, end: int) -> Clusters:
    places = np.unravel_index(np.arange(start, end), [len(values) for values in axes.values()])
    at = {name: values[place] for (name, values), place in zip(axes.items(), places, strict=True)}
    nothing, port = np.zeros(end - start), port_of(at["global_width"], at["clusters"])
    return Clusters(**at, port=port, hbm_bandwidth=at["hbm_stacks"] * own.stack_rate, clock=nothing, area=nothing)


def die_of(chips: Clusters, area: Floats) -> Floats:
    """mm2 of a die, whose edge must hold half of its stacks."""
    side = STACK_EDGE * np.ceil(chips.hbm_stacks / 2.0)
    return np.maximum(area, np.where(side > RETICLE, np.inf, side * side / ASPECT))


def usd_of(chips: Clusters, own: Silicon, die: Floats, terms: Mapping[str, Any]) -> Floats:
    cover(own.generation in STACK_USD, f"the price of {own.generation}")
    usd = die_usd(die, own.fab, terms) + chips.hbm_stacks * STACK_USD[own.generation]
    return np.asarray(usd + number(terms["package_usd"], "package_usd") + chips.links / 1e9 * LINK_USD_PER_GB)


def kept_clusters(chips: Clusters, own: Silicon, keep: Mapping[str, Any], terms: Mapping[str, Any]) -> Clusters:
    """The chips of some combinations."""
    most, least = positive(keep["most_area"], "keep.most_area"), number(keep["least_share"], "keep.least_share", 0, 1)
    limit, dense = positive(keep["sustained_power"], "sustained_power"), positive(keep["most_w_per_mm2"], "most_w")
    areas = areas_of(chips, own)
    die = die_of(chips, areas.total)
    power = power_of(chips, own, areas)
    held = held_of(len(chips), own, power, limit)
    stays = (areas.total <= most) & (areas.total >= least * most) & (die <= most)
    stays &= (np.maximum(power.product_w, power.vector_w) <= limit) & (held >= LEAST_SHARE * own.clock)
    stays &= power.at(held, own.voltage) <= dense * areas.total
    if keep["most_usd"] is not None:
        stays &= usd_of(chips, own, die, terms) <= positive(keep["most_usd"], "keep.most_usd") * (1 + 1e-12)
    return replace(chips, clock=held, area=areas.total).taken(stays)


def cluster_axes(space: Mapping[str, Any]) -> dict[str, Floats]:
    """The values of every axis, in the fixed order of axes, of a space that has no key beside those known."""
    _known(space, frozenset({"name", "axes", "keep", "base", "area_chip"}), "space")
    _known(space["keep"], KEEP, "keep")
    cover(space["area_chip"] is None, "a budget of a chip of clusters")
    require(list(space["axes"]) == list(AXES), f"axes: they are not {', '.join(AXES)}")
    given = {name: listed(values, f"axes.{name}") for name, values in space["axes"].items()}
    axes = {name: np.array([positive(v, f"axes.{name}") for v in values]) for name, values in given.items()}
    for name, values in axes.items():
        rising = len(values) > 0 and all(a < b for a, b in pairwise(values.tolist()))
        require(rising and (name in REAL or bool((values % 1 == 0).all())), f"axes.{name}: values do not ascend")
    return axes


def clusters_of(
    space: Mapping[str, Any], terms: Mapping[str, Any], memories: Sequence[int]
) -> tuple[Clusters, int, NDArray[np.int64]]:
    """All chips of a space, the combinations of its axes, and for each chip the place of its memory."""
    own, keep, axes = silicon_of(space["base"]), space["keep"], cluster_axes(space)
    combinations = prod(len(values) for values in axes.values())
    cover(combinations <= MOST_COMBINATIONS, f"spaces of more than {MOST_COMBINATIONS:,} combinations of clusters")
    pieces = [
        kept_clusters(_combined(axes, own, start, min(start + CHUNK, combinations)), own, keep, terms)
        for start in range(0, combinations, CHUNK)
    ]
    chips = Clusters(*(np.concatenate([getattr(piece, f.name) for piece in pieces]) for f in fields(Clusters)))
    require(len(chips) > 0, "the space has no chip")
    places = {size: at for at, size in enumerate(memories)}
    memory = [places.get(int(stacks) * own.stack_bytes, -1) for stacks in chips.hbm_stacks]
    return chips, combinations, np.array(memory)
