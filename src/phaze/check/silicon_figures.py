"""Figures of chips of clusters (docs/silicon.md): joules of what they do, watts, dollars and carbon of making them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .limits import GB, curve, die_kgco2e
from .reading import number, positive
from .silicon import OPERAND, Clusters, areas_of, built_of, die_of, edges_of, power_of, silicon_of, usd_of, volts_of

Floats = NDArray[np.float64]


def cluster_energies(chips: Clusters, base: Mapping[str, Any]) -> tuple[Floats, ...]:
    """Joules of a multiply-accumulate, a byte at edges and ports, a lane operation, a byte of vector work, of the
    global buffer and of HBM, at the voltage of the clock held; watts that a chip draws whatever runs."""
    own = silicon_of(base)
    areas, energy, each = areas_of(chips, own), own.energy, np.ones(len(chips))

    def rate(name: str) -> float:
        return number(energy[name], f"energy.{name}")

    def banked(size: Floats) -> Floats:
        return curve(energy["buffer"], np.minimum(size, positive(energy["core_bank_bytes"], "bank")), "energy.buffer")

    square = volts_of(chips.clock, own.voltage) ** 2
    operand, wire = banked(chips.operands), rate("wire_j")
    inside = operand + rate("edge_j") + wire * np.sqrt(areas.clusters / built_of(chips)) / 2.0
    across = operand + wire * np.sqrt(areas.total) / 2.0
    share = edges_of(chips, own.broadcast) / (OPERAND * chips.arrays * (chips.rows + chips.columns))
    idle = rate("leakage_w_per_mm2") * areas.total + chips.hbm_stacks * rate("stack_w")
    return (
        square * rate("mac_j"), square * share * inside, square * across, square * rate("lane_j"),
        square * (2.0 * banked(chips.registers) + across),
        square * curve(energy["buffer"], chips.global_buffer, "energy.buffer"), rate("hbm_j_per_byte") * each,
        idle + chips.links * rate("link_j_per_byte"),
    )  # fmt: skip


def cluster_figures(
    chips: Clusters, space: Mapping[str, Any], terms: Mapping[str, Any]
) -> tuple[Floats, Floats, Floats, Floats]:
    """mm2, watts at the clock held, dollars and kilograms of CO2 equivalent of making, of chips of a space."""
    own = silicon_of(space["base"])
    areas = areas_of(chips, own)
    die, memory = die_of(chips, areas.total), chips.hbm_stacks * own.stack_bytes
    kilograms = die_kgco2e(die, own.fab, terms) + memory / GB * number(terms["hbm_kgco2e_per_gb"], "hbm_kgco2e_per_gb")
    kilograms = kilograms + number(terms["package_kgco2e"], "package_kgco2e")
    watts = power_of(chips, own, areas).at(chips.clock, own.voltage)
    return areas.total, watts, usd_of(chips, own, die, terms), kilograms
