"""A plan's document (``phaze.plan/1``) as the run that it plans: its job, and its degrees.

A run cuts blocks evenly and recomputes alike in all stages: what of a plan is otherwise is taken
so, and said.
"""

from collections.abc import Mapping
from typing import Any

from phaze.documents import check
from phaze.evaluate.job_file import JobTable
from phaze.evaluate.plan_file import require_job_plan

DEGREES = ("tensor", "pipeline", "data", "microbatch")
STATED = (
    "chunks",
    "family",
    "zero",
    "sequence_parallel",
    "context",
    "context_way",
    "expert",
    "expert_tensor",
)


def is_plan(raw: Any) -> bool:
    """Whether parsed values are those of a plan's document."""
    return isinstance(raw, Mapping) and raw.get("schema") == "phaze.plan/1"


def run_of_plan(document: Mapping[str, Any], where: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The run of a plan, and what is taken for granted of it."""
    require_job_plan(document, where)
    job = check(JobTable, document["job"], f"{where}: job")
    named = {"model": job.model, "graph": job.graph}
    if job.family is not None:
        named = {job.family: job.sizes}  # type: ignore[dict-item]
    plan = {key: document[key] for key in DEGREES}
    plan |= {key: document[key] for key in STATED if document.get(key) is not None}
    if plan.get("expert", 1) > 1:
        plan.setdefault("expert_tensor", 1)
    if document.get("shard"):
        plan["shard"] = document["shard"]
    modes = [str(stage["recompute"]) for stage in document["stages"]]
    plan["recompute"] = modes[0]
    assumed = ["blocks cut evenly"] if len(modes) > 1 else []
    if len(set(modes)) > 1:
        assumed.append(f"recompute {modes[0]}, that of its first stage, in all stages")
    run: dict[str, Any] = {"schema": "phaze.run/1", **named}
    run |= {
        key: getattr(job, key)
        for key in ("chip", "cluster", "stack", "devices", "batch", "precision")
    }
    run |= {
        "sequence": job.sequence,
        "optimizer": job.optimizer,
        "attention": job.attention,
        "plan": plan,
    }
    run |= {"imbalance": job.rows} if job.rows > 1 else {}
    return {key: value for key, value in run.items() if value is not None}, tuple(assumed)
