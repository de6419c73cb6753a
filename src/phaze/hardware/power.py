"""Power of chips, one or many: what sets the clock that a power limit lets a chip hold, or an
estimate of its TDP.

Where a technology has a voltage (:attr:`phaze.hardware.technology.Technology.sets_clock`), a cycle
at the reference voltage takes while a large product runs (:func:`cycle_energy`)

    edge      = 2 c (R + C) bytes a cluster;  with broadcast 2 (cm R + cn C), the least over cm cn =
              c
    tile      = max(sums / 8, c R C) outputs     need = min(p, 4 c R C / sqrt(tile)) bytes a cluster
    delivered = N need                           reads = min(w, delivered / min(8, sqrt(min(F, N))))
    joule     = N (c R C mac + edge (buffer(U) + e_edge + wire sqrt(cluster area) / 2))
                + reads buffer(G) + delivered (buffer(U) + wire sqrt(area) / 2)

and while a vector operator streams from HBM all lanes work, with two operands and a result of 2
bytes each in registers: joule = N l (lane + 6 buffer(A)). What does not depend on the clock
(:func:`clock_power`):

    idle      = static area + stacks stack_w + link bandwidth link_j       SerDes never sleep
    product   = idle + activity H hbm_j
    vector    = idle + H (hbm_j + buffer(G) + buffer(U) + wire sqrt(area) / 2)

    power(f)  = fixed + joule f V(f)^2, the greater of product and vector
              (:func:`power_at`)
    held      = the greatest f <= min(clock, the node's fastest) with power(f) <= limit
              (:func:`held_clocks`)

held is found by :data:`HALVINGS` halvings of [0, that clock], each keeping the half whose lower end
fits, and is the lower end: sums, products, square roots and comparisons only, so another program
gets the same bits. A chip is refused only where fixed power alone exceeds the limit, or held is
below half of the clock (:func:`accepted`).

Where a technology states a share of the full rate instead, every component has its dynamic energy
(:func:`full_rate`):

    dynamic_c = rate_c * energy_c            for every component c at its full rate
    static    = static_w_per_mm2 * area
    design    = activity * (max(tensor side, vector side) + global buffer + HBM + links) + static

A side is its units and their buffers: a program keeps either the arrays or the lanes fully busy,
and the memories with them. Rates: tensor ``macs * clock``, vector ``lanes * clock``, memories and
links their bandwidths in bytes/s.
"""

from dataclasses import dataclass, fields
from typing import Generic, TypeVar

import numpy as np

from phaze.hardware.area import Areas
from phaze.hardware.columns import ChipColumns, Flags, Floats
from phaze.hardware.technology import Technology

HALVINGS = 50
"""Leaves 1 part in 10^15 of the clock."""
LEAST_SHARE = 0.5
"""Of its clock that a chip must hold: one that holds less was rated for another limit."""
MOST_SHARING = 8.0
"""Below this many clusters one read serves; more meet different operands (assumed)."""
OPERAND_BYTES = 2.0
"""Of bf16, the format that sets the clock."""

T = TypeVar("T", float, Floats)


@dataclass(frozen=True, slots=True)
class CycleEnergy:
    """Joules a cycle at the reference voltage, by part, of a large product."""

    arrays: Floats
    edges: Floats
    global_buffer: Floats
    delivery: Floats

    @property
    def total(self) -> Floats:
        return self.arrays + self.edges + self.global_buffer + self.delivery


@dataclass(frozen=True, slots=True)
class ClockPower(Generic[T]):
    """What sets a chip's clock: watts at any clock and joules a cycle, of a product and a vector
    operator."""

    product_fixed_w: T
    product_j: T
    vector_fixed_w: T
    vector_j: T
    idle_w: T


def first_power(power: ClockPower[Floats]) -> ClockPower[float]:
    """That of the first chip."""
    return ClockPower(*(float(getattr(power, field.name)[0]) for field in fields(power)))


def edge_bytes(chips: ChipColumns) -> Floats:
    """Operand bytes a cycle between the buffer and the arrays of each chip's clusters."""
    apart = OPERAND_BYTES * chips.arrays * (chips.rows + chips.columns)
    least = np.full(len(chips), np.inf)
    for across in range(1, int(chips.arrays.max(initial=0)) + 1):
        together = np.floor(chips.arrays / across) * chips.rows + across * chips.columns
        least = np.where(chips.arrays % across == 0, np.minimum(least, together), least)
    return np.where(chips.broadcast, OPERAND_BYTES * least, apart)


def cycle_energy(chips: ChipColumns, technology: Technology, areas: Areas[Floats]) -> CycleEnergy:
    """Joules a cycle of a large product."""
    energy = technology.energy
    buffer_j = energy.core_buffer_j_per_byte(chips.operand_bytes)
    inside_j = technology.wire_j * np.sqrt(areas.clusters / chips.built) / 2.0
    across_j = buffer_j + technology.wire_j * np.sqrt(areas.total) / 2.0
    tile = np.maximum(np.floor(chips.register_bytes / 2.0) / 8.0, chips.macs)
    delivered = chips.clusters * np.minimum(chips.port, 4.0 * chips.macs / np.sqrt(tile))
    sharing = np.minimum(MOST_SHARING, np.sqrt(np.minimum(chips.fan_out, chips.clusters)))
    reads = np.minimum(chips.width, delivered / sharing)
    return CycleEnergy(
        arrays=chips.clusters * (chips.macs * energy.mac_j),
        edges=chips.clusters * (edge_bytes(chips) * (buffer_j + energy.edge_j + inside_j)),
        global_buffer=reads * energy.buffer.at(chips.global_bytes),
        delivery=delivered * across_j,
    )


def idle_power(chips: ChipColumns, technology: Technology, area_mm2: Floats) -> Floats:
    """Watts that every chip draws whatever runs; of links what a byte that is sent does not
    take."""
    energy = technology.energy
    idle = energy.static_w_per_mm2 * area_mm2 + chips.stacks * energy.stack_w
    return idle + chips.link_bytes_per_s * (energy.link_j_per_byte - technology.sent_j_per_byte)


def clock_power(
    chips: ChipColumns, technology: Technology, areas: Areas[Floats]
) -> ClockPower[Floats]:
    """What sets the clock of every chip."""
    energy, rate, idle = (
        technology.energy,
        chips.hbm_bytes_per_s,
        idle_power(chips, technology, areas.total),
    )
    across_j = (
        energy.core_buffer_j_per_byte(chips.operand_bytes)
        + technology.wire_j * np.sqrt(areas.total) / 2.0
    )
    streamed_j = energy.hbm_j_per_byte + energy.buffer.at(chips.global_bytes) + across_j
    lane_j = energy.lane_j + 3.0 * OPERAND_BYTES * energy.core_buffer_j_per_byte(
        chips.register_bytes
    )
    return ClockPower(
        product_fixed_w=idle + energy.hbm_activity * rate * energy.hbm_j_per_byte,
        product_j=cycle_energy(chips, technology, areas).total,
        vector_fixed_w=idle + rate * streamed_j,
        vector_j=chips.vectors * (chips.lanes * lane_j),
        idle_w=idle,
    )


def product_power_at(power: ClockPower[T], technology: Technology, clock_hz: T) -> Floats:
    """Watts of a large product at a clock."""
    volts = technology.voltage.at(clock_hz)
    return np.asarray(power.product_fixed_w + power.product_j * clock_hz * (volts * volts))


def power_at(power: ClockPower[T], technology: Technology, clock_hz: T) -> Floats:
    """Watts at a clock: the greater of a large product and a vector operator."""
    volts = technology.voltage.at(clock_hz)
    square = volts * volts
    product_w = power.product_fixed_w + power.product_j * clock_hz * square
    watts: Floats = np.maximum(product_w, power.vector_fixed_w + power.vector_j * clock_hz * square)
    return watts


def held_clocks(
    power: ClockPower[Floats], technology: Technology, clock_hz: Floats, limit_w: Floats
) -> Floats:
    """The clock that every chip holds under its limit, 0 where none is; the rated one or the node's
    fastest where the limit allows it."""
    high = np.minimum(clock_hz, technology.voltage.most_hz)
    full = power_at(power, technology, high) <= limit_w
    if full.all():
        return high
    top, low = high, np.zeros(len(high))
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        fits = power_at(power, technology, middle) <= limit_w
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return np.where(full, top, low)


def accepted(chips: ChipColumns, power: ClockPower[Floats], held_hz: Floats) -> Flags:
    """Chips that can run under their limit; :func:`phaze.hardware.clocked.refusal` says why others
    cannot."""
    fixed = np.maximum(power.product_fixed_w, power.vector_fixed_w)
    return np.asarray((fixed <= chips.limit_w) & (held_hz >= LEAST_SHARE * chips.clock_hz))


@dataclass(frozen=True, slots=True)
class FullRate(Generic[T]):
    """Watts by component, each at its full rate, and an estimate of the thermal design power."""

    tensor_arrays: T
    tensor_buffers: T
    vector_units: T
    vector_buffers: T
    global_buffer: T
    hbm: T
    links: T
    static: T
    design_w: T

    def by_component(self) -> dict[str, T]:
        """Component name to watts, in the order of the fields."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "design_w"}


def full_rate(chips: ChipColumns, technology: Technology, area_mm2: Floats) -> FullRate[Floats]:
    """Power of every component of every chip when it is busy all the time."""
    table = technology.energy
    tensor_j, vector_j = (
        table.core_buffer_j_per_byte(size) for size in (chips.operand_bytes, chips.register_bytes)
    )
    arrays = chips.clusters * chips.macs * chips.clock_hz * table.mac_j
    tensor_buffers = chips.clusters * (chips.operand_bytes_per_cycle * chips.clock_hz) * tensor_j
    lanes = chips.vectors * chips.lanes * chips.clock_hz * table.lane_j
    vector_buffers = chips.vectors * (chips.register_bytes_per_cycle * chips.clock_hz) * vector_j
    shared = chips.global_bytes_per_s * table.buffer.at(chips.global_bytes)
    hbm, links = (
        chips.hbm_bytes_per_s * table.hbm_j_per_byte,
        chips.link_bytes_per_s * table.link_j_per_byte,
    )
    static = table.static_w_per_mm2 * area_mm2
    busy = np.maximum(arrays + tensor_buffers, lanes + vector_buffers) + shared + hbm + links
    design_w = (table.design_activity or 1.0) * busy + static
    return FullRate(
        arrays, tensor_buffers, lanes, vector_buffers, shared, hbm, links, static, design_w
    )
