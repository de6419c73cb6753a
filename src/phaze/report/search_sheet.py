"""A search: the line that is live while it runs, and its answer."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from phaze.report.chip_answer import ChipAnswer
from phaze.report.progress import Progress
from phaze.report.proof_text import proof_table
from phaze.report.search_cards import flat_card, subject_of
from phaze.report.sections import Cards, Notes, Section

if TYPE_CHECKING:
    from phaze.search.state import Standing


def shown_on(progress: Progress) -> "Callable[[Standing], None]":
    """What shows how far a search is: every chip that is still open may turn out to be closed by a
    bound."""

    def watch(standing: "Standing") -> None:
        gap = f"gap {standing.gap:.3%}" if standing.best < float("inf") else "nothing fits yet"
        what = f"searching ({gap}, {standing.bound:,} pruned by bound), chips evaluated"
        progress.count(standing.evaluated, standing.evaluated + standing.open, what, at_most=True)

    return watch


def result_sections(
    result: Mapping[str, Any], folder: str, work: str = "", page: bool = True
) -> list[Section]:
    """The answer of a search; ``work`` says what it took, ``page`` whether there is one."""
    answer = ChipAnswer(result, {})
    places = [f"The run: {folder}", *([f"Its page: {folder}/report.html"] if page else [])]
    return [
        Notes([str(result["name"]), *subject_of(result)], look="tags"),
        *answer.headline(),
        Cards([*answer.cards(), flat_card(result)]),
        *answer.models(),
        replace(proof_table(result["certificate"]), notes=[work] if work else []),
        Notes(answer.assumed(), "Accuracy", look="list"),
        Notes(places, verbatim=True),
    ]
