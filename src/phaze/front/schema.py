"""The file of a front, ``phaze.front/1``: what stands in it."""

from typing import Annotated, Any, Literal

from pydantic import Field

from phaze.documents import Count, Document, Format
from phaze.evaluate.plan_file import Loose
from phaze.hardware.files import Text
from phaze.search.result_file import ConstantsTable, PlausibilityTable

Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0)]


class PointModel(Document):
    """How one model runs on the chip of a design, and what a batch of it takes; the last two where its rules choose."""

    name: Text
    throughput_per_s: Number
    batch_s: Number
    energy_j: Number
    pipeline: Count
    data: Count
    tensor: Count
    microbatch: Count
    recompute: Literal["none", "full", "best"]
    attention: Text
    sequence_parallel: bool | None = None


class PointProof(Document):
    """Nothing at least as good in the other metrics is better than ``bound`` in ``metric``; ``rivals`` may be."""

    metric: Text
    rivals: Whole
    bound: Number
    gap: Number


class Point(Document):
    """One design: chip and memory, that chip beside shipped ones, its metrics by name, its models, and its proof where
    one metric comes with a run."""

    chip: dict[str, Any]
    plausibility: PlausibilityTable
    metrics: dict[str, Number]
    models: list[PointModel]
    certificate: PointProof | None


class FrontProof(Document):
    """How every chip with its memory was closed, and the gap that is left."""

    gap: Number
    asked_gap: Number
    closed: dict[str, Whole]
    units: Whole
    list_digest: Text


class FrontSetting(Loose):
    """Under what the designs were found."""

    rules: Text
    devices: Count
    links: Text
    link_bytes_per_s: Number | None = None
    process: Text
    optimizer: Text
    constants: ConstantsTable


class FrontCluster(Loose):
    """The network of all designs."""

    name: Text
    label: Text
    devices: Count
    links: Text | None = None


class FrontFile(Document):
    """A front (``phaze.front/1``): every design that none beats, the known metrics ascending."""

    schema_: Annotated[Literal["phaze.front/1"], Field(alias="schema")]
    name: Text
    of: Annotated[list[Text], Field(min_length=2, max_length=3)]
    within: dict[str, Number]
    units: dict[str, Text]
    cluster: FrontCluster | None
    setting: FrontSetting
    points: Annotated[list[Point], Field(min_length=1)]
    certificate: FrontProof
    study_digest: Text
    version: Text
    code_digest: Text


FRONT = Format("phaze.front/1", FrontFile, "designs that none beats in two or three metrics")
