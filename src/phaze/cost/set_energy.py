"""The energy of a work on a set of chips, of cores or of clusters, without what is drawn whatever runs."""

import numpy as np

from phaze.cost.chip_set import ChipSet, ClusterSet
from phaze.cost.clustered.energy import cluster_energies
from phaze.cost.energy import Energies, energies
from phaze.cost.table import Column
from phaze.hardware.silicon.design import EnergyModel, NodeEnergy


def dynamic_energies(column: Column, work: int, chips: ChipSet, model: EnergyModel) -> Energies:
    """Energy of one work on every chip by component; set and model are of one kind."""
    if isinstance(chips, ClusterSet) and isinstance(model, NodeEnergy):
        return cluster_energies(column, work, chips, model.node)
    if isinstance(chips, ClusterSet) or isinstance(model, NodeEnergy):
        raise AssertionError("chips of clusters have the energies of a node, chips of cores those of a technology")
    return energies(column, work, chips, model, np.zeros(len(chips)))
