"""The page of a plan: its sections (:mod:`phaze.report.plan_sheet`), with what only its traced
layers and launch files tell."""

import shlex
from collections.abc import Mapping
from typing import Any

from phaze.evaluate.job_file import JobTable, Reopened, reopened
from phaze.evaluate.plan_file import require_job_plan
from phaze.evaluate.plan_set import plans_in
from phaze.evaluate.restrictions import option_words
from phaze.report.html import sections_page
from phaze.report.launch_text import LaunchText
from phaze.report.plan_sheet import PlanPage, plan_sections
from phaze.report.plan_text import subject_of
from phaze.report.view_model import Story, planned

LaunchTexts = Mapping[str, tuple[LaunchText, ...]]


def _command(job: JobTable, document: Mapping[str, Any]) -> str:
    """The command that asks for this plan."""
    words = ["phaze", "plan"]
    if job.family is not None and job.sizes is not None:
        words += [f"--{job.family}", ",".join(f"{key}={value}" for key, value in job.sizes.items())]
    else:
        words += ["--model", str(job.model or job.graph)]
    words += ["--chip", job.chip, "--devices", str(job.devices), "--batch", str(job.batch)]
    words += ["--cluster", job.cluster, "--stack", job.stack]
    words += (
        ["--sequence", str(job.sequence)] if job.sequence is not None and job.family is None else []
    )
    words += ["--datasheet"] if job.basis == "datasheet" else []
    words += ["--precision", job.precision]
    words += option_words(document["job"].get("restricted") or {})
    words += ["--imbalance", f"{job.rows:g}"] if job.rows > 1 else []
    run = document.get("training_run")
    words += ["--tokens", str(int(run["tokens"]))] if run is not None else []
    return " ".join(shlex.quote(word) for word in [*words, "--html", "plan.html"])


def _story(reopened_plan: Reopened, plan: Mapping[str, Any], where: str) -> Story:
    job = reopened_plan.job
    return planned(reopened_plan.model, reopened_plan.setting, plan, job.devices, job.batch, where)


def plan_page(document: Mapping[str, Any], where: str, texts: LaunchTexts | None = None) -> str:
    """The page of a document ``phaze.plan/1`` that carries its job; ``texts`` are the launch files
    of its plans."""
    require_job_plan(document, where)
    first = reopened(document, where)
    stories = {
        plan.key: _story(reopened(plan.document, where), plan.document, where)
        for plan in plans_in(document)
    }
    command = _command(first.job, document)
    page = PlanPage(stories, texts or {}, first.setting.chip, command)
    foot = "Times under rules cluster; power and cost are estimates."
    sections = plan_sections(document, page)
    return sections_page(
        sections, "plan", subject=subject_of(document, first.model.name), foot=foot
    )
