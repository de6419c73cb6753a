"""``--tp-plan``, and what standard error says of a traced model: its sequence, widths and tensor-parallel plan."""

import sys
from typing import Annotated

import typer

from phaze.errors import InputError

TpPlan = Annotated[
    str | None,
    typer.Option(
        "--tp-plan",
        help="A tensor-parallel plan (phaze.tensor-plan/1) of your own model; phaze graph --show-plan prints one.",
    ),
]


def with_plan(model: str, plan: str | None) -> str:
    """The model with the plan of a file, if one is given."""
    if plan is None:
        return model
    if ":" not in model and "/" not in model and not model.endswith(".json"):
        raise InputError("--tp-plan", f"{model or 'this model'} has a plan of its own", "leave it out")
    if not plan.endswith((".toml", ".json")):
        raise InputError("--tp-plan", f"'{plan}' is no file of a plan", "its name ends in .toml or .json")
    return f"{model}@{plan}"


def announce(model: str, sequence: int | None) -> None:
    """What a model that was traced is run as; built-in models and graph files have nothing to say."""
    from phaze.graph.supply.supply import Traced, supply_of

    try:
        supply = supply_of(model, runs=False)
        if not isinstance(supply, Traced):
            return
        facts = supply.facts
        length = facts.length(sequence)
    except InputError:  # nothing was kept: the cache cannot be written
        return
    widths = ", ".join(map(str, facts.widths))
    sys.stderr.write(f"{model}: sequence {length}, tensor widths {widths}; tensor-parallel plan: {facts.basis}\n")
    for row in facts.plan["whole"] if facts.plan is not None else ():
        sys.stderr.write(f"  {row['module']} is not split: {row['why']}\n")
    for width, why in facts.refused if facts.plan is not None else ():
        sys.stderr.write(f"  not width {width}: {why}\n")
