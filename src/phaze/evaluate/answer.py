"""Priced plans as the document ``phaze.plan/1``: times, memory, throughput, and how far to trust
them.

tokens a second = batch * sequence / batch time; of a device, over all devices of the job, idle ones
too
MFU and HFU     as :mod:`phaze.evaluate.utilisation` defines them; ``share_of_peak`` is MFU
"""

from dataclasses import asdict, dataclass, replace
from typing import Any

from phaze.cost.network_prices import NetworkPrices
from phaze.evaluate.bands import band_document, layout_of, share_is_assumed, trait_of
from phaze.evaluate.exchanges import exchange_document
from phaze.evaluate.families import family_notes
from phaze.evaluate.flow import block_calls
from phaze.evaluate.headroom import DeviceMemory, memory_left
from phaze.evaluate.idle import idle_document
from phaze.evaluate.imbalance import imbalance_sensitivity
from phaze.evaluate.layers import Setting
from phaze.evaluate.lowered_layer import keeping_of
from phaze.evaluate.offloaded import offload_document
from phaze.evaluate.plan import Candidate, PlanRequest
from phaze.evaluate.plan_order import PlannedChoice
from phaze.evaluate.request import Job
from phaze.evaluate.run_file import RunJob
from phaze.evaluate.training_run import Budget, Pace, training_run
from phaze.evaluate.utilisation import Ran, model_flops, utilisation_of
from phaze.graph.experts import notes_of
from phaze.graph.ir import Model
from phaze.graph.saved.modes import AS_TRACED, Keeping
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import cluster_document
from phaze.hardware.provenance import chip_provenance
from phaze.placement.answer import UNNAMED, document_of, require_true
from phaze.placement.layout import Shape
from phaze.placement.plan import Breakdown, Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.shortage import Shortage
from phaze.units import Batch, TokenBatch

SHOWN = 5
"""Alternatives: what a reader compares at a glance."""
# Of a document, what is said once for all of its plans.
COMMON = (
    "schema",
    "rules",
    "feasible",
    "constants",
    "cluster",
    "approximations",
    "requested_batch_tokens",
)


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """What a plan's document says beside the plan."""

    model: Model
    setting: Setting
    batch: int
    devices: int
    budget: Budget | None = None
    requested: Batch | None = None
    keeping: Keeping = AS_TRACED
    expert_planned: bool = False


def memory_shortage(problem: PlacementProblem, plan: Plan) -> dict[str, Any] | None:
    """What the fullest stage needs beyond the memory there is, by term; None if everything fits."""
    fullest = max(plan.stages, key=lambda stage: stage.memory.total_bytes)
    if problem.fits(fullest.memory.total_bytes):
        return None
    return {
        "stage": plan.stages.index(fullest),
        "needed_bytes": fullest.memory.total_bytes,
        "available_bytes": problem.available_bytes,
        "missing_bytes": fullest.memory.total_bytes - problem.available_bytes,
        "terms": asdict(fullest.memory),
    }


def plan_document(facts: PlanFacts, problem: PlacementProblem, plan: Plan) -> dict[str, Any]:
    """A plan with every figure that follows from it, whether it fits or not. Its checker agrees."""
    model, chip = facts.model, facts.setting.chip
    used, devices = plan.data * sum(stage.devices for stage in plan.stages), facts.devices
    tokens = facts.batch * model.sequence
    document = {**document_of(plan), "feasible": memory_shortage(problem, plan) is None}
    peak = chip.peak_flops_in(facts.setting.precision)
    ran = Ran(plan.tensor, problem.microbatches, tokens, plan.batch_s, devices, peak)
    calls = [call.layer for call in model.calls]
    flops = model_flops(model, facts.keeping)
    reached = utilisation_of(flops, calls, document["stages"], frozenset(block_calls(model)), ran)
    budget, requested, pace = facts.budget, facts.requested, Pace(tokens, plan.batch_s, devices)
    shape = Shape(plan.tensor, len(plan.stages), plan.data, plan.order)
    stated = {
        **document,
        **({"context_way": model.context_way} if model.context > 1 else {}),
        "microbatch": model.microbatch,
        "sequence_parallel": model.sequence_parallel,
        "attention": model.attention,
        "precision": facts.setting.precision,
        "chunks": plan.chunks,
        "zero": problem.zero,
        "devices": devices,
        "devices_used": used,
        **idle_document(shape, plan.sharing, devices, used, (facts.batch, model.microbatch)),
        "batch": facts.batch,
        **(
            {"requested_batch_tokens": requested.tokens}
            if isinstance(requested, TokenBatch)
            else {}
        ),
        "sequence": model.sequence,
        "tokens_per_s": tokens / plan.batch_s,
        "tokens_per_s_per_device": tokens / plan.batch_s / devices,
        "share_of_peak": reached.mfu,
        **reached.document(),
        **({} if budget is None else {"training_run": training_run(budget, pace, chip)}),
        "constants": _constants(facts, plan),
        "cluster": cluster_document(problem.cluster, chip),
        "memory_left": memory_left(
            document["stages"],
            DeviceMemory(chip.hbm.size_bytes, problem.headroom),
            facts.setting.stack.saves,
        ),
        **exchange_document(model, problem, plan, facts.setting),
        **offload_document(model, problem, plan, facts.setting),
        "approximations": [*notes_of(model, facts.expert_planned), *family_notes(plan)],
    }
    require_true(problem, stated, NetworkPrices(facts.setting.cluster, facts.setting.basis))
    return stated


def _constants(facts: PlanFacts, plan: Plan) -> dict[str, Any]:
    """What times rest on and how far they may be off; where its losses are distinguished also the
    clock and what software leaves of the rate held."""
    setting, model = facts.setting, facts.model
    chip, constants = setting.chip, setting.constants
    basis = chip_provenance(chip, setting.basis).basis
    layout = layout_of(model.sequence, model.tensor, len(plan.stages), model.context, model.expert)
    rounds = facts.batch / max(1, plan.data * model.microbatch)
    constants_table = {
        "basis": basis,
        **band_document(
            basis,
            setting.stack.name,
            setting.precision,
            layout,
            trait_of(model.sequence, rounds),
            share_is_assumed(setting.stack, chip.generation),
        ),
    }
    if chip.lumped_share:
        return constants_table
    return {
        **constants_table,
        "clock_hz": constants.clock_hz or chip.clock_hz,
        "software_share": constants.software_share,
    }


def fixed_document(
    job: RunJob, problem: PlacementProblem, plan: Plan, basis: Basis
) -> dict[str, Any]:
    """The document of a given plan: always its time; when it does not fit also the shortage."""
    keeping = keeping_of(job.stack)
    setting = Setting(job.chip, job.cluster, job.stack, basis, precision=job.precision)
    facts = PlanFacts(
        job.model, setting, job.batch, job.devices, job.budget, job.requested, keeping
    )
    document = plan_document(facts, problem, plan)
    shortage = memory_shortage(problem, plan)
    return document if shortage is None else {**document, "shortage": shortage}


def _loss(plan: Plan, best: Breakdown) -> str:
    """The term by which a plan is worst off against the best one."""
    theirs, ours = asdict(plan.breakdown), asdict(best)
    worst = max(theirs, key=lambda name: theirs[name] - ours[name])
    return worst.removesuffix("_s").replace("_", " ")


def _full(facts: PlanFacts, candidate: Candidate) -> dict[str, Any]:
    """The whole plan of a candidate, without what the document says once for all of them."""
    assert candidate.plan is not None
    table = plan_document(replace(facts, model=candidate.model), candidate.problem, candidate.plan)
    return {key: value for key, value in table.items() if key not in COMMON}


def _brief(candidate: Candidate, best: Plan, facts: PlanFacts) -> dict[str, Any]:
    """An alternative in short, with its whole plan; the best one's is the document itself."""
    plan = candidate.plan
    assert plan is not None
    return {
        "tensor": plan.tensor // plan.sharing.context,
        **{name: degree for name, degree in asdict(plan.sharing).items() if degree > 1},
        **({"context_way": candidate.model.context_way} if candidate.model.context > 1 else {}),
        "pipeline": len(plan.stages),
        "data": plan.data,
        "microbatch": candidate.microbatch,
        "chunks": plan.chunks,
        **({"family": plan.family} if plan.family not in UNNAMED else {}),
        "zero": candidate.problem.zero,
        "sequence_parallel": candidate.sequence_parallel,
        "attention": candidate.model.attention,
        "recompute": sorted({stage.recompute for stage in plan.stages}),
        "batch_s": plan.batch_s,
        "slower": plan.batch_s / best.batch_s - 1,
        "loses_by": "" if plan is best else _loss(plan, best.breakdown),
        "plan": None if plan is best else _full(facts, candidate),
    }


def _baseline(candidate: Candidate | None, best: Plan, facts: PlanFacts) -> dict[str, Any] | None:
    """A split that people choose, beside the best one, with its whole plan."""
    if candidate is None or candidate.plan is None:
        return None
    plan = candidate.plan
    split = {"tensor": plan.tensor, "pipeline": len(plan.stages), "data": plan.data}
    slower = plan.batch_s / best.batch_s - 1
    return {**split, "batch_s": plan.batch_s, "slower": slower, "plan": _full(facts, candidate)}


def planned_document(
    request: PlanRequest,
    planned: PlannedChoice,
    thumb: Candidate | None,
    experts: Candidate | None = None,
    job: Job | None = None,
) -> dict[str, Any]:
    """The document of the best plan, with the best of the five best choices and the rule of thumb
    beside it.

    It is proved: ``lower_bound_s`` is of all plans there are.
    """
    best = planned.best
    assert best.plan is not None
    setting = request.setting
    facts = PlanFacts(
        best.model,
        setting,
        request.job.batch,
        request.job.devices,
        None if job is None else job.budget,
        None if job is None else job.batch,
        keeping_of(setting.stack),
        max(request.expert) > 1,
    )
    fitting = [candidate for candidate in planned.candidates if candidate.plan is not None]
    return {
        **plan_document(facts, best.problem, best.plan),
        "proved": True,
        "alternatives": [_brief(candidate, best.plan, facts) for candidate in fitting[:SHOWN]],
        "choices": {"bounded": planned.bounded, "solved": planned.solved, **_searched(request)},
        **_sensitivity(request, planned),
        "rule_of_thumb": _baseline(thumb, best.plan, facts),
        "experts": _baseline(experts, best.plan, facts),
    }


def _searched(request: PlanRequest) -> dict[str, list[int]]:
    """The degrees and microbatches that stood to choice."""
    sets = {"tensor": request.widths, "microbatch": request.microbatches}
    sets |= {"context": request.contexts, "expert": request.expert}
    return {key: sorted(values) for key, values in sets.items()}


def _sensitivity(request: PlanRequest, planned: PlannedChoice) -> dict[str, Any]:
    """What an imbalance of experts would do to the plan, where they are sharded."""
    rows = imbalance_sensitivity(request, planned)
    return {"imbalance_sensitivity": rows} if rows else {}


def shortage_document(shortage: Shortage, setting: Setting) -> dict[str, Any]:
    """The document when nothing fits."""
    where = cluster_document(setting.cluster, setting.chip)
    return {**document_of(shortage), "cluster": where}
