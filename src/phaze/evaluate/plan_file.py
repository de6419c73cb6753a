"""``phaze.plan/1`` and the plans inside ``phaze.result/1`` as they are read back: what pages and exports need.

A document that was cut off, edited or written by something else is refused with the path of its first fault, before
anything is reckoned from it. Keys that nothing here reads are let pass.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import ConfigDict, Field, model_validator

from phaze.documents import Count, Document, NonNegative, Positive, check
from phaze.graph.ir import Attention

Number = Annotated[float, Field(allow_inf_nan=False)]
# What a shortage of memory is made of.
TERMS = ("parameters", "gradients", "optimizer", "activations", "in_flight", "reserve")


# none, selective, full, or modules joined by +.
MODE_PATTERN = r"^[a-z_]+(\+[a-z_]+)*$"


class Loose(Document):
    """A document that may hold more than is read."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, allow_inf_nan=False)


class StageTable(Loose):
    """A stage: its layers, devices, times and memory."""

    layers: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    devices: Count
    recompute: Annotated[str, Field(pattern=MODE_PATTERN)]
    time_s: NonNegative
    forward_s: NonNegative
    backward_s: NonNegative
    memory_bytes: NonNegative
    memory: dict[str, NonNegative]


class PlanTable(Loose):
    """A plan of any rules."""

    batch_s: Positive
    lower_bound_s: NonNegative
    simulated_s: NonNegative
    pipeline: Count
    data: Count
    tensor: Count
    context: Count = 1
    expert: Count = 1
    expert_tensor: Count = 1
    exchange_s: NonNegative = 0.0
    expert_nodes: Count = 1
    chunks: Count = 1
    stages: Annotated[list[StageTable], Field(min_length=1)]
    breakdown: dict[str, Number]

    @model_validator(mode="after")
    def _whole(self) -> "PlanTable":
        if len(self.stages) != self.pipeline:
            raise ValueError(f"pipeline is {self.pipeline} and there are {len(self.stages)} stages")
        found = sorted(layer for stage in self.stages for layer in stage.layers)
        if found != list(range(len(found))):
            raise ValueError("the stages do not hold every layer once")
        return self


class ConstantsTable(Loose):
    """How far times may be off."""

    basis: str
    band: NonNegative | None


class RunTermsTable(Loose):
    """The terms that a run was priced with."""

    name: str
    power_usage_effectiveness: NonNegative
    grid_kgco2e_per_kwh: NonNegative


class TrainingRunTable(Loose):
    """What a whole training run takes."""

    tokens: Positive
    batches: Count
    days: NonNegative
    device_hours: NonNegative
    usd: NonNegative | None
    usd_basis: str
    kwh: NonNegative | None
    power_basis: str
    kgco2e: NonNegative | None
    terms: RunTermsTable


class FiguresTable(Loose):
    """What is said of a model beside its time."""

    devices_used: Count
    batch: Count
    requested_batch_tokens: Count | None = None
    sequence: Count
    tokens_per_s: Positive
    tokens_per_s_per_device: Positive
    mfu: NonNegative
    hfu: NonNegative
    flops_per_token: Annotated[float, Field(ge=0, le=1e24)]
    run_flops_per_token: Annotated[float, Field(ge=0, le=1e24)]
    training_run: TrainingRunTable | None = None


class OtherPlanTable(PlanTable, FiguresTable):
    """The whole plan of an alternative: what a document says of its best one, without what holds for all."""

    microbatch: Count
    sequence_parallel: bool
    zero: Annotated[int, Field(ge=0, le=3)]
    attention: Attention


class LaunchTable(Loose):
    """Whether a framework can launch a plan: the reason if not, and in what it will differ from the plan."""

    refused: str | None
    deviations: list[str]


class SplitTable(Loose):
    """A split of the rule of thumb or of experts, and what it takes."""

    tensor: Count
    pipeline: Count
    data: Count
    batch_s: Positive
    slower: Number = 0.0
    plan: OtherPlanTable | None = None
    launch: dict[str, LaunchTable] | None = None


class AlternativeTable(SplitTable):
    """One of the best different plans."""

    slower: Number
    microbatch: Count
    chunks: Count = 1
    zero: Annotated[int, Field(ge=0, le=3)] = 0
    sequence_parallel: bool
    recompute: list[Annotated[str, Field(pattern=MODE_PATTERN)]]
    loses_by: str


class ShortageTable(Loose):
    """What the fullest stage lacks, and what would make it fit."""

    stage: Annotated[int, Field(ge=0)]
    missing_bytes: NonNegative
    needed_bytes: NonNegative
    available_bytes: NonNegative
    terms: dict[str, NonNegative]
    levers: dict[str, float | str | None] | None = None

    @model_validator(mode="after")
    def _numbers(self) -> "ShortageTable":
        for name in ("hbm_bytes", "devices", "tensor", "zero"):
            if isinstance((self.levers or {}).get(name), str):
                raise ValueError(f"the lever {name} is no number")
        return self


class DifferenceTable(Loose):
    """A difference between the user's plan and the best one, and what it is worth."""

    what: str
    given: str
    best: str
    worth_s: Number


class AgainstTable(Loose):
    """The user's plan beside the best one; the plan is a document of its own, checked when it is opened."""

    source: str
    plan: dict[str, Any]
    differences: list[DifferenceTable]


class WhatIfRow(Loose):
    """A job planned anew with one change, or why it cannot be."""

    label: str
    same: bool
    reason: str | None
    tokens_per_s_per_device: Positive = 1.0
    mfu: NonNegative = 0.0
    plan: str = ""


class WhatIfTable(Loose):
    """Rows along one axis."""

    title: str
    axis: str
    rows: list[WhatIfRow]


class JobPlanTable(PlanTable, FiguresTable):
    """A plan of a job on hardware that exists."""

    microbatch: Count
    constants: ConstantsTable
    approximations: list[str]
    sequence_parallel: bool = False
    zero: Annotated[int, Field(ge=0, le=3)] = 0
    alternatives: list[AlternativeTable] | None = None
    rule_of_thumb: SplitTable | None = None
    experts: SplitTable | None = None
    shortage: ShortageTable | None = None
    launch: dict[str, LaunchTable] | None = None
    against: AgainstTable | None = None
    what_if: list[WhatIfTable] | None = None
    job: dict[str, Any]


class ShownSplit(SplitTable):
    """A split beside a plan that is printed."""

    slower: Number


class ShownAlternative(AlternativeTable):
    """An alternative to a plan that is printed."""

    chunks: Count
    zero: Annotated[int, Field(ge=0, le=3)]
    attention: str


class ShownCluster(Loose):
    """The network of a plan that is printed."""

    label: str
    links: str | None


class BandTable(Loose):
    """How far an estimate of memory may be off."""

    median: NonNegative
    ninetieth: NonNegative


class LeftTable(Loose):
    """What a plan leaves of a device's memory."""

    left_bytes: Number
    left_share: Number
    headroom: NonNegative
    band: BandTable


class ChoicesTable(Loose):
    """How many choices were tried."""

    tried: Annotated[int, Field(ge=0)]
    fitting: Annotated[int, Field(ge=0)]


class ShownShortage(ShortageTable):
    """A shortage that is printed: every term of it."""

    @model_validator(mode="after")
    def _terms(self) -> "ShownShortage":
        missing = [name for name in TERMS if name not in self.terms]
        if missing:
            raise ValueError(f"the term {missing[0]} is missing")
        return self


class ShownPlanTable(JobPlanTable):
    """A plan of a job with everything that the terminal shows of it."""

    chunks: Count
    zero: Annotated[int, Field(ge=0, le=3)]
    sequence_parallel: bool
    attention: str
    cluster: ShownCluster
    memory_left: LeftTable
    alternatives: list[ShownAlternative] | None = None  # type: ignore[assignment]
    rule_of_thumb: ShownSplit | None = None
    experts: ShownSplit | None = None
    shortage: ShownShortage | None = None
    choices: ChoicesTable | None = None
    feasible: bool

    @model_validator(mode="after")
    def _counted(self) -> "ShownPlanTable":
        if self.alternatives and self.choices is None:
            raise ValueError("there are alternatives and no choices")
        return self


def require_plan(document: Mapping[str, Any], where: str) -> None:
    """Refuse what is no plan."""
    check(PlanTable, document, where)


def require_job_plan(document: Mapping[str, Any], where: str) -> None:
    """Refuse what is no plan of a job."""
    check(JobPlanTable, document, where)


def require_shown_plan(document: Mapping[str, Any], where: str) -> None:
    """Refuse what cannot be printed as a plan of a job."""
    check(ShownPlanTable, document, where)
