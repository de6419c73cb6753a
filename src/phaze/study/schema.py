"""The file of a study, ``phaze.study/1``: what may stand in it, and what holds where it is
silent."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import (
    BytesPerSecond,
    Count,
    Document,
    Format,
    Length,
    Mm2,
    Positive,
    Seconds,
    Watts,
)
from phaze.evaluate.run_plan import RecomputeName
from phaze.hardware.keys import Name, Text
from phaze.options.key_fields import UNSTATED, study_options
from phaze.options.keys import CostKeys, ObjectiveKeys, SearchKeys, TrainingKeys
from phaze.options.values import MemorySizes, Place, RuleName
from phaze.study.places import name_of
from phaze.study.stack import StackTable

Width = Annotated[int, Field(ge=1, le=1024)]


def _stated(key: str) -> Any:
    """The meaning and the default of a key whose type is that of another file."""
    option = study_options()[key]
    return Field(description=option.description, json_schema_extra={UNSTATED: option.default_words})


class ModelTable(Document):
    """A built-in model by ``name``; ``model``: one of your own (``own.py:build``, a
    ``config.json``, its folder, a graph) with, if need be, a tensor-parallel plan in a file; or
    ``graphs``: files of ``phaze.graph/1``, one for each width and microbatch.

    ``part`` "block" keeps its most repeated layer alone: what a search sees that knows nothing of
    placement.
    """

    name: Name
    model: Place | None = None
    tensor_plan: Place | None = None
    part: Literal["model", "block"] = "model"
    weight: Positive = 1.0
    sequence: Length | None = None
    widths: Annotated[list[Width], Field(min_length=1)] | None = None
    graphs: Annotated[list[str], Field(min_length=1)] | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, raw: Any) -> Any:
        """A model of one's own is called by its place where nothing else is said."""
        if isinstance(raw, dict) and "name" not in raw and isinstance(raw.get("model"), str):
            return {"name": name_of(raw["model"]), **raw}
        return raw

    @model_validator(mode="after")
    def _one_source(self) -> "ModelTable":
        if self.model is not None and self.graphs is not None:
            raise ValueError("give model or graphs, not both")
        if self.tensor_plan is not None and self.model is None:
            raise ValueError("give tensor_plan with model, your own model that it shards")
        return self


class LevelChanges(Document):
    """Changes of one level of a cluster: what one device sends through it, a message's latency, how
    many it joins."""

    bandwidth: BytesPerSecond | None = None
    latency: Seconds | None = None
    size: Count | None = None


class ClusterTable(Document):
    """Changes of the cluster that ``training.cluster`` names: the link of a flat one, or its levels
    by name."""

    link_bytes_per_s: BytesPerSecond | None = None
    levels: dict[Name, LevelChanges] = Field(default_factory=dict)


class BudgetTable(Document):
    """What a chip may take at most; each one that is given stands for the space's own rule."""

    area: Mm2 | None = None
    power: Watts | None = None
    usd: Positive | None = None


class TrainingTable(TrainingKeys):
    """The job around each model; ``sequence`` holds for every model that does not state its own."""

    recompute: Annotated[
        Annotated[list[bool | Literal["best"] | RecomputeName], Field(min_length=1)] | None,
        _stated("training.recompute"),
    ] = None


class CostsTable(CostKeys):
    """How operators are costed."""


class ObjectiveTable(ObjectiveKeys):
    """What is wanted, how models are averaged, and the chip that they are compared on."""


class SearchTable(SearchKeys):
    """How far the proof must go, and how many chips a round evaluates."""


class StudyFile(Document):
    """A study (``phaze.study/1``). ``files`` are texts of files that it names, by path: a study
    that holds them needs nothing beside it. What is None is as the rules have it."""

    schema_: Annotated[Literal["phaze.study/1"], Field(alias="schema")]
    name: Name
    title: Text | None = None
    rules: RuleName = "cluster"
    models: Annotated[list[Name | ModelTable], Field(min_length=1)]
    space: Annotated[Place | None, _stated("space")] = None
    hbm: Annotated[MemorySizes | None, _stated("hbm")] = None
    training: Annotated[
        TrainingTable, Field(default_factory=lambda: TrainingTable.model_validate({}))
    ]
    cost: CostsTable = CostsTable()
    cluster: ClusterTable = ClusterTable()
    stack: StackTable = StackTable()
    budget: BudgetTable = BudgetTable()
    objective: ObjectiveTable = ObjectiveTable()
    search: SearchTable = SearchTable()
    files: dict[Place, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _each_once(self) -> "StudyFile":
        names = [model if isinstance(model, str) else model.name for model in self.models]
        if len(set(names)) < len(names):
            raise ValueError("name every model once")
        if self.training.terms is not None and self.training.tokens is None:
            raise ValueError("give training.tokens with training.terms, which price them")
        return self

    def tables(self) -> list[ModelTable]:
        """The models, each as a table."""
        return [
            ModelTable(name=model) if isinstance(model, str) else model for model in self.models
        ]


STUDY = Format("phaze.study/1", StudyFile, "models, space, cluster, training, objective and search")
