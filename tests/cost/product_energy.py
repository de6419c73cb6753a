"""Energy of one product on one chip of clusters, term by term: what sweeps over many chips are
compared with."""

from dataclasses import dataclass
from math import sqrt

from phaze.cost.mapping import Product, ProductCost
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import clocked
from phaze.hardware.columns import columns_of
from phaze.hardware.power import edge_bytes


@dataclass(frozen=True, slots=True)
class ProductEnergy:
    """Joules by part."""

    arrays: float
    edges: float
    delivery: float
    global_buffer: float
    hbm: float
    idle: float

    @property
    def total(self) -> float:
        return self.arrays + self.edges + self.delivery + self.global_buffer + self.hbm + self.idle


def product_energy(p: Product, cost: ProductCost, chip: Chip) -> ProductEnergy:
    """Energy of one product at the clock that a chip holds; the formulas stand in
    :mod:`phaze.cost.energy`."""
    held, node, clock_hz = clocked(chip), chip.process, chip.clock_hz
    assert held is not None and node is not None
    areas = held.areas
    energy, clusters = node.energy, chip.clusters
    volts = float(node.voltage.at(clock_hz))
    square = volts * volts
    held_j = float(energy.core_buffer_j_per_byte(clusters.operand_bytes))
    inside_j = (
        held_j + energy.edge_j + node.wire_j * sqrt(areas.clusters / chip.built.clusters[0]) / 2.0
    )
    across_j = held_j + node.wire_j * sqrt(areas.total) / 2.0
    read = float(edge_bytes(columns_of([chip]))[0])
    share = read / (2 * clusters.arrays * (clusters.rows + clusters.columns))
    return ProductEnergy(
        arrays=square * p.macs * energy.mac_j,
        edges=square * share * cost.core.core_bytes * inside_j,
        delivery=square * cost.core.port_bytes * across_j,
        global_buffer=square
        * (cost.global_bytes + cost.hbm_bytes)
        * float(energy.buffer.at(chip.global_buffer.size_bytes)),
        hbm=cost.hbm_bytes * energy.hbm_j_per_byte,
        idle=held.power.idle_w * cost.time_s / clock_hz,
    )
