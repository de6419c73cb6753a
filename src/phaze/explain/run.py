"""The whole explanation of a run as one document, ``phaze.explanation/1``."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from phaze.explain.alternatives import instead, value_instead
from phaze.explain.baseline_comparison import alone, compared_chips
from phaze.explain.flatness import USUAL, flatness
from phaze.explain.held_out import held_out
from phaze.explain.marginal import marginals
from phaze.explain.neighbours import near_misses, neighbours
from phaze.explain.question import ExplainedRun, require_best
from phaze.explain.ranges import ranges, worst_case
from phaze.explain.sensitivity import sensitivities
from phaze.search.plausibility import axis_ends
from phaze.search.task import SearchJob

SCHEMA = "phaze.explanation/1"


@dataclass(frozen=True, slots=True)
class OtherModelsAndChips:
    """What an answer is held against: models that it was not searched for, chips by name, and
    whether each model's own best chip is searched."""

    held_out: SearchJob | None = None
    chips: Sequence[str] = ()
    regret: bool = False


def _others(
    question: ExplainedRun, others: OtherModelsAndChips, processes: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """What was asked about other models and other chips."""
    parts: dict[str, Any] = {}
    if others.held_out is not None:
        tell("models that were not searched for")
        parts["held_out"] = [asdict(row) for row in held_out(question, others.held_out)]
    if others.held_out is not None or others.chips:
        tell("chips that exist")
        parts["beside"] = compared_chips(question, others.held_out, others.chips)
    if others.regret:
        tell("the best chip for each model alone")
        parts["alone"] = [asdict(row) for row in alone(question, others.held_out, processes)]
    return parts


def explanation(
    question: ExplainedRun,
    error: float | None,
    with_ranges: bool,
    processes: int,
    tell: Callable[[str], None],
    others: Sequence[str] = (),
    within: float = USUAL,
    constants: bool = False,
    models_and_chips: OtherModelsAndChips = OtherModelsAndChips(),  # noqa: B008  frozen, and empty
) -> dict[str, Any]:
    """Neighbours, the chips ``within`` a share of the answer, marginal values, and where requested
    other values of axes, the constants that decide, ranges of constants, the worst case."""
    for text in others:
        value_instead(question, text)
    tell("neighbours")
    near = neighbours(question)
    flat = flatness(question, within, processes, tell).document()
    require_best(question, flat["nearest"][0]["chip"], -flat["nearest"][0]["loss"])
    more = [asdict(row) for row in marginals(question, processes, tell)]
    most = question.job.space.limits
    limits = (("power", most["power"]), ("price", most["usd"]))
    document = {
        "schema": SCHEMA,
        "view": "computed from the run; phaze verify does not check it",
        "name": question.job.name,
        "chip": question.chip.name,
        "objective": question.job.objective.kind,
        "score": question.score,
        "asked_gap": question.job.gap,
        "plans": list(question.plans),
        "neighbours": [asdict(row) for row in near],
        "near_misses": [asdict(row) for row in near_misses(near)],
        "flatness": flat,
        "at_the_end_of": axis_ends(question.chips, question.number),
        "marginals": more,
        "not_limited": [name for name, limit in limits if limit is None],
    }
    document |= _others(question, models_and_chips, processes, tell)
    if others:
        tell(f"the best with {', '.join(others)}")
        document["instead"] = [asdict(instead(question, text, processes)) for text in others]
    if constants:
        document["deciding"] = [asdict(row) for row in sensitivities(question, processes, tell)]
    if with_ranges:
        document["ranges"] = [asdict(row) for row in ranges(question, processes, tell)]
    if error is not None:
        tell(f"every constant lower by {error:.0%}")
        document["worst_case"] = asdict(worst_case(question, error, processes))
    return document
