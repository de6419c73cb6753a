"""The chips of a space as the cost room wants them: arrays of every field, or one of them as a value.

A chip of a space has the base chip's technology; its core buffers feed their arrays and lanes fully: 2 bytes a row and
column in and 4 a column out, 6 a lane, each cycle.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipArrays
from phaze.hardware.chip import (
    Chip,
    Memory,
    TensorCore,
    VectorCore,
    array_feed_bytes_per_cycle,
    lane_feed_bytes_per_cycle,
)
from phaze.hardware.ownership import load_terms
from phaze.hardware.technology import EnergyTable, Technology
from phaze.search.feasibility import FeasibleChips, Need, area_budget, combinations_at, nearest_chip, refusals
from phaze.search.ownership_cost import design_watts, making_kgco2e, making_usd
from phaze.search.space import FIELDS, Chips, Space
from phaze.units import Unit

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SpaceChips:
    """A space opened: its base chip, its technology, its chips, and what its rules left out."""

    space: Space
    base: Chip
    technology: Technology
    kept: FeasibleChips

    @property
    def chips(self) -> Chips:
        return self.kept.chips

    def __len__(self) -> int:
        return len(self.kept.chips)

    @property
    def process(self) -> str:
        return self.technology.name

    @property
    def energy(self) -> EnergyTable:
        """The energies of its chips."""
        return self.technology.energy

    @property
    def area_mm2(self) -> Floats:
        return self.chips.area_mm2

    @property
    def link_bytes_per_s(self) -> Floats:
        return self.chips.link_bytes_per_s

    @property
    def numbers(self) -> NDArray[np.int64] | None:
        """What documents call its chips, where that is not their place."""
        return self.kept.numbers

    @property
    def total(self) -> int:
        """Chips of the space, with those that are not here one by one."""
        return len(self) + self.kept.others

    def number(self, index: int) -> int:
        """What documents call a chip: its place, or where the space is looked at in boxes its combination's number."""
        return index if self.kept.numbers is None else int(self.kept.numbers[index])

    def index_of(self, number: int) -> int | None:
        """The place of a chip that documents call that; None where there is none."""
        if self.kept.numbers is None:
            return number if 0 <= number < len(self) else None
        index = int(np.searchsorted(self.kept.numbers, number))
        there = index < len(self) and int(self.kept.numbers[index]) == number
        return index if there else None

    @property
    def left_out(self) -> dict[str, int]:
        """Combinations that each rule leaves out."""
        return {"area": self.kept.area, "power": self.kept.power, "cost": self.kept.cost}

    def taken(self, index: NDArray[Any]) -> "SpaceChips":
        """Some of its chips, nothing left out."""
        return replace(self, kept=FeasibleChips(self.chips.taken(index), 0, 0, 0))

    def at(self, numbers: list[int]) -> "SpaceChips":
        """Combinations by number, whether or not the space keeps them."""
        return replace(self, kept=FeasibleChips(combinations_at(self.space, numbers), 0, 0, 0))

    def refusals(self) -> list[str | None]:
        """Why the space does not keep each of these combinations, or None where it does."""
        return refusals(self.space, self.chips)

    def area_budget(self) -> float:
        """The area that a chip may have, mm2."""
        return area_budget(self.space)

    def scaled(self, clock: float, hbm: float, shared: float, links: float) -> "SpaceChips":
        """The same chips with constants times factors; areas and what is in the space stay."""
        c = self.chips
        faster = replace(
            c,
            clock_hz=c.clock_hz * clock,
            hbm_bytes_per_s=c.hbm_bytes_per_s * hbm,
            global_bytes_per_s=c.global_bytes_per_s * shared,
            link_bytes_per_s=c.link_bytes_per_s * links,
        )
        return replace(self, kept=replace(self.kept, chips=faster))

    def need(self) -> Need:
        """Where there is no chip: the rule that leaves none, and how near the nearest comes."""
        return nearest_chip(self.space)

    def allowed(self, hbm_bytes: int) -> NDArray[np.bool_]:
        """Chips that may have that memory: with it they are within the space's price."""
        most = self.space.keep.most_usd
        if most is None:
            return np.ones(len(self), np.bool_)
        return np.asarray(self.making_usd(hbm_bytes) <= most * (1 + 1e-12))

    def static_w(self) -> Floats:
        """Watts that every chip draws whatever runs."""
        return self.technology.energy.static_w_per_mm2 * self.chips.area_mm2

    def design_w(self) -> Floats:
        """The design power of every chip."""
        return design_watts(self.space, self.chips)

    def making_usd(self, hbm_bytes: int) -> Floats:
        """What making every chip with that memory takes."""
        return making_usd(self.chips, self.base.silicon.dies, self.technology.fab, load_terms(), hbm_bytes)

    def making_kgco2e(self, hbm_bytes: int) -> Floats:
        """The same in carbon."""
        return making_kgco2e(self.chips, self.base.silicon.dies, self.technology.fab, load_terms(), hbm_bytes)

    def tensor_parts(self) -> int:
        """Different tensor parts."""
        return self.chips.tensor_parts()

    def vector_parts(self) -> int:
        """Different vector parts."""
        return self.chips.vector_parts()

    def identity(self, index: int) -> tuple[float, ...]:
        """What names a chip whatever its constants are."""
        c = self.chips
        own = (c.tensor_cores, c.rows, c.columns, c.vector_cores, c.lanes, c.global_buffer_bytes)
        return tuple(int(one[index]) for one in own)

    def columns(self) -> list[NDArray[Any]]:
        """All that tells its chips apart, 8 bytes a value."""
        return [getattr(self.chips, f.name) for f in fields(self.chips)]

    def described(self) -> list[tuple[str, NDArray[Any], Unit | None]]:
        """What its chips are made of, for people: name, values, unit."""
        c = self.chips
        return [
            ("tensor cores", c.tensor_cores, None),
            ("rows", c.rows, None),
            ("columns", c.columns, None),
            ("vector cores", c.vector_cores, None),
            ("lanes", c.lanes, None),
            ("global buffer", c.global_buffer_bytes, "B"),
            ("global buffer bandwidth", c.global_bytes_per_s, "B/s"),
            ("HBM bandwidth", c.hbm_bytes_per_s, "B/s"),
            ("tensor buffer", c.tensor_buffer_bytes, "B"),
            ("vector buffer", c.vector_buffer_bytes, "B"),
            ("links", c.link_bytes_per_s, "B/s"),
            ("clock", c.clock_hz, "Hz"),
        ]

    def frame(self) -> dict[str, NDArray[Any]]:
        """What its chips are made of, as columns of a table."""
        c = self.chips
        return {
            "tensor_cores": c.tensor_cores,
            "rows": c.rows,
            "columns": c.columns,
            "vector_cores": c.vector_cores,
            "lanes": c.lanes,
            "global_buffer_bytes": c.global_buffer_bytes,
            "global_bytes_per_s": c.global_bytes_per_s,
            "hbm_bytes_per_s": c.hbm_bytes_per_s,
            "clock_hz": c.clock_hz,
            "area_mm2": c.area_mm2,
            "tensor_buffer_bytes": c.tensor_buffer_bytes,
            "vector_buffer_bytes": c.vector_buffer_bytes,
            "link_bytes_per_s": c.link_bytes_per_s,
        }

    def axis_values(self) -> dict[str, NDArray[Any]]:
        """What every chip has of each axis."""
        every = {name: getattr(self.chips, f.name) for name, f in zip(FIELDS, fields(self.chips), strict=True)}
        return {name: every[name] for name in self.space.axis_points()}

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
            title=f"chip {self.number(index)} of the space {self.space.name}",
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
