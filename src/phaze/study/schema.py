"""The file of a study, ``phaze.study/1``: what may stand in it, and what holds where it is
silent."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import (
    Bytes,
    BytesPerSecond,
    Count,
    Document,
    Format,
    Length,
    Mm2,
    Positive,
    Seconds,
    Share,
    Watts,
)
from phaze.evaluate.run_plan import RecomputeName
from phaze.hardware.calibration import Basis
from phaze.hardware.keys import Name, Text
from phaze.hardware.stack import Optimizer
from phaze.options.keys import TrainingKeys
from phaze.options.values import Place
from phaze.search.objective import Kind, Mean
from phaze.study.places import name_of
from phaze.study.stack import StackTable

Width = Annotated[int, Field(ge=1, le=1024)]


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
    """The job around each model; ``sequence`` holds for every model that does not state its own.

    What is None is as the rules have it (``SETTINGS`` of :mod:`phaze.study.settings`): under
    cluster the network and the stack of the space's chips, 1024 devices, a batch of 1024 sequences,
    recompute chosen stage by stage, the best stage of ZeRO, and 6 % of the memory left free; under
    icml24 what the paper did. Optimizer, precision and attention are then those of the stack, and
    ``chunks`` all that divide the blocks (if given those beside 1); ``family`` names the pipeline
    families to choose from, all that the stack runs if nothing or "best" is said. ``context`` and
    ``expert`` are the degrees to choose from, of ranks that share a sequence or shard the
    experts, ``shard`` how many of the ranks with the same weights may shard state (hybrid
    sharding), "all" if nothing is said. ``tokens`` to train on give days, device hours, USD, kWh
    and kg CO2e of each model, on ``terms``.
    """

    cluster: Place | None = None
    stack: Place | None = None
    optimizer: Optimizer | None = None
    microbatches: Annotated[list[Count], Field(min_length=1, default_factory=lambda: [1, 2, 4, 8])]
    recompute: (
        Annotated[list[bool | Literal["best"] | RecomputeName], Field(min_length=1)] | None
    ) = None
    sequence_parallel: bool | Literal["best"] = False


class CostsTable(Document):
    """How operators are costed: whether what is still in the global buffer spares a trip to HBM;
    ``basis``: how much of its peaks hardware reaches, ideal under rules icml24 and calibrated under
    cluster if nothing is said."""

    residency: bool = True
    basis: Basis | None = None


class ObjectiveTable(Document):
    """What is wanted, how models are averaged, and the chip that they are compared on."""

    kind: Kind = "throughput"
    mean: Mean = "geometric"
    baseline: Place | None = None


class SearchTable(Document):
    """How far the proof must go (None: 0.1 % under rules cluster, 0.01 % under icml24), and how
    many chips a round evaluates."""

    gap: Share | None = None
    round_size: Annotated[int, Field(ge=1, le=4096)] = 16


class StudyFile(Document):
    """A study (``phaze.study/1``). ``files`` are texts of files that it names, by path: a study
    that holds them needs nothing beside it. What is None is as the rules have it."""

    schema_: Annotated[Literal["phaze.study/1"], Field(alias="schema")]
    name: Name
    title: Text | None = None
    rules: Literal["icml24", "cluster"] = "cluster"
    models: Annotated[list[Name | ModelTable], Field(min_length=1)]
    space: Place | None = None
    hbm: Annotated[list[Bytes], Field(min_length=1)] | None = None
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
