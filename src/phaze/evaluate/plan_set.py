"""All plans of one document ``phaze.plan/1``: the best, its alternatives, the user's own, rule of
thumb, experts'.

Each is a document of its own: what holds for all plans (job, cluster, constants) is taken from the
one they stand in, with the stage of ZeRO and the attention of the plan.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What is said of the best plan alone. What a plan states only where it is more than usual: another
# plan of the document need not have it.
WHERE_ABOVE_ONE = (
    "context", "context_way", "expert", "expert_tensor", "shard", "family",
    "exchange_s", "exchange_hidden_s", "expert_nodes", "imbalance_sensitivity",
)  # fmt: skip
OF_THE_BEST = (
    "alternatives",
    "rule_of_thumb",
    "experts",
    "choices",
    "proved",
    "launch",
    "what_if",
    "against",
)
CHOSEN = "tensor, context and expert degree, microbatch and sequence parallelism"
USUAL = (("thumb", "rule_of_thumb", "Rule of thumb"), ("experts", "experts", "Experts' split"))


@dataclass(frozen=True, slots=True)
class NamedPlan:
    """A plan of a document: a short key, a name to show, where its row stands, and the plan as a
    document."""

    key: str
    name: str
    row: Mapping[str, Any]
    document: Mapping[str, Any]


def choices_text(document: Mapping[str, Any]) -> str:
    """Which choices there were, how many, and what was done with them, in words; documents of older
    releases say how many fit."""
    counted = document.get("choices") or {}
    if "tried" in counted:
        return f"{counted['tried']:,} choices of {CHOSEN}, {counted['fitting']:,} fit"
    bounded, solved = counted.get("bounded", 0), counted.get("solved", 0)
    names = {"tensor": "TP", "context": "CP", "expert": "EP", "microbatch": "microbatch"}
    sets = [
        f"{name} {', '.join(map(str, counted[key]))}"
        for key, name in names.items()
        if counted.get(key)
    ]
    searched = f" ({'; '.join(sets)})" if sets else ""
    return f"choices of {CHOSEN}{searched}: {bounded:,} bounded, {solved:,} placements solved"


def plan_document(document: Mapping[str, Any], plan: Mapping[str, Any]) -> dict[str, Any]:
    """A plan that stands in a document, as a document of its own."""
    common = {
        key: value
        for key, value in document.items()
        if key not in OF_THE_BEST and key not in WHERE_ABOVE_ONE
    }
    if "shortage" not in plan:
        common.pop("shortage", None)
    job = {**document["job"], "zero": plan["zero"], "attention": plan["attention"]}
    return {**common, **plan, "job": job}


def _traced(document: Mapping[str, Any], plan: Mapping[str, Any] | None) -> bool:
    """Whether a plan is there, with the trace it rests on: a graph that was given holds a single
    one."""
    point = ("tensor", "microbatch", "sequence_parallel", "attention")
    single = bool(document["job"].get("graph"))
    return bool(plan) and not (single and any(plan[key] != document.get(key) for key in point))  # type: ignore[index]


def plans_in(document: Mapping[str, Any]) -> list[NamedPlan]:
    """The plan itself first, then every other one that is there in full."""
    first = "Best plan" if document.get("proved") is True else "This plan"
    plans = [NamedPlan("best", first, document, document)]
    others = [
        row for row in document.get("alternatives") or () if _traced(document, row.get("plan"))
    ]
    plans += [
        NamedPlan(f"a{index}", f"Alternative {index}", row, plan_document(document, row["plan"]))
        for index, row in enumerate(others, 2)
    ]
    against = document.get("against")
    if isinstance(against, Mapping) and isinstance(against.get("plan"), Mapping):
        plans.append(NamedPlan("against", "Your plan", against, against["plan"]))
    for key, place, name in USUAL:
        row = document.get(place)
        if row and _traced(document, row.get("plan")):
            plans.append(NamedPlan(key, name, row, plan_document(document, row["plan"])))
    return plans
