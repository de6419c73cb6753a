"""Measured operators as files (``phaze.rows/1``): matrix products, attention kernels and
collectives, each with its source."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze.cost.collective import Kind
from phaze.documents import BytesPerSecond, Count, Document, Positive
from phaze.hardware.attention import Generation
from phaze.hardware.calibration import Load
from phaze.hardware.keys import Name, Text

Sizes = list[Annotated[Positive, Field(lt=2**60)]]


class ProductRows(Document):
    """Products of one chip: batch, m, n, k and seconds each; ``grouped``: the batch are experts."""

    chip: Text
    precision: Literal["bf16", "fp8"] = "bf16"
    load: Load = "alone"
    grouped: bool = False
    source: Text
    rows: Annotated[list[Annotated[Sizes, Field(min_length=5, max_length=5)]], Field(min_length=1)]


class AttentionRows(Document):
    """An attention kernel at one head size and mask: batch, heads, sequence and seconds each;
    ``pass`` both: forward and backward together."""

    chip: Text
    kernel: Generation
    pass_: Annotated[Literal["forward", "backward", "both"], Field(alias="pass")]
    head: Count
    value_head: Count
    causal: bool
    load: Load = "alone"
    source: Text
    rows: Annotated[list[Annotated[Sizes, Field(min_length=4, max_length=4)]], Field(min_length=1)]


class CollectiveRows(Document):
    """A curve: bytes of the whole tensor and seconds, measured on links of these clusters.
    ``members`` meet at each level, innermost first; ``bandwidths`` of the levels where the machine
    has others. Without ``fitted`` it is compared with, and no constant is fitted on it."""

    clusters: Annotated[list[Text], Field(min_length=1)]
    kind: Kind
    members: Annotated[list[Count], Field(min_length=1, max_length=8)]
    fitted: bool = True
    bandwidths: list[BytesPerSecond] | None = None
    source: Text
    points: Annotated[
        list[Annotated[Sizes, Field(min_length=2, max_length=2)]], Field(min_length=1)
    ]


class RowFile(Document):
    """Measured operators (``phaze.rows/1``)."""

    schema_: Annotated[Literal["phaze.rows/1"], Field(alias="schema")]
    title: Text
    notes: Text | None = None
    sources: dict[Name, Text]
    products: list[ProductRows] = Field(default_factory=list)
    attention: list[AttentionRows] = Field(default_factory=list)
    collectives: list[CollectiveRows] = Field(default_factory=list)

    @model_validator(mode="after")
    def _every_row_has_its_source(self) -> "RowFile":
        for source in self.used_sources:
            if source not in self.sources:
                raise ValueError(
                    f"'{source[:60]}' is none of its sources: give it a line in sources"
                )
        return self

    @property
    def used_sources(self) -> tuple[str, ...]:
        """The source of every table, in order."""
        products, attention = (
            [rows.source for rows in self.products],
            [rows.source for rows in self.attention],
        )
        return (*products, *attention, *(rows.source for rows in self.collectives))
