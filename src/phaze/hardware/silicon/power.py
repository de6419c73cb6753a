"""Energy of a cycle, voltage, and the clock that a power limit lets a chip hold: the definition, one chip at a time.

While a large product runs, a cycle at the reference voltage takes (:func:`product_j`)

    edge      = 2 c (R + C) bytes a cluster;  with broadcast 2 (cm R + cn C), the least over cm cn = c
    tile      = max(sums / 8, c R C) outputs     need = min(p, 4 c R C / sqrt(tile)) bytes a cluster
    delivered = N need                           reads = min(w, delivered / min(8, sqrt(min(F, N))))
    joule     = N (c R C mac + edge (buffer(U) + e_edge + wire sqrt(cluster area) / 2))
                + reads buffer(G) + delivered (buffer(U) + wire sqrt(area) / 2)

and while a vector operator streams from HBM (:func:`vector_j`) all lanes work, with two operands and a result of 2
bytes each in registers: joule = N l (lane + 6 buffer(A)). What does not depend on the clock:

    idle      = leakage area + stacks stack_w + link bandwidth link_j      SerDes never sleep
    product   = idle + activity H hbm_j
    vector    = idle + H (hbm_j + buffer(G) + buffer(U) + wire sqrt(area) / 2)

    power(f)  = fixed + joule f V(f)^2, the greater of product and vector                   (:func:`power_at`)
    held      = the greatest f <= min(clock, the node's fastest) with power(f) <= limit     (:func:`held_clock_hz`)

held is found by :data:`HALVINGS` halvings of [0, that clock], each keeping the half whose lower end fits, and is the
lower end: sums, products, square roots and comparisons only, so another program gets the same bits. A chip is refused
only where fixed power alone exceeds the limit, or held is below half of the clock (:func:`refusal`).
"""

from dataclasses import dataclass
from math import sqrt

from phaze.hardware.silicon.area import SiliconAreas
from phaze.hardware.silicon.chip import Accelerator
from phaze.hardware.silicon.node import Node, curve_at

HALVINGS = 50
"""Leaves 1 part in 10^15 of the clock."""
LEAST_SHARE = 0.5
"""Of its clock that a chip must hold: one that holds less was rated for another limit."""
MOST_SHARING = 8.0
"""Below this many clusters one read serves; more meet different operands (assumed)."""
OPERAND_BYTES = 2.0
"""Of bf16, the format that sets the clock."""


@dataclass(frozen=True, slots=True)
class CycleEnergy:
    """Joules a cycle at the reference voltage, by part, of a large product."""

    arrays: float
    edges: float
    global_buffer: float
    delivery: float

    @property
    def total(self) -> float:
        return self.arrays + self.edges + self.global_buffer + self.delivery


@dataclass(frozen=True, slots=True)
class SiliconPower:
    """What sets a chip's clock: watts at any clock and joules a cycle, of a product and a vector operator."""

    product_fixed_w: float
    product_j: float
    vector_fixed_w: float
    vector_j: float
    idle_w: float


def edge_bytes(arrays: int, rows: int, columns: int, broadcast: bool) -> float:
    """Operand bytes a cycle between the buffer and the arrays of a cluster."""
    if not broadcast:
        return OPERAND_BYTES * arrays * (rows + columns)
    pairs = [(across, arrays // across) for across in range(1, arrays + 1) if arrays % across == 0]
    return OPERAND_BYTES * min(down * rows + across * columns for across, down in pairs)


def buffer_j(node: Node, size_bytes: float) -> float:
    """Joules a byte of a buffer inside a cluster, which lies in banks."""
    return curve_at(node.energy.buffer, min(size_bytes, node.energy.core_bank_bytes))


def product_j(chip: Accelerator, node: Node, areas: SiliconAreas) -> CycleEnergy:
    """Joules a cycle of a large product; the formulas stand in the module's docstring."""
    energy, clusters, shared = node.energy, chip.clusters, chip.global_buffer
    count, macs, port = float(clusters.count), float(clusters.macs), clusters.port_bytes_per_cycle
    held_j = buffer_j(node, clusters.operand_bytes)
    inside_j = energy.wire_j * sqrt(areas.clusters / chip.built.clusters) / 2.0
    edge = edge_bytes(clusters.arrays, clusters.rows, clusters.columns, clusters.broadcast)
    tile = max(clusters.sum_bytes / 8.0, macs)
    delivered = count * min(port, 4.0 * macs / sqrt(tile))
    sharing = min(MOST_SHARING, sqrt(min(float(shared.fan_out), count)))
    reads = min(shared.bytes_per_cycle, delivered / sharing)
    across_j = held_j + energy.wire_j * sqrt(areas.total) / 2.0
    return CycleEnergy(
        arrays=count * (macs * energy.mac_j),
        edges=count * (edge * (held_j + energy.edge_j + inside_j)),
        global_buffer=reads * curve_at(energy.buffer, shared.size_bytes),
        delivery=delivered * across_j,
    )


def vector_j(chip: Accelerator, node: Node) -> float:
    """Joules a cycle with all lanes at work."""
    lane_j = node.energy.lane_j + 3.0 * OPERAND_BYTES * buffer_j(node, chip.clusters.register_bytes)
    return float(chip.clusters.count) * (chip.clusters.lanes * lane_j)


def silicon_power(chip: Accelerator, node: Node, areas: SiliconAreas) -> SiliconPower:
    """What sets the clock of ``chip``."""
    energy, rate, total = node.energy, chip.hbm.bandwidth_bytes_per_s, areas.total
    idle = energy.leakage_w_per_mm2 * total + chip.hbm.stacks * energy.stack_w
    idle += chip.links.bandwidth_bytes_per_s * energy.link_j_per_byte
    across_j = buffer_j(node, chip.clusters.operand_bytes) + energy.wire_j * sqrt(total) / 2.0
    streamed_j = energy.hbm_j_per_byte + curve_at(energy.buffer, chip.global_buffer.size_bytes) + across_j
    return SiliconPower(
        product_fixed_w=idle + energy.hbm_activity * rate * energy.hbm_j_per_byte,
        product_j=product_j(chip, node, areas).total,
        vector_fixed_w=idle + rate * streamed_j,
        vector_j=vector_j(chip, node),
        idle_w=idle,
    )


def power_at(power: SiliconPower, node: Node, clock_hz: float) -> float:
    """Watts at a clock: the greater of a large product and a vector operator."""
    volts = node.voltage.at(clock_hz)
    square = volts * volts
    product_w = power.product_fixed_w + power.product_j * clock_hz * square
    return max(product_w, power.vector_fixed_w + power.vector_j * clock_hz * square)


def product_power_at(power: SiliconPower, node: Node, clock_hz: float) -> float:
    """Watts of a large product at a clock."""
    volts = node.voltage.at(clock_hz)
    return power.product_fixed_w + power.product_j * clock_hz * (volts * volts)


def held_clock_hz(power: SiliconPower, node: Node, clock_hz: float, limit_w: float | None) -> float:
    """The clock that the limit allows, 0 where none is; without a limit, the rated one or the node's fastest."""
    high = min(clock_hz, node.voltage.most_hz)
    if limit_w is None or power_at(power, node, high) <= limit_w:
        return high
    low = 0.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if power_at(power, node, middle) <= limit_w:
            low = middle
        else:
            high = middle
    return low


def refusal(power: SiliconPower, chip: Accelerator, held_hz: float) -> str | None:
    """Why the chip cannot run under its power limit; None where it can."""
    limit = chip.sustained_w
    fixed = max(power.product_fixed_w, power.vector_fixed_w)
    if limit is not None and fixed > limit:
        return f"leakage, HBM and links alone draw {fixed:.0f} W of {limit:.0f} W"
    if held_hz < LEAST_SHARE * chip.clock_hz:
        return f"it would hold {held_hz / 1e9:.2f} of {chip.clock_hz / 1e9:.2f} GHz, below half"
    return None
