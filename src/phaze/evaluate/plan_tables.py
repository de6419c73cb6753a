"""The parts of a plan's document as they are read back: stages, figures, alternatives, memory,
differences.

:mod:`phaze.evaluate.plan_file` puts them together.
"""

from typing import Annotated, Any

from pydantic import AliasChoices, ConfigDict, Field, model_validator

from phaze.documents import Count, Document, NonNegative, Positive
from phaze.options.keys import AnswerPlanKeys

Number = Annotated[float, Field(allow_inf_nan=False)]
AGREEMENT = 1e-9
"""A rate that follows from a time may differ from it by rounding."""
# What a shortage of memory is made of.
TERMS = ("parameters", "gradients", "optimizer", "activations", "in_flight", "reserve")


# none, selective, full, or modules joined by +.
MODE_PATTERN = r"^[a-z_]+(\+[a-z_]+)*$"


class Loose(Document):
    """A document that may hold more than is read."""

    model_config = ConfigDict(
        strict=True, extra="ignore", frozen=True, allow_inf_nan=False, defer_build=True
    )


class PlanStageTable(Loose):
    """A stage: its layers, devices, times and memory."""

    layers: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
    devices: Count
    recompute: Annotated[str, Field(pattern=MODE_PATTERN)]
    time_s: NonNegative
    forward_s: NonNegative
    backward_s: NonNegative
    weight_s: NonNegative = 0.0
    forward_transfer_s: NonNegative = 0.0
    backward_transfer_s: NonNegative = 0.0
    memory_bytes: NonNegative
    memory: Annotated[dict[str, NonNegative], Field(min_length=1)]


class PlanTable(AnswerPlanKeys, Loose):
    """A plan of any rules."""

    batch_s: Positive
    lower_bound_s: NonNegative
    simulated_s: NonNegative
    pipeline: Count
    data: Count
    expert_tensor: Count = 1
    exchange_s: NonNegative = 0.0
    expert_nodes: Count = 1
    stages: Annotated[list[PlanStageTable], Field(min_length=1)]
    breakdown: dict[str, Number]

    @model_validator(mode="after")
    def _whole(self) -> "PlanTable":
        if len(self.stages) != self.pipeline:
            raise ValueError(f"pipeline is {self.pipeline} and there are {len(self.stages)} stages")
        placed = sorted(layer for stage in self.stages for layer in stage.layers)
        if placed != list(range(len(placed))):
            raise ValueError("the stages do not hold every layer once")
        return self


class BandOfTable(Loose):
    """The kind of measured runs that a band was made of."""

    kind: str
    runs: Count
    sources: Count


class PlanConstantsTable(Loose):
    """How far times may be off; of a chip of clusters also its clock and what software leaves of
    its rate."""

    basis: str
    band: NonNegative | None
    band_of: BandOfTable | None = None
    clock_hz: Positive | None = None
    software_share: Positive | None = None

    @model_validator(mode="after")
    def _both(self) -> "PlanConstantsTable":
        if (self.clock_hz is None) != (self.software_share is None):
            raise ValueError("clock_hz and software_share must be given together")
        return self


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


class IdleTable(Loose):
    """Devices that a plan leaves idle, and the batch with which its degrees would use them."""

    devices: Count
    batch: Count | None


class FiguresTable(Loose):
    """What is said of a model beside its time."""

    devices: Count | None = None
    devices_used: Count
    idle: IdleTable | None = None
    batch: Count
    requested_batch_tokens: Count | None = None
    sequence: Count
    tokens_per_s: Positive
    tokens_per_s_per_device: Positive
    mfu: NonNegative
    hfu: NonNegative
    device_peak_flops: Annotated[float, Field(gt=0, le=1e24)] | None = None
    flops_per_token: Annotated[float, Field(ge=0, le=1e24)]
    full_flops_per_token: Annotated[float, Field(ge=0, le=1e24)] | None = None
    run_flops_per_token: Annotated[float, Field(ge=0, le=1e24)]
    training_run: TrainingRunTable | None = None

    def require_rates(self, batch_s: float) -> None:
        """Refuse tokens a second that are not those of the step time and of all devices of the job;
        documents of older releases have those of the devices in use."""
        rate, devices = self.batch * self.sequence / batch_s, self.devices or self.devices_used
        for key, true in (("tokens_per_s", rate), ("tokens_per_s_per_device", rate / devices)):
            if abs((stated := getattr(self, key)) - true) > AGREEMENT * true:
                raise ValueError(
                    f"let {key}, {stated:.9g}, be that of batch, sequence and batch_s, {true:.9g}"
                )


class OtherPlanTable(PlanTable, FiguresTable):
    """The whole plan of an alternative: what a document says of its best one, without what holds
    for all."""

    microbatch: Count
    sequence_parallel: bool
    memory_left: "LeftTable | None" = None


class LaunchTable(Loose):
    """Whether a framework can launch a plan: the reason if not, and in what it will differ from the
    plan."""

    refused: str | None
    deviations: list[str]


class SplitTable(AnswerPlanKeys, Loose):
    """A split of the rule of thumb or of experts, and what it takes."""

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
                raise ValueError(f"the lever {name} is not a number")
        return self


class DifferenceTable(Loose):
    """A difference between the user's plan and the best one, and what it is worth."""

    what: str
    given: str
    best: str
    worth_s: Number


class AgainstTable(Loose):
    """The user's plan beside the best one; the plan is a document of its own, checked when it is
    opened."""

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


class BandTable(Loose):
    """How far an estimate of memory may be off."""

    median: NonNegative
    ninetieth: NonNegative
    rows: str | None = None


class LeftTable(Loose):
    """What a plan leaves of a device's memory."""

    left_bytes: Number
    left_share: Number
    headroom: NonNegative
    fits_probability: Annotated[float, Field(ge=0, le=1)] | None = None
    band: BandTable


class ChoicesTable(Loose):
    """How many choices there were, and of how many the placement was solved; older documents said
    how many fit."""

    bounded: Annotated[int, Field(ge=0, validation_alias=AliasChoices("bounded", "tried"))]
    solved: Annotated[int, Field(ge=0, validation_alias=AliasChoices("solved", "fitting"))]
    tensor: list[Count] | None = None
    microbatch: list[Count] | None = None
    context: list[Count] | None = None
    expert: list[Count] | None = None
