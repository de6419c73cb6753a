"""Sets of chips as costs see them: chips of cores (version 1) or of clusters, one of the two, behind one face.

Both have a length, ``taken``, HBM's bytes a second, numbers of cores for a schedule, and their parts as columns
(:mod:`phaze.cost.parts`). A schedule has as many cores of either kind as there are clusters, whose arrays work together
behind one port.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.hardware.columns import ChipColumns, columns_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChipArrays:
    """Chips of cores: one array per field, all of one length; peaks as the data sheet has them."""

    tensor_cores: Floats
    rows: Floats
    columns: Floats
    tensor_buffer_bytes: Floats
    tensor_buffer_bytes_per_s: Floats
    vector_cores: Floats
    lanes: Floats
    vector_buffer_bytes: Floats
    vector_buffer_bytes_per_s: Floats
    global_bytes: Floats
    global_bytes_per_s: Floats
    hbm_bytes_per_s: Floats
    clock_hz: Floats

    def __len__(self) -> int:
        return len(self.tensor_cores)

    def taken(self, index: NDArray[Any]) -> "ChipArrays":
        """The chips of ``index``, numbers or flags."""
        return ChipArrays(*(getattr(self, f.name)[index] for f in fields(self)))


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
        return ClusterSet(self.columns.taken(index), *(values[index] for values in rest))

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


def chip_arrays(chips: Sequence[Chip]) -> ChipArrays:
    """Chips one by one as arrays, those of clusters as the cores that they come closest to."""
    rows = [
        (
            c.tensor_cores, c.tensor_core.rows, c.tensor_core.columns,
            c.tensor_core.buffer.size_bytes, c.tensor_core.buffer.bandwidth_bytes_per_s,
            c.vector_cores, c.vector_core.lanes,
            c.vector_core.buffer.size_bytes, c.vector_core.buffer.bandwidth_bytes_per_s,
            c.global_buffer.size_bytes, c.global_buffer.bandwidth_bytes_per_s, c.hbm.bandwidth_bytes_per_s, c.clock_hz,
        )
        for c in chips
    ]  # fmt: skip
    return ChipArrays(*np.array(rows, dtype=np.float64).reshape(-1, len(fields(ChipArrays))).T)


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
    total = np.array([0.0 if area is None else area.total for area in areas])
    inside = np.array([0.0 if a is None else a.clusters / count for a, count in zip(areas, built, strict=True)])
    return ClusterSet(columns, held_hz, total, inside)
