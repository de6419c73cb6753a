"""The page of a search: do I believe this chip?

First the ratio to a named chip with its band, the chip in words and to scale, what limits it, how plausible it is, how
flat the optimum and how far it is proved; then all chips, what more would buy, time, memory, models, and the study.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.evaluate.idle import idle_words
from phaze.hardware.chip import Chip
from phaze.hardware.formats import PLAIN
from phaze.report.answer_text import PROVISIONAL, basis_words, job_words
from phaze.report.explain_sheet import marginal_bars, neighbours_table
from phaze.report.explanation_file import ExplanationTable, explanation_in
from phaze.report.html import Part, parts_of
from phaze.report.page.baseline_comparison import BaselineComparison, baseline_comparison
from phaze.report.page.baselines_view import baselines_of, explained_comparisons
from phaze.report.page.chip_scatter import chip_scatter_view, numbers
from phaze.report.page.die import die_view
from phaze.report.page.memory_view import MemoryView, memory_view
from phaze.report.page.models_view import models_lead, whole_plan
from phaze.report.page.operators import operators_parts
from phaze.report.page.plan_view import badges
from phaze.report.page.render import rendered
from phaze.report.page.search_view import (
    RETICLE_MM2,
    chip_words,
    flat_of,
    physical_of,
    plausible_of,
    top_of,
)
from phaze.report.page.space_scatter import space_scatter
from phaze.report.page.time_view import TimelineView, TimeView, tail_of, time_view, timeline_numbers, timeline_view
from phaze.report.plan_text import flops_text, training_rows
from phaze.report.proof_text import proof_table
from phaze.report.view_model import Story, searched
from phaze.schedule.solved import SolvedSchedules
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.reopened import place_of
from phaze.search.task import ModelTask, SearchJob, networks_of


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its job, its documents, what its journal holds, and the chips that this is of. ``where`` is what
    to call it, ``settings`` every key of its study with the value it was searched with and where that comes from."""

    job: SearchJob
    result: Mapping[str, Any]
    closed: Sequence[PrunedChip]
    evaluated: Sequence[Evaluated]
    study: str
    where: str
    opened: SpaceChips
    settings: Sequence[tuple[str, str, str]] = ()


@dataclass(frozen=True, slots=True)
class ModelView:
    """One model on the chip."""

    key: str
    name: str
    badges: tuple[str, ...]
    time: TimeView
    memory: MemoryView
    timeline: TimelineView
    operators: list[Part]


def tasks_on(job: SearchJob, opened: SpaceChips, number: int) -> tuple[ModelTask, ...]:
    """The models of a job on the links of one chip of its space."""
    return networks_of(job.models, job.space, opened.link_bytes_per_s).tasks_of(number)


def _model_view(key: str, model: Mapping[str, Any], story: Story) -> ModelView:
    device = DeviceMemory(story.hbm_bytes, float((model.get("memory_left") or {}).get("headroom", 0.0)))
    return ModelView(
        key=key,
        name=story.name,
        badges=badges(whole_plan(model)),
        time=time_view(story),
        memory=memory_view(story.plan, device),
        timeline=timeline_view(story),
        operators=operators_parts(story, f"{key}-"),
    )


def _assumed(job: SearchJob, result: Mapping[str, Any]) -> list[str]:
    """What the answer holds under, in sentences."""
    links = (result.get("cluster") or {}).get("links")
    several = len(result["models"]) > 1
    precision = str(result["setting"].get("precision", PLAIN))
    said = [(f"{m['name']}: " if several else "", m) for m in result["models"]]
    counted = [f"{name}{words}" for name, m in said for words in (flops_text(m, precision), idle_words(m)) if words]
    notes = [*counted, *([str(links)] if links else [])]
    notes += dict.fromkeys(note for model in job.models for note in model.notes())
    runs = [
        f"{model['name']}: {name}: {text}"
        for model in result["models"]
        for name, text in training_rows(model.get("training_run"))
    ]
    return [f"Times: {basis_words(result)}", f"Job: {job_words(result)}", *runs, *notes]


def chip_context(
    job: SearchJob,
    result: Mapping[str, Any],
    chip: Chip,
    stories: Sequence[Story],
    comparisons: Sequence[BaselineComparison],
    said: ExplanationTable | None = None,
) -> dict[str, Any]:
    """A chip beside its baselines, and every model on it; ``result`` has what ``phaze.result/1`` says of it."""
    binding, physical = physical_of(job, result)
    known = [(comparison.name, comparison.die_mm2, True) for comparison in comparisons[:1] if comparison.die_mm2]
    die = die_view(chip, [("reticle", RETICLE_MM2, False), *known])
    return {
        "name": str(result["name"]),
        "top": top_of(job, result, chip),
        "chip": chip_words(result),
        "chip_name": str(result["chip"]["name"]),
        "die": replace(die, outlines=tuple(line for line in die.outlines if not line.known)),
        "baselines": baselines_of(result, stories, comparisons, die, said),
        "binding": binding,
        "physical": physical,
        "plausible": plausible_of(result),
        "models": [
            _model_view(f"m{at}", model, story)
            for at, (model, story) in enumerate(zip(result["models"], stories, strict=True))
        ],
        "stacked": any(any(comparison.steps) for comparison in comparisons),
        "models_lead": models_lead(result, said),
        "assumed": _assumed(job, result),
        "rules": job.rules,
    }


def timelines_of(stories: Sequence[Story]) -> dict[str, Any]:
    """What the script draws of the pipeline of every model."""
    flows = [(at, story, story.pipeline) for at, story in enumerate(stories)]
    return {f"m{at}": timeline_numbers(flow, tail_of(story)) for at, story, flow in flows if flow is not None}


def _marginals(explanation: Mapping[str, Any]) -> list[Part]:
    return parts_of([marginal_bars(explanation), neighbours_table(explanation)], "marginals-")


def _context(run: Run, said: ExplanationTable | None) -> dict[str, Any]:
    """What is a search's own: flatness, what more would buy, how every chip was decided, the study."""
    result = run.result
    exact = [one.score for one in run.evaluated if not one.error]
    return {
        "flat": flat_of(result, exact, said),
        "provisional": PROVISIONAL if result.get("provisional") else "",
        "marginals": [] if said is None else _marginals(said.model_dump()),
        "closed": parts_of([proof_table(result["certificate"])])[0],
        "where": run.where,
        "certificate": (Path(run.where) / "certificate.json").is_file(),
        "study": run.study,
        "settings": run.settings,
        "digests": (str(result["study_digest"])[:12], str(result["code_digest"])[:12]),
    }


def search_page(run: Run, solved: SolvedSchedules | None = None) -> str:
    """The whole page; ``solved``: schedules that the search has found, where it ran in this process."""
    opened, hbm_bytes = run.opened, int(run.result["chip"]["hbm_bytes"])
    number = place_of(opened, int(run.result["chip"]["number"]), run.where)
    chip = opened.chip(number, hbm_bytes)
    stories = [
        searched(task, found, chip, run.where, "list" if run.result.get("provisional") else "exact", solved)
        for task, found in zip(tasks_on(run.job, opened, number), run.result["models"], strict=True)
    ]
    result = run.result
    said = explanation_in(Path(run.where), str(result["chip"]["name"]), float(result["objective"]["score"]))
    comparison = None if result.get("provisional") else baseline_comparison(run.job, result)
    comparisons = [] if comparison is None else [comparison, *explained_comparisons(result, said, comparison.key)]
    scatter = space_scatter(run.job, opened, run.result, run.closed, run.evaluated)
    own = {**chip_context(run.job, result, chip, stories, comparisons, said), **_context(run, said)}
    context = {"view": {**own, "scatter": chip_scatter_view(scatter)}, "title": f"phaze: {run.result['name']}"}
    scripts = ("scatter.js", "timeline.js", "plan.js", "baseline.js")
    return rendered("search.html", context, scripts, {"scatter": numbers(scatter), "timelines": timelines_of(stories)})
