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
from phaze.values import replace

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


def constant(value: float, count: int) -> Floats:
    """One value for all chips takes no memory."""
    return np.broadcast_to(np.float64(value), count)
