"""The file of a front, ``phaze.front/1``: what stands in it."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from phaze.documents import Count, Document, Format, check, read_answer
from phaze.errors import InputError
from phaze.evaluate.plan_tables import Loose
from phaze.hardware.formats import Precision
from phaze.hardware.keys import Text
from phaze.options.keys import PointKeys
from phaze.search.result_file import MOST_NUMBER, ConstantsTable, PlausibilityTable

Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]
# Between the least and the largest of these lie the metrics of all designs; the page draws their
# logarithms.
Metric = Annotated[float, Field(ge=1e-30, le=1e30)]
Whole = Annotated[int, Field(ge=0)]


class PointModel(PointKeys):
    """How one model runs on the chip of a design, and what a batch of it takes; the last two where
    its rules choose, and degrees of context and expert parallelism and of hybrid sharding where it
    has them."""

    name: Text
    throughput_per_s: Number
    batch_s: Number
    energy_j: Number
    pipeline: Count
    data: Count
    expert_tensor: Count | None = None
    recompute: Literal["none", "full", "best"]
    attention: Text
    sequence_parallel: bool | None = None


class PointProof(Document):
    """Nothing at least as good in the other metrics is better than ``bound`` in ``metric``;
    ``rivals`` may be."""

    metric: Text
    rivals: Whole
    bound: Number
    gap: Number


class Point(Document):
    """One design: chip and memory, that chip beside shipped ones, its metrics by name, its models,
    and its proof where one metric comes with a run."""

    chip: dict[str, Any]
    plausibility: PlausibilityTable
    metrics: dict[str, Metric]
    models: list[PointModel]
    certificate: PointProof | None


class FrontProof(Document):
    """How every chip with its memory was closed, and the gap that is left."""

    gap: Number
    asked_gap: Number
    closed: dict[str, Whole]
    units: Whole


class FrontSetting(Loose):
    """Under what the designs were found."""

    rules: Text
    devices: Count
    links: Text
    levels: Count = 1
    link_bytes_per_s: Number = 0.0  # none where designs have links of their own
    process: Text
    optimizer: Text
    stack: Text = ""
    precision: Precision = "bf16"
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


def front_in(folder: Path) -> tuple[dict[str, Any], str]:
    """The document of a finished front, checked, and its text."""
    raw, text, where = read_answer(str(folder / "front.json"))
    file = check(FrontFile, raw, where)
    for index, point in enumerate(file.points):
        size = point.chip.get("hbm_bytes")
        if (
            not isinstance(point.chip.get("name"), str)
            or type(size) is not int
            or not 0 < size <= 2**60
        ):
            raise InputError(
                f"{where}: points[{index}].chip",
                "it has no name and hbm_bytes",
                "find the front again",
            )
        number = point.chip.get("number")
        if type(number) is int and not 0 <= number <= MOST_NUMBER:
            raise InputError(
                f"{where}: points[{index}].chip.number",
                "it is none of a space",
                "find the front again",
            )
        if not set(file.of) <= set(point.metrics):
            raise InputError(
                f"{where}: points[{index}].metrics",
                "one of the front is missing",
                "find the front again",
            )
    if len(set(file.of)) != len(file.of) or not set(file.of) <= set(file.units):
        raise InputError(
            f"{where}: of", "a metric appears twice or has no unit", "find the front again"
        )
    return raw, text
