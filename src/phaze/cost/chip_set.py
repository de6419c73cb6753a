"""Sets of chips as costs see them: chips of cores (version 1) or of clusters, one of the two, behind one face.

Both have a length, ``taken``, HBM's bytes a second and numbers of cores for a schedule. :func:`column_of` is every work
spread over every chip; :func:`table_of` has works on one core beside it, which on clusters is one of them: a schedule
has as many cores of either kind as there are clusters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.clustered.table import cost_works_on_clusters
from phaze.cost.parts import ChipArrays, chip_arrays
from phaze.cost.table import Column, CostTable, cost_table, cost_works
from phaze.cost.work import Work
from phaze.errors import InputError
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.hardware.columns import ChipColumns, columns_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClusterSet:
    """Chips of clusters at the clocks that they hold; areas are for the wires that energy counts, 0 without a node."""

    columns: ChipColumns
    held_hz: Floats
    area_mm2: Floats
    cluster_mm2: Floats

    def __len__(self) -> int:
        return len(self.columns)

    def taken(self, index: NDArray[Any]) -> "ClusterSet":
        """The chips of ``index``, numbers or flags."""
        rest = (self.held_hz, self.area_mm2, self.cluster_mm2)
        return ClusterSet(self.columns.taken(index), *(one[index] for one in rest))

    @property
    def hbm_bytes_per_s(self) -> Floats:
        return self.columns.hbm_bytes_per_s

    @property
    def tensor_cores(self) -> Floats:
        """Clusters, whose arrays work together behind one port."""
        return self.columns.clusters

    @property
    def vector_cores(self) -> Floats:
        """Clusters, whose lanes work together."""
        return self.columns.clusters

    def running_hz(self, constants: Constants) -> Floats:
        """The clock of every chip: the one measured where there is one, else the one it holds."""
        return self.held_hz if constants.clock_hz is None else np.full(len(self), constants.clock_hz)


ChipSet = ChipArrays | ClusterSet


def chip_set(chips: Sequence[Chip]) -> ChipSet:
    """Chips of one kind as a set."""
    designs = [chip.clusters for chip in chips if chip.clusters is not None]
    if not designs:
        return chip_arrays(chips)
    if len(designs) < len(chips):
        raise InputError("chips", "chips of cores and of clusters have no set in common", "give chips of one kind")
    columns = columns_of([design.accelerator for design in designs], designs[0].node)
    held_hz, areas = np.array([chip.clock_hz for chip in chips]), [design.areas for design in designs]
    built = [design.accelerator.built.clusters for design in designs]
    area = np.array([0.0 if one is None else one.total for one in areas])
    inside = np.array([0.0 if one is None else one.clusters / count for one, count in zip(areas, built, strict=True)])
    return ClusterSet(columns, held_hz, area, inside)


def column_of(works: Sequence[Work], chips: ChipSet, constants: Constants) -> Column:
    """Every work on every chip, spread over all of it."""
    if isinstance(chips, ChipArrays):
        return cost_works(works, chips, constants)
    return cost_works_on_clusters(works, chips.columns, chips.running_hz(constants), constants)


def table_of(operators: Sequence[Work], chips: ChipSet, constants: Constants) -> CostTable:
    """Every work on one core or cluster and on all of them."""
    if isinstance(chips, ChipArrays):
        return cost_table(operators, chips, constants)
    rows: dict[Work, int] = {}
    of = tuple(rows.setdefault(work, len(rows)) for work in operators)
    works, clock = tuple(rows), chips.running_hz(constants)
    one, spread = (
        cost_works_on_clusters(works, chips.columns, clock, constants, how) for how in ("one_core", "all_cores")
    )  # fmt: skip
    # As many clusters have arrays as lanes: a fused operator has all of both.
    return CostTable(works, of, one, spread, spread)
