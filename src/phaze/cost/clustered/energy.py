"""Energy of a product on clusters, by part: the terms that set the clock, with the product's own bytes.

With V the voltage at the clock f, joules at the reference voltage (:mod:`phaze.hardware.power`), and bytes of
the mapping (:class:`phaze.cost.clustered.mapping.ClusterCost`):

    arrays   = V^2 M mac                                            M multiply-accumulates
    edges    = V^2 share edge bytes (buffer(U) + e_edge + wire sqrt(cluster area) / 2)
               share: bytes that arrays of a cluster read together, over what each would read alone
    delivery = V^2 port bytes (buffer(U) + wire sqrt(area) / 2)
    global   = V^2 (global + HBM bytes) buffer(G)
    hbm      = HBM bytes hbm_j
    idle     = idle watts x time

:func:`cluster_energies` has works on many chips at once, in the components of :mod:`phaze.cost.energy`: edges and
delivery are the arrays' buffers, and vector work with O lane operations and B bytes takes V^2 (O lane + B (2 buffer(A)
+ buffer(U) + wire sqrt(area) / 2)). SerDes never sleep, so bytes that are sent cost nothing beside idle power.
"""

import numpy as np

from phaze.cost.chip_set import ClusterSet
from phaze.cost.energy import Energies
from phaze.cost.table import Column
from phaze.hardware.power import edge_bytes
from phaze.hardware.technology import Technology


def cluster_energies(column: Column, work: int, chips: ClusterSet, node: Technology) -> Energies:
    """Energy of one work on every chip, idle power left out; the formulas stand in the module's docstring."""
    done, own, energy, each = column.works[work], chips.columns, node.energy, np.ones(len(chips))
    square = node.voltage.at(chips.running_hz(column.constants)) ** 2
    held_j = energy.core_buffer_j_per_byte(own.operand_bytes)
    inside_j = held_j + energy.edge_j + energy.wire_j * np.sqrt(chips.cluster_mm2) / 2.0
    across_j = held_j + energy.wire_j * np.sqrt(chips.area_mm2) / 2.0
    share = edge_bytes(own) / (2.0 * own.arrays * (own.rows + own.columns))
    macs = sum(p.macs for p in done.products)
    operations = 0.0 if done.vector is None else done.vector.operations * done.vector.elements
    vector_bytes, hbm_bytes = column.vector_bytes(work), column.hbm_bytes(work)
    vector_j = 2.0 * energy.core_buffer_j_per_byte(own.register_bytes) + across_j
    buffers = share * column.core_bytes(work) * inside_j + column.port_bytes(work) * across_j
    shared_j = energy.buffer.at(own.global_bytes)
    return Energies(
        tensor_arrays=square * (macs * energy.mac_j),
        tensor_buffers=square * buffers,
        vector_units=square * (operations * energy.lane_j),
        vector_buffers=square * vector_bytes * vector_j,
        global_buffer=square * (column.global_bytes(work) + hbm_bytes) * shared_j,
        hbm=hbm_bytes * energy.hbm_j_per_byte,
        links=0.0 * each,
        static=0.0 * each,
    )
