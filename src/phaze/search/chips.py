"""The chips of a space as the cost room wants them: arrays of every field, or one of them as a value.

A chip of a space has the base chip's technology and links; its core buffers follow the space's rule and
feed their arrays and lanes fully: 2 bytes a row and column in and 4 a column out, 6 a lane, each cycle.
"""

from dataclasses import dataclass, replace

import numpy as np

from phaze.cost.parts import ChipArrays
from phaze.hardware.chip import (
    Chip,
    Memory,
    TensorCore,
    VectorCore,
    array_feed_bytes_per_cycle,
    lane_feed_bytes_per_cycle,
)
from phaze.hardware.library import load_chip
from phaze.search.space import Chips, SpaceFile, chips_of


@dataclass(frozen=True, slots=True)
class SpaceChips:
    """A space opened: its base chip, its chips, and the rule of their core buffers."""

    space: SpaceFile
    base: Chip
    chips: Chips

    def __len__(self) -> int:
        return len(self.chips)

    def arrays(self) -> ChipArrays:
        """Every chip as arrays."""
        chips = self.chips
        least, per_unit = self.space.core_buffers.least, self.space.core_buffers.bytes_per_unit
        rows, columns, lanes = chips.rows.astype(float), chips.columns.astype(float), chips.lanes.astype(float)
        return ChipArrays(
            tensor_cores=chips.tensor_cores.astype(float),
            rows=rows,
            columns=columns,
            tensor_buffer_bytes=np.floor(np.maximum(least, per_unit * rows * columns)),
            tensor_buffer_bytes_per_s=(2 * rows + 6 * columns) * chips.clock_hz,
            vector_cores=chips.vector_cores.astype(float),
            lanes=lanes,
            vector_buffer_bytes=np.floor(np.maximum(least, per_unit * lanes)),
            vector_buffer_bytes_per_s=6 * lanes * chips.clock_hz,
            global_bytes=chips.global_buffer_bytes.astype(float),
            global_bytes_per_s=chips.global_bytes_per_s,
            hbm_bytes_per_s=chips.hbm_bytes_per_s,
            clock_hz=chips.clock_hz,
        )

    def chip(self, index: int, hbm_bytes: int) -> Chip:
        """One chip of the space with that much HBM."""
        chips, base = self.chips, self.base
        rows, columns, lanes = (int(field[index]) for field in (chips.rows, chips.columns, chips.lanes))
        clock_hz = float(chips.clock_hz[index])
        array_s, lane_s = (
            array_feed_bytes_per_cycle(rows, columns) * clock_hz,
            lane_feed_bytes_per_cycle(lanes) * clock_hz,
        )
        global_bytes, rate = int(chips.global_buffer_bytes[index]), float(chips.global_bytes_per_s[index])
        return replace(
            base,
            name=self.name(index),
            title=f"chip {index} of the space {self.space.name}",
            clock_hz=clock_hz,
            tensor_cores=int(chips.tensor_cores[index]),
            tensor_core=TensorCore(rows, columns, self._buffer(rows * columns, array_s)),
            vector_cores=int(chips.vector_cores[index]),
            vector_core=VectorCore(lanes, self._buffer(lanes, lane_s)),
            global_buffer=replace(base.global_buffer, size_bytes=global_bytes, bandwidth_bytes_per_s=rate),
            hbm=replace(base.hbm, size_bytes=hbm_bytes, bandwidth_bytes_per_s=float(chips.hbm_bytes_per_s[index])),
        )

    def _buffer(self, units: int, bytes_per_s: float) -> Memory:
        rule = self.space.core_buffers
        return Memory(int(max(rule.least, rule.bytes_per_unit * units)), bytes_per_s)

    def name(self, index: int) -> str:
        """A name that says what the chip is made of."""
        c = self.chips
        buffer = f"{int(c.global_buffer_bytes[index]) / 2**20:g}MiB"
        tensor = f"{c.tensor_cores[index]}x{c.rows[index]}x{c.columns[index]}"
        said = f"t{tensor}-v{c.vector_cores[index]}x{c.lanes[index]}-{buffer}"
        axes = self.space.axes
        said += f"-{c.global_bytes_per_s[index] / 1e9:g}GBs" if axes.global_bandwidth else ""
        said += f"-hbm{c.hbm_bytes_per_s[index] / 1e9:g}GBs" if axes.hbm_bandwidth else ""
        return said + (f"-{c.clock_hz[index] / 1e9:g}GHz" if axes.clock else "")


def open_space(space: SpaceFile) -> SpaceChips:
    """The chips of a space, ready."""
    return SpaceChips(space, load_chip(space.base), chips_of(space))
