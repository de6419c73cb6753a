"""Area, power and held clock of many chips at once: the formulas of ``area`` and ``power`` over arrays, to the bit.

Chips of one die with interfaces as on GA100, which is what a space holds. Every operation stands in the order of the
definitions, on 64-bit numbers, so both give the same bits; a test holds them together.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.silicon.area import ASPECT, REGISTER_FILE_BYTES, RETICLE_MM, STACK_EDGE_MM
from phaze.hardware.silicon.chip import Accelerator
from phaze.hardware.silicon.node import Node
from phaze.hardware.silicon.power import HALVINGS, LEAST_SHARE, MOST_SHARING, OPERAND_BYTES
from phaze.hardware.technology import Curve

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ChipColumns:
    """One array for each number that area and power depend on; ``limit_w`` is infinite where there is none."""

    clusters: Floats
    built: Floats
    arrays: Floats
    rows: Floats
    columns: Floats
    lanes: Floats
    operand_bytes: Floats
    register_bytes: Floats
    port: Floats
    broadcast: Flags
    global_bytes: Floats
    global_built_bytes: Floats
    width: Floats
    fan_out: Floats
    cache: Flags
    stacks: Floats
    sites: Floats
    hbm_bytes_per_s: Floats
    link_bytes_per_s: Floats
    lane_bytes_per_s: Floats
    clock_hz: Floats
    limit_w: Floats

    def __len__(self) -> int:
        return len(self.clusters)

    def taken(self, index: NDArray[Any]) -> "ChipColumns":
        """The chips of ``index``, numbers or flags."""
        return ChipColumns(*(getattr(self, f.name)[index] for f in fields(self)))

    @property
    def macs(self) -> Floats:
        """Multiply-accumulates a cycle of a cluster."""
        return self.arrays * self.rows * self.columns


@dataclass(frozen=True, slots=True)
class AreaColumns:
    """Area by part, mm2."""

    arrays: Floats
    vector: Floats
    buffers: Floats
    global_buffer: Floats
    network: Floats
    hbm: Floats
    links: Floats
    uncore: Floats

    @property
    def clusters(self) -> Floats:
        return self.arrays + self.vector + self.buffers

    @property
    def total(self) -> Floats:
        rest = self.arrays + self.vector + self.buffers + self.global_buffer + self.hbm + self.links + self.uncore
        return rest + self.network


@dataclass(frozen=True, slots=True)
class PowerColumns:
    """What sets each chip's clock; see :class:`phaze.hardware.silicon.power.SiliconPower`."""

    product_fixed_w: Floats
    product_j: Floats
    vector_fixed_w: Floats
    vector_j: Floats
    idle_w: Floats


def _row(chip: Accelerator, node: Node | None) -> tuple[float, ...]:
    clusters, built, shared, hbm, links = chip.clusters, chip.built, chip.global_buffer, chip.hbm, chip.links
    return (
        clusters.count, built.clusters, clusters.arrays, clusters.rows, clusters.columns, clusters.lanes,
        clusters.operand_bytes, clusters.register_bytes, clusters.port_bytes_per_cycle, clusters.broadcast,
        shared.size_bytes, built.global_buffer_bytes, shared.bytes_per_cycle, shared.fan_out, shared.cache,
        hbm.stacks, built.hbm_sites, hbm.bandwidth_bytes_per_s, links.bandwidth_bytes_per_s,
        links.lane_bytes_per_s or (float("nan") if node is None else node.area.lane_bytes_per_s), chip.clock_hz,
        float("inf") if chip.sustained_w is None else chip.sustained_w,
    )  # fmt: skip


def columns_of(chips: Sequence[Accelerator], node: Node | None) -> ChipColumns:
    """Chips of one die as columns; those of several have the same but for their area. ``node`` knows SerDes lanes."""
    rows = [_row(chip, node) for chip in chips]
    names = [f.name for f in fields(ChipColumns)]
    table = np.array(rows, dtype=np.float64).reshape(-1, len(names)).T
    found: dict[str, Any] = dict(zip(names, table, strict=True))
    return ChipColumns(**{**found, "broadcast": found["broadcast"] > 0, "cache": found["cache"] > 0})


def curve_over(curve: Curve, size_bytes: Floats) -> Floats:
    """:func:`phaze.hardware.silicon.node.curve_at` for each size."""
    sizes, values = np.array(curve.sizes_bytes), np.array(curve.values)
    at = np.clip(np.searchsorted(sizes, size_bytes, side="right") - 1, 0, len(sizes) - 2)
    slope = (values[at + 1] - values[at]) / (sizes[at + 1] - sizes[at])
    found = values[at] + slope * (size_bytes - sizes[at])
    inside = np.where(size_bytes > sizes[-1], found, np.minimum(found, values[at + 1]))
    below = values[0] * size_bytes / sizes[0] if curve.through_origin else np.full(len(inside), values[0])
    return np.where(size_bytes < sizes[0], below, inside)


def area_columns(chips: ChipColumns, node: Node) -> AreaColumns:
    """Area of every chip by part."""
    own, count = node.area, chips.built
    arrays = count * (chips.macs * (own.mac_mm2 + own.support_mm2))
    lanes = chips.lanes * (own.lane_mm2 + own.control_lane_mm2)
    vector = count * (lanes + own.control_cluster_mm2 + chips.arrays * own.control_array_mm2)
    twice = 2.0 * curve_over(own.sram, np.minimum(chips.register_bytes, REGISTER_FILE_BYTES))
    registers = np.maximum(twice, curve_over(own.sram, chips.register_bytes))
    buffers = count * (curve_over(own.sram, chips.operand_bytes) + registers)
    held = chips.global_built_bytes
    shared = np.where(chips.cache, curve_over(own.cache, held), curve_over(own.sram, held))
    hbm = chips.sites * own.ga100.stack_mm2
    link_lanes = chips.link_bytes_per_s / chips.lane_bytes_per_s + own.host_lanes
    links = link_lanes * own.ga100.lane_mm2 + chips.link_bytes_per_s * own.ga100.link_mm2_per_byte_per_s
    uncore = np.full(len(chips), own.uncore_mm2)
    rest = arrays + vector + buffers + shared + hbm + links + uncore
    network = own.network_mm2 * (count * chips.port) * np.sqrt(rest)
    return AreaColumns(arrays, vector, buffers, shared, network, hbm, links, uncore)


def edge_columns(chips: ChipColumns) -> Floats:
    """Operand bytes a cycle between the buffer and the arrays of each chip's clusters."""
    apart = OPERAND_BYTES * chips.arrays * (chips.rows + chips.columns)
    least = np.full(len(chips), np.inf)
    for across in range(1, int(chips.arrays.max(initial=0)) + 1):
        together = np.floor(chips.arrays / across) * chips.rows + across * chips.columns
        least = np.where(chips.arrays % across == 0, np.minimum(least, together), least)
    return np.where(chips.broadcast, OPERAND_BYTES * least, apart)


def buffer_over(node: Node, size_bytes: Floats) -> Floats:
    """:func:`phaze.hardware.silicon.power.buffer_j` for each size."""
    return curve_over(node.energy.buffer, np.minimum(size_bytes, node.energy.core_bank_bytes))


def power_columns(chips: ChipColumns, node: Node, areas: AreaColumns) -> PowerColumns:
    """What sets the clock of every chip."""
    energy, total = node.energy, areas.total
    buffer_j, shared_j = buffer_over(node, chips.operand_bytes), curve_over(energy.buffer, chips.global_bytes)
    inside_j = energy.wire_j * np.sqrt(areas.clusters / chips.built) / 2.0
    across_j = buffer_j + energy.wire_j * np.sqrt(total) / 2.0
    tile = np.maximum(np.floor(chips.register_bytes / 2.0) / 8.0, chips.macs)
    delivered = chips.clusters * np.minimum(chips.port, 4.0 * chips.macs / np.sqrt(tile))
    sharing = np.minimum(MOST_SHARING, np.sqrt(np.minimum(chips.fan_out, chips.clusters)))
    reads = np.minimum(chips.width, delivered / sharing)
    arrays = chips.clusters * (chips.macs * energy.mac_j)
    edges = chips.clusters * (edge_columns(chips) * (buffer_j + energy.edge_j + inside_j))
    product_j = arrays + edges + reads * shared_j + delivered * across_j
    idle = energy.leakage_w_per_mm2 * total + chips.stacks * energy.stack_w
    idle = idle + chips.link_bytes_per_s * energy.link_j_per_byte
    lane_j = energy.lane_j + 3.0 * OPERAND_BYTES * buffer_over(node, chips.register_bytes)
    rate = chips.hbm_bytes_per_s
    return PowerColumns(
        product_fixed_w=idle + energy.hbm_activity * rate * energy.hbm_j_per_byte,
        product_j=product_j,
        vector_fixed_w=idle + rate * (energy.hbm_j_per_byte + shared_j + across_j),
        vector_j=chips.clusters * (chips.lanes * lane_j),
        idle_w=idle,
    )


def volts_over(node: Node, clock_hz: Floats) -> Floats:
    """The voltage of every clock, of that at the reference clock."""
    voltage = node.voltage
    volts: Floats = np.maximum(voltage.least, 1.0 + voltage.slope * (clock_hz / voltage.reference_hz - 1.0))
    return volts


def power_over(power: PowerColumns, node: Node, clock_hz: Floats) -> Floats:
    """Watts of every chip at its clock: the greater of a large product and a vector operator."""
    volts = volts_over(node, clock_hz)
    square = volts * volts
    product_w = power.product_fixed_w + power.product_j * clock_hz * square
    watts: Floats = np.maximum(product_w, power.vector_fixed_w + power.vector_j * clock_hz * square)
    return watts


def held_clocks(chips: ChipColumns, node: Node, power: PowerColumns) -> Floats:
    """The clock that every chip holds under its limit."""
    high = np.minimum(chips.clock_hz, node.voltage.most_hz)
    full = power_over(power, node, high) <= chips.limit_w
    top, low = high, np.zeros(len(chips))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fits = power_over(power, node, middle) <= chips.limit_w
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    held: Floats = np.where(full, top, low)
    return held


def accepted(chips: ChipColumns, power: PowerColumns, held_hz: Floats) -> Flags:
    """Chips that can run under their limit; :func:`phaze.hardware.silicon.power.refusal` says why others cannot."""
    fixed = np.maximum(power.product_fixed_w, power.vector_fixed_w)
    return np.asarray((fixed <= chips.limit_w) & (held_hz >= LEAST_SHARE * chips.clock_hz))


def stacks_fit(chips: ChipColumns, area_mm2: Floats) -> Flags:
    """Chips with die edge for their HBM stacks."""
    most = 2.0 * np.floor(np.minimum(RETICLE_MM[1], np.sqrt(ASPECT * area_mm2)) / STACK_EDGE_MM)
    return np.asarray(chips.stacks <= most)


def edge_areas(chips: ChipColumns) -> Floats:
    """The least die that has edge for each chip's stacks; infinite where no reticle is long enough."""
    side = STACK_EDGE_MM * np.ceil(chips.stacks / 2.0)
    least: Floats = np.where(side > RETICLE_MM[1], np.inf, side * side / ASPECT)
    return least
