"""A space of chips of clusters (``phaze.space/2``).

The axes are clusters; arrays, rows, columns, lanes, operand_buffer (of an array), registers of a
cluster; global_buffer and global_width; hbm_stacks, each as those of the base; links. Each chip has
its own memory, stacks times the size of the generation, so the memories of a job are all that
occur, and a chip is allowed one of them. Its links are the innermost level of the cluster.
"""

from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from phaze.documents import Format
from phaze.hardware.area import edge_areas
from phaze.hardware.bundled import read
from phaze.hardware.cluster import Cluster
from phaze.hardware.columns import ChipColumns
from phaze.hardware.library import Form
from phaze.search.axes import AxisField, ClusterAxesTable
from phaze.search.space import Described, Floats, Space
from phaze.search.space_rules import ClusterRules

SPARES = 12
"""One spare cluster for every dozen in use: GA100 builds 128 of 108, GH100 144 of 132."""

AXIS_FIELDS = (
    AxisField("clusters", "clusters"), AxisField("arrays", "arrays"), AxisField("rows", "rows"),
    AxisField("columns", "columns"), AxisField("lanes", "lanes"),
    AxisField("operand_buffer", "array_bytes"),
    AxisField("registers", "register_bytes"), AxisField("global_buffer", "global_bytes"),
    AxisField("global_width", "width"), AxisField("hbm_stacks", "stacks"),
    AxisField("links", "link_bytes_per_s"),
)  # fmt: skip
COUNTS = (
    ("clusters", "clusters"), ("arrays", "arrays"), ("rows", "rows"), ("columns", "columns"),
    ("lanes", "lanes"),
    ("operand_bytes", "operand_bytes"), ("register_bytes", "register_bytes"),
    ("global_buffer_bytes", "global_bytes"),
)  # fmt: skip


class ClusterSpace(Space):
    """A space of chips of clusters (``phaze.space/2``)."""

    schema_: Annotated[Literal["phaze.space/2"], Field(alias="schema")]
    axes: ClusterAxesTable
    keep: ClusterRules
    form: ClassVar[Form] = "clusters"
    power_rule: ClassVar[str] = "sustained_power"
    axis_fields: ClassVar[tuple[AxisField, ...]] = AXIS_FIELDS
    spares: ClassVar[int | None] = SPARES

    @property
    def usual_cluster(self) -> str | None:
        """That of its base."""
        return self.base.cluster

    @property
    def usual_baseline(self) -> str | None:
        """That of the cluster."""
        cluster = self.usual_cluster
        return None if cluster is None else read(Cluster, "clusters", cluster).chip

    def document(self) -> dict[str, Any]:
        axes = {name: values.tolist() for name, values in self.axis_points().items()}
        return {"name": self.name, "axes": axes, "keep": self.keep.model_dump()}

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

    def frame_of(
        self, chips: ChipColumns, area_mm2: Floats, held_hz: Floats
    ) -> dict[str, NDArray[Any]]:
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
            for column in (
                chips.clusters,
                chips.arrays,
                chips.rows,
                chips.columns,
                chips.lanes,
                chips.stacks,
            )
        )
        operand_bytes = chips.operand_bytes[index] / arrays
        name = f"{count}x{arrays}x{rows}x{columns}-l{lanes}"
        name += f"-o{operand_bytes / 1024:.9g}KiB" if len(points["operand_buffer"]) > 1 else ""
        name += (
            f"-r{chips.register_bytes[index] / 1024:.9g}KiB" if len(points["registers"]) > 1 else ""
        )
        name += f"-{chips.global_bytes[index] / 2**20:.9g}MiB"
        name += f"-w{chips.width[index]:.9g}" if len(points["global_width"]) > 1 else ""
        return name + f"-s{stacks}-{chips.link_bytes_per_s[index] / 1e9:.9g}GBs"


CLUSTER_SPACE = Format(
    "phaze.space/2", ClusterSpace, "chips of clusters, with area, power and clock"
)
