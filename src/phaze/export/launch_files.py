"""The launch files of a plan, one a framework: the text or why there is none, and what it does
otherwise."""

from collections.abc import Mapping
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.job_file import reopened
from phaze.evaluate.memo import Memo
from phaze.evaluate.plan import RankAt
from phaze.evaluate.plan_file import require_job_plan
from phaze.evaluate.plan_set import plans_in
from phaze.export.flag import Framework, deviations, launch_text
from phaze.export.frameworks import FRAMEWORKS
from phaze.export.source import PlannedSplit, planned_split
from phaze.report.launch_text import LaunchText


def launches(
    document: Mapping[str, Any], where: str, memo: Memo | None = None, rank_at: RankAt | None = None
) -> tuple[LaunchText, ...]:
    """What every framework makes of a plan that carries its job; one that does not fit is launched
    by none. ``memo``, ``rank_at``: as for :func:`phaze.evaluate.job_file.reopened`."""
    if document.get("shortage") is not None:
        reason = "the plan does not fit into the memory of a device"
        return tuple(
            LaunchText(entry.key, entry.name, entry.file, "", reason, ()) for entry in FRAMEWORKS
        )
    try:
        split = planned_split(document, reopened(document, where, memo, rank_at))
    except InputError as fault:
        return tuple(
            LaunchText(entry.key, entry.name, entry.file, "", _reason(fault), ())
            for entry in FRAMEWORKS
        )
    return tuple(_launch(framework, split) for framework in FRAMEWORKS)


def _launch(framework: Framework, split: PlannedSplit) -> LaunchText:
    named = (framework.key, framework.name, framework.file)
    try:
        return LaunchText(
            *named, launch_text(framework, split), "", tuple(deviations(framework, split))
        )
    except InputError as fault:
        return LaunchText(*named, "", _reason(fault), ())


def _reason(fault: InputError) -> str:
    return f"{fault.problem}; {fault.remedy}" if fault.remedy else fault.problem


def launch_texts(document: Mapping[str, Any], where: str) -> dict[str, tuple[LaunchText, ...]]:
    """The launch files of every plan in a document, by its key."""
    require_job_plan(document, where)
    memo = Memo()
    return {plan.key: launches(plan.document, where, memo) for plan in plans_in(document)}


def with_launches(document: dict[str, Any], rank_at: RankAt | None = None) -> dict[str, Any]:
    """The document with what launching means for each of its plans: by framework, the refusal and
    the deviations; ``rank_at`` gives the ranks of its choices where they are at hand."""
    memo = Memo()
    by_row = {
        id(plan.row): {
            launch.key: {"refused": launch.refused or None, "deviations": list(launch.deviations)}
            for launch in launches(plan.document, "plan", memo, rank_at)
        }
        for plan in plans_in(document)
    }
    best = by_row[id(document)]

    def with_launch(row: Mapping[str, Any] | None) -> dict[str, Any] | None:
        return (
            None
            if row is None
            else {**row, "launch": by_row.get(id(row), best if row.get("plan") is None else None)}
        )

    rows = [with_launch(row) for row in document["alternatives"]]
    usual = {place: with_launch(document[place]) for place in ("rule_of_thumb", "experts")}
    return {**document, "launch": best, "alternatives": rows, **usual}
