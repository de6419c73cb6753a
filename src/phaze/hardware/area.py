"""The area of chips, part by part, from a technology's table; the paper's areas are such a table
with few entries.

For Nb clusters built (spares included) of c arrays R x C, operand buffers U and ports p, Vb vector
units built of l lanes and registers A, on D dies; b is the technology of the base dies where there
are some, else the chip's own:

    arrays      Nb c R C (mac + support)             support: feed, drain, transposers, weight load,
                issue
    vector      Vb (l (lane + control_lane) + control_cluster + c control_array)
    buffers     Nb core(U) + Vb registers(A)         registers(A) = max(2 core(min(A, file)),
                core(A)): a register file
                                                     has twice the ports of an SRAM, a VMEM of many
                                                     MiB has not
    global      cache_b(G) or scratchpad_b(G)        and D cache(second / D) for a second cache on
                the compute dies
    network     w per_width + a Nb p sqrt(rest / D)  bytes a cycle; ports times distance across a
                die
    hbm         sites stack_b + H per_rate
    links       (8 B / lane rate + host lanes) lane_b;  on AMD's dies (B + links between dies) times
                an area a byte/s
    uncore      fixed, once for each die, compute or base, and a share of the sum of the others

Of cores H and G count what is built. All grow with every count, size and rate, so a chip with more
of anything is never smaller.

    edge        stacks <= 2 floor(min(33 mm, sqrt(1.25 area of a die)) / 10.5 mm) for each die with
                interfaces

A die whose parts are smaller than its stacks' edge needs is made larger, with nothing on the rest
(:func:`edge_areas`).
"""

from dataclasses import dataclass, fields
from math import floor, sqrt
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from phaze.hardware.chip_parts import Built
from phaze.hardware.columns import ChipColumns, Floats
from phaze.hardware.technology import Technology
from phaze.hardware.technology_tables import AreaTable

STACK_EDGE_MM = 10.5
"""Die edge of an HBM stack: about 11 mm wide (recalled); 10.5 gives the 6 sites of GA100 and the 4
of Aldebaran."""
RETICLE_MM = (26.0, 33.0)
"""The largest field that a scanner exposes (recalled): 858 mm2."""
ASPECT = 1.25
"""Of a die's sides, longer over shorter, about that of a reticle."""
OF_CORES = (
    "tensor_arrays", "vector_units", "core_buffers", "global_buffer", "network", "hbm_interface",
    "link_interface",
    "other",
)  # fmt: skip
"""What documents call the parts of a chip of cores, in the order of :class:`Areas`."""

T = TypeVar("T", float, Floats)


@dataclass(frozen=True, slots=True)
class Areas(Generic[T]):
    """Area by part in mm2, of all dies; of one chip or of many."""

    arrays: T
    vector: T
    buffers: T
    global_buffer: T
    network: T
    hbm: T
    links: T
    uncore: T
    total: T

    @property
    def clusters(self) -> T:
        """Of all clusters built."""
        return self.arrays + self.vector + self.buffers

    def by_part(self) -> dict[str, T]:
        """Part to mm2."""
        return {
            field.name: getattr(self, field.name) for field in fields(self) if field.name != "total"
        }

    def by_component(self) -> dict[str, T]:
        """The same, as documents of a chip of cores call them."""
        return dict(zip(OF_CORES, self.by_part().values(), strict=True))


def first_chip(areas: Areas[Floats]) -> Areas[float]:
    """Those of the first chip."""
    return Areas(*(float(getattr(areas, field.name)[0]) for field in fields(areas)))


def register_mm2(table: AreaTable, size_bytes: ArrayLike) -> Floats:
    """Registers of a cluster, or of a vector unit, of each size."""
    plain = table.core_buffer.at(size_bytes)
    if not table.register_file_bytes:
        return plain
    return np.maximum(
        2.0 * table.core_buffer.at(np.minimum(size_bytes, table.register_file_bytes)), plain
    )


def _global_mm2(chips: ChipColumns, table: AreaTable) -> Floats:
    """The global buffers; a set is of one kind more often than not."""
    size = chips.global_built_bytes
    if chips.cache.all():
        return table.cache.at(size)
    scratchpad = table.scratchpad.at(size)
    return (
        np.where(chips.cache, table.cache.at(size), scratchpad) if chips.cache.any() else scratchpad
    )


def areas_of(
    chips: ChipColumns,
    technology: Technology,
    built: Built | None = None,
    base: Technology | None = None,
) -> Areas[Floats]:
    """Area of every part of every chip; chips of more than one die have ``built`` in common,
    ``base`` is the technology of its base dies."""
    table = technology.area
    below = table if base is None else base.area
    dies, base_dies = (1, 0) if built is None else (built.dies, built.base_dies)
    interfaces = below.ga100 if built is None or built.interfaces == "ga100" else below.aldebaran
    arrays = chips.built * (chips.macs * (table.mac_mm2 + table.support_mm2))
    lanes = chips.lanes * (table.lane_mm2 + table.control_lane_mm2)
    vector = chips.vectors_built * (
        lanes + table.control_cluster_mm2 + chips.arrays * table.control_array_mm2
    )
    operands, registers = (
        table.core_buffer.at(chips.operand_bytes),
        register_mm2(table, chips.register_bytes),
    )
    if table.shared_cluster:
        buffers = chips.built * (operands + registers)
    else:
        buffers = chips.built * operands + chips.vectors_built * registers
    shared = _global_mm2(chips, below)
    if built is not None and built.second_cache_bytes:
        shared = shared + dies * table.cache.at(built.second_cache_bytes / dies)
    hbm = (
        chips.sites * interfaces.stack_mm2
        + chips.hbm_built_bytes_per_s * table.hbm_mm2_per_byte_per_s
    )
    rate = chips.link_bytes_per_s + (0.0 if built is None else built.die_link_bytes_per_s)
    link_lanes = rate / chips.lane_bytes_per_s + table.host_lanes
    links = link_lanes * interfaces.lane_mm2
    links = links + rate * (interfaces.link_mm2_per_byte_per_s + table.link_mm2_per_byte_per_s)
    uncore = np.full(len(chips), dies * table.uncore_mm2 + base_dies * below.uncore_mm2)
    by_width = chips.width * table.network_mm2_per_byte_per_cycle
    rest = arrays + vector + buffers + shared + by_width + hbm + links + uncore
    wires = np.zeros(len(chips))
    if table.network_mm2:  # not of the ports of cores, which have no limit
        wires = table.network_mm2 * (chips.built * chips.port) * np.sqrt(rest / dies)
    other = table.other_share * rest
    network, total = by_width + wires, rest + wires + other
    return Areas(arrays, vector, buffers, shared, network, hbm, links, uncore + other, total)


def most_stacks(die_mm2: float, dies: int = 1) -> int:
    """HBM stacks for which there is die edge; the formula stands in the module's docstring."""
    return dies * 2 * floor(min(RETICLE_MM[1], sqrt(ASPECT * die_mm2)) / STACK_EDGE_MM)


def edge_areas(stacks: ArrayLike) -> Floats:
    """The least die with edge for each number of stacks on its two long sides; infinite where no
    reticle is long enough."""
    side = STACK_EDGE_MM * np.ceil(np.asarray(stacks, dtype=np.float64) / 2.0)
    least: Floats = np.where(side > RETICLE_MM[1], np.inf, side * side / ASPECT)
    return least
