"""Area, power and the clock held, of chips and of boxes of them (docs/silicon.md,
docs/technology.md).

    area    clusters built + vector units built + global buffer + HBM, links and uncore + network
    network coefficients x ports of the clusters built x sqrt(all else), and x width of the global
    buffer
    watts   of a large product and of a vector operator, the greater: leakage, stacks, links and HBM
            whatever the clock,
            and joules of a cycle x clock x volts squared                           (:class:`Power`)
    held    the greatest clock, by 50 halvings, at which that is within a limit
            (:func:`held_clock`)

Of a box of chips, with its corners lo and hi, no chip draws less than :func:`drawn_of` (lo, hi),
and none more than :func:`drawn_of` (hi, lo): joules of the arrays and lanes at the first corner,
bytes delivered with the sums of a tile that the second has, shared by as many clusters. A chip is
the box of itself.

Nor does a run take less energy on a chip of a box than at :func:`prices_of` the box: every joule
rises with the size of a buffer, with an area, and with the voltage, which is least at the least
clock that a chip holds. What arrays read together of their edges counts

    share = min over x of (t / x + (1 - t) x / A),    t = row bytes / (row + column bytes)

of A arrays in x columns: a least of straight lines in t, so over a range of t it is least at an
end, which are the least rows with the most columns, and the most rows with the least.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Chips, least_of
from .technology import Technology

Floats = NDArray[np.float64]
HALVINGS = 50
"""As many as the bits of a float: docs/silicon.md."""
REGISTER_FILE = 8.0 * 2**20
"""Registers up to this size are read and written by all lanes at once: docs/silicon.md."""
MOST_SHARING = 8.0
"""Clusters that get a byte of one read of the global buffer: docs/silicon.md."""
OPERAND = 2.0
"""Bytes of an operand: 16 bits."""


@dataclass(frozen=True, slots=True)
class Areas:
    """mm2 of all clusters and vector units built, and of the die."""

    clusters: Floats
    total: Floats


def areas_of(chips: Chips, made: Technology) -> Areas:
    """What chips take of a die."""
    file = made.register_files * made.buffer_mm2(np.minimum(chips.registers, REGISTER_FILE))
    registers = np.maximum(file, made.buffer_mm2(chips.registers))
    cluster = (
        chips.macs * made.mac_mm2 + chips.arrays * made.array_mm2 + made.buffer_mm2(chips.operands)
    )
    vector_unit = chips.lanes * made.lane_mm2 + made.vector_unit_mm2 + registers
    built = made.built(chips.clusters)
    clusters = built * cluster + made.built(chips.vector_units) * vector_unit
    interfaces = (
        chips.hbm_stacks * made.stack_mm2
        + chips.hbm_bandwidth * made.hbm_mm2
        + chips.links * made.link_mm2
    )
    rest = (
        clusters
        + made.shared_mm2(made.shared_built * chips.global_buffer)
        + interfaces
        + made.uncore_mm2
    )
    ports = built * chips.wired_port * np.sqrt(rest)
    return Areas(clusters, rest + made.port_mm2 * ports + made.width_mm2 * chips.global_width)


def edges_of(chips: Chips, made: Technology) -> Floats:
    """Bytes a cycle at the edges of a cluster's arrays, arranged as they need least."""
    rows, columns = made.row_edge * chips.rows, made.column_edge * chips.columns
    if not made.broadcast:
        return chips.arrays * (rows + columns)
    least = np.full(len(chips), np.inf)
    for across in range(1, int(chips.arrays.max(initial=0.0)) + 1):
        there = chips.arrays % across == 0
        least = np.where(
            there, np.minimum(least, chips.arrays // across * rows + across * columns), least
        )
    return least


def volts_of(clock: Floats, made: Technology) -> Floats:
    """The voltage of every clock, of that at the reference clock."""
    return np.maximum(made.volts_least, 1.0 + made.volts_slope * (clock / made.reference_hz - 1.0))


@dataclass(frozen=True, slots=True)
class Power:
    """Watts whatever the clock, and joules of a cycle, of a large product and of a vector
    operator."""

    made: Technology
    product_w: Floats
    product_j: Floats
    vector_w: Floats
    vector_j: Floats

    def watts(self, clock: Floats) -> Floats:
        """The greater of the two at a clock."""
        square = volts_of(clock, self.made) ** 2
        product = self.product_w + self.product_j * clock * square
        return np.asarray(np.maximum(product, self.vector_w + self.vector_j * clock * square))


@dataclass(frozen=True, slots=True)
class Drawn:
    """Watts and joules that no chip of a box goes below: those whatever the clock, of a unit with
    its share of edges, of a lane, of all arrays and all lanes of the low corner, and of all else in
    a cycle of either operator."""

    made: Technology
    product_w: Floats
    vector_w: Floats
    unit_j: Floats
    lane_j: Floats
    arrays_j: Floats
    lanes: Floats
    product_j: Floats
    vector_j: Floats

    def power(self, arrays_j: Floats | None = None, lanes: Floats | None = None) -> Power:
        """The power of these arrays and lanes; of the low corner where nothing else is stated."""
        arrays = self.arrays_j if arrays_j is None else arrays_j
        vector = (self.lanes if lanes is None else lanes) * self.lane_j
        return Power(
            self.made,
            self.product_w,
            arrays + self.product_j,
            self.vector_w,
            vector + self.vector_j,
        )


def port_of(width: Floats, clusters: Floats) -> Floats:
    """Bytes a cycle of a cluster's port: the least power of two at least width / N."""
    port, share = np.ones(len(width)), width / clusters
    while (port < share).any():
        port = np.where(port < share, 2.0 * port, port)
    return port


@dataclass(frozen=True, slots=True)
class Joules:
    """Of a byte: at the edges of arrays, across the die into a cluster, of registers, of the global
    buffer."""

    edge: Floats
    across: Floats
    register: Floats
    shared: Floats


def joules_of(chips: Chips, made: Technology) -> Joules:
    """What moving a byte takes on chips that have their areas."""
    operand, wire = made.banked_j(chips.operands), made.wire_j / 2.0
    inside = areas_of(chips, made).clusters / made.built(chips.clusters)
    edge = operand + made.edge_j + wire * np.sqrt(inside)
    return Joules(
        edge,
        operand + wire * np.sqrt(chips.area),
        made.banked_j(chips.registers),
        made.buffer_j(chips.global_buffer),
    )


def drawn_of(low: Chips, high: Chips, made: Technology) -> Drawn:
    """What no chip between two corners draws less than; ``low`` has its area, and the least
    network. What none draws more than is that of the corners exchanged, with the greatest."""
    made = made.designed
    joules, macs = joules_of(low, made), low.macs
    idle = (
        made.leakage_w_per_mm2 * low.area + low.hbm_stacks * made.stack_w + low.links * made.link_j
    )
    product_w = idle + made.hbm_activity * low.hbm_bandwidth * made.hbm_j
    busy = made.width_busy * low.global_width
    tile = np.maximum(high.sums / 8.0, macs)
    widest = np.maximum(low.global_width, low.clusters * port_of(low.global_width, high.clusters))
    delivered = np.minimum(widest, low.clusters * 4.0 * macs / np.sqrt(tile))
    sharing = np.sqrt(np.maximum(1.0, np.minimum(float(made.fan_out), high.clusters)))
    read = np.minimum(low.global_width, delivered / np.minimum(MOST_SHARING, sharing))
    product_j = np.maximum(busy, read) * joules.shared + delivered * joules.across
    moved = made.vector_moves * (joules.shared + joules.across)
    vector_w = idle + low.hbm_bandwidth * (made.hbm_j + moved)
    vector_j = busy * joules.shared
    return Drawn(
        made=made,
        product_w=product_w,
        vector_w=vector_w,
        unit_j=made.mac_j + edges_of(high, made) / high.macs * joules.edge,
        lane_j=made.lane_j + 3.0 * OPERAND * joules.register,
        arrays_j=low.clusters * (macs * made.mac_j + edges_of(low, made) * joules.edge),
        lanes=low.vector_units * low.lanes,
        product_j=product_j,
        vector_j=vector_j,
    )


def power_of(chips: Chips, made: Technology) -> Power:
    """What chips that have their areas draw."""
    return drawn_of(chips, chips, made).power()


def held_clock(power: Power, rated_hz: Floats, limit_w: float) -> Floats:
    """The greatest clock up to the rated one that is within the limit."""
    high = np.minimum(rated_hz, power.made.most_hz)
    full = power.watts(high) <= limit_w
    if full.all():
        return high
    top, low = high, np.zeros(len(high))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fits = power.watts(middle) <= limit_w
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(full, top, low)


@dataclass(frozen=True, slots=True)
class Prices:
    """Joules of each thing on every chip, and watts that it draws whatever runs: a
    multiply-accumulate, a byte at the edges of arrays, one through a port, one that a product moves
    between cores and the global buffer beside what that takes, a lane operation, a byte of vector
    work, of the global buffer, of HBM, and one that links send."""

    mac: Floats
    edge: Floats
    port: Floats
    filled: Floats
    lane: Floats
    vector: Floats
    shared: Floats
    hbm: Floats
    sent: Floats
    static: Floats

    def taken(self, index: NDArray[Any]) -> "Prices":
        """Those of some chips."""
        return Prices(*(getattr(self, column.name)[index] for column in fields(self)))


def edge_share(chips: Chips, made: Technology) -> Floats:
    """What arrays that read together take of the bytes at their edges."""
    alone = chips.arrays * (made.row_edge * chips.rows + made.column_edge * chips.columns)
    return edges_of(chips, made) / alone


def prices_of(chips: Chips, made: Technology) -> Prices:
    """What runs take on chips that have their areas, at the voltage of the clock held; on no chip
    of a box less than the box's."""
    low = least_of(chips)
    joules = joules_of(low, made)
    square = volts_of(low.clock, made) ** 2
    each = np.ones(len(low))
    flat = edge_share(replace(low, columns=chips.columns), made)
    tall = edge_share(replace(low, rows=chips.rows), made)
    share = np.minimum(flat, tall)
    across = joules.across if made.port_fills else 0.0 * each
    filled = 0.0 * each if made.port_fills else joules.across
    leaking = made.leakage_w_per_mm2 * low.area
    awake = low.links * (made.link_j - made.sent_j)
    return Prices(
        mac=square * made.mac_j,
        edge=square * share * joules.edge,
        port=square * across,
        filled=square * filled,
        lane=square * made.lane_j,
        vector=square * (2.0 * joules.register + across),
        shared=square * joules.shared,
        hbm=made.hbm_j * each,
        sent=made.sent_j * each,
        static=leaking + low.hbm_stacks * made.stack_w + awake,
    )
