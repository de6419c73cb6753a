"""A space of chips: a base chip, the axes along which it is varied, and rules that say which
combinations are chips.

A space is its file, of version 1 (:mod:`phaze.search.core_space`) or 2
(:mod:`phaze.search.cluster_space`), with the chips that it names as values: nothing that it depends
on is read again. A version says what its axes are called, which field of a chip each is, and how
its documents state chips; what chips are made of follows from the fields alone
(:meth:`Space.columns`). A field that is no axis is the base chip's, but for

    vector units   as many as clusters
    lanes          as many as columns
    buffers        max(least, bytes_per_unit * units) of a file's rule; units: rows * columns, or
                   lanes
    port           the least power of two at least width / N, where the base has one
    built          N + ceil(N / spares) where a version states spares, else in the base's ratio
    HBM            stacks as those of the base

Combinations stand in the order of the axes, the last running fastest.
:mod:`phaze.search.feasibility` has the rules.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, isfinite, prod
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from phaze.documents import Document, Reader, check
from phaze.files import read_text
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import ALL_IN_USE, Built, VectorUnits, on_die, power_limit
from phaze.hardware.columns import ChipColumns, sum_bytes
from phaze.hardware.keys import Name, Place, Sources, Text
from phaze.hardware.library import Form, load_chip
from phaze.hardware.technology import Technology
from phaze.search.axes import (
    AxesTable,
    AxisField,
    ClusterAxesTable,
    CoreBuffers,
    Range,
    constant,
    ports_over,
)
from phaze.search.space_rules import ClusterRules, CoreRules
from phaze.units import Unit
from phaze.values import replace

Described = tuple[str, NDArray[Any], Unit | None]
"""What chips are made of, for people: name, values, unit."""
Floats = NDArray[np.float64]
Each = Callable[[float], Floats]
"""One value for all chips of a set."""


class Space(Document):
    """A base chip, axes and rules.

    ``base`` is the chip that is varied, ``technology`` that of all chips, ``area_chip`` the chip
    whose area is the budget, where the file names one. ``power_rule`` limits power, one cluster in
    ``spares`` is a spare one.
    """

    schema_: Annotated[str, Field(alias="schema")]
    name: Name
    title: Text
    base_name: Annotated[
        Place, Field(alias="base", description="a chip by name, or the path of a file")
    ]
    axes: AxesTable | ClusterAxesTable
    keep: CoreRules | ClusterRules
    sources: Sources = Field(default_factory=dict)
    form: ClassVar[Form]
    power_rule: ClassVar[str]
    axis_fields: ClassVar[tuple[AxisField, ...]]
    spares: ClassVar[int | None]
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
        """Whether each chip has links of its own, which are then the innermost level of the
        network."""
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
        """The chip that its chips are compared with where a study names none; None: as every study
        has it."""
        return None

    @property
    def memories(self) -> tuple[int, ...] | None:
        """The memories that its chips have, ascending; None: as a study says."""
        stacks = next((field.name for field in self.axis_fields if field.field == "stacks"), None)
        return (
            None
            if stacks is None
            else tuple(int(count) * self.stack_bytes for count in self.axis_points()[stacks])
        )

    @property
    def buffer_rule(self) -> CoreBuffers | None:
        """The rule of buffers that are no axis."""
        return None

    @property
    def limits(self) -> Mapping[str, float | None]:
        """What its chips may take at most: mm2 if not the area of a chip, W, USD."""
        keep = self.keep
        return {
            "area": keep.most_area,
            "power": getattr(keep, self.power_rule),
            "usd": keep.most_usd,
        }

    @property
    def memory_limited(self) -> bool:
        """Whether a chip may not have every memory of a job: it has its own, or one may be too dear
        for it."""
        return self.memories is not None or self.keep.most_usd is not None

    def within(self, limits: Mapping[str, float]) -> Self:
        """The space under other limits of area, power or usd; an area that is given takes the place
        of a chip's."""
        names = {"area": "most_area", "power": self.power_rule, "usd": "most_usd"}
        changes: dict[str, float | None] = {names[name]: value for name, value in limits.items()}
        if "area" in limits and self.keep.area_of is not None:
            changes["area_of"] = None
        space = self.keeping(**changes)
        check(type(space.keep), space.keep.model_dump(), f"{self.name}: keep")
        return space

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
        points = dict[str, NDArray[Any]]()
        for name, _, whole in self.axis_fields:
            values = getattr(self.axes, name)
            if values is not None and not isinstance(values, str):
                listed = values.points() if isinstance(values, Range) else values
                points[name] = np.unique(np.array(listed, dtype=np.int64 if whole else np.float64))
        return points

    def __len__(self) -> int:
        """Combinations, whether or not they are chips."""
        return prod(len(axis) for axis in self.axis_points().values())

    def document(self) -> dict[str, Any]:
        """Everything that its chips depend on but its base and the chip whose area is the
        budget."""
        raise NotImplementedError

    def numbered(self, numbers: NDArray[np.int64]) -> ChipColumns:
        """Combinations by number."""
        points = self.axis_points()
        return self.placed(
            np.unravel_index(numbers, [len(axis) for axis in points.values()]), points
        )

    def placed(
        self, places: Sequence[NDArray[Any]], points: Mapping[str, NDArray[Any]] | None = None
    ) -> ChipColumns:
        """Combinations by their place in every axis."""
        axes = self.axis_points() if points is None else points
        pairs = zip(axes.items(), places, strict=True)
        return self.columns({name: axis.astype(np.float64)[place] for (name, axis), place in pairs})

    def columns(self, axes: Mapping[str, Floats]) -> ChipColumns:
        """Combinations by their value of every axis; buffers feed their arrays and lanes fully."""
        base, clusters, shared, links = (
            self.base,
            self.base.clusters,
            self.base.global_buffer,
            self.base.links,
        )
        axis = {field: axes[name] for name, field, _ in self.axis_fields if name in axes}
        each = partial(constant, count=len(axis["rows"]))
        count, rows, columns = axis["clusters"], axis["rows"], axis["columns"]
        arrays, vectors = axis.get("arrays", each(clusters.arrays)), axis.get("vectors", count)
        lanes, clock = axis.get("lanes", columns), axis.get("clock_hz", each(base.rated_hz))
        array_bytes, registers = self._buffers(axis, rows * columns, lanes)
        stacks, hbm = self._memory(axis, each)
        if "width" in axis:
            width, global_rate = axis["width"], axis["width"] * clock
        else:
            global_rate = axis.get("global_bytes_per_s", each(shared.bandwidth_bytes_per_s))
            width = global_rate / clock
        return ChipColumns(
            clusters=count,
            built=self._on_die(count),
            arrays=arrays,
            rows=rows,
            columns=columns,
            vectors=vectors,
            vectors_built=self._on_die(vectors),
            lanes=lanes,
            operand_bytes=array_bytes * arrays,
            operand_bytes_per_cycle=arrays * (2 * rows + 6 * columns),
            register_bytes=registers,
            register_bytes_per_cycle=6 * lanes,
            sum_bytes=np.broadcast_to(sum_bytes(registers, base), len(rows)),
            latency_cycles=each(clusters.latency_cycles),
            sustained_share=each(clusters.sustained_share or 0.0),
            port=ports_over(width, count) if isfinite(clusters.port_bytes_per_cycle) else each(inf),
            broadcast=each(clusters.broadcast) > 0,
            global_bytes=axis["global_bytes"],
            global_built_bytes=on_die(axis["global_bytes"], self._built.global_buffer),
            width=width,
            global_bytes_per_s=global_rate,
            fan_out=each(shared.fan_out),
            multicast=each(shared.multicast),
            cache=each(shared.cache) > 0,
            stacks=stacks,
            sites=stacks,
            hbm_bytes_per_s=hbm,
            hbm_built_bytes_per_s=on_die(hbm, self._built.hbm),
            link_bytes_per_s=axis.get("link_bytes_per_s", each(links.bandwidth_bytes_per_s)),
            lane_bytes_per_s=each(links.lane_bytes_per_s or self.technology.lane_bytes_per_s),
            clock_hz=clock,
            limit_w=each(self.keep.sustained_power),
        )

    @property
    def _built(self) -> Built:
        """What lies on the dies of its chips beside spare clusters: as of the base, or no more than
        is in use."""
        return self.base.built if self.spares is None else ALL_IN_USE

    def _on_die(self, count: Floats) -> Floats:
        """Clusters, or vector units, on the die of so many in use."""
        return (
            on_die(count, self._built.clusters)
            if self.spares is None
            else count + np.ceil(count / self.spares)
        )

    def _buffers(
        self, axis: Mapping[str, Floats], units: Floats, lanes: Floats
    ) -> tuple[Floats, Floats]:
        """The operand buffer of an array of so many units, and the registers of so many lanes."""
        rule = self.buffer_rule
        if rule is None:
            return axis["array_bytes"], axis["register_bytes"]
        arrays, registers = axis.get("array_bytes"), axis.get("register_bytes")
        return rule.over(units) if arrays is None else arrays, rule.over(
            lanes
        ) if registers is None else registers

    def _memory(self, axis: Mapping[str, Floats], each: Each) -> tuple[Floats, Floats]:
        """Stacks of HBM, and the bandwidth of all."""
        if "stacks" in axis:
            return axis["stacks"], axis["stacks"] * self.stack_bytes_per_s
        hbm = self.base.hbm
        return each(hbm.stacks), axis.get("hbm_bytes_per_s", each(hbm.bandwidth_bytes_per_s))

    def fields_of(self, chips: ChipColumns) -> dict[str, NDArray[Any]]:
        """What every chip has of each field that may be an axis."""
        fields = dict[str, NDArray[Any]]()
        for name, field, whole in self.axis_fields:
            values = (
                chips.operand_bytes / chips.arrays
                if field == "array_bytes"
                else getattr(chips, field)
            )
            fields[name] = values.astype(np.int64) if whole else values
        return fields

    def described(self, chips: ChipColumns) -> list[Described]:
        """What chips are made of, for people."""
        raise NotImplementedError

    def frame_of(
        self, chips: ChipColumns, area_mm2: Floats, held_hz: Floats
    ) -> dict[str, NDArray[Any]]:
        """What chips are made of, with their areas and the clocks they hold, as columns of a
        table."""
        raise NotImplementedError

    def chip_name(self, chips: ChipColumns, index: int) -> str:
        """What a chip is made of: counts and shapes, and every other axis along which chips
        differ."""
        raise NotImplementedError

    def chip_at(self, chips: ChipColumns, index: int, number: int, hbm_bytes: int) -> Chip:
        """One chip at its rated clock, with its own memory or that much HBM."""
        base = self.base
        own_bytes = 0 if self.memories is None else int(chips.stacks[index]) * self.stack_bytes
        built = base.built
        if self.spares is not None:
            built = replace(
                ALL_IN_USE, clusters=(int(chips.built[index]), int(chips.clusters[index]))
            )
        units = (
            int(column[index]) for column in (chips.vectors, chips.lanes, chips.register_bytes)
        )
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
                size_bytes=own_bytes or hbm_bytes,
                bandwidth_bytes_per_s=float(chips.hbm_bytes_per_s[index]),
            ),
            links=replace(base.links, bandwidth_bytes_per_s=float(chips.link_bytes_per_s[index])),
            process=self.technology,
            vectors=None if base.sums_in_registers else VectorUnits(*units),
            built=built,
            power=power_limit(self.keep.sustained_power)
            if isfinite(self.keep.sustained_power)
            else None,
        )
