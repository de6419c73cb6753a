"""``phaze.result/1`` as it is read back from a run's folder, whole and of the right kinds, or
refused."""

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import Count, NonNegative, Positive, check, parse, read_answer
from phaze.errors import InputError
from phaze.evaluate.plan_tables import AGREEMENT, FiguresTable, LeftTable, Loose, Number, PlanTable
from phaze.files import read_text
from phaze.hardware.formats import Precision
from phaze.options.keys import AnswerPlanKeys
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import LEAST, MOST
from phaze.search.finished import CERTIFICATE, unlike_certificate
from phaze.search.folder import RESULT
from phaze.search.result import SCHEMA
from phaze.search.task import SearchJob

MOST_NUMBER = 2**62
"""A chip's number in its space is one of 64 bits."""


class ClustersTable(Loose):
    """What a chip of clusters has beside."""

    count: Count
    arrays: Count
    operand_bytes: Number
    register_bytes: Number
    port_bytes_per_cycle: Number
    global_bytes_per_cycle: Number
    hbm_stacks: Number
    built: Count
    die_mm2: Positive
    clock_hz: Positive
    sustained_w: Positive | None


class EndTable(Loose):
    """An axis at whose end the chip stands."""

    axis: str
    end: str


class ChipTable(Loose):
    """The chip that was found."""

    number: Annotated[int, Field(ge=0, le=MOST_NUMBER)]
    name: str
    tensor_cores: Count
    rows: Count
    columns: Count
    vector_cores: Count
    lanes: Count
    global_buffer_bytes: Count
    hbm_bytes: Count
    hbm_bytes_per_s: Positive
    link_bytes_per_s: NonNegative
    clock_hz: Positive
    area_mm2: Positive
    design_power_w: Number
    making_usd: Number
    making_kgco2e: Number
    peak_flops: Number
    clusters: ClustersTable | None = None


class AnswerModelTable(AnswerPlanKeys, FiguresTable):
    """One model on it."""

    name: str
    weight: Positive
    microbatch: Count
    expert_tensor: Count = 1
    recompute: str
    batch_s: Positive
    throughput_per_s: Positive
    energy_j: NonNegative
    power_w: NonNegative
    memory_left: LeftTable
    plan: PlanTable
    notes: Annotated[list[str], Field(default_factory=list)]
    exchange_s: NonNegative = 0.0
    exchange_hidden_s: NonNegative = 0.0
    expert_nodes: Count = 1

    @model_validator(mode="after")
    def _rates(self) -> "AnswerModelTable":
        self.require_rates(self.batch_s)
        rate = self.batch / self.batch_s
        if abs(self.batch_s - self.plan.batch_s) > AGREEMENT * self.batch_s:
            raise ValueError(
                f"let batch_s, {self.batch_s:.9g}, be that of its plan, {self.plan.batch_s:.9g}"
            )
        if abs(self.throughput_per_s - rate) > AGREEMENT * rate:
            raise ValueError(
                f"let throughput_per_s, {self.throughput_per_s:.9g}, be batch over "
                f"batch_s, {rate:.9g}"
            )
        return self

    @model_validator(mode="after")
    def _exchanged(self) -> "AnswerModelTable":
        if ("exchange_s" in self.model_fields_set) != (self.expert > 1):
            raise ValueError("exchange_s is given only with expert parallelism")
        if "exchange_s" in self.model_fields_set and "expert_nodes" not in self.model_fields_set:
            raise ValueError("give expert_nodes with exchange_s")
        if self.exchange_hidden_s > self.exchange_s * (1 + 1e-9) or self.exchange_s > self.batch_s:
            raise ValueError("exchange_hidden_s is a part of exchange_s, and that of batch_s")
        return self


class AnswerObjectiveTable(Loose):
    """What was minimised."""

    kind: str
    score: Annotated[float, Field(ge=LEAST, le=MOST)]


class NearChipsTable(Loose):
    """How many chips are as good as the answer."""

    within: Number
    at_least: Count
    at_most: Count


class CertificateTable(Loose):
    """What is proved."""

    gap: Number
    asked_gap: Number
    lower_bound: Number
    closed: dict[str, Annotated[int, Field(ge=0)]]
    chips: Count
    near: NearChipsTable


class ConstantsTable(Loose):
    """What times rest on."""

    basis: str
    of: str
    band: Number
    software_share: Positive | None = None

    @model_validator(mode="after")
    def _left(self) -> "ConstantsTable":
        if self.basis == "held" and self.software_share is None:
            raise ValueError("the basis is held and software_share is missing")
        return self


class SettingTable(Loose):
    """Under what it was found."""

    rules: str
    devices: Count
    levels: Count
    links: str
    link_bytes_per_s: Positive
    process: str
    optimizer: str
    stack: str = ""
    precision: Precision = "bf16"
    constants: ConstantsTable


class FigureTable(Loose):
    """A figure of the chip beside that of the shipped chip that has most."""

    value: Number
    shipped: Number
    shipped_chip: str
    shipped_is_lower_bound: bool
    ratio: Number


class PlausibilityTable(Loose):
    """The chip beside shipped ones."""

    process: str
    beside_process: str
    note: str
    reason: str
    peak_flops_per_mm2: FigureTable
    peak_flops_per_w: FigureTable | None = None
    design_w_per_mm2: FigureTable
    clock_hz: FigureTable
    hbm_bytes_per_s: FigureTable
    warnings: list[str]


class ResultFile(Loose):
    """The whole answer."""

    schema_: Annotated[Literal["phaze.result/1"], Field(alias="schema")]
    name: str
    chip: ChipTable
    models: Annotated[list[AnswerModelTable], Field(min_length=1)]
    objective: AnswerObjectiveTable
    setting: SettingTable
    cluster: dict[str, Any] | None = None
    plausibility: PlausibilityTable
    at_ends: Annotated[list[EndTable], Field(default_factory=list)]
    provisional: Literal[True] | None = None
    certificate: CertificateTable
    study_digest: str
    code_digest: str
    version: str


def read_result(folder: Path) -> dict[str, Any]:
    """The answer of a finished run, or an InputError."""
    raw, _, where = read_answer(str(folder / RESULT))
    if raw.get("schema") != SCHEMA:
        raise InputError(where, f"this is no {SCHEMA}", "give the folder of a run that has ended")
    check(ResultFile, raw, where)
    _require_certified(raw, folder, where)
    return raw


def _require_certified(result: dict[str, Any], folder: Path, where: str) -> None:
    """Refuse an answer that is not the one its folder's certificate proves."""
    if not (folder / CERTIFICATE).is_file():
        return
    text, other = read_text(str(folder / CERTIFICATE))
    try:
        unlike = unlike_certificate(result, parse(text, "json", other))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise InputError(other, "it cannot be read as a certificate", "search again") from None
    if unlike is not None:
        raise InputError(
            f"{where}: {unlike}", f"it is not what {CERTIFICATE} proves", "search again"
        )


def require_of_job(result: dict[str, Any], job: SearchJob, chips: SpaceChips, where: str) -> None:
    """Refuse an answer that is not of this job: other models, other layers, a chip outside the
    space."""
    named, wanted = (
        [model["name"] for model in result["models"]],
        [task.name for task in job.models],
    )
    if named != wanted:
        raise InputError(where, f"it has the models {named} and its study {wanted}", "search again")
    if chips.index_of(result["chip"]["number"]) is None or result["certificate"]["chips"] < len(
        chips
    ):
        raise InputError(
            where, f"its chip is none of the {chips.total:,} of its space", "search again"
        )
    for task, model in zip(job.models, result["models"], strict=True):
        layers, calls = (
            sum(len(stage["layers"]) for stage in model["plan"]["stages"]),
            len(task.graphs[0].calls),
        )
        if layers != calls:
            raise InputError(
                where, f"{task.name} has {calls} layers and its plan {layers}", "search again"
            )
