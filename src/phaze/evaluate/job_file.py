"""The job that a plan answers, as the key ``job`` of ``phaze.plan/1``: what was asked, so that it
can be asked again.

A plan's document then suffices to make its page, its launch flags and its trace: :func:`reopened`
gives the traced rank and the setting that its times came from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from phaze.documents import Count, check
from phaze.errors import InputError
from phaze.evaluate.layers import Setting
from phaze.evaluate.memo import Memo
from phaze.evaluate.parallel_rank import MOST_ROWS, Parallel, parallel_rank, supply_at
from phaze.evaluate.plan import Candidate, PlanRequest, RankAt
from phaze.evaluate.plan_file import require_job_plan
from phaze.evaluate.recomputing import parts_of
from phaze.evaluate.request import Job
from phaze.evaluate.restrictions import RestrictedTable, restrictions_of
from phaze.evaluate.run_file import Reference, RunJob
from phaze.evaluate.run_tables import Size
from phaze.evaluate.stated_overlap import OverlapKeys
from phaze.graph.ir import Model
from phaze.graph.split_context import way_named
from phaze.graph.store import load as load_graph
from phaze.graph.supply.module import ModuleSupply
from phaze.graph.supply.point import RankPoint
from phaze.graph.supply.supply import GraphFamily, Supply, supply_of
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import grown
from phaze.hardware.formats import Precision
from phaze.hardware.library import load_built_stack, load_chip, load_cluster
from phaze.hardware.stack import Optimizer, require_priced
from phaze.options.keys import AnswerJobKeys
from phaze.values import replace

# Degrees of a plan that it states where they are more than 1.
SHARED = ("context", "expert", "expert_tensor")


class JobTable(AnswerJobKeys, OverlapKeys):
    """What was asked: exactly one of ``model``, ``family`` with ``sizes``, ``graph``."""

    model: Reference | None = None
    family: Literal["gpt", "llama", "moe"] | None = None
    sizes: dict[str, Any] | None = None
    graph: Reference | None = None
    sequence: Size | None = None
    chip: Reference
    cluster: Reference
    stack: Reference
    devices: Count
    batch: Count
    precision: Precision
    optimizer: Optimizer
    basis: Basis = "calibrated"
    rows: Annotated[float, Field(ge=1, le=MOST_ROWS)] = 1.0
    restricted: RestrictedTable | None = None

    @model_validator(mode="after")
    def _sized(self) -> "JobTable":
        if (self.family is None) != (self.sizes is None):
            raise ValueError("family and sizes must be given together")
        length = None if self.sizes is None else self.sizes.get("sequence")
        if self.sizes is not None and (type(length) is not int or length < 1):
            raise ValueError(f"sizes.sequence is {length!r}; give a whole number from 1")
        return self


@dataclass(frozen=True, slots=True)
class Reopened:
    """A plan's job with everything that its names lead to, at the plan's width and microbatch."""

    job: JobTable
    model: Model
    setting: Setting


def planned_job(job: Job, request: PlanRequest, best: Candidate) -> dict[str, Any]:
    """The job of a request, as plain values, with the stage of ZeRO and the attention of its best
    plan, and what was requested of the plans that were searched."""
    restricted = restrictions_of(job)
    named: dict[str, Any] = (
        {"model": job.model}
        if job.sizes is None
        else {"family": job.model, "sizes": dict(job.sizes)}
    )
    if isinstance(job.supply, ModuleSupply):
        named = {"graph": job.supply.file(best.model)}
    return {
        **named,
        "sequence": job.sequence,
        "chip": job.chip,
        "cluster": job.cluster or request.setting.chip.cluster,
        "stack": job.stack or request.setting.stack.name,
        "devices": request.job.devices,
        "batch": request.job.batch,
        "precision": request.setting.precision,
        "optimizer": request.job.optimizer,
        "zero": best.problem.zero,
        "attention": best.model.attention,
        "basis": job.basis,
        **({"rows": job.rows} if job.rows > 1 else {}),
        **({} if job.expert_overlap is None else {"expert_overlap": job.expert_overlap}),
        **({"restricted": restricted} if restricted else {}),
    }


def run_job(raw: Mapping[str, Any], job: RunJob, basis: Basis) -> dict[str, Any]:
    """The job of a run (``phaze.run/1``), as plain values."""
    family = next((name for name in ("gpt", "llama", "moe") if name in raw), None)
    named = (
        {"family": family, "sizes": raw[family]}
        if family
        else {k: raw[k] for k in ("model", "graph") if k in raw}
    )
    return {
        **named,
        "sequence": raw.get("sequence"),
        "chip": raw["chip"],
        "cluster": raw["cluster"],
        "stack": raw.get("stack") or job.stack.name,
        "devices": job.devices,
        "batch": job.batch,
        "precision": job.precision,
        "optimizer": job.optimizer,
        "zero": job.plan.zero,
        "attention": job.model.attention,
        "basis": basis,
        **({"rows": job.rows} if job.rows > 1 else {}),
        **job.plan.said,
    }


def _supply(job: JobTable) -> Supply:
    """The model of a job: a family by its sizes, or a name."""
    if job.family is not None and job.sizes is not None:
        return GraphFamily(job.family, job.sizes)
    return supply_of(str(job.model), traced_before=True)


def reopened(
    document: Mapping[str, Any], where: str, memo: Memo | None = None, rank_at: RankAt | None = None
) -> Reopened:
    """The job of a plan's document (``phaze.plan/1``); ``memo`` keeps what the names of several
    lead to, ``rank_at`` gives ranks of the model that it names where they are at hand."""
    memo = Memo() if memo is None else memo
    needed = ("job", "stages", "breakdown", "batch_s", "tensor", "data", "pipeline", "microbatch")
    lacking = [key for key in needed if key not in document]
    if lacking:
        raise InputError(
            where, f"the key '{lacking[0]}' is missing", "give what phaze plan ... --json prints"
        )
    require_job_plan(document, where)
    job = check(JobTable, document["job"], f"{where}: job")
    shared = {key: document[key] for key in SHARED if key in document}
    if shared.get("expert", 1) > 1:  # a degree of 1 is not written
        shared = {"expert_tensor": 1, **shared}
    rows = job.rows if shared.get("expert", 1) > 1 else 1.0
    way = way_named(str(document.get("context_way", "ring")))
    parallel = Parallel(document["tensor"], **shared, way=way, rows=rows)
    spread, microbatch = bool(document.get("sequence_parallel", False)), document["microbatch"]
    if rank_at is not None and job.graph is None:
        model = rank_at((document["tensor"], microbatch, spread, job.attention), parallel)
    elif job.model is not None or job.family is not None:
        supply = _supply(job)
        length = supply.facts.length(job.sequence)
        load = supply_at(supply, RankPoint(document["tensor"], microbatch, length, job.attention))
        model = parallel_rank(load, parallel, length, spread)
    elif job.graph is not None:
        model = load_graph(job.graph)
    else:
        raise InputError(
            f"{where}: job", "it names no model", "give model, family and sizes, or graph"
        )
    chip = memo.take(("chip", job.chip), lambda: load_chip(job.chip))
    named_cluster = memo.take(
        ("cluster", job.cluster, job.chip), lambda: load_cluster(job.cluster, chip=chip)
    )
    cluster = grown(named_cluster, job.devices, f"{where}: job.devices")
    stack = memo.take(("stack", job.stack), lambda: load_built_stack(job.stack))
    stack = job.stated(stack)
    precision = require_priced(job.precision, stack, chip, f"{where}: job.precision")
    # The modes of its stages, which may be others than those that the stack offers to choose from.
    named = tuple(
        sorted({mode for stage in document["stages"] if parts_of(mode := str(stage["recompute"]))})
    )
    stack = replace(stack, recompute_named=named) if named else stack
    return Reopened(job, model, Setting(chip, cluster, stack, job.basis, precision=precision))
