"""The chips of a space of clusters, opened: figures of all of them as arrays, or one of them as a value.

What the rules leave out for area counts dies without edge for their stacks too.
"""

from dataclasses import astuple, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ClusterSet
from phaze.cost.parts import tensor_parts, vector_parts
from phaze.cost.products import core_sides
from phaze.hardware.area import areas_of
from phaze.hardware.calibration import IDEAL
from phaze.hardware.chip import Chip
from phaze.hardware.ownership import GB, load_terms
from phaze.hardware.power import clock_power
from phaze.hardware.silicon.design import NodeEnergy, changed_chip, designed
from phaze.hardware.silicon.price import making_columns
from phaze.hardware.silicon.space import SpaceColumns, columns_at, refusals_of, space_columns
from phaze.hardware.silicon.space_chip import space_chip
from phaze.hardware.technology import Technology
from phaze.search.clustered_space import SpaceOfClusters
from phaze.search.factors import AS_THEY_ARE, Factors
from phaze.search.feasibility import Need
from phaze.search.ownership_cost import die_kgco2e
from phaze.units import Unit

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ClusterChips:
    """A space of clusters opened; ``factors`` make its chips other than the model has them.

    Of a space that is looked at in boxes only some chips: ``numbers`` are those of their combinations, ascending, and
    there are so many ``others``.
    """

    space: SpaceOfClusters
    found: SpaceColumns
    factors: Factors = AS_THEY_ARE
    numbers: NDArray[np.int64] | None = None
    others: int = 0

    def __len__(self) -> int:
        return len(self.found)

    @property
    def node(self) -> Technology:
        return self.space.silicon.node

    @property
    def process(self) -> str:
        return self.node.name

    @property
    def energy(self) -> NodeEnergy:
        return NodeEnergy(self.node)

    @property
    def area_mm2(self) -> Floats:
        return self.found.area_mm2

    @property
    def link_bytes_per_s(self) -> Floats:
        return self.found.chips.link_bytes_per_s * self.factors.links

    @property
    def hbm_bytes(self) -> NDArray[np.int64]:
        """The memory of every chip."""
        return self.found.chips.stacks.astype(np.int64) * self.space.silicon.stack_bytes

    @property
    def total(self) -> int:
        """Chips of the space, with those that are not here one by one."""
        return len(self) + self.others

    def number(self, index: int) -> int:
        """What documents call a chip: its place, or where the space is looked at in boxes its combination's number."""
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
        out = self.found.left_out
        return {"area": out["area"] + out["edge"], "power": out["power"], "cost": out["cost"]}

    def taken(self, index: NDArray[Any]) -> "ClusterChips":
        """Some of its chips, nothing left out."""
        return ClusterChips(self.space, self.found.taken(index), self.factors)

    def at(self, numbers: list[int]) -> "ClusterChips":
        """Combinations by number, whether or not the space keeps them."""
        return ClusterChips(self.space, columns_at(self.space.silicon, np.array(numbers, np.int64)), self.factors)

    def refusals(self) -> list[str | None]:
        """Why the space does not keep each of these combinations, or None where it does."""
        return refusals_of(self.space.silicon, self.found)

    def arrays(self) -> ClusterSet:
        """Every chip as a set for costs."""
        chips, by = self.found.chips, self.factors
        inside = areas_of(chips, self.node).clusters / chips.built
        columns = replace(chips, hbm_bytes_per_s=chips.hbm_bytes_per_s * by.hbm, width=chips.width * by.shared)
        return ClusterSet(columns, self.found.held_hz * by.clock, self.found.area_mm2, inside)

    def scaled(self, clock: float, hbm: float, shared: float, links: float) -> "ClusterChips":
        """The same chips with constants times factors; areas and what is in the space stay."""
        return replace(self, factors=Factors(clock, hbm, shared, links))

    def area_budget(self) -> float:
        """The area that a chip may have, mm2."""
        return self.space.file.keep.most_area

    def chip(self, index: int, hbm_bytes: int | None = None) -> Chip:
        """One chip of the space, whose memory is its own whatever is asked."""
        found = space_chip(self.space.silicon, self.found, index, self.number(index))
        chip, by = designed(found, self.node), self.factors
        if by == AS_THEY_ARE:
            return chip
        clock, width = chip.clock_hz * by.clock, float(self.found.chips.width[index]) * by.shared
        return changed_chip(
            chip,
            hbm_bytes_per_s=chip.hbm.bandwidth_bytes_per_s * by.hbm,
            global_bytes_per_s=width * clock,
            link_bytes_per_s=chip.links.bandwidth_bytes_per_s * by.links,
            clock_hz=clock,
        )

    def name(self, index: int) -> str:
        return space_chip(self.space.silicon, self.found, index).name

    def need(self) -> Need:
        """Where there is no chip: the rule that leaves most of the combinations out."""
        keep, out = self.space.file.keep, self.found.left_out
        rule = max(out, key=lambda name: out[name])
        limit, unit = {
            "area": (keep.most_area, "mm2"), "edge": (keep.most_area, "mm2"), "power": (keep.sustained_power, "W"),
            "cost": (keep.most_usd or 0.0, "USD"),
        }[rule]  # fmt: skip
        least = f" and at least {keep.least_share * keep.most_area:,.4g} mm2" if rule == "area" else ""
        said = f"most of them break the rule of {rule}, at most {limit:,.4g} {unit}{least}"
        return Need(rule, float("nan"), limit, unit, said)

    def allowed(self, hbm_bytes: int) -> Flags:
        """Chips that may have that memory."""
        return np.asarray(self.hbm_bytes == hbm_bytes)

    def static_w(self) -> Floats:
        """Watts that every chip draws whatever runs."""
        return clock_power(self.found.chips, self.node, areas_of(self.found.chips, self.node)).idle_w

    def design_w(self) -> Floats:
        """Watts at the clock that every chip holds."""
        return self.found.power_w

    def making_usd(self, hbm_bytes: int) -> Floats:
        """What making every chip takes, with its own memory."""
        generation = self.space.silicon.base.hbm.generation or ""
        return making_columns(self.found.chips, self.found.die_mm2, generation, load_terms(), self.node)

    def making_kgco2e(self, hbm_bytes: int) -> Floats:
        """The same in carbon."""
        terms = load_terms()
        rest = self.hbm_bytes / GB * terms.hbm_kgco2e_per_gb + terms.package_kgco2e
        return np.asarray(die_kgco2e(self.found.die_mm2, self.node.fab, terms) + rest)

    def tensor_parts(self) -> int:
        """Different cluster sides: each has one front of mappings for a product."""
        return len(core_sides(tensor_parts(self.arrays(), IDEAL)[0])[0])

    def vector_parts(self) -> int:
        """Different vector parts, the clock held among what they differ in."""
        return len(vector_parts(self.arrays(), IDEAL)[0])

    def identity(self, index: int) -> tuple[float, ...]:
        """What names a chip whatever its constants are."""
        return tuple(float(values[index]) for values in self.axis_values().values())

    def columns(self) -> list[NDArray[Any]]:
        """All that tells its chips apart, 8 bytes a value; the clock held depends on the power limit too."""
        chips = self.found.chips
        every = [getattr(chips, f.name).astype(np.float64) for f in fields(chips)]
        scaled = [np.full(len(chips), value) for value in astuple(self.factors)]
        return [*every, self.found.held_hz, *scaled]

    def described(self) -> list[tuple[str, NDArray[Any], Unit | None]]:
        """What its chips are made of, for people: name, values, unit."""
        c, each = self.found.chips, self.axis_values()
        whole = [
            (name, each[name].astype(np.int64), None) for name in ("clusters", "arrays", "rows", "columns", "lanes")
        ]
        return [
            *whole,
            ("operand buffer of an array", each["operand_buffer"], "B"),
            ("registers", c.register_bytes, "B"),
            ("global buffer", c.global_bytes, "B"),
            ("global buffer width", c.width.astype(np.int64), None),
            ("HBM stacks", c.stacks.astype(np.int64), None),
            ("links", c.link_bytes_per_s, "B/s"),
        ]

    def frame(self) -> dict[str, NDArray[Any]]:
        """What its chips are made of, as columns of a table; ``clock_hz`` is the clock held."""
        c = self.found.chips
        return {
            "clusters": c.clusters.astype(np.int64),
            "arrays": c.arrays.astype(np.int64),
            "rows": c.rows.astype(np.int64),
            "columns": c.columns.astype(np.int64),
            "lanes": c.lanes.astype(np.int64),
            "operand_bytes": c.operand_bytes.astype(np.int64),
            "register_bytes": c.register_bytes.astype(np.int64),
            "global_buffer_bytes": c.global_bytes.astype(np.int64),
            "global_bytes_per_cycle": c.width,
            "hbm_stacks": c.stacks.astype(np.int64),
            "hbm_bytes": self.hbm_bytes,
            "hbm_bytes_per_s": c.hbm_bytes_per_s,
            "link_bytes_per_s": c.link_bytes_per_s,
            "clock_hz": self.found.held_hz,
            "area_mm2": self.found.area_mm2,
            "die_mm2": self.found.die_mm2,
        }

    def axis_values(self) -> dict[str, Floats]:
        """What every chip has of each axis."""
        chips = self.found.chips
        return {
            "clusters": chips.clusters,
            "arrays": chips.arrays,
            "rows": chips.rows,
            "columns": chips.columns,
            "lanes": chips.lanes,
            "operand_buffer": chips.operand_bytes / chips.arrays,
            "registers": chips.register_bytes,
            "global_buffer": chips.global_bytes,
            "global_width": chips.width,
            "hbm_stacks": chips.stacks,
            "links": chips.link_bytes_per_s,
        }


def enumerate_clusters(space: SpaceOfClusters) -> ClusterChips:
    """The chips of a space, ready."""
    return ClusterChips(space, space_columns(space.silicon))
