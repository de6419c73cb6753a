"""Pipeline families by name: what a person allows of those that a stack runs, and the one of a given plan.

A plan that names no family runs 1F1B, with chunks interleaved 1F1B, and GPipe under a stack that runs no 1F1B.
zb-v and dualpipe-v have two chunks a stage, whether or not they are stated.
"""

from collections.abc import Sequence
from typing import get_args

from phaze.errors import InputError, unknown_name
from phaze.hardware.stack import PipelineFamily, Stack
from phaze.placement.plan import Plan
from phaze.placement.rules import DUALPIPE_V, GPIPE, ONE_F_ONE_B, ZB_H1, ZB_V, Family, interleaved, zb_interleaved
from phaze.values import replace

FAMILIES: tuple[PipelineFamily, ...] = get_args(PipelineFamily)
BEST = "best"
# Families that no number of chunks tells apart: a stack that a plan names them for must run them.
NAMED = tuple(name for name in FAMILIES if name not in ("1f1b", "interleaved"))


def stack_with_families(stack: Stack, names: Sequence[str] | None, where: str) -> Stack:
    """The stack with the families that are allowed, all that it runs if none are named; an InputError for others."""
    if names is None or BEST in names:
        return stack
    for name in names:
        if name not in FAMILIES:
            raise unknown_name(where, "pipeline family", name, (*FAMILIES, BEST))
        _require_run(stack, name, where)
    return replace(stack, families=tuple(name for name in FAMILIES if name in names))


def _require_run(stack: Stack, name: str, where: str) -> None:
    if stack.pipeline != "1f1b" or name not in stack.families:
        own = ", ".join(stack.families) if stack.pipeline == "1f1b" else stack.pipeline
        others = "another stack" if name not in ("zb-interleaved", "zb-v", "dualpipe-v") else "torchtitan-eager"
        raise InputError(where, f"the stack {stack.name} does not run {name}", f"its families: {own}; or name {others}")


def named_family(name: PipelineFamily | None, chunks: int) -> Family:
    """The family of a plan that states it and its chunks; a ValueError where they do not go together."""
    if name is None or (name == "interleaved" and chunks > 1):
        return interleaved(chunks)
    if name in ("interleaved", "zb-interleaved") and chunks == 1:
        raise ValueError(f"give chunks of 2 or more to {name}")
    if name == "zb-interleaved":
        return zb_interleaved(chunks)
    folded = {"zb-v": ZB_V, "dualpipe-v": DUALPIPE_V}
    if name in folded:
        if chunks > folded[name].chunks:
            raise ValueError(f"{name} has 2 chunks a stage, not {chunks}")
        return folded[name]
    if chunks > 1:
        raise ValueError(f"{name} has no chunks; with {chunks} it is {'zb-' if name == 'zb-h1' else ''}interleaved")
    return {"gpipe": GPIPE, "1f1b": ONE_F_ONE_B, "zb-h1": ZB_H1}[name]


def family_of(stack: Stack, name: PipelineFamily | None, chunks: int) -> PipelineFamily | None:
    """The family that a given plan states; where it states none, GPipe of a stack that runs no 1F1B."""
    unsaid = name is None and chunks == 1 and stack.pipeline == "1f1b" and "1f1b" not in stack.families
    return "gpipe" if unsaid and "gpipe" in stack.families else name


def stack_running(stack: Stack, name: PipelineFamily | None, where: str) -> Stack:
    """The stack for a given plan, which may have chunks whatever is sought; an InputError where it lacks the family."""
    if name not in NAMED:
        return replace(stack, families=("1f1b", "interleaved"))
    _require_run(stack, name, where)
    return replace(stack, families=(name,))


def family_notes(plan: Plan) -> list[str]:
    """What an answer must say of a plan's family beside its numbers."""
    if plan.family not in ("zb-v", "dualpipe-v") or len(plan.stages) == 1:
        return []
    note = "what follows the blocks counts on the last stage; folded into a V, a pipeline ends on its first"
    both = "; forward and backward of two microbatches in one take as long as one after the other"
    return [f"{plan.family}: {note}{both if plan.family == 'dualpipe-v' else ''}"]
