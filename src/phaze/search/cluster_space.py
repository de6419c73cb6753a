"""A space of chips of clusters (``phaze.space/2``).

The axes are clusters; arrays, rows, columns, lanes, operand_buffer (of an array), registers of a cluster; global_buffer
and global_width; hbm_stacks, each as those of the base; links. For each combination

    built clusters = N + ceil(N / 12)             spare ones, so that most dies can be sold
    port           = the least power of two at least width / N

Each chip has its own memory, stacks times the size of the generation, so the memories of a job are all that occur, and
a chip is allowed one of them. Its links are the innermost level of the cluster.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from phaze.documents import Format, check
from phaze.hardware.area import edge_areas
from phaze.hardware.bundled import read
from phaze.hardware.chip_parts import ALL_IN_USE, power_limit
from phaze.hardware.cluster import Cluster
from phaze.hardware.columns import ChipColumns
from phaze.hardware.library import Form
from phaze.search.axes import ClusterAxesTable
from phaze.search.space import Described, Each, Floats, Space
from phaze.search.space_rules import ClusterRules
from phaze.values import replace

SPARES = 12
"""One spare cluster for every dozen in use: GA100 builds 128 of 108, GH100 144 of 132."""

# The axes, and the columns of chips that hold them.
COLUMNS = (
    ("clusters", "clusters"), ("arrays", "arrays"), ("rows", "rows"), ("columns", "columns"), ("lanes", "lanes"),
    ("operand_buffer", "operand_bytes"), ("registers", "register_bytes"), ("global_buffer", "global_bytes"),
    ("global_width", "width"), ("hbm_stacks", "stacks"), ("links", "link_bytes_per_s"),
)  # fmt: skip
COUNTS = (
    ("clusters", "clusters"), ("arrays", "arrays"), ("rows", "rows"), ("columns", "columns"), ("lanes", "lanes"),
    ("operand_bytes", "operand_bytes"), ("register_bytes", "register_bytes"), ("global_buffer_bytes", "global_bytes"),
)  # fmt: skip


class ClusterSpace(Space):
    """A space of chips of clusters (``phaze.space/2``)."""

    schema_: Annotated[Literal["phaze.space/2"], Field(alias="schema")]
    axes: ClusterAxesTable
    keep: ClusterRules
    of_clusters: ClassVar[bool] = True
    form: ClassVar[Form] = "clusters"
    power_rule: ClassVar[str] = "sustained_power"

    @property
    def usual_cluster(self) -> str | None:
        """That of its base."""
        return self.base.cluster

    @property
    def usual_baseline(self) -> str | None:
        """That of the cluster."""
        cluster = self.usual_cluster
        return None if cluster is None else read(Cluster, "clusters", cluster).chip

    @property
    def memories(self) -> tuple[int, ...] | None:
        return tuple(sorted({stacks * self.stack_bytes for stacks in self.axes.hbm_stacks}))

    def within(self, limits: Mapping[str, float]) -> Self:
        """The space under other limits, which are checked again: a die beyond a reticle is refused here too."""
        space = super().within(limits)
        check(ClusterRules, space.keep.model_dump(), f"{self.name}: keep")
        return space

    def axis_points(self) -> dict[str, NDArray[Any]]:
        return {name: np.unique(np.array(values, dtype=np.float64)) for name, values in self.axes}

    def document(self) -> dict[str, Any]:
        axes = {name: values.tolist() for name, values in self.axis_points().items()}
        return {"name": self.name, "axes": axes, "keep": self.keep.model_dump()}

    def parts(self, axes: Mapping[str, Floats], each: Each) -> dict[str, Any]:
        base, clusters, width, stacks = self.base, axes["clusters"], axes["global_width"], axes["hbm_stacks"]
        built, clock, hbm = (
            clusters + np.ceil(clusters / SPARES),
            each(base.rated_clock_hz),
            stacks * self.stack_bytes_per_s,
        )
        return {
            "clusters": clusters, "built": built, "arrays": axes["arrays"],
            "vectors": clusters, "vectors_built": built, "lanes": axes["lanes"],
            "operand_bytes": axes["operand_buffer"] * axes["arrays"], "register_bytes": axes["registers"],
            "port": ports_over(width, clusters), "broadcast": each(base.clusters.broadcast) > 0,
            "global_built_bytes": axes["global_buffer"], "width": width, "global_bytes_per_s": width * clock,
            "fan_out": each(base.global_buffer.fan_out), "stacks": stacks, "sites": stacks,
            "hbm_bytes_per_s": hbm, "hbm_built_bytes_per_s": hbm, "link_bytes_per_s": axes["links"],
            "lane_bytes_per_s": each(base.links.lane_bytes_per_s or self.technology.lane_bytes_per_s),
            "clock_hz": clock, "limit_w": each(self.keep.sustained_power),
        }  # fmt: skip

    def fields_of(self, chips: ChipColumns) -> dict[str, NDArray[Any]]:
        fields = {axis: getattr(chips, column) for axis, column in COLUMNS}
        return fields | {"operand_buffer": chips.operand_bytes / chips.arrays}

    def identity(self, chips: ChipColumns) -> tuple[float, ...]:
        return tuple(float(values[0]) for values in self.fields_of(chips).values())

    def described(self, chips: ChipColumns) -> list[Described]:
        fields = self.fields_of(chips)
        names = ("clusters", "arrays", "rows", "columns", "lanes")
        counts: list[Described] = [(name, fields[name].astype(np.int64), None) for name in names]
        return [
            *counts,
            ("operand buffer of an array", fields["operand_buffer"], "B"),
            ("registers", fields["registers"], "B"),
            ("global buffer", fields["global_buffer"], "B"),
            ("global buffer width", fields["global_width"].astype(np.int64), None),
            ("HBM stacks", fields["hbm_stacks"].astype(np.int64), None),
            ("links", fields["links"], "B/s"),
        ]

    def frame_of(self, chips: ChipColumns, area_mm2: Floats, held_hz: Floats) -> dict[str, NDArray[Any]]:
        stacks = chips.stacks.astype(np.int64)
        return {
            **{key: getattr(chips, column).astype(np.int64) for key, column in COUNTS},
            "global_bytes_per_cycle": chips.width,
            "hbm_stacks": stacks,
            "hbm_bytes": stacks * self.stack_bytes,
            "hbm_bytes_per_s": chips.hbm_bytes_per_s,
            "link_bytes_per_s": chips.link_bytes_per_s,
            "clock_hz": held_hz,
            "area_mm2": area_mm2,
            "die_mm2": np.maximum(area_mm2, edge_areas(chips.stacks)),
        }

    def chip_name(self, chips: ChipColumns, index: int) -> str:
        """What a chip is made of; buffers and the width where they are an axis."""
        points = self.axis_points()
        count, arrays, rows, columns, lanes, stacks = (
            int(column[index])
            for column in (chips.clusters, chips.arrays, chips.rows, chips.columns, chips.lanes, chips.stacks)
        )
        operand_bytes = chips.operand_bytes[index] / arrays
        name = f"{count}x{arrays}x{rows}x{columns}-l{lanes}"
        name += f"-o{operand_bytes / 1024:.9g}KiB" if len(points["operand_buffer"]) > 1 else ""
        name += f"-r{chips.register_bytes[index] / 1024:.9g}KiB" if len(points["registers"]) > 1 else ""
        name += f"-{chips.global_bytes[index] / 2**20:.9g}MiB"
        name += f"-w{chips.width[index]:.9g}" if len(points["global_width"]) > 1 else ""
        return name + f"-s{stacks}-{chips.link_bytes_per_s[index] / 1e9:.9g}GBs"

    def memory_of(self, chips: ChipColumns, index: int) -> int | None:
        return int(chips.stacks[index]) * self.stack_bytes

    def surroundings(self, chips: ChipColumns, index: int) -> dict[str, Any]:
        built = replace(ALL_IN_USE, clusters=(int(chips.built[index]), int(chips.clusters[index])))
        return {"vectors": None, "built": built, "power": power_limit(self.keep.sustained_power)}


def ports_over(widths: Floats, clusters: Floats | float) -> Floats:
    """The port of every width and number of clusters: the least power of two at least width / N."""
    # A power of two is exact in both forms: doubling while below the share, as port_of does.
    port = np.ones(len(widths))
    while (narrow := port < widths / clusters).any():
        port = np.where(narrow, port * 2.0, port)
    return port


CLUSTER_SPACE = Format("phaze.space/2", ClusterSpace, "chips of clusters, with area, power and clock")
