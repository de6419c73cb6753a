"""A space of chips: a base chip, the axes along which it is varied, and rules that say which combinations are chips.

Of cores (``phaze.space/1``) the axes are tensor_cores, rows, columns, vector_cores (or tied to the tensor cores), lanes
(or tied to the columns), global_buffer and, where they are given, tensor_buffer, vector_buffer, global_bandwidth,
hbm_bandwidth, links and clock. A core with u units (rows * columns, or lanes) whose buffer is no axis has one of
max(least, bytes_per_unit * u); any other field that is no axis is the base chip's.

Of clusters (``phaze.space/2``) they are clusters; arrays, rows, columns, lanes, operand_buffer (of an array), registers
of a cluster; global_buffer and global_width; hbm_stacks, each as those of the base; links. For each combination

    built clusters = N + ceil(N / 12)             spare ones, so that most dies can be sold
    port           = the least power of two at least width / N

Each chip has its own memory there, stacks times the size of the generation, so the memories of a job are all that
occur, and a chip is allowed one of them. Its links are the innermost level of the cluster.

Combinations stand in the order of the axes, the last running fastest. :mod:`phaze.search.feasibility` has the rules.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.documents import Reader, check
from phaze.errors import InputError
from phaze.files import read_text
from phaze.hardware.bundled import read
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import on_die
from phaze.hardware.cluster import Cluster
from phaze.hardware.columns import ChipColumns
from phaze.hardware.library import load_chip
from phaze.hardware.technology import Technology
from phaze.search.axes import real_points, whole_points
from phaze.search.space_file import ClusterKeepTable, ClusterSpaceFile, KeepTable, SpaceFile

Floats = NDArray[np.float64]
# In boxes a search takes seconds; beyond it counts of chips lose their last digits and their memory is felt.
MOST_COMBINATIONS = 1e10
SPARES = 12
"""One spare cluster for every dozen in use: GA100 builds 128 of 108, GH100 144 of 132."""
WHOLE_AXES = (
    "tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer", "tensor_buffer", "vector_buffer",
)  # fmt: skip
RATES = ("global_bandwidth", "hbm_bandwidth", "links", "clock")


@dataclass(frozen=True, slots=True)
class Space:
    """A space with the chips that its file names as values: nothing that it depends on is read again.

    ``area_chip`` is the chip whose area is the budget, where the file names one.
    """

    file: SpaceFile | ClusterSpaceFile
    base: Chip
    technology: Technology
    area_chip: Chip | None = None

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def keep(self) -> KeepTable | ClusterKeepTable:
        return self.file.keep

    @property
    def of_clusters(self) -> bool:
        """Whether its chips are of clusters."""
        return isinstance(self.file, ClusterSpaceFile)

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
        return self.file.axes.links is not None

    @property
    def area_within(self) -> Chip | None:
        """The chip whose area is the budget, where it is."""
        return None if self.keep.area_of is None else self.area_chip

    @property
    def usual_cluster(self) -> str | None:
        """The cluster of its chips where a study names none, that of its base; None: as every study has it."""
        return self.base.cluster if self.of_clusters else None

    @property
    def usual_baseline(self) -> str | None:
        """The chip that its chips are compared with where a study names none, that of the cluster; None: as every study
        has it."""
        cluster = self.usual_cluster
        return None if cluster is None else read(Cluster, "clusters", cluster).chip

    @property
    def memories(self) -> tuple[int, ...] | None:
        """The memories that its chips have, ascending; None: as a study says."""
        if isinstance(self.file, SpaceFile):
            return None
        return tuple(sorted({stacks * self.stack_bytes for stacks in self.file.axes.hbm_stacks}))

    @property
    def limits(self) -> Mapping[str, float | None]:
        """What its chips may take at most: mm2 if not the area of a chip, W, USD."""
        power = self.keep.sustained_power if self.of_clusters else self.keep.most_power
        return {"area": self.keep.most_area, "power": power, "usd": self.keep.most_usd}

    @property
    def memory_limited(self) -> bool:
        """Whether a chip may not have every memory of a job: it has its own, or one may be too dear for it."""
        return self.of_clusters or self.keep.most_usd is not None

    def within(self, limits: Mapping[str, float]) -> "Space":
        """The space under other limits of area, power or usd."""
        names = {"area": "most_area", "power": "sustained_power" if self.of_clusters else "most_power"}
        changes: dict[str, Any] = {names.get(name, f"most_{name}"): value for name, value in limits.items()}
        if not self.of_clusters:
            return self.keeping(**changes, **({"area_of": None} if "area" in limits else {}))
        # Checked again: a die beyond a reticle is refused here too.
        check(ClusterKeepTable, self.keep.model_dump() | changes, f"{self.name}: keep")
        return self.keeping(**changes)

    def keeping(self, **changes: Any) -> "Space":
        """The space with other rules of what it keeps."""
        return replace(self, file=self.file.model_copy(update={"keep": self.keep.model_copy(update=changes)}))

    def with_axis(self, name: str, values: list[Any]) -> "Space":
        """The space with other values of an axis."""
        axes = self.file.axes.model_copy(update={name: values})
        return replace(self, file=self.file.model_copy(update={"axes": axes}))

    def chip_named(self, text: str, reader: Reader = read_text) -> Chip:
        """Another chip by name or path, priced as this space's chips are."""
        return load_chip(text, reader, "clusters" if self.of_clusters else "cores")

    def axis_points(self) -> dict[str, NDArray[Any]]:
        """The distinct values of each axis, ascending, in the order of the axes."""
        axes, points = self.file.axes, dict[str, NDArray[Any]]()
        if isinstance(self.file, ClusterSpaceFile):
            for name in type(axes).model_fields:
                points[name] = np.unique(np.array(getattr(axes, name), dtype=np.float64))
            return points
        for name in (*WHOLE_AXES, *RATES):
            values = getattr(axes, name)
            if values is not None and not isinstance(values, str):
                points[name] = whole_points(values) if name in WHOLE_AXES else real_points(values)
        count = prod(float(len(axis)) for axis in points.values())
        if count > MOST_COMBINATIONS:
            raise InputError("axes", f"there are {count:.3g} combinations", f"give at most {MOST_COMBINATIONS:.0e}")
        return points

    def __len__(self) -> int:
        """Combinations, whether or not they are chips."""
        return prod(len(axis) for axis in self.axis_points().values())

    def document(self) -> dict[str, Any]:
        """Everything that its chips depend on but its base and the chip whose area is the budget."""
        axes = {name: values.tolist() for name, values in self.axis_points().items()}
        if self.of_clusters:
            return {"name": self.name, "axes": axes, "keep": self.keep.model_dump()}
        rule, tables = self.file.core_buffers, self.file.axes
        tied = {name: getattr(tables, name) for name in ("vector_cores", "lanes")}
        return {
            "name": self.name,
            "axes": axes,
            "tied": {name: value for name, value in tied.items() if isinstance(value, str)},
            "core_buffers": None if rule is None else rule.model_dump(),
            "keep": self.keep.model_dump(exclude={"area_of"}),
        }

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
        each = partial(_constant, count=len(axes["rows"]))
        kind = _clusters(self, axes, each) if self.of_clusters else _cores(self, axes, each)
        rows, columns, lanes, clock = axes["rows"], axes["columns"], kind["lanes"], kind["clock_hz"]
        return ChipColumns(
            rows=rows,
            columns=columns,
            operand_bytes_per_s=kind["arrays"] * (2 * rows + 6 * columns) * clock,
            register_bytes_per_s=6 * lanes * clock,
            global_bytes=axes["global_buffer"],
            cache=_constant(self.base.global_buffer.cache, len(rows)) > 0,
            **kind,
        )


def _constant(value: float, count: int) -> Floats:
    """One value for all chips takes no memory."""
    return np.broadcast_to(np.float64(value), count)


def ports_over(widths: Floats, clusters: Floats | float) -> Floats:
    """The port of every width and number of clusters: the least power of two at least width / N."""
    # A power of two is exact in both forms: doubling while below the share, as port_of does.
    port = np.ones(len(widths))
    while (narrow := port < widths / clusters).any():
        port = np.where(narrow, port * 2.0, port)
    return port


def _clusters(space: Space, axes: Mapping[str, Floats], each: Any) -> dict[str, Any]:
    base, clusters, width, stacks = space.base, axes["clusters"], axes["global_width"], axes["hbm_stacks"]
    built, clock, hbm = (
        clusters + np.ceil(clusters / SPARES),
        each(base.rated_clock_hz),
        stacks * space.stack_bytes_per_s,
    )
    return {
        "clusters": clusters, "built": built, "arrays": axes["arrays"],
        "vectors": clusters, "vectors_built": built, "lanes": axes["lanes"],
        "operand_bytes": axes["operand_buffer"] * axes["arrays"], "register_bytes": axes["registers"],
        "port": ports_over(width, clusters), "broadcast": each(base.clusters.broadcast) > 0,
        "global_built_bytes": axes["global_buffer"], "width": width, "global_bytes_per_s": width * clock,
        "fan_out": each(base.global_buffer.fan_out), "stacks": stacks, "sites": stacks,
        "hbm_bytes_per_s": hbm, "hbm_built_bytes_per_s": hbm, "link_bytes_per_s": axes["links"],
        "lane_bytes_per_s": each(base.links.lane_bytes_per_s or space.technology.lane_bytes_per_s),
        "clock_hz": clock, "limit_w": each(space.keep.sustained_power),
    }  # fmt: skip


def _cores(space: Space, axes: Mapping[str, Floats], each: Any) -> dict[str, Any]:
    base, built, rule = space.base, space.base.built, space.file.core_buffers

    def buffer(name: str, units: Floats) -> Floats:
        if name in axes:
            return axes[name]
        if rule is None:
            raise AssertionError("a buffer that is no axis has a rule")
        return np.floor(np.maximum(rule.least, rule.bytes_per_unit * units))

    tensor_cores, lanes = axes["tensor_cores"], axes.get("lanes", axes["columns"])
    vector_cores = axes.get("vector_cores", tensor_cores)
    shared = axes.get("global_bandwidth", each(base.global_buffer.bandwidth_bytes_per_s))
    hbm = axes.get("hbm_bandwidth", each(base.hbm.bandwidth_bytes_per_s))
    clock = axes.get("clock", each(base.clock_hz))
    return {
        "clusters": tensor_cores, "built": on_die(tensor_cores, built.clusters), "arrays": each(1.0),
        "vectors": vector_cores, "vectors_built": on_die(vector_cores, built.clusters), "lanes": lanes,
        "operand_bytes": buffer("tensor_buffer", axes["rows"] * axes["columns"]),
        "register_bytes": buffer("vector_buffer", lanes), "port": each(np.inf), "broadcast": each(0.0) > 0,
        "global_built_bytes": on_die(axes["global_buffer"], built.global_buffer), "width": shared / clock,
        "global_bytes_per_s": shared, "fan_out": each(base.global_buffer.fan_out),
        "stacks": each(0.0), "sites": each(0.0),
        "hbm_bytes_per_s": hbm, "hbm_built_bytes_per_s": on_die(hbm, built.hbm),
        "link_bytes_per_s": axes.get("links", each(base.links.bandwidth_bytes_per_s)),
        "lane_bytes_per_s": each(np.inf), "clock_hz": clock, "limit_w": each(np.inf),
    }  # fmt: skip
