"""The page of one design of a front: the chip, what it is better than, and every model on it, as on
a search's page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.report.chip_answer import ChipAnswer, ChipPage, settings_group
from phaze.report.front_sheet import metric_words
from phaze.report.html import sections_page
from phaze.report.numbers import EXACT, gap_text
from phaze.report.page.baseline_comparison import baseline_comparison
from phaze.report.page.search_page import tasks_on
from phaze.report.search_cards import subject_of
from phaze.report.sections import Card, Cards, Figures, Group, Notes
from phaze.report.view_model import searched
from phaze.search.chips import SpaceChips
from phaze.search.task import SearchJob
from phaze.units import digits


@dataclass(frozen=True, slots=True)
class OpenedDesign:
    """A design of a front: its job and space, its answer as a search states one, the front it
    belongs to and its place there, and every setting of the study."""

    job: SearchJob
    opened: SpaceChips
    result: Mapping[str, Any]
    front: Mapping[str, Any]
    number: int
    settings: Sequence[tuple[str, str, str]]


def _front_card(design: OpenedDesign) -> Card:
    """Each metric with its share of the best on the front, and what is proved of it."""
    front, rows = design.front, []
    for name in front["of"]:
        values = [float(point["metrics"][name]) for point in front["points"]]
        value, more = values[design.number], name == "throughput"
        share = value / max(values) if more else min(values) / value
        rows.append(
            (
                metric_words(name),
                f"{digits(value)} {front['units'][name]}, {100 * share:.0f} % of the best",
            )
        )
    proof = front["points"][design.number]["certificate"] or front["certificate"]
    better = " and ".join(metric_words(name) for name in front["of"])
    gap = "" if proof["gap"] <= EXACT else f", by more than {gap_text(float(proof['gap']))}"
    sentence = f"Nothing in the space is at least as good in {better} and better in one{gap}."
    place = f"design {design.number} of {len(front['points']):,}"
    return Card("On the front", [Figures(rows, notes=[sentence], paired=True)], place, "good")


def design_page(design: OpenedDesign) -> str:
    """The whole page."""
    result, front = design.result, design.front
    chip_number = int(result["chip"]["number"])
    chip = design.opened.chip(chip_number, int(result["chip"]["hbm_bytes"]))
    stories = []
    for task, model in zip(
        tasks_on(design.job, design.opened, chip_number), result["models"], strict=True
    ):
        stories.append(searched(task, model, chip, front["name"]))
    baseline = baseline_comparison(design.job, result)
    beside = ChipPage(chip, stories, [] if baseline is None else [baseline])
    page = ChipAnswer(result, design.job.space.limits, beside)
    sections = [
        *page.headline(),
        Cards([*page.cards(), _front_card(design)], wide=True),
        *page.components(),
        *page.models(),
        Notes(page.assumed(), "Accuracy", look="list"),
        Group([settings_group(design.settings)], "Study"),
    ]
    foot = f"Times under rules {design.job.rules}; area, power and cost are estimates."
    subject = (str(front["name"]), *subject_of(result, design.job.space.name))
    return sections_page(sections, "front", subject=subject, foot=foot)
