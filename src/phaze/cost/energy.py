"""Energy of works by component, and power of a layer, on a set of chips.

For a work with M multiply-accumulates and O lane operations, its bytes at each level
(:class:`Column`), and the prices of a chip (:class:`EnergyPrices`), all at the reference voltage
and times V^2 at the clock of the chip:

    tensor_arrays  = V^2 M mac                                          registers of the array are
                   in ``mac``
    tensor_buffers = V^2 (core_bytes edge + filled_bytes fill)          what arrays read, what fills their buffers
    vector_units   = V^2 O lane
    vector_buffers = V^2 vector_bytes vector                            in and out
    global_buffer  = V^2 (global_bytes + hbm_bytes) buffer(G)           to the cores, to HBM
    hbm            = hbm_bytes hbm

    edge   = share (buffer(U) + e_edge + wire sqrt(cluster area) / 2)   share: bytes that arrays of
           a cluster read
                                                                        together over what each
                                                                        would read alone
    fill   = buffer(U) + wire sqrt(area) / 2                            for bytes through the ports
    vector = 2 buffer(registers) + fill

A process without voltage has V = 1, e_edge = wire = 0, fills by what the global buffer reads and
writes once for all clusters that share it, and its vector operands pass no buffer but their own
(``Technology.port_fills``).

Idle power and links are the caller's (``static``, ``links`` are 0 here; SerDes of clusters never
sleep, so bytes that are sent cost nothing beside idle power). Energy is never below M mac +
compulsory bytes x hbm. Over the operators of a layer run one after the other, with what is drawn
whatever runs in each (:func:`layer_power`)

    average power = sum of energies / sum of times,     peak power = greatest energy / time of one
                                                        operator.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.table import Column
from phaze.hardware.calibration import Constants
from phaze.hardware.power import edge_bytes
from phaze.hardware.technology import Technology

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Energies:
    """Joules by component, one value for each chip."""

    tensor_arrays: Floats
    tensor_buffers: Floats
    vector_units: Floats
    vector_buffers: Floats
    global_buffer: Floats
    hbm: Floats
    links: Floats
    static: Floats

    def total(self) -> Floats:
        """The sum of all components."""
        components: list[Floats] = [getattr(self, f.name) for f in fields(self)]
        return sum(components, start=np.zeros(len(self.hbm)))

    def by_component(self, chip: int = 0) -> dict[str, float]:
        """Component name to joules of one chip."""
        return {f.name: float(getattr(self, f.name)[chip]) for f in fields(self)}


@dataclass(frozen=True, slots=True)
class EnergyPrices:
    """What operations and bytes take on every chip, joules at the reference voltage.

    The tensor buffers take ``edge_share`` core bytes x ``edge`` + filled bytes x ``fill``;
    ``port_fills``: those are the bytes through ports.
    """

    volts_squared: Floats
    mac_j: float
    lane_j: float
    hbm_j: float
    edge_share: Floats
    edge: Floats
    fill: Floats
    port_fills: bool
    vector_j: Floats
    global_j: Floats


def prices_of(chips: ChipSet, technology: Technology, constants: Constants) -> EnergyPrices:
    """The prices of every chip."""
    columns, energy = chips.columns, technology.energy
    operand_j = energy.core_buffer_j_per_byte(columns.operand_bytes)
    across_j = operand_j + technology.wire_j * np.sqrt(chips.area_mm2) / 2.0
    vector_j = 2.0 * energy.core_buffer_j_per_byte(columns.register_bytes)
    return EnergyPrices(
        volts_squared=technology.voltage.at(chips.running_hz(constants)) ** 2,
        mac_j=energy.mac_j,
        lane_j=energy.lane_j,
        hbm_j=energy.hbm_j_per_byte,
        edge_share=edge_bytes(columns) / (2.0 * columns.arrays * (columns.rows + columns.columns)),
        edge=operand_j + energy.edge_j + technology.wire_j * np.sqrt(chips.cluster_mm2) / 2.0,
        fill=across_j,
        port_fills=technology.port_fills,
        vector_j=vector_j + across_j if technology.port_fills else vector_j,
        global_j=energy.buffer.at(columns.global_bytes),
    )


def energies(column: Column, work: int, chips: ChipSet, technology: Technology) -> Energies:
    """Energy of one work on every chip by component, without idle power and links."""
    return energies_at(column, work, prices_of(chips, technology, column.constants))


def energies_at(column: Column, work: int, price: EnergyPrices) -> Energies:
    """The same at given prices."""
    costed = column.works[work]
    macs = sum(p.macs for p in costed.products)
    operations = 0.0 if costed.vector is None else costed.vector.operations * costed.vector.elements
    hbm_bytes, square = column.hbm_bytes(work), price.volts_squared
    filled = column.port_bytes(work) if price.port_fills else column.tensor_global_bytes(work)
    nothing = np.zeros(len(square))
    return Energies(
        tensor_arrays=square * (macs * price.mac_j),
        tensor_buffers=square
        * (price.edge_share * column.core_bytes(work) * price.edge + filled * price.fill),
        vector_units=square * (operations * price.lane_j),
        vector_buffers=square * column.vector_bytes(work) * price.vector_j,
        global_buffer=square * (column.global_bytes(work) + hbm_bytes) * price.global_j,
        hbm=hbm_bytes * price.hbm_j,
        links=nothing,
        static=nothing,
    )


@dataclass(frozen=True, slots=True)
class LayerPower:
    """Watts while a layer runs, and its joules: one value for each chip."""

    energy_j: Floats
    average_w: Floats
    peak_w: Floats


def layer_power(
    column: Column, rows: Sequence[int], chips: ChipSet, technology: Technology, static_w: Floats
) -> LayerPower:
    """Power of operators run one after the other; ``rows`` names the work of each, ``static_w`` is
    drawn always."""
    total, spent, peak = (np.zeros(len(chips)) for _ in range(3))
    for row in rows:
        time_s = column.time_s(row)
        energy_j = energies(column, row, chips, technology).total() + static_w * time_s
        total, spent = total + energy_j, spent + time_s
        with np.errstate(divide="ignore", invalid="ignore"):
            peak = np.maximum(peak, np.where(time_s > 0, energy_j / time_s, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return LayerPower(total, np.where(spent > 0, total / spent, 0.0), peak)
