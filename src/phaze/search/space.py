"""A space of chips as arrays: every combination of the axes that fits the area, with no object per chip.

A space varies a base chip. With the axes tensor_cores, rows, columns, vector_cores, lanes (or tied to the columns),
global_buffer and, where they are given, global_bandwidth, hbm_bandwidth and clock (else the base chip's), a core with u
units (rows * columns, or lanes) has a buffer of max(least, bytes_per_unit * u), and

    kept  =  area <= budget  and  (area >= least_share * budget  or  a single core of either kind, if so asked)

where budget is the area of a named chip in the base chip's technology. Chips stand in the order of the axes, the last
axis running fastest.
"""

from dataclasses import dataclass
from importlib.resources import files
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze import documents
from phaze.documents import Bytes, BytesPerSecond, Document, Format, Hertz, Positive, Share
from phaze.errors import InputError, unknown_name
from phaze.hardware.chip import Chip
from phaze.hardware.files import Name, Sources, Text
from phaze.hardware.library import is_path, load_chip
from phaze.hardware.technology import Parts, chip_areas, component_areas
from phaze.hardware.technology_files import load_technology

Whole = Annotated[int, Field(gt=0, le=2**24)]
Integers = NDArray[np.int64]


class RangeTable(Document):
    """Whole numbers ``from``..``to``, by a factor (``times``) or a ``step``."""

    from_: Annotated[Whole, Field(alias="from")]
    to: Whole
    times: Annotated[int, Field(ge=2)] | None = None
    step: Whole | None = None

    @model_validator(mode="after")
    def _one_way(self) -> "RangeTable":
        if (self.times is None) == (self.step is None):
            raise ValueError("give either times or step")
        if self.to < self.from_:
            raise ValueError(f"let to be at least from, {self.from_}")
        return self

    def points(self) -> list[int]:
        if self.step is not None:
            return list(range(self.from_, self.to + 1, self.step))
        points, value = [], self.from_
        while value <= self.to:
            points.append(value)
            value *= self.times or 2
        return points


Axis = RangeTable | Annotated[list[Whole], Field(min_length=1)]


class AxesTable(Document):
    """The values of each varied field."""

    tensor_cores: Axis
    rows: Axis
    columns: Axis
    vector_cores: Axis
    lanes: Axis | Literal["columns"]
    global_buffer: Annotated[list[Bytes], Field(min_length=1)]
    global_bandwidth: Annotated[list[BytesPerSecond], Field(min_length=1)] | None = None
    hbm_bandwidth: Annotated[list[BytesPerSecond], Field(min_length=1)] | None = None
    clock: Annotated[list[Hertz], Field(min_length=1)] | None = None


class CoreBuffersTable(Document):
    """The rule for core buffers: max(least, bytes_per_unit * units)."""

    least: Bytes
    bytes_per_unit: Positive


class KeepTable(Document):
    """Which combinations are chips of the space."""

    area_of: Name
    least_share: Share = 0.0
    smaller_with_one_core: bool = False


class SpaceFile(Document):
    """A space of chips (``phaze.space/1``)."""

    schema_: Annotated[Literal["phaze.space/1"], Field(alias="schema")]
    name: Name
    title: Text
    base: Name
    axes: AxesTable
    core_buffers: CoreBuffersTable
    keep: KeepTable
    sources: Sources = Field(default_factory=dict)


SPACE = Format("phaze.space/1", SpaceFile, "the chips that a search may choose from")


@dataclass(frozen=True, slots=True)
class Chips:
    """The chips of a space, one array per varied field."""

    tensor_cores: Integers
    rows: Integers
    columns: Integers
    vector_cores: Integers
    lanes: Integers
    global_buffer_bytes: Integers
    global_bytes_per_s: NDArray[np.float64]
    hbm_bytes_per_s: NDArray[np.float64]
    clock_hz: NDArray[np.float64]
    area_mm2: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.area_mm2)

    def tensor_parts(self) -> int:
        """Different (count, rows, columns, global buffer)."""
        return _distinct(self.tensor_cores, self.rows, self.columns, self.global_buffer_bytes)

    def vector_parts(self) -> int:
        """Different (count, lanes, global buffer)."""
        return _distinct(self.vector_cores, self.lanes, self.global_buffer_bytes)


def _distinct(*columns: Integers) -> int:
    return len(np.unique(np.stack(columns), axis=1).T) if len(columns[0]) else 0


def space_names() -> tuple[str, ...]:
    """The spaces that come along."""
    folder = files("phaze.search") / "presets" / "spaces"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir()))


def load_space(text: str) -> SpaceFile:
    """A space by preset name or path."""
    if is_path(text):
        return documents.load(SpaceFile, text)
    if text not in space_names():
        raise unknown_name("", "space", text, space_names())
    source = files("phaze.search") / "presets" / "spaces" / f"{text}.toml"
    where = f"presets/spaces/{text}.toml"
    return documents.check(SpaceFile, documents.parse(source.read_text(encoding="utf-8"), "toml", where), where)


def _points(axis: Axis) -> Integers:
    return np.array(axis.points() if isinstance(axis, RangeTable) else sorted(set(axis)), dtype=np.int64)


def _rates(axes: AxesTable, base: Chip) -> list[NDArray[np.float64]]:
    """The axes of rates: what is given, or else the base chip's one value."""
    own = (base.global_buffer.bandwidth_bytes_per_s, base.hbm.bandwidth_bytes_per_s, base.clock_hz)
    given = (axes.global_bandwidth, axes.hbm_bandwidth, axes.clock)
    return [np.array([one] if some is None else sorted(set(some))) for some, one in zip(given, own, strict=True)]


def _combinations(axes: AxesTable, base: Chip) -> list[NDArray[Any]]:
    tied = axes.lanes == "columns"
    columns: list[NDArray[Any]] = [_points(a) for a in (axes.tensor_cores, axes.rows, axes.columns, axes.vector_cores)]
    if axes.lanes != "columns":
        columns.append(_points(axes.lanes))
    columns += [_points(axes.global_buffer), *_rates(axes, base)]
    count = float(np.prod([float(len(c)) for c in columns]))
    if count > 2e8:
        raise InputError("axes", f"there are {count:.3g} combinations", "give at most 2e8")
    flat = [grid.ravel() for grid in np.meshgrid(*columns, indexing="ij")]
    return [*flat[:4], flat[2], *flat[4:]] if tied else flat


def combinations_of(space: SpaceFile) -> int:
    """How many combinations the axes have, whether or not they are chips of the space."""
    axes = space.axes
    sizes = [len(_points(axis)) for axis in (axes.tensor_cores, axes.rows, axes.columns, axes.vector_cores)]
    sizes += [] if axes.lanes == "columns" else [len(_points(axes.lanes))]
    rates = [len(set(axis)) for axis in (axes.global_bandwidth, axes.hbm_bandwidth, axes.clock) if axis is not None]
    return prod([*sizes, len(_points(axes.global_buffer)), *rates])


def chips_of(space: SpaceFile) -> Chips:
    """Every chip of the space."""
    base = load_chip(space.base)
    if base.technology is None:
        raise InputError(f"{space.name}: base", f"the chip '{space.base}' names no technology", "choose one that does")
    technology = load_technology(base.technology)
    flat = _combinations(space.axes, base)
    tensor_cores, rows, columns, vector_cores, lanes, global_buffer, global_rate, hbm_rate, clock = flat
    least, per_unit = space.core_buffers.least, space.core_buffers.bytes_per_unit
    parts = Parts(
        tensor_cores=tensor_cores,
        macs_per_core=rows * columns,
        tensor_buffer_bytes=np.maximum(least, per_unit * rows * columns),
        vector_cores=vector_cores,
        lanes_per_core=lanes,
        vector_buffer_bytes=np.maximum(least, per_unit * lanes),
        global_buffer_bytes=global_buffer,
        global_bytes_per_cycle=global_rate / clock,
        hbm_bytes_per_s=hbm_rate,
        link_bytes_per_s=base.links.bandwidth_bytes_per_s,
        cache=base.global_buffer.cache,
        silicon=base.silicon,
    )
    area = component_areas(technology, parts).total()
    budget = float(chip_areas(technology, load_chip(space.keep.area_of)).total())
    large = area >= space.keep.least_share * budget
    single = (tensor_cores == 1) | (vector_cores == 1) if space.keep.smaller_with_one_core else False
    kept = (area <= budget * (1 + 1e-12)) & (large | single)
    return Chips(
        tensor_cores=tensor_cores[kept],
        rows=rows[kept],
        columns=columns[kept],
        vector_cores=vector_cores[kept],
        lanes=lanes[kept],
        global_buffer_bytes=global_buffer[kept],
        global_bytes_per_s=global_rate[kept],
        hbm_bytes_per_s=hbm_rate[kept],
        clock_hz=clock[kept],
        area_mm2=area[kept],
    )
