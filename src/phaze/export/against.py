"""A plan that runs today against the best one: what differs, what each difference is worth, and the
flags to change.

Differences are taken one after another, in the order of :data:`PARTS`, from the given plan to the
best one; a step that cannot stand alone (chunks without a pipeline) is taken together with the
next. Step k is worth s(k-1) - s(k), s(k) being the batch time with the first k differences in
place, so that all of them sum to the whole gain:

    given = s(0),   s(n) = best,   sum over k of (s(k-1) - s(k)) = given - best

``alone_s`` is the batch time of the given plan with that one difference and no other. The last
step, *stages*, is whatever a run cannot state: cuts, recompute stage by stage, the order of stages
and replicas.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.answer import fixed_document
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.job_file import reopened, run_job
from phaze.evaluate.memo import Memo
from phaze.evaluate.run_file import job_of
from phaze.export.flag import Framework, Line, lines
from phaze.export.frameworks import BY_KEY
from phaze.export.launch_run import Launched
from phaze.export.source import planned_split
from phaze.hardware.calibration import Basis

# Parts of a plan in the order in which they are changed, with the keys of a run's plan that belong
# to each.
PARTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("attention", ("attention",)),
    ("split", ("tensor", "context", "context_way", "pipeline", "data")),
    ("sequence parallelism", ("sequence_parallel",)),
    ("microbatch", ("microbatch",)),
    ("experts", ("expert", "expert_tensor")),
    ("chunks", ("chunks", "family")),
    ("ZeRO stage", ("zero", "shard")),
    ("recompute", ("recompute",)),
)
SHARED = ("tensor", "pipeline", "data", "microbatch", "chunks", "zero", "sequence_parallel")


def given_document(launched: Launched, basis: Basis, memo: Memo | None = None) -> dict[str, Any]:
    """The plan of a launch file, priced (``phaze.plan/1``), fitting or not."""
    job = job_of(launched.run, launched.where, memo, launched.allow_code)
    problem, plan = fixed_plan(job, basis, memo)
    document = fixed_document(job, problem, plan, basis)
    return {**document, "job": run_job(launched.run, job, basis)}


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """One difference: its words on both sides, the batch time with it alone, what it is worth on
    the way, and whether the plan with it and all before it fits."""

    what: str
    given: str
    best: str
    alone_s: float | None
    alone_fits: bool | None
    worth_s: float
    fits: bool

    def document(self) -> dict[str, Any]:
        """As plain values."""
        return {
            "what": self.what,
            "given": self.given,
            "best": self.best,
            "alone_s": self.alone_s,
            "alone_fits": self.alone_fits,
            "worth_s": self.worth_s,
            "fits": self.fits,
        }


def _values(document: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a plan's document; recompute is that of all its stages, or ``by stage``."""
    modes = sorted({str(stage["recompute"]) for stage in document["stages"]})
    recompute = modes[0] if len(modes) == 1 else "by stage"
    values = {
        "recompute": recompute,
        "attention": document["attention"],
        "family": document.get("family"),
    }
    context, expert = int(document.get("context", 1)), int(document.get("expert", 1))
    values |= {
        "context": context,
        "context_way": document.get("context_way", "ring") if context > 1 else "ring",
    }
    values |= {
        "expert": expert,
        "expert_tensor": document.get("expert_tensor", 1) if expert > 1 else None,
    }
    return (
        {key: document[key] for key in SHARED} | values | {"shard": document.get("shard") or None}
    )


def _words(part: str, values: Mapping[str, Any]) -> str:
    if part == "split":
        context = (
            f"context {values['context']} ({values['context_way']}), "
            if values["context"] > 1
            else ""
        )
        return (
            f"tensor {values['tensor']}, {context}pipeline {values['pipeline']}, data "
            f"{values['data']}"
        )
    if part == "experts" and values["expert"] > 1:
        return f"expert parallel {values['expert']}, expert tensor {values['expert_tensor']}"
    if part == "ZeRO stage" and values["shard"]:
        return f"{values['zero']}, sharded over {values['shard']} ranks"
    if part == "chunks" and values["family"]:
        return f"{values['chunks']}, {values['family']}"
    key = next(keys for name, keys in PARTS if name == part)[0]
    value = values[key]
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _priced(
    launched: Launched, changes: Mapping[str, Any], basis: Basis, memo: Memo
) -> tuple[float, bool] | None:
    """Batch time of the given run with some parts changed and whether it fits; None if there is no
    such run."""
    plan = {
        **launched.run["plan"],
        **{key: value for key, value in changes.items() if key != "attention"},
    }
    if changes:
        plan.pop("blocks", None)
    if plan.get("recompute") == "by stage":
        return None
    run = {**launched.run, "plan": plan} | {
        key: value for key, value in changes.items() if key == "attention"
    }
    try:
        document = given_document(replace(launched, run=run), basis, memo)
    except InputError:
        return None
    return float(document["batch_s"]), bool(document["feasible"])


def steps_between(
    launched: Launched, launched_plan: Mapping[str, Any], best: Mapping[str, Any], basis: Basis
) -> list[PlanDifference]:
    """The differences in order, with what each is worth."""
    memo, mine, theirs = Memo(), _values(launched_plan), _values(best)
    steps, now_s, waiting = [], float(launched_plan["batch_s"]), list[str]()
    changes: dict[str, Any] = {}
    for part, keys in PARTS:
        if all(mine[key] == theirs[key] for key in keys):
            continue
        changed = {key: theirs[key] for key in keys}
        changes |= changed
        waiting.append(part)
        priced = _priced(launched, changes, basis, memo)
        if priced is None:
            continue
        alone = _priced(launched, changed, basis, memo)
        steps.append(_step(waiting, mine, theirs, alone, (now_s - priced[0], priced[1])))
        now_s, waiting = priced[0], []
    left_s = now_s - float(best["batch_s"])
    if waiting or abs(left_s) > 1e-12 * now_s:
        steps.append(_step([*waiting, "stages"], mine, theirs, None, (left_s, True)))
    return steps


def _step(
    parts: list[str],
    mine: Mapping[str, Any],
    theirs: Mapping[str, Any],
    alone: tuple[float, bool] | None,
    worth: tuple[float, bool],
) -> PlanDifference:
    def words(values: Mapping[str, Any], stages: str) -> str:
        return ", ".join(stages if part == "stages" else _words(part, values) for part in parts)

    fits = None if alone is None else alone[1]
    sides = words(mine, "as given"), words(theirs, "cuts and recompute of each stage, order")
    return PlanDifference(
        ", ".join(parts), *sides, None if alone is None else alone[0], fits, *worth
    )


def _lines(document: Mapping[str, Any], framework: Framework) -> dict[str, Line]:
    split = planned_split(document, reopened(document, "plan"))
    return {line.name: line for line in lines(framework, split)}


def flag_changes(
    launched_plan: Mapping[str, Any], best: Mapping[str, Any], framework: str
) -> dict[str, Any]:
    """Flags that the best plan has otherwise, by name; or why the framework cannot launch one of
    them.

    ``launched_plan`` or ``best`` is None where that side has no such flag, an empty text where it
    is a switch.
    """
    launching = BY_KEY["megatron" if framework == "run" else framework]
    sides = []
    for side, document in (("given", launched_plan), ("best", best)):
        try:
            sides.append(_lines(document, launching))
        except InputError as fault:
            return {
                "framework": launching.key,
                "refused": side,
                "reason": str(fault),
                "changes": [],
            }
    mine, theirs = sides
    rows = []
    for name in {**mine, **theirs}:
        before, after = (
            launching.form(side[name].value) if name in side else None for side in sides
        )
        if before != after:
            why = (theirs.get(name) or mine[name]).reason
            rows.append({"name": name, "given": before, "best": after, "why": why})
    return {"framework": launching.key, "refused": None, "reason": None, "changes": rows}


def against_document(launched: Launched, best: Mapping[str, Any], basis: Basis) -> dict[str, Any]:
    """The key ``against`` of a plan's document: the given plan beside the best one."""
    launched_plan = given_document(launched, basis)
    return {
        "source": launched.where,
        "framework": launched.framework,
        "plan": launched_plan,
        "gain": float(launched_plan["batch_s"]) / float(best["batch_s"]) - 1,
        "differences": [
            step.document() for step in steps_between(launched, launched_plan, best, basis)
        ],
        "flags": flag_changes(launched_plan, best, launched.framework),
        "not_read": list(launched.not_read),
        "assumed": list(launched.assumed),
    }
