"""A space of chips as arrays: every combination of the axes that its rules keep, with no object per chip.

A space varies a base chip. The axes are tensor_cores, rows, columns, vector_cores (or tied to the tensor cores), lanes
(or tied to the columns), global_buffer and, where they are given, tensor_buffer, vector_buffer, global_bandwidth,
hbm_bandwidth, links and clock. A core with u units (rows * columns, or lanes) whose buffer is no axis has one of
max(least, bytes_per_unit * u); any other field that is no axis is the base chip's. Kept is a chip with

    area <= budget  and  (area >= least_share * budget  or  a single core of either kind, if so asked)
    design power <= most_w    and    manufacturing cost <= most_usd         (:mod:`phaze.search.feasibility`)

Chips stand in the order of the axes, the last axis running fastest. Combinations are looked at in chunks, so memory
grows with the chips that are kept, not with the combinations.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, Format, Mm2, Positive, Reader, Share, Watts
from phaze.errors import InputError
from phaze.files import read_text
from phaze.hardware.chip import Chip
from phaze.hardware.files import Name, Place, Sources, Text
from phaze.hardware.library import load_core_chip
from phaze.hardware.technology import Technology
from phaze.hardware.technology_files import technology_of
from phaze.search.axes import AxesTable, real_points, whole_points

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
# In boxes a search takes seconds; beyond it counts of chips lose their last digits and their memory is felt.
MOST_COMBINATIONS = 1e10
# Combinations at a time: some 100 MB of columns.
CHUNK = 1 << 20


class CoreBuffersTable(Document):
    """The rule for core buffers: max(least, bytes_per_unit * units)."""

    least: Bytes
    bytes_per_unit: Positive


class KeepTable(Document):
    """Which combinations are chips of the space; an area budget is the area of a chip, or given."""

    area_of: Name | None = None
    most_area: Mm2 | None = None
    least_share: Share = 0.0
    smaller_with_one_core: bool = False
    most_power: Watts | None = None
    most_usd: Positive | None = None

    @model_validator(mode="after")
    def _one_budget(self) -> "KeepTable":
        if (self.area_of is None) == (self.most_area is None):
            raise ValueError("give either area_of or most_area")
        return self


class SpaceFile(Document):
    """A space of chips (``phaze.space/1``)."""

    schema_: Annotated[Literal["phaze.space/1"], Field(alias="schema")]
    name: Name
    title: Text
    base: Annotated[Place, Field(description="a chip by name, or the path of a file")]
    axes: AxesTable
    core_buffers: CoreBuffersTable | None = None
    keep: KeepTable
    sources: Sources = Field(default_factory=dict)

    @model_validator(mode="after")
    def _every_buffer(self) -> "SpaceFile":
        if self.core_buffers is None and (self.axes.tensor_buffer is None or self.axes.vector_buffer is None):
            raise ValueError("give core_buffers, or the axes tensor_buffer and vector_buffer")
        return self


@dataclass(frozen=True, slots=True)
class Space:
    """A space with the chips that its file names as values: nothing that it depends on is read again.

    ``area_chip`` is the chip whose area is the budget, where the file names one.
    """

    file: SpaceFile
    base: Chip
    area_chip: Chip | None

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def axes(self) -> AxesTable:
        return self.file.axes

    @property
    def keep(self) -> KeepTable:
        return self.file.keep

    @property
    def technology(self) -> Technology:
        """The technology of the base chip."""
        technology = technology_of(self.base)
        if technology is None:
            seen = f"the chip '{self.file.base}' names no technology"
            raise InputError(f"{self.name}: base", seen, "choose one that does")
        return technology

    @property
    def own_links(self) -> bool:
        """Whether each chip has links of its own, which are then the innermost level of the network."""
        return self.axes.links is not None

    @property
    def area_within(self) -> Chip | None:
        """The chip whose area is the budget, where it is."""
        return None if self.keep.area_of is None else self.area_chip

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
        """The memories that its chips have; None: as a study says."""
        return None

    @property
    def limits(self) -> Mapping[str, float | None]:
        """What its chips may take at most: mm2 if not the area of a chip, W, USD."""
        return {"area": self.keep.most_area, "power": self.keep.most_power, "usd": self.keep.most_usd}

    @property
    def memory_limited(self) -> bool:
        """Whether a chip may not have every memory of a job: one may be too dear for it."""
        return self.keep.most_usd is not None

    def within(self, limits: Mapping[str, float]) -> "Space":
        """The space under other limits of area, power or usd."""
        changed: dict[str, Any] = {f"most_{name}": value for name, value in limits.items()}
        return self.keeping(**changed, **({"area_of": None} if "area" in limits else {}))

    def chip_named(self, text: str, reader: Reader = read_text) -> Chip:
        """Another chip by name or path, priced as this space's chips are."""
        return load_core_chip(text, reader)

    def axis_points(self) -> dict[str, NDArray[Any]]:
        """The values of each axis, in order."""
        grid = grid_of(self)
        return dict(zip(grid.names, grid.values, strict=True))

    def document(self) -> dict[str, Any]:
        """Everything that its chips depend on but its base and the chip whose area is the budget."""
        rule, tied = self.file.core_buffers, ("vector_cores", "lanes")
        return {
            "name": self.name,
            "axes": {name: values.tolist() for name, values in self.axis_points().items()},
            "tied": {name: getattr(self.axes, name) for name in tied if isinstance(getattr(self.axes, name), str)},
            "core_buffers": None if rule is None else rule.model_dump(),
            "keep": self.keep.model_dump(exclude={"area_of"}),
        }

    def with_axis(self, name: str, values: list[Any]) -> "Space":
        """The space with other values of an axis."""
        axes = self.axes.model_copy(update={name: values})
        return replace(self, file=self.file.model_copy(update={"axes": axes}))

    def keeping(self, **changes: Any) -> "Space":
        """The space with other rules of what it keeps."""
        keep = self.keep.model_copy(update=changes)
        return replace(self, file=self.file.model_copy(update={"keep": keep}))


def space_from(file: SpaceFile, reader: Reader = read_text) -> Space:
    """The space of a checked file, the chips that it names read."""
    names = {"base": file.base, "keep.area_of": file.keep.area_of}
    chips = {key: None if name is None else load_core_chip(name, reader) for key, name in names.items()}
    for key, chip in chips.items():
        if chip is not None and chip.clusters is not None:
            seen = f"'{chip.name}' is a chip of clusters, whose spaces are phaze.space/2"
            raise InputError(f"{file.name}: {key}", seen, "name a chip of cores (phaze.chip/1)")
    base = chips["base"]
    assert base is not None
    return Space(file, base, chips["keep.area_of"])


SPACE = Format("phaze.space/1", SpaceFile, "the chips that a search may choose from")


@dataclass(frozen=True, slots=True)
class Chips:
    """Chips of a space, one array per field that may vary."""

    tensor_cores: Integers
    rows: Integers
    columns: Integers
    vector_cores: Integers
    lanes: Integers
    global_buffer_bytes: Integers
    tensor_buffer_bytes: Integers
    vector_buffer_bytes: Integers
    global_bytes_per_s: Floats
    hbm_bytes_per_s: Floats
    link_bytes_per_s: Floats
    clock_hz: Floats
    area_mm2: Floats

    def __len__(self) -> int:
        return len(self.area_mm2)

    def taken(self, index: NDArray[Any]) -> "Chips":
        """The chips of ``index``, numbers or flags."""
        return Chips(*(getattr(self, f.name)[index] for f in fields(self)))

    def tensor_parts(self) -> int:
        """Different (count, rows, columns, global buffer)."""
        return _distinct(self.tensor_cores, self.rows, self.columns, self.global_buffer_bytes)

    def vector_parts(self) -> int:
        """Different (count, lanes, global buffer)."""
        return _distinct(self.vector_cores, self.lanes, self.global_buffer_bytes)


# The names of the axes, in the order of the fields of :class:`Chips`.
FIELDS = (
    "tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer", "tensor_buffer", "vector_buffer",
    "global_bandwidth", "hbm_bandwidth", "links", "clock", "area",
)  # fmt: skip


def _distinct(*columns: Integers) -> int:
    return len(np.unique(np.stack(columns), axis=1).T) if len(columns[0]) else 0


@dataclass(frozen=True, slots=True)
class Grid:
    """The axes of a space laid out: names and values; a combination is one number, the last axis running fastest."""

    space: Space
    names: tuple[str, ...]
    values: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        return prod(len(axis) for axis in self.values)

    def chips(self, start: int, end: int) -> Chips:
        """The combinations from ``start`` to before ``end``, their area still zero."""
        return self.chips_at(np.unravel_index(np.arange(start, end), [len(axis) for axis in self.values]))

    def chips_at(self, places: Sequence[NDArray[Any]]) -> Chips:
        """The combinations of places in every axis, their area still zero."""
        at: dict[str, NDArray[Any]] = {
            name: axis[place] for name, axis, place in zip(self.names, self.values, places, strict=True)
        }
        count = len(places[0])
        at.setdefault("vector_cores", at["tensor_cores"])
        at.setdefault("lanes", at["columns"])
        if "tensor_buffer" not in at:
            at["tensor_buffer"] = self._buffers(at["rows"] * at["columns"])
        if "vector_buffer" not in at:
            at["vector_buffer"] = self._buffers(at["lanes"])
        base = self.space.base
        at.setdefault("global_bandwidth", np.full(count, base.global_buffer.bandwidth_bytes_per_s))
        at.setdefault("hbm_bandwidth", np.full(count, base.hbm.bandwidth_bytes_per_s))
        at.setdefault("links", np.full(count, base.links.bandwidth_bytes_per_s))
        at.setdefault("clock", np.full(count, base.clock_hz))
        at["area"] = np.zeros(count)
        return Chips(*(at[name] for name in FIELDS))

    def _buffers(self, units: Integers) -> Integers:
        rule = self.space.file.core_buffers
        if rule is None:
            raise AssertionError("a buffer that is no axis has a rule")
        return np.asarray(np.maximum(rule.least, rule.bytes_per_unit * units)).astype(np.int64)


def grid_of(space: Space) -> Grid:
    """The axes of a space, in their fixed order."""
    axes, grid = space.axes, dict[str, NDArray[Any]]()
    for name in ("tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer"):
        if not isinstance(getattr(axes, name), str):
            grid[name] = whole_points(getattr(axes, name))
    for name in ("tensor_buffer", "vector_buffer"):
        if getattr(axes, name) is not None:
            grid[name] = whole_points(getattr(axes, name))
    for name in ("global_bandwidth", "hbm_bandwidth", "links", "clock"):
        if getattr(axes, name) is not None:
            grid[name] = real_points(getattr(axes, name))
    count = prod(float(len(axis)) for axis in grid.values())
    if count > MOST_COMBINATIONS:
        raise InputError("axes", f"there are {count:.3g} combinations", f"give at most {MOST_COMBINATIONS:.0e}")
    return Grid(space, tuple(grid), tuple(grid.values()))
