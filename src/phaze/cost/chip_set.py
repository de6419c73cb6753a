"""Sets of chips as costs see them: columns of chips with the clocks they hold.

A schedule has as many cores of either kind as there are clusters, whose arrays work together behind
one port.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import chip_areas
from phaze.hardware.columns import ChipColumns, columns_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChipSet:
    """Chips at the clocks that they hold; areas, of all of a chip and of one cluster, are for the
    wires that energy counts, 0 without a process."""

    columns: ChipColumns
    held_hz: Floats
    area_mm2: Floats
    cluster_mm2: Floats

    def __len__(self) -> int:
        return len(self.columns)

    def taken(self, index: NDArray[Any]) -> "ChipSet":
        """The chips of ``index``, numbers or flags."""
        held, area, inside = (
            values[index] for values in (self.held_hz, self.area_mm2, self.cluster_mm2)
        )
        return ChipSet(self.columns.taken(index), held, area, inside)

    @property
    def hbm_bytes_per_s(self) -> Floats:
        return self.columns.hbm_bytes_per_s

    @property
    def tensor_cores(self) -> Floats:
        """Cores, or clusters, whose arrays work together behind one port."""
        return self.columns.clusters

    @property
    def vector_cores(self) -> Floats:
        """Cores, or clusters, whose lanes work together."""
        return self.columns.vectors

    def running_hz(self, constants: Constants) -> Floats:
        """The clock of every chip: the one measured where there is one, else the one it holds."""
        return (
            self.held_hz if constants.clock_hz is None else np.full(len(self), constants.clock_hz)
        )

    def sustained_share(self, constants: Constants) -> Floats:
        """Of the cycles in which arrays have a tile that they work in: by design, or as measured of
        the chip."""
        share = self.columns.sustained_share
        return np.where(share > 0, share, constants.matrix_share)


def chip_set(chips: Sequence[Chip]) -> ChipSet:
    """Chips as a set."""
    columns, areas = columns_of(chips), [chip_areas(chip) for chip in chips]
    held_hz = np.array([chip.clock_hz for chip in chips])
    total = np.array([0.0 if area is None else area.total for area in areas])
    inside = np.array([0.0 if area is None else area.clusters for area in areas]) / columns.built
    return ChipSet(columns, held_hz, total, inside)


def timed_set(chip: Chip) -> ChipSet:
    """One chip as a set for times alone: its area, which only energies ask for, is left out."""
    columns, none = columns_of([chip]), np.zeros(1)
    return ChipSet(columns, np.array([chip.clock_hz]), none, none)
