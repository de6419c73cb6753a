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
from phaze.hardware.bundled import read
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import Form
from phaze.search.axes import ClusterAxesTable
from phaze.search.space import Each, Floats, Space
from phaze.search.space_rules import ClusterRules

SPARES = 12
"""One spare cluster for every dozen in use: GA100 builds 128 of 108, GH100 144 of 132."""


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


def ports_over(widths: Floats, clusters: Floats | float) -> Floats:
    """The port of every width and number of clusters: the least power of two at least width / N."""
    # A power of two is exact in both forms: doubling while below the share, as port_of does.
    port = np.ones(len(widths))
    while (narrow := port < widths / clusters).any():
        port = np.where(narrow, port * 2.0, port)
    return port


CLUSTER_SPACE = Format("phaze.space/2", ClusterSpace, "chips of clusters, with area, power and clock")
