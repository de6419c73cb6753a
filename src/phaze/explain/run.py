"""The whole explanation of a run as one document, ``phaze.explanation/1``."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from phaze.explain.alternatives import asked_instead, instead
from phaze.explain.baseline_comparison import alone, beside
from phaze.explain.flatness import USUAL, flatness
from phaze.explain.held_out import held_out
from phaze.explain.marginal import marginals
from phaze.explain.neighbours import near_misses, neighbours
from phaze.explain.question import Question, require_best
from phaze.explain.ranges import ranges, worst_case
from phaze.explain.sensitivity import deciding
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
    question: Question, asked: OtherModelsAndChips, processes: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """What was asked about other models and other chips."""
    found: dict[str, Any] = {}
    if asked.held_out is not None:
        tell("models that were not searched for")
        found["held_out"] = [asdict(one) for one in held_out(question, asked.held_out)]
    if asked.held_out is not None or asked.chips:
        tell("chips that exist")
        found["beside"] = beside(question, asked.held_out, asked.chips)
    if asked.regret:
        tell("the best chip for each model alone")
        found["alone"] = [asdict(one) for one in alone(question, asked.held_out, processes)]
    return found


def explanation(
    question: Question,
    error: float | None,
    with_ranges: bool,
    processes: int,
    tell: Callable[[str], None],
    others: Sequence[str] = (),
    within: float = USUAL,
    constants: bool = False,
    asked: OtherModelsAndChips = OtherModelsAndChips(),  # noqa: B008  frozen, and empty
) -> dict[str, Any]:
    """Neighbours, the chips ``within`` a share of the answer, marginal values, and where asked for
    other values of axes, the constants that decide, ranges of constants, the worst case."""
    for text in others:
        asked_instead(question, text)
    tell("neighbours")
    near = neighbours(question)
    flat = flatness(question, within, processes, tell).document()
    require_best(question, flat["nearest"][0]["chip"], -flat["nearest"][0]["loss"])
    more = [asdict(one) for one in marginals(question, processes, tell)]
    most = question.job.space.limits
    limits = (("power", most["power"]), ("price", most["usd"]))
    found = {
        "schema": SCHEMA,
        "view": "computed from the run; phaze verify does not check it",
        "name": question.job.name,
        "chip": question.chip.name,
        "objective": question.job.objective.kind,
        "score": question.score,
        "asked_gap": question.job.gap,
        "plans": list(question.plans),
        "neighbours": [asdict(one) for one in near],
        "near_misses": [asdict(one) for one in near_misses(near)],
        "flatness": flat,
        "at_the_end_of": axis_ends(question.chips, question.number),
        "marginals": more,
        "not_limited": [name for name, limit in limits if limit is None],
    }
    found |= _others(question, asked, processes, tell)
    if others:
        tell(f"the best with {', '.join(others)}")
        found["instead"] = [asdict(instead(question, text, processes)) for text in others]
    if constants:
        found["deciding"] = [asdict(one) for one in deciding(question, processes, tell)]
    if with_ranges:
        found["ranges"] = [asdict(one) for one in ranges(question, processes, tell)]
    if error is not None:
        tell(f"every constant lower by {error:.0%}")
        found["worst_case"] = asdict(worst_case(question, error, processes))
    return found
