"""The whole explanation of a run as one document, ``phaze.explanation/1``."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from phaze.explain.marginal import marginals
from phaze.explain.neighbours import neighbours
from phaze.explain.question import Question
from phaze.explain.ranges import ranges, worst_case

SCHEMA = "phaze.explanation/1"


def explanation(
    question: Question, error: float | None, with_ranges: bool, processes: int, tell: Callable[[str], None]
) -> dict[str, Any]:
    """Neighbours, marginal values, and where they are asked for the ranges of constants and the worst case."""
    tell("neighbours")
    near = [asdict(one) for one in neighbours(question)]
    more = [asdict(one) for one in marginals(question, processes, tell)]
    found = {
        "schema": SCHEMA,
        "name": question.job.name,
        "chip": question.chip.name,
        "objective": question.job.objective.kind,
        "score": question.score,
        "asked_gap": question.job.gap,
        "neighbours": near,
        "marginals": more,
    }
    if with_ranges:
        found["ranges"] = [asdict(one) for one in ranges(question, processes, tell)]
    if error is not None:
        tell(f"every constant lower by {error:.0%}")
        found["worst_case"] = asdict(worst_case(question, error, processes))
    return found
