"""The format of a space of chips of clusters (``phaze.space/2``); :mod:`phaze.hardware.silicon.space` has its chips."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Document, Format, Mm2, Positive, Share, Watts
from phaze.hardware.area import RETICLE_MM
from phaze.hardware.files import Name, Place, Sources, Text

SCHEMA = "phaze.space/2"
Whole = Annotated[int, Field(gt=0, le=2**24)]
Counts = Annotated[list[Whole], Field(min_length=1, max_length=1000)]
Sizes = Annotated[list[Bytes], Field(min_length=1, max_length=1000)]
Rates = Annotated[list[BytesPerSecond], Field(min_length=1, max_length=1000)]
Widths = Annotated[list[Positive], Field(min_length=1, max_length=1000)]
AXES = (
    "clusters", "arrays", "rows", "columns", "lanes", "operand_buffer", "registers", "global_buffer", "global_width",
    "hbm_stacks", "links",
)  # fmt: skip


class ClusterAxesTable(Document):
    """The values of each axis."""

    clusters: Counts
    arrays: Annotated[Counts, Field(description="of a cluster")]
    rows: Counts
    columns: Counts
    lanes: Annotated[Counts, Field(description="of a cluster")]
    operand_buffer: Annotated[Sizes, Field(description="of an array")]
    registers: Annotated[Sizes, Field(description="of a cluster, half of them for sums")]
    global_buffer: Sizes
    global_width: Annotated[Widths, Field(description="bytes a cycle")]
    hbm_stacks: Counts
    links: Rates


class ClusterKeepTable(Document):
    """Which combinations are chips; ``sustained_power`` lowers clocks."""

    most_area: Mm2
    least_share: Share = 0.0
    sustained_power: Watts
    most_w_per_mm2: Positive = 1.0
    most_usd: Annotated[Positive | None, Field(description="manufacturing cost of a chip with its HBM")] = None

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


CLUSTER_SPACE = Format(SCHEMA, ClusterSpaceFile, "chips of clusters, with area, power and clock")
