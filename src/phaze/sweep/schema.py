"""The file of a sweep, ``phaze.sweep/1``: what stands in it, and how it is read again."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from phaze.documents import Bytes, Count, Document, Format, check, read_answer
from phaze.errors import InputError
from phaze.hardware.keys import Text
from phaze.sweep.run import SWEEP, Best, SweptModel, document_of

# Between the least and the largest of these lie all rates, times and areas that a search gives.
Number = Annotated[float, Field(ge=0, le=1e30)]
Positive = Annotated[float, Field(ge=1e-30, le=1e30)]
Value = Annotated[float, Field(ge=-1e300, le=1e300)]
Whole = Annotated[int, Field(ge=0, le=10**6)]


class SweepModel(Document):
    """How one model runs on the best chip of a point."""

    name: Text
    throughput_per_s: Positive
    pipeline: Count
    data: Count
    tensor: Count
    microbatch: Count
    recompute: Text
    plan: Text


class SweepPoint(Document):
    """The best at one value of the range; without a chip ``problem`` says why."""

    value: Value
    shown: Text
    chip: Text | None
    area_mm2: Positive | None
    hbm_bytes: Bytes | None
    score: Number | None
    gap: Number | None
    models: list[SweepModel]
    problem: str | None
    cluster: str | None


class SweepRegion(Document):
    """Neighbouring points that share ``what``."""

    name: Text
    what: str
    first: Whole
    last: Whole


class SweepFile(Document):
    """A sweep (``phaze.sweep/1``): the certified best for each value of a key, ascending."""

    schema_: Annotated[Literal["phaze.sweep/1"], Field(alias="schema")]
    name: Text
    over: Text
    points: Annotated[list[SweepPoint], Field(min_length=1, max_length=10_000)]
    chips: list[SweepRegion]
    plans: list[SweepRegion]


FORMAT = Format("phaze.sweep/1", SweepFile, "the best chip and placement along a range")


def _best(point: SweepPoint) -> Best:
    models = tuple(SweptModel(**model.model_dump()) for model in point.models)
    return Best(
        **{**{name: getattr(point, name) for name in SweepPoint.model_fields}, "models": models}
    )


def _fault(file: SweepFile) -> tuple[str, str] | None:
    """Where a sweep contradicts itself, and how."""
    answered = [point for point in file.points if point.chip is not None]
    for index, point in enumerate(file.points):
        figures = (point.area_mm2, point.hbm_bytes, point.score, point.gap)
        if point.chip is None and (point.models or point.problem is None):
            return f"points[{index}]", "it has no chip, and models or no problem"
        if point.chip is not None and any(figure is None for figure in figures):
            return f"points[{index}]", "it has a chip without its figures"
        if point.chip is not None and [model.name for model in point.models] != [
            model.name for model in answered[0].models
        ]:
            return f"points[{index}].models", "they are not those of the other points"
    if not answered or not answered[0].models:
        return "points", "none has a chip and models"
    if any(a.value >= b.value for a, b in pairwise(file.points)):
        return "points", "their values do not ascend"
    return None


def sweep_in(folder: Path) -> dict[str, Any]:
    """The document of a finished sweep: its own points, and the regions that follow from them."""
    raw, _, where = read_answer(str(folder / SWEEP))
    file = check(SweepFile, raw, where)
    if fault := _fault(file):
        raise InputError(f"{where}: {fault[0]}", fault[1], "sweep again")
    document = document_of(file.name, file.over, [_best(point) for point in file.points])
    for key in ("chips", "plans"):
        if raw[key] != document[key]:
            raise InputError(f"{where}: {key}", "they are not those of its points", "sweep again")
    return document
