"""The area of one accelerator, part by part: the definition; :mod:`phaze.hardware.silicon.columns` has many at once.

For Nb clusters built (spares included) of c arrays R x C, l lanes, operand buffers U, registers A and ports p, on D
dies; b is the node of the base dies where there are some, else the chip's own:

    arrays      Nb c R C (mac + support)             support: feed, drain, transposers, weight load, issue
    vector      Nb (l (lane + control_lane) + control_cluster + c control_array)
    buffers     Nb (sram(U) + registers(A))          registers(A) = max(2 sram(min(A, 8 MiB)), sram(A)): a register file
                                                     has twice the ports of an SRAM, a VMEM of many MiB has not
    global      cache_b(G) or sram_b(G)              and D cache(second / D) for a second cache on the compute dies
    network     a Nb p sqrt(rest / D)                ports times distance across a die
    hbm         sites stack_b
    links       (8 B / lane rate + host lanes) lane_b;  on AMD's dies (B + links between dies) times an area a byte/s
    uncore      fixed, once for each die, compute or base

All grow with every count, size and rate, so a chip with more of anything is never smaller.

    edge        stacks <= 2 floor(min(33 mm, sqrt(1.25 area of a die)) / 10.5 mm) for each die with interfaces

A die whose parts are smaller than its stacks' edge needs is made larger, with nothing on the rest (:func:`edge_mm2`).
"""

from dataclasses import dataclass, fields
from math import ceil, floor, sqrt

from phaze.hardware.silicon.chip import Accelerator
from phaze.hardware.silicon.node import InterfaceAreas, Node, PartAreas, curve_at

REGISTER_FILE_BYTES = 8 * 2**20
"""Beyond this, storage beside lanes is a banked SRAM: no register file shipped is larger, TPU VMEM begins at 16 MiB."""
STACK_EDGE_MM = 10.5
"""Die edge of an HBM stack: about 11 mm wide (recalled); 10.5 gives the 6 sites of GA100 and the 4 of Aldebaran."""
RETICLE_MM = (26.0, 33.0)
"""The largest field that a scanner exposes (recalled): 858 mm2."""
ASPECT = 1.25
"""Of a die's sides, longer over shorter, about that of a reticle."""


@dataclass(frozen=True, slots=True)
class SiliconAreas:
    """Area by part in mm2, of all dies."""

    arrays: float
    vector: float
    buffers: float
    global_buffer: float
    network: float
    hbm: float
    links: float
    uncore: float

    @property
    def clusters(self) -> float:
        """Of all clusters built."""
        return self.arrays + self.vector + self.buffers

    @property
    def total(self) -> float:
        return (
            self.arrays + self.vector + self.buffers + self.global_buffer + self.hbm + self.links + self.uncore
        ) + self.network

    def by_part(self) -> dict[str, float]:
        """Part to mm2."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def register_mm2(area: PartAreas, size_bytes: float) -> float:
    """Registers of one cluster."""
    twice = 2.0 * curve_at(area.sram, min(size_bytes, REGISTER_FILE_BYTES))
    return max(twice, curve_at(area.sram, size_bytes))


def link_mm2(interfaces: InterfaceAreas, host_lanes: int, bytes_per_s: float, lane_bytes_per_s: float) -> float:
    """Link interfaces: by lanes, or by the rate where a maker's lanes are not known."""
    lanes = bytes_per_s / lane_bytes_per_s + host_lanes
    return lanes * interfaces.lane_mm2 + bytes_per_s * interfaces.link_mm2_per_byte_per_s


def silicon_areas(chip: Accelerator, node: Node, base: Node | None = None) -> SiliconAreas:
    """Area of every part; ``base`` is the node of the base dies, if there are any."""
    own, clusters, built = node.area, chip.clusters, chip.built
    below = own if base is None else base.area
    interfaces = below.ga100 if built.interfaces == "ga100" else below.aldebaran
    count = float(built.clusters)
    arrays = count * (clusters.macs * (own.mac_mm2 + own.support_mm2))
    lanes = clusters.lanes * (own.lane_mm2 + own.control_lane_mm2)
    vector = count * (lanes + own.control_cluster_mm2 + clusters.arrays * own.control_array_mm2)
    operands, registers = curve_at(own.sram, clusters.operand_bytes), register_mm2(own, clusters.register_bytes)
    buffers = count * (operands + registers)
    shared = curve_at(below.cache if chip.global_buffer.cache else below.sram, built.global_buffer_bytes)
    if built.second_cache_bytes:
        shared += built.dies * curve_at(own.cache, built.second_cache_bytes / built.dies)
    hbm = built.hbm_sites * interfaces.stack_mm2
    rate = chip.links.bandwidth_bytes_per_s + built.die_link_bytes_per_s
    lane = chip.links.lane_bytes_per_s or own.lane_bytes_per_s
    links = link_mm2(interfaces, own.host_lanes, rate, lane)
    uncore = built.dies * own.uncore_mm2 + built.base_dies * below.uncore_mm2
    rest = arrays + vector + buffers + shared + hbm + links + uncore
    network = own.network_mm2 * (count * clusters.port_bytes_per_cycle) * sqrt(rest / built.dies)
    return SiliconAreas(arrays, vector, buffers, shared, network, hbm, links, uncore)


def interface_dies(chip: Accelerator) -> int:
    """Dies that hold HBM and link interfaces: the base dies, or all."""
    return chip.built.base_dies or chip.built.dies


def most_stacks(die_mm2: float, dies: int = 1) -> int:
    """HBM stacks for which there is die edge; the formula stands in the module's docstring."""
    return dies * 2 * floor(min(RETICLE_MM[1], sqrt(ASPECT * die_mm2)) / STACK_EDGE_MM)


def edge_mm2(stacks: int) -> float:
    """The least die with edge for ``stacks`` on its two long sides; infinite where no reticle is long enough."""
    side = STACK_EDGE_MM * ceil(stacks / 2)
    return float("inf") if side > RETICLE_MM[1] else side * side / ASPECT
