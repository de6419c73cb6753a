"""The page of one design of a front: the chip, what it is better than, and every model on it, as on a search's page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.report.front_page import metric_words
from phaze.report.numbers import EXACT, gap_text
from phaze.report.page.baseline_comparison import baseline_comparison
from phaze.report.page.render import rendered
from phaze.report.page.search_page import chip_context, tasks_on, timelines_of
from phaze.report.view_model import searched
from phaze.search.chips import SpaceChips
from phaze.search.task import SearchJob
from phaze.units import digits


@dataclass(frozen=True, slots=True)
class OpenedDesign:
    """A design of a front: its job and space, its answer as a search states one, the front it belongs to and its place
    there, and every setting of the study."""

    job: SearchJob
    opened: SpaceChips
    result: Mapping[str, Any]
    front: Mapping[str, Any]
    at: int
    settings: Sequence[tuple[str, str, str]]


def _metrics(design: OpenedDesign) -> list[tuple[str, str]]:
    """Each metric with its share of the best on the front."""
    front, found = design.front, []
    for name in front["of"]:
        values = [float(point["metrics"][name]) for point in front["points"]]
        own, more = values[design.at], name == "throughput"
        best = max(values) if more else min(values)
        share = own / best if more else best / own
        found.append((metric_words(name), f"{digits(own)} {front['units'][name]}, {100 * share:.0f} % of the best"))
    return found


def design_page(design: OpenedDesign) -> str:
    """The whole page."""
    result, front = design.result, design.front
    number, hbm_bytes = int(result["chip"]["number"]), int(result["chip"]["hbm_bytes"])
    chip = design.opened.chip(number, hbm_bytes)
    tasks = tasks_on(design.job, design.opened, number)
    stories = [searched(task, model, chip, front["name"]) for task, model in zip(tasks, result["models"], strict=True)]
    proof = front["points"][design.at]["certificate"] or front["certificate"]
    comparison = baseline_comparison(design.job, result)
    better = " and ".join(metric_words(name) for name in front["of"])
    view = {
        **chip_context(design.job, result, chip, stories, [] if comparison is None else [comparison]),
        "place": f"design {design.at} of {len(front['points']):,}",
        "metrics": _metrics(design),
        "proof": f"Nothing in the space is at least as good in {better} and better in one"
        + ("." if proof["gap"] <= EXACT else f", by more than {gap_text(float(proof['gap']))}."),
        "settings": design.settings,
    }
    context = {"view": view, "title": f"phaze: {front['name']}: design {design.at}"}
    return rendered("design.html", context, ("timeline.js", "plan.js"), {"timelines": timelines_of(stories)})
