"""A source with its tensor-parallel plan: its own, one from a file, or inferred; the latter two
proved on two ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from phaze.errors import InputError
from phaze.graph.refusals import REFUSED
from phaze.graph.supply.point import Facts
from phaze.graph.tensor_plan import INFERRED, plan_document, plan_of, read_plan
from phaze.graph.torch.infer import fault_of, infer_plan
from phaze.graph.torch.plans import ShardingPlan
from phaze.graph.torch.program import Source

OWN = "its own"
NONE = "none"
# What the reason that tokens are not split stands under, among modules.
SEQUENCE = "the sequence"
# Modules that an answer names; more are counted.
MOST_SAID = 3


def _unsplit(source: Source, why: str) -> Source:
    fault = InputError(
        source.name, f"it cannot be split over ranks: {why}", "use tensor 1, or give a plan"
    )
    note = f"{REFUSED}, and nothing above TP 1 was planned: {why}"
    return replace(source, plan_fault=fault, notes=(note, *source.notes))


def _split(source: Source, plan: ShardingPlan, whole: Sequence[tuple[str, str]]) -> Source:
    """The source with a plan, and said of it which of its modules every rank holds whole, where
    some are."""
    unsplit = [f"{module} ({why})" for module, why in whole if module != SEQUENCE]
    more = f" and {len(unsplit) - MOST_SAID} more" if len(unsplit) > MOST_SAID else ""
    note = (
        (f"{REFUSED} for {'; '.join(unsplit[:MOST_SAID])}{more}, which every rank holds whole",)
        if unsplit
        else ()
    )
    return replace(source, plan=plan, plan_fault=None, notes=(*note, *source.notes))


def with_known_plan(source: Source, facts: Facts) -> Source:
    """The source with the plan that was found for it before."""
    if facts.plan is not None:
        whole = [(str(row["module"]), str(row["why"])) for row in facts.plan.get("whole", ())]
        return _split(source, plan_of(facts.plan, "a known plan"), whole)
    return (
        _unsplit(source, facts.basis.removeprefix(f"{NONE}: "))
        if facts.basis.startswith(NONE)
        else source
    )


def planned(source: Source, file: str | None) -> tuple[Source, str, Mapping[str, Any] | None]:
    """The source with a plan, what that plan rests on, and the plan as a document unless it is the
    source's own.

    A model of which nothing can be split runs at width 1, and says why.
    """
    if file is not None:
        plan = read_plan(file)
        fault, unsharded = fault_of(source, plan)
        if fault:
            raise InputError(
                file,
                f"two ranks do not train like one: {fault}",
                "change the plan, or leave it out",
            )
        plan = replace(plan, shards=plan.shards and not unsharded)
        basis = f"{file}, proved on two ranks"
        return (
            replace(source, plan=plan, plan_fault=None),
            basis,
            plan_document(source.name, basis, plan, ()),
        )
    if source.plan is not None:
        return source, OWN, None
    inferred = infer_plan(source)
    if inferred.plan is None:
        why = "; ".join(f"{module}: {reason}" for module, reason in inferred.whole)
        return _unsplit(source, why), f"{NONE}: {why}", None
    whole = [*inferred.whole, *([(SEQUENCE, inferred.unsharded)] if inferred.unsharded else [])]
    document = plan_document(source.name, INFERRED, inferred.plan, whole)
    return _split(source, inferred.plan, whole), INFERRED, document
