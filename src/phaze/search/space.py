"""A space of chips: a base chip, the axes along which it is varied, and rules that say which combinations are chips.

A space is its file, of chips of cores (:mod:`phaze.search.core_space`) or of clusters
(:mod:`phaze.search.cluster_space`), with the chips that it names as values: nothing that it depends on is read again.

Combinations stand in the order of the axes, the last running fastest. :mod:`phaze.search.feasibility` has the rules.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from phaze.documents import Document, Reader
from phaze.files import read_text
from phaze.hardware.chip import Chip
from phaze.hardware.columns import ChipColumns
from phaze.hardware.keys import Name, Place, Sources, Text
from phaze.hardware.library import Form, load_chip
from phaze.hardware.technology import Technology
from phaze.search.axes import AxesTable, ClusterAxesTable
from phaze.search.space_rules import ClusterRules, CoreRules
from phaze.units import Unit
from phaze.values import replace

Described = tuple[str, NDArray[Any], Unit | None]
"""What chips are made of, for people: name, values, unit."""
Floats = NDArray[np.float64]
Each = Callable[[float], Floats]
"""One value for all chips of a set."""


class Space(Document):
    """What spaces of both kinds have in common.

    ``base`` is the chip that is varied, ``technology`` that of all chips, ``area_chip`` the chip whose area is the
    budget, where the file names one.
    """

    schema_: Annotated[str, Field(alias="schema")]
    name: Name
    title: Text
    base_name: Annotated[Place, Field(alias="base", description="a chip by name, or the path of a file")]
    axes: AxesTable | ClusterAxesTable
    keep: CoreRules | ClusterRules
    sources: Sources = Field(default_factory=dict)
    of_clusters: ClassVar[bool]
    form: ClassVar[Form]
    _base: Chip | None = None
    _technology: Technology | None = None
    _area_chip: Chip | None = None

    @property
    def base(self) -> Chip:
        """The chip that is varied."""
        if self._base is None:
            raise AssertionError(f"the base of {self.name} was not read")
        return self._base

    @property
    def technology(self) -> Technology:
        """The process of its chips."""
        if self._technology is None:
            raise AssertionError(f"the technology of {self.name} was not read")
        return self._technology

    @property
    def stack_bytes(self) -> int:
        """The memory of one HBM stack of the base."""
        return self.base.hbm.size_bytes // self.base.hbm.stacks

    @property
    def stack_bytes_per_s(self) -> float:
        """Its bandwidth."""
        return self.base.hbm.bandwidth_bytes_per_s / self.base.hbm.stacks

    @property
    def own_links(self) -> bool:
        """Whether each chip has links of its own, which are then the innermost level of the network."""
        return self.axes.links is not None

    @property
    def area_within(self) -> Chip | None:
        """The chip whose area is the budget, where it is."""
        return None if self.keep.area_of is None else self._area_chip

    @property
    def usual_cluster(self) -> str | None:
        """The cluster of its chips where a study names none; None: as every study has it."""
        return None

    @property
    def usual_baseline(self) -> str | None:
        """The chip that its chips are compared with where a study names none; None: as every study has it."""
        return None

    @property
    def memories(self) -> tuple[int, ...] | None:
        """The memories that its chips have, ascending; None: as a study says."""
        return None

    @property
    def limits(self) -> Mapping[str, float | None]:
        """What its chips may take at most: mm2 if not the area of a chip, W, USD."""
        keep = self.keep
        return {"area": keep.most_area, "power": getattr(keep, self.power_rule), "usd": keep.most_usd}

    power_rule: ClassVar[str]
    """The rule that limits power."""

    @property
    def memory_limited(self) -> bool:
        """Whether a chip may not have every memory of a job: it has its own, or one may be too dear for it."""
        return self.of_clusters or self.keep.most_usd is not None

    def within(self, limits: Mapping[str, float]) -> Self:
        """The space under other limits of area, power or usd."""
        names = {"area": "most_area", "power": self.power_rule, "usd": "most_usd"}
        return self.keeping(**{names[name]: value for name, value in limits.items()})

    def keeping(self, **changes: Any) -> Self:
        """The space with other rules of what it keeps."""
        return replace(self, keep=replace(self.keep, **changes))

    def with_axis(self, name: str, values: list[Any]) -> Self:
        """The space with other values of an axis."""
        return replace(self, axes=replace(self.axes, **{name: values}))

    def chip_named(self, text: str, reader: Reader = read_text) -> Chip:
        """Another chip by name or path, priced as this space's chips are."""
        return load_chip(text, reader, self.form)

    def axis_points(self) -> dict[str, NDArray[Any]]:
        """The distinct values of each axis, ascending, in the order of the axes."""
        raise NotImplementedError

    def __len__(self) -> int:
        """Combinations, whether or not they are chips."""
        return prod(len(axis) for axis in self.axis_points().values())

    def document(self) -> dict[str, Any]:
        """Everything that its chips depend on but its base and the chip whose area is the budget."""
        raise NotImplementedError

    def numbered(self, numbers: NDArray[np.int64]) -> ChipColumns:
        """Combinations by number."""
        points = self.axis_points()
        return self.placed(np.unravel_index(numbers, [len(axis) for axis in points.values()]), points)

    def placed(self, places: Sequence[NDArray[Any]], points: Mapping[str, NDArray[Any]] | None = None) -> ChipColumns:
        """Combinations by their place in every axis."""
        axes = self.axis_points() if points is None else points
        pairs = zip(axes.items(), places, strict=True)
        return self.columns({name: axis.astype(np.float64)[place] for (name, axis), place in pairs})

    def columns(self, axes: Mapping[str, Floats]) -> ChipColumns:
        """Combinations by their value of every axis; buffers feed their arrays and lanes fully."""
        each = partial(constant, count=len(axes["rows"]))
        kind = self.parts(axes, each)
        rows, columns, lanes, clock = axes["rows"], axes["columns"], kind["lanes"], kind["clock_hz"]
        return ChipColumns(
            rows=rows,
            columns=columns,
            operand_bytes_per_s=kind["arrays"] * (2 * rows + 6 * columns) * clock,
            register_bytes_per_s=6 * lanes * clock,
            global_bytes=axes["global_buffer"],
            cache=each(self.base.global_buffer.cache) > 0,
            **kind,
        )

    def parts(self, axes: Mapping[str, Floats], each: Each) -> dict[str, Any]:
        """The columns of combinations that spaces of cores and of clusters have each their way."""
        raise NotImplementedError

    def fields_of(self, chips: ChipColumns) -> dict[str, NDArray[Any]]:
        """What every chip has of each field that may be an axis."""
        raise NotImplementedError

    def identity(self, chips: ChipColumns) -> tuple[float, ...]:
        """What names the first of some chips whatever its constants are."""
        raise NotImplementedError

    def described(self, chips: ChipColumns) -> list[Described]:
        """What chips are made of, for people."""
        raise NotImplementedError

    def frame_of(self, chips: ChipColumns, area_mm2: Floats, held_hz: Floats) -> dict[str, NDArray[Any]]:
        """What chips are made of, with their areas and the clocks they hold, as columns of a table."""
        raise NotImplementedError

    def chip_name(self, chips: ChipColumns, index: int) -> str:
        """What a chip is made of: counts and shapes, and every other axis along which chips differ."""
        raise NotImplementedError

    def chip_at(self, chips: ChipColumns, index: int, number: int, hbm_bytes: int) -> Chip:
        """One chip at its rated clock: of clusters with its own memory and under the space's limit, of cores with that
        much HBM."""
        base = self.base
        counts = ("arrays", "rows", "columns", "lanes", "operand_bytes", "register_bytes")
        return replace(
            base,
            name=self.chip_name(chips, index),
            title=f"chip {number} of the space {self.name}",
            stated_hz=float(chips.clock_hz[index]),
            clock_hz=float(chips.clock_hz[index]),
            clusters=replace(
                base.clusters,
                count=int(chips.clusters[index]),
                **{name: int(getattr(chips, name)[index]) for name in counts},
                port_bytes_per_cycle=float(chips.port[index]),
                buffer_bytes_per_s=None,
            ),
            global_buffer=replace(
                base.global_buffer,
                size_bytes=int(chips.global_bytes[index]),
                bandwidth_bytes_per_s=float(chips.global_bytes_per_s[index]),
            ),
            hbm=replace(
                base.hbm,
                stacks=int(chips.stacks[index]),
                size_bytes=self.memory_of(chips, index) or hbm_bytes,
                bandwidth_bytes_per_s=float(chips.hbm_bytes_per_s[index]),
            ),
            links=replace(base.links, bandwidth_bytes_per_s=float(chips.link_bytes_per_s[index])),
            process=self.technology,
            **self.surroundings(chips, index),
        )

    def memory_of(self, chips: ChipColumns, index: int) -> int | None:
        """The memory that a chip has; None where it is a job's."""
        raise NotImplementedError

    def surroundings(self, chips: ChipColumns, index: int) -> dict[str, Any]:
        """Of one chip its vector units, what lies on its dies, and its power limit."""
        raise NotImplementedError


def constant(value: float, count: int) -> Floats:
    """One value for all chips takes no memory."""
    return np.broadcast_to(np.float64(value), count)
