"""A priced plan of a job as the document ``phaze.plan/1``: times, memory, throughput, and how far to trust them.

tokens a second = batch * sequence / batch time
share of peak   = FLOP of the model (no recomputing counted) / (batch time * devices in use * peak)
"""

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any

from phaze.evaluate.run_file import Job
from phaze.graph.ir import Model
from phaze.graph.opset import flops
from phaze.hardware.calibration import Basis, constants_of
from phaze.placement.cluster_problem import ClusterProblem
from phaze.placement.problem import Plan, Stage

BANDS: Mapping[str, float] = MappingProxyType({"calibrated": 0.10, "datasheet": 0.20, "ideal": 0.0})


def model_flops(model: Model) -> float:
    """FLOP of the matrix products of both passes, of one microbatch on one rank."""
    per_layer = [
        sum(flops(operator) for graph in (layer.forward, layer.backward) for operator in graph.operators)
        for layer in model.layers
    ]
    return float(sum(per_layer[call.layer] for call in model.calls))


def stage_document(stage: Stage) -> dict[str, Any]:
    """One stage."""
    return {
        "layers": list(stage.layers),
        "devices": stage.devices,
        "recompute": stage.recompute,
        "time_s": stage.time_s,
        "memory_bytes": stage.memory.total_bytes,
        "forward_s": stage.forward_s,
        "backward_s": stage.backward_s,
        "memory": asdict(stage.memory),
    }


def memory_shortage(problem: ClusterProblem, plan: Plan) -> dict[str, Any] | None:
    """What the fullest stage needs beyond the memory there is, by term; None if everything fits."""
    fullest = max(plan.stages, key=lambda stage: stage.memory.total_bytes)
    if problem.fits(fullest.memory.total_bytes):
        return None
    return {
        "stage": plan.stages.index(fullest),
        "needed_bytes": fullest.memory.total_bytes,
        "available_bytes": problem.hbm_bytes,
        "missing_bytes": fullest.memory.total_bytes - problem.hbm_bytes,
        "terms": asdict(fullest.memory),
    }


def plan_document(job: Job, problem: ClusterProblem, plan: Plan, basis: Basis) -> dict[str, Any]:
    """The document of a fixed plan."""
    shortage = memory_shortage(problem, plan)
    used = plan.tensor * len(plan.stages) * plan.data
    work = model_flops(job.model) * plan.tensor * problem.microbatches
    trusted = constants_of(job.chip.calibration, basis, "training").basis
    document: dict[str, Any] = {
        "schema": "phaze.plan/1",
        "rules": "cluster",
        "feasible": shortage is None,
        "batch_s": plan.batch_s,
        "lower_bound_s": plan.lower_bound_s,
        "simulated_s": plan.simulated_s,
        "pipeline": len(plan.stages),
        "data": plan.data,
        "tensor": plan.tensor,
        "chunks": job.plan.chunks,
        "microbatch": job.plan.microbatch,
        "devices_used": used,
        "tokens_per_s": job.batch * job.model.sequence / plan.batch_s,
        "share_of_peak": work / (plan.batch_s * used * job.chip.peak_flops),
        "constants": {"basis": trusted, "band": BANDS[trusted]},
        "evaluated": ["chunks"] if job.plan.chunks > 1 else [],
        "approximations": list(job.model.approximations),
        "stages": [stage_document(stage) for stage in plan.stages],
        "breakdown": asdict(plan.breakdown),
    }
    return document if shortage is None else {**document, "shortage": shortage}
