"""Pipeline families by name: what a person allows of those that a stack runs, and the one of a
given plan.

A plan that names no family runs 1F1B, with chunks interleaved 1F1B, and GPipe under a stack that
runs no 1F1B. zb-v and dualpipe-v have two chunks a stage, whether or not they are stated.
"""

from collections.abc import Sequence

from phaze.errors import InputError, unknown_name
from phaze.hardware.stack import Stack
from phaze.pipeline.families import FAMILIES
from phaze.pipeline.names import NAMES, PipelineFamily
from phaze.placement.plan import Plan
from phaze.values import replace

BEST = "best"
# Families that no number of chunks tells apart: a stack that a plan names them for must run them.
NAMED = tuple(name for name in NAMES if not FAMILIES[name].implied)


def stack_with_families(stack: Stack, names: Sequence[str] | None, where: str) -> Stack:
    """The stack with the families that are allowed, all that it runs if none are named; an
    InputError for others."""
    if names is None or BEST in names:
        return stack
    for name in names:
        if name not in FAMILIES:
            raise unknown_name(where, "pipeline family", name, (*NAMES, BEST))
        _require_run(stack, name, where)
    return replace(stack, families=tuple(name for name in NAMES if name in names))


def _require_run(stack: Stack, name: str, where: str) -> None:
    if stack.pipeline != "1f1b" or name not in stack.families:
        families = ", ".join(stack.families) if stack.pipeline == "1f1b" else stack.pipeline
        others = (
            "torchtitan-eager"
            if FAMILIES[name].split and FAMILIES[name].torch_schedule
            else "another stack"
        )
        raise InputError(
            where,
            f"the stack {stack.name} does not run {name}",
            f"its families: {families}; or name {others}",
        )


def family_of(stack: Stack, name: PipelineFamily | None, chunks: int) -> PipelineFamily | None:
    """The family that a given plan states; where it states none, GPipe of a stack that runs no
    1F1B."""
    unsaid = (
        name is None and chunks == 1 and stack.pipeline == "1f1b" and "1f1b" not in stack.families
    )
    return "gpipe" if unsaid and "gpipe" in stack.families else name


def stack_running(stack: Stack, name: PipelineFamily | None, where: str) -> Stack:
    """The stack for a given plan, which may have chunks whatever is sought; an InputError where it
    lacks the family."""
    if name not in NAMED:
        return replace(stack, families=("1f1b", "interleaved"))
    _require_run(stack, name, where)
    return replace(stack, families=(name,))


def family_notes(plan: Plan) -> list[str]:
    """What an answer must say of a plan's family beside its numbers."""
    note = FAMILIES[plan.family].note if plan.family in FAMILIES else ""
    return [f"{plan.family}: {note}"] if note and len(plan.stages) > 1 else []
