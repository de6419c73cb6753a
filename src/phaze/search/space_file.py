"""Spaces of chips as files: of cores (``phaze.space/1``) and of clusters (``phaze.space/2``).

A rule that one of the formats has no key for is stated by its table all the same, at the value that leaves nothing out.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, model_validator

from phaze.documents import Bytes, Document, Format, Mm2, Positive, Share, Watts
from phaze.hardware.area import RETICLE_MM
from phaze.hardware.keys import Name, Place, Sources, Text
from phaze.search.axes import AxesTable, ClusterAxesTable

CLUSTERS = "phaze.space/2"


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
    sustained_power: ClassVar[float] = float("inf")
    most_w_per_mm2: ClassVar[float] = float("inf")

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


class ClusterKeepTable(Document):
    """Which combinations are chips; ``sustained_power`` lowers clocks."""

    most_area: Mm2
    least_share: Share = 0.0
    sustained_power: Watts
    most_w_per_mm2: Positive = 1.0
    most_usd: Annotated[Positive | None, Field(description="manufacturing cost of a chip with its HBM")] = None
    area_of: ClassVar[str | None] = None
    smaller_with_one_core: ClassVar[bool] = False
    most_power: ClassVar[float | None] = None

    @model_validator(mode="after")
    def _one_reticle(self) -> "ClusterKeepTable":
        if self.most_area > RETICLE_MM[0] * RETICLE_MM[1]:
            raise ValueError(f"let most_area be at most a reticle, {RETICLE_MM[0] * RETICLE_MM[1]:.0f} mm2")
        return self


class ClusterSpaceFile(Document):
    """A space of chips of clusters (``phaze.space/2``)."""

    schema_: Annotated[Literal["phaze.space/2"], Field(alias="schema")]
    name: Name
    title: Text
    base: Annotated[Place, Field(description="a chip by name, or the path of a file")]
    axes: ClusterAxesTable
    keep: ClusterKeepTable
    sources: Sources = Field(default_factory=dict)
    core_buffers: ClassVar[CoreBuffersTable | None] = None


SPACE = Format("phaze.space/1", SpaceFile, "the chips that a search may choose from")
CLUSTER_SPACE = Format(CLUSTERS, ClusterSpaceFile, "chips of clusters, with area, power and clock")
