"""The chips of a space: figures of all of them as columns, or one of them as a value.

A chip has the base chip's technology. What the rules leave out for area counts dies without edge
for their stacks too.
"""

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.cost.parts import tensor_parts, vector_parts
from phaze.hardware.area import areas_of
from phaze.hardware.calibration import IDEAL
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import at_held_clock
from phaze.hardware.columns import ChipColumns, Flags, Floats
from phaze.hardware.converted import changed_chip
from phaze.hardware.manufacturing import manufacturing_kgco2e
from phaze.hardware.ownership import load_terms
from phaze.hardware.power import idle_power
from phaze.search.factors import AS_THEY_ARE, ConstantFactors
from phaze.search.feasibility import (
    NOTHING_LEFT_OUT,
    WITHIN,
    Need,
    area_budget,
    clocks_of,
    design_watts,
    die_areas,
    joined,
    kept_chunks,
    kept_of,
    need_of,
    price_usd,
    refusals,
)
from phaze.search.space import Described, Space


@dataclass(frozen=True, slots=True)
class SpaceChips:
    """Chips of a space and the clocks they run at; ``factors`` make them other than the model has
    them.

    ``left_out``: combinations that each rule leaves out. Of a space that is looked at in boxes only
    some chips: ``numbers`` are those of their combinations, ascending, and there are so many
    ``others``.
    """

    space: Space
    chips: ChipColumns
    area_mm2: Floats
    held_hz: Floats
    rules: Mapping[str, int] = field(default_factory=lambda: NOTHING_LEFT_OUT)
    factors: ConstantFactors = AS_THEY_ARE
    numbers: NDArray[np.int64] | None = None
    others: int = 0

    def __len__(self) -> int:
        return len(self.area_mm2)

    @property
    def process(self) -> str:
        return self.space.technology.name

    @property
    def link_bytes_per_s(self) -> Floats:
        return self.chips.link_bytes_per_s * self.factors.links

    @property
    def hbm_bytes(self) -> NDArray[np.int64]:
        """The memory of every chip, where each has its own."""
        return self.chips.stacks.astype(np.int64) * self.space.stack_bytes

    @property
    def die_mm2(self) -> Floats:
        """Areas with what stays empty so that the stacks have edge."""
        return die_areas(self.chips, self.area_mm2)

    @property
    def total(self) -> int:
        """Chips of the space, with those that are not here one by one."""
        return len(self) + self.others

    def number(self, index: int) -> int:
        """What documents call a chip: its place, or where the space is looked at in boxes its
        combination's number."""
        return index if self.numbers is None else int(self.numbers[index])

    def index_of(self, number: int) -> int | None:
        """The place of a chip that documents call that; None where there is none."""
        if self.numbers is None:
            return number if 0 <= number < len(self) else None
        index = int(np.searchsorted(self.numbers, number))
        return index if index < len(self) and int(self.numbers[index]) == number else None

    @property
    def left_out(self) -> dict[str, int]:
        """Combinations that each rule leaves out."""
        rules = self.rules
        return {
            "area": rules["area"] + rules["edge"],
            "power": rules["power"],
            "cost": rules["cost"],
        }

    def taken(self, index: NDArray[Any]) -> "SpaceChips":
        """Some of its chips, nothing left out."""
        held = self.held_hz[index]
        return SpaceChips(
            self.space, self.chips.taken(index), self.area_mm2[index], held, factors=self.factors
        )

    def at(self, numbers: list[int]) -> "SpaceChips":
        """Combinations by number, whether or not the space keeps them."""
        return replace(
            as_chips(self.space, self.space.numbered(np.array(numbers, np.int64))),
            factors=self.factors,
        )

    def refusals(self) -> list[str | None]:
        """Why the space does not keep each of these combinations, or None where it does."""
        return refusals(self.space, self.chips, self.area_mm2)

    def area_budget(self) -> float:
        """The area that a chip may have, mm2."""
        return area_budget(self.space)

    def scaled(self, by: ConstantFactors) -> "SpaceChips":
        """The same chips with constants times factors; areas and what is in the space stay."""
        return replace(self, factors=by)

    @property
    def _rated(self) -> float:
        """What the rated clock is multiplied by: with it the bandwidth of the global buffer
        stays."""
        return 1.0 if self.space.base.power_sets_clock else self.factors.clock

    def arrays(self) -> ChipSet:
        """Every chip as a set for costs."""
        chips, by, technology = self.chips, self.factors, self.space.technology
        columns = replace(
            chips,
            clock_hz=chips.clock_hz * self._rated,
            hbm_bytes_per_s=chips.hbm_bytes_per_s * by.hbm,
            width=chips.width * (by.shared / self._rated),
        )
        inside = (
            areas_of(chips, technology).clusters / chips.built
            if technology.wire_j
            else self.area_mm2
        )
        return ChipSet(columns, self.held_hz * by.clock, self.area_mm2, inside)

    def chip(self, index: int, hbm_bytes: int = 0) -> Chip:
        """One chip of the space, with its own memory or that much HBM."""
        space, chips, number, by = self.space, self.chips, self.number(index), self.factors
        chip = at_held_clock(space.chip_at(chips, index, number, hbm_bytes))
        if by == AS_THEY_ARE:
            return chip
        clock = chip.clock_hz * by.clock
        return changed_chip(
            chip,
            hbm_bytes_per_s=chip.hbm.bandwidth_bytes_per_s * by.hbm,
            global_bytes_per_s=float(chips.width[index]) * (by.shared / self._rated) * clock,
            link_bytes_per_s=chip.links.bandwidth_bytes_per_s * by.links,
            clock_hz=clock,
        )

    def name(self, index: int) -> str:
        """A name that says what a chip is made of."""
        return self.space.chip_name(self.chips, index)

    def need(self) -> Need:
        """Where there is no chip: the rule that leaves none."""
        return need_of(self.space, self.rules)

    def allowed(self, hbm_bytes: int) -> Flags:
        """Chips that may have that memory: it is their own, or with it they are within the space's
        price."""
        if self.space.memories is not None:
            return np.asarray(self.hbm_bytes == hbm_bytes)
        most = self.space.keep.most_usd
        within = np.ones(len(self), np.bool_)
        return within if most is None else np.asarray(self.making_usd(hbm_bytes) <= most * WITHIN)

    def static_w(self) -> Floats:
        """Watts that every chip draws whatever runs."""
        return idle_power(self.chips, self.space.technology, self.area_mm2)

    def design_w(self) -> Floats:
        """The design power of every chip."""
        return design_watts(self.space, self.chips, self.area_mm2, self.held_hz)

    def making_usd(self, hbm_bytes: int) -> Floats:
        """What making every chip takes, with its own memory or that one."""
        return price_usd(self.space, self.chips, self.area_mm2, hbm_bytes)

    def making_kgco2e(self, hbm_bytes: int) -> Floats:
        """The same in carbon."""
        fab, dies = self.space.technology.fab, self.space.base.built.dies
        memory = (
            float(hbm_bytes) if self.space.memories is None else self.hbm_bytes.astype(np.float64)
        )
        return manufacturing_kgco2e(self.die_mm2 / dies, dies, memory, fab, load_terms())

    def tensor_parts(self) -> int:
        """Different tensor parts."""
        return len(tensor_parts(self.arrays(), IDEAL)[0])

    def vector_parts(self) -> int:
        """Different vector parts; the clock held is among what they differ in."""
        return len(vector_parts(self.arrays(), IDEAL)[0])

    def fields(self) -> dict[str, NDArray[Any]]:
        """What every chip has of each field that may be an axis."""
        return self.space.fields_of(self.chips)

    def axis_values(self) -> dict[str, NDArray[Any]]:
        """What every chip has of each axis."""
        every = self.fields()
        return {name: every[name] for name in self.space.axis_points()}

    def identity(self, index: int) -> tuple[float, ...]:
        """What names a chip whatever its constants are."""
        fields = self.space.fields_of(self.chips.taken(np.array([index])))
        return tuple(float(values[0]) for values in fields.values())

    def columns(self) -> list[NDArray[Any]]:
        """All that tells its chips apart, 8 bytes a value; the clock held depends on the power
        limit too."""
        every = [
            getattr(self.chips, column.name).astype(np.float64) for column in fields(self.chips)
        ]
        scaled = [np.full(len(self), value) for value in astuple(self.factors)]
        return [*every, self.held_hz, *scaled]

    def described(self) -> list[Described]:
        """What its chips are made of, for people: name, values, unit."""
        return self.space.described(self.chips)

    def frame(self) -> dict[str, NDArray[Any]]:
        """What its chips are made of, as columns of a table; ``clock_hz`` is the clock held."""
        return self.space.frame_of(self.chips, self.area_mm2, self.held_hz)


def as_chips(space: Space, chips: ChipColumns) -> SpaceChips:
    """Combinations as chips of the space, whether or not it keeps them."""
    return SpaceChips(
        space, chips, areas_of(chips, space.technology).total, clocks_of(space, chips)
    )


def chips_at(space: Space, numbers: NDArray[np.int64]) -> SpaceChips:
    """Of combinations by number, ascending, those that the space keeps."""
    kept = kept_of(space, space.numbered(numbers))
    held = clocks_of(space, kept.chips)
    return SpaceChips(space, kept.chips, kept.area_mm2, held, numbers=numbers[kept.index])


def enumerate_space(space: Space) -> SpaceChips:
    """The chips of a space."""
    rules, chunks = dict(NOTHING_LEFT_OUT), list(kept_chunks(space))
    for chunk in chunks:
        for rule, count in chunk.left_out.items():
            rules[rule] += count
    chips = joined([chunk.chips for chunk in chunks])
    area = np.concatenate([chunk.area_mm2 for chunk in chunks])
    return SpaceChips(space, chips, area, clocks_of(space, chips), rules)
