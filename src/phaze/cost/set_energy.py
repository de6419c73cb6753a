"""Energy of works and power of a layer on a set of chips, of cores or of clusters.

Over the operators of a layer run one after the other, with what is drawn whatever runs in each

    average power = sum of energies / sum of times,     peak power = greatest energy / time of one operator.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet, ClusterSet
from phaze.cost.clustered.energy import cluster_energies
from phaze.cost.energy import Energies, energies
from phaze.cost.table import Column
from phaze.hardware.silicon.design import EnergyModel, NodeEnergy

Floats = NDArray[np.float64]


def dynamic_energies(column: Column, work: int, chips: ChipSet, model: EnergyModel) -> Energies:
    """Energy of one work on every chip by component, without idle power; set and model are of one kind."""
    if isinstance(chips, ClusterSet) and isinstance(model, NodeEnergy):
        return cluster_energies(column, work, chips, model.node)
    if isinstance(chips, ClusterSet) or isinstance(model, NodeEnergy):
        raise AssertionError("chips of clusters have the energies of a node, chips of cores those of a technology")
    return energies(column, work, chips, model, np.zeros(len(chips)))


@dataclass(frozen=True, slots=True)
class LayerPower:
    """Watts while a layer runs, and its joules: one value for each chip."""

    energy_j: Floats
    average_w: Floats
    peak_w: Floats


def layer_power(
    column: Column, rows: Sequence[int], chips: ChipSet, model: EnergyModel, static_w: Floats
) -> LayerPower:
    """Power of operators run one after the other; ``rows`` names the work of each, ``static_w`` is drawn always."""
    total, spent, peak = (np.zeros(len(chips)) for _ in range(3))
    for row in rows:
        time_s = column.time_s(row)
        energy_j = dynamic_energies(column, row, chips, model).total() + static_w * time_s
        total, spent = total + energy_j, spent + time_s
        with np.errstate(divide="ignore", invalid="ignore"):
            peak = np.maximum(peak, np.where(time_s > 0, energy_j / time_s, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return LayerPower(total, np.where(spent > 0, total / spent, 0.0), peak)
