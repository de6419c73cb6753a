"""A plan on one chip: what it takes, and that no other in the degrees of its problem is faster
(docs/plan.md).

The steps are those of a model under rules cluster (:mod:`.model`), on a space of that chip alone:
what no plan of a row undercuts, stages of equal blocks, and where these leave a row, its plans
exactly, by labels.
"""

from collections.abc import Mapping
from typing import Any

from .fixed_chip import given_chip, space_of_one
from .means import Mean
from .model import model_of
from .operators import constants_of
from .reading import cover, listed, only, require
from .restricted import require_restrictions
from .space_proof import Counted, Solver, Watch, prove

PROBLEM = ("schema", "name", "residency", "chip", "hbm_bytes", "models", "gap", "restricted")
NEAR = 1e-9
"""Times are sums in another order than phaze has them."""


def prove_plan(
    problem: Mapping[str, Any], graphs: Mapping[str, Any], said: Mapping[str, Any], bound: float,
    watch: Watch,
    quick: bool,
    solver: Solver | None = None,
) -> Counted:  # fmt: skip
    """Prove the plan of a certificate; refuses what does not hold. ``solver``: the caller's own,
    for schedules that are searched to no end here."""
    more = sorted(set(problem) - set(PROBLEM))
    cover(not more, f"the key {more[0] if more else ''} of a plan's problem")
    tables, memories = (
        listed(problem["models"], "models", 1),
        listed(problem["hbm_bytes"], "hbm_bytes", 1),
    )
    require(
        memories[0] == problem["chip"]["hbm"]["size_bytes"], "hbm_bytes: they are not the chip's"
    )
    table = tables[0]
    require_restrictions(table, problem.get("restricted", {}))
    chip, fan_out, constants = given_chip(
        problem["chip"], constants_of(table["training"]["constants"])
    )
    fusion, multipliers = (listed(said[name], name, 1)[0] for name in ("fusion", "multipliers"))
    residency = problem["residency"] is True
    model = model_of(
        table, graphs["models"][0], fusion, multipliers, residency, memories, fan_out, constants
    )
    answer = listed(only(said["answer"], "answer", ("models",))["models"], "answer.models", 1)[0]
    watch("the plan")
    (seconds,), best = model.answer(answer, chip, float(memories[0])), said["best"]
    require(
        abs(seconds - best) <= NEAR * seconds, f"best: {best!r}, and the plan takes {seconds!r}"
    )
    mean = Mean("geometric", (1.0,), (float(table["training"]["batch"]),))
    goals = bound, bound
    counted = prove([model], mean, space_of_one(chip), goals, watch, quick, solver)
    shown = quick or counted.least >= bound * (1 - NEAR)
    require(
        shown, f"nothing shows that every plan takes {bound!r} s or more, only {counted.least!r}"
    )
    return counted
