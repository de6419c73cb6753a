"""The whole explanation of a run as one document, ``phaze.explanation/1``."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from phaze.explain.alternatives import asked_instead, instead
from phaze.explain.deciding import deciding
from phaze.explain.flatness import USUAL, flatness
from phaze.explain.marginal import marginals
from phaze.explain.neighbours import neighbours
from phaze.explain.question import Question
from phaze.explain.ranges import ranges, worst_case
from phaze.search.plausibility import axis_ends

SCHEMA = "phaze.explanation/1"


def explanation(
    question: Question,
    error: float | None,
    with_ranges: bool,
    processes: int,
    tell: Callable[[str], None],
    others: Sequence[str] = (),
    within: float = USUAL,
    constants: bool = False,
) -> dict[str, Any]:
    """Neighbours, the chips ``within`` a share of the answer, marginal values, and where asked for other values of
    axes, the constants that decide, ranges of constants, the worst case."""
    for text in others:
        asked_instead(question, text)
    tell("neighbours")
    near = [asdict(one) for one in neighbours(question)]
    flat = flatness(question, within, processes, tell).document()
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
        "neighbours": near,
        "flatness": flat,
        "at_the_end_of": axis_ends(question.opened, question.number),
        "marginals": more,
        "not_limited": [name for name, limit in limits if limit is None],
    }
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
