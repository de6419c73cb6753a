"""The page of a search: do I believe this chip?

First the ratio to a named chip with its band, the chip in words and to scale, what limits it, how
plausible it is, how flat the optimum and how far it is proved; then all chips, what more would buy,
time, memory, models, and the study.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from phaze.report.chip_answer import ChipAnswer, ChipPage, settings_group
from phaze.report.explain_sheet import marginal_bars, neighbours_table
from phaze.report.explanation_file import ExplanationTable, explanation_in
from phaze.report.html import sections_page
from phaze.report.page.baseline_comparison import baseline_comparison
from phaze.report.page.baseline_sections import explained_comparisons
from phaze.report.page.space_plot import space_sections
from phaze.report.proof_text import proof_table
from phaze.report.search_cards import flat_card, subject_of
from phaze.report.sections import Cards, Group, Notes, Section
from phaze.report.view_model import searched
from phaze.schedule.solve import Scheduler
from phaze.schedule.solved import SolvedSchedules
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.reopened import place_of
from phaze.search.task import ModelTask, SearchJob, networks_of


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run: its job, its documents, what its journal holds, and the chips that this is
    of. ``where`` is what to call it, ``settings`` every key of its study with the value it was
    searched with and where that comes from."""

    job: SearchJob
    result: Mapping[str, Any]
    closed: Sequence[PrunedChip]
    evaluated: Sequence[Evaluated]
    study: str
    where: str
    opened: SpaceChips
    settings: Sequence[tuple[str, str, str]] = ()


def tasks_on(job: SearchJob, opened: SpaceChips, number: int) -> tuple[ModelTask, ...]:
    """The models of a job on the links of one chip of its space."""
    return networks_of(job.models, job.space, opened.link_bytes_per_s).tasks_of(number)


def _chip_on_page(
    run: Run, explanation: ExplanationTable | None, solved: SolvedSchedules | None
) -> ChipAnswer:
    """The answer with its models priced anew, and every chip that it is compared with."""
    result, opened = run.result, run.opened
    number = place_of(opened, int(result["chip"]["number"]), run.where)
    chip = opened.chip(number, int(result["chip"]["hbm_bytes"]))
    scheduler: Scheduler = "list" if result.get("provisional") else "exact"
    stories = []
    for task, model in zip(tasks_on(run.job, opened, number), result["models"], strict=True):
        stories.append(searched(task, model, chip, run.where, scheduler, solved))
    baseline = None if result.get("provisional") else baseline_comparison(run.job, result)
    comparisons = (
        []
        if baseline is None
        else [baseline, *explained_comparisons(result, explanation, baseline.key)]
    )
    page = ChipPage(chip, stories, comparisons)
    return ChipAnswer(result, run.job.space.limits, page, explanation)


def _marginals(explanation: ExplanationTable) -> Group:
    document = explanation.model_dump()
    neighbours = neighbours_table(document)
    folded = Group(
        [replace(neighbours, title="", caption="")],
        folded=f"{neighbours.title}: {neighbours.caption}",
    )
    return Group([marginal_bars(document), folded], "Marginal value")


def _certificate(run: Run) -> Section:
    file = "certificate.json holds what rules out every chip; " if _has_certificate(run) else ""
    check = f"phaze verify {run.where} checks it by code that the search does not use."
    return replace(
        proof_table(run.result["certificate"]), title="Certificate", notes=[f"{file}{check}"]
    )


def _has_certificate(run: Run) -> bool:
    return (Path(run.where) / "certificate.json").is_file()


def _trust(run: Run, page: ChipAnswer) -> Notes:
    lines = page.assumed()
    if page.explanation is None:
        more = "What more area, power, bandwidth or memory would buy, near-ties and near misses"
        lines.append(f"{more}: phaze explain {run.where}, then phaze report {run.where}")
    if len(page.comparisons) < 2:
        options = "--compare b200 --held-out gpt3-175b --regret"
        lines.append(f"Beside other chips and on other models: phaze explain {run.where} {options}")
    return Notes(lines, "Accuracy", look="list")


def _study(run: Run) -> Group:
    sections: list[Section] = [Notes([run.study], verbatim=True, file="study.toml")]
    sections += [settings_group(run.settings)] if run.settings else []
    caption = (
        "Complete: every file that it names is in it, so in an empty folder it gives the "
        "same bytes."
    )
    return Group(sections, "Study", caption)


def search_page(run: Run, solved: SolvedSchedules | None = None) -> str:
    """The whole page; ``solved``: schedules that the search has found, where it ran in this
    process."""
    result = run.result
    explanation = explanation_in(
        Path(run.where), str(result["chip"]["name"]), float(result["objective"]["score"])
    )
    page = _chip_on_page(run, explanation, solved)
    exact = [chip.score for chip in run.evaluated if not chip.error]
    sections = [
        *page.headline(),
        Cards([*page.cards(), flat_card(result, exact, explanation)], wide=True),
        space_sections(run.job, run.opened, result, run.closed, run.evaluated),
        *([_marginals(explanation)] if explanation is not None else []),
        *page.components(),
        *page.models(),
        _certificate(run),
        _trust(run, page),
        _study(run),
    ]
    digests = f"study {str(result['study_digest'])[:12]}, code {str(result['code_digest'])[:12]}"
    foot = (
        f"{digests.capitalize()}. Times under rules {run.job.rules}; area, power and cost "
        "are estimates."
    )
    subject = (str(result["name"]), *subject_of(result, run.job.space.name))
    return sections_page(sections, "search", subject=subject, foot=foot)
