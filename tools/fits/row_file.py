"""Measured operators as files (``phaze.rows/1``): matrix products, attention kernels and
collectives, each with its source. Those that bundled constants were fitted on lie in ``data``."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from phaze import documents
from phaze.cost.collective import Kind
from phaze.documents import BytesPerSecond, Count, Document, Positive
from phaze.errors import unknown_name
from phaze.files import is_path
from phaze.hardware.attention import Generation
from phaze.hardware.calibration import Load
from phaze.hardware.keys import Name, Text

BUNDLED = ("products", "attention", "collectives")
"""Files of rows that are bundled, by name."""
Sizes = list[Annotated[Positive, Field(lt=2**60)]]


class ProductRows(Document):
    """Products of one chip: batch, m, n, k and seconds each."""

    chip: Text
    precision: Literal["bf16", "fp8"] = "bf16"
    load: Load = "alone"
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


def bundled_rows(name: str) -> RowFile:
    """One of the bundled files."""
    return documents.load(RowFile, str(Path(__file__).parent / "data" / f"{name}.json"))


def read_rows(paths: Sequence[str]) -> tuple[RowFile, ...]:
    """The files at ``paths``; a bundled one by its name."""
    for path in paths:
        if path not in BUNDLED and not is_path(path) and not Path(path).exists():
            raise unknown_name("WHAT", "rows", path, (*BUNDLED, "stacks", "held-back", "bands"))
    return tuple(
        bundled_rows(path) if path in BUNDLED else documents.load(RowFile, path) for path in paths
    )
