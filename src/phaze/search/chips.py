"""The chips of a space as the cost room wants them: arrays of every field, or one of them as a value.

A chip of a space has the base chip's technology; its core buffers feed their arrays and lanes fully: 2 bytes a row and
column in and 4 a column out, 6 a lane, each cycle.
"""

from dataclasses import dataclass, replace

from phaze.cost.parts import ChipArrays
from phaze.hardware.chip import (
    Chip,
    Memory,
    TensorCore,
    VectorCore,
    array_feed_bytes_per_cycle,
    lane_feed_bytes_per_cycle,
)
from phaze.hardware.technology import Technology
from phaze.search.keep import Kept, kept_of
from phaze.search.space import Chips, Space


@dataclass(frozen=True, slots=True)
class SpaceChips:
    """A space opened: its base chip, its technology, its chips, and what its rules left out."""

    space: Space
    base: Chip
    technology: Technology
    kept: Kept

    @property
    def chips(self) -> Chips:
        return self.kept.chips

    def __len__(self) -> int:
        return len(self.kept.chips)

    def arrays(self) -> ChipArrays:
        """Every chip as arrays."""
        chips = self.chips
        rows, columns, lanes = chips.rows.astype(float), chips.columns.astype(float), chips.lanes.astype(float)
        return ChipArrays(
            tensor_cores=chips.tensor_cores.astype(float),
            rows=rows,
            columns=columns,
            tensor_buffer_bytes=chips.tensor_buffer_bytes.astype(float),
            tensor_buffer_bytes_per_s=(2 * rows + 6 * columns) * chips.clock_hz,
            vector_cores=chips.vector_cores.astype(float),
            lanes=lanes,
            vector_buffer_bytes=chips.vector_buffer_bytes.astype(float),
            vector_buffer_bytes_per_s=6 * lanes * chips.clock_hz,
            global_bytes=chips.global_buffer_bytes.astype(float),
            global_bytes_per_s=chips.global_bytes_per_s,
            hbm_bytes_per_s=chips.hbm_bytes_per_s,
            clock_hz=chips.clock_hz,
        )

    def chip(self, index: int, hbm_bytes: int) -> Chip:
        """One chip of the space with that much HBM."""
        c, base = self.chips, self.base
        rows, columns, lanes = (int(field[index]) for field in (c.rows, c.columns, c.lanes))
        clock_hz = float(c.clock_hz[index])
        array_s = array_feed_bytes_per_cycle(rows, columns) * clock_hz
        lane_s = lane_feed_bytes_per_cycle(lanes) * clock_hz
        global_bytes, rate = int(c.global_buffer_bytes[index]), float(c.global_bytes_per_s[index])
        return replace(
            base,
            name=self.name(index),
            title=f"chip {index} of the space {self.space.name}",
            clock_hz=clock_hz,
            tensor_cores=int(c.tensor_cores[index]),
            tensor_core=TensorCore(rows, columns, Memory(int(c.tensor_buffer_bytes[index]), array_s)),
            vector_cores=int(c.vector_cores[index]),
            vector_core=VectorCore(lanes, Memory(int(c.vector_buffer_bytes[index]), lane_s)),
            global_buffer=replace(base.global_buffer, size_bytes=global_bytes, bandwidth_bytes_per_s=rate),
            hbm=replace(base.hbm, size_bytes=hbm_bytes, bandwidth_bytes_per_s=float(c.hbm_bytes_per_s[index])),
            links=replace(base.links, bandwidth_bytes_per_s=float(c.link_bytes_per_s[index])),
        )

    def name(self, index: int) -> str:
        """A name that says what the chip is made of: counts and shapes, and every other axis that is given."""
        c, axes = self.chips, self.space.axes
        tensor = f"{c.tensor_cores[index]}x{c.rows[index]}x{c.columns[index]}"
        said = f"t{tensor}-v{c.vector_cores[index]}x{c.lanes[index]}-{_mib(c.global_buffer_bytes[index])}MiB"
        said += f"-tb{_kib(c.tensor_buffer_bytes[index])}KiB" if axes.tensor_buffer else ""
        said += f"-vb{_kib(c.vector_buffer_bytes[index])}KiB" if axes.vector_buffer else ""
        said += f"-{c.global_bytes_per_s[index] / 1e9:.9g}GBs" if axes.global_bandwidth else ""
        said += f"-hbm{c.hbm_bytes_per_s[index] / 1e9:.9g}GBs" if axes.hbm_bandwidth else ""
        said += f"-link{c.link_bytes_per_s[index] / 1e9:.9g}GBs" if axes.links else ""
        return said + (f"-{c.clock_hz[index] / 1e9:.9g}GHz" if axes.clock else "")


def _mib(size_bytes: int) -> str:
    return f"{int(size_bytes) / 2**20:.9g}"


def _kib(size_bytes: int) -> str:
    return f"{int(size_bytes) / 2**10:.9g}"


def open_space(space: Space) -> SpaceChips:
    """The chips of a space, ready."""
    return SpaceChips(space, space.base, space.technology, kept_of(space))
