"""The page of a plan on hardware that exists: can I launch this tonight?

First whether it fits, how fast it is, what it costs and what it gains; then the launch flags, since they are what the
reader came to take away; then time, memory, timeline, the alternatives that switch the whole page, and how far to
trust all of it. A chip that one cannot change has no floor plan here.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.evaluate.job_file import Reopened, reopened
from phaze.evaluate.plan_file import require_job_plan
from phaze.evaluate.plan_set import NamedPlan, choices_text, plans_in
from phaze.evaluate.restrictions import option_words, proof_words, short_proof
from phaze.graph.refusals import refusals
from phaze.hardware.cluster import cluster_document
from phaze.report.against_sheet import against_sections
from phaze.report.alternatives_sheet import what_if_sections
from phaze.report.html import Part, parts_of
from phaze.report.launch_text import LaunchText
from phaze.report.page.memory_view import MemoryView, memory_view
from phaze.report.page.operators import operators_parts
from phaze.report.page.plan_view import (
    LOSSES,
    Cost,
    Fit,
    Gain,
    Speed,
    badges,
    cost_of,
    fit_of,
    gain_of,
    gib,
    short_words,
    speed_of,
)
from phaze.report.page.render import rendered
from phaze.report.page.time_view import (
    TimelineView,
    TimeView,
    tail_of,
    time_view,
    timeline_numbers,
    timeline_view,
)
from phaze.report.plan_sheet import missing_sections
from phaze.report.plan_text import batch_text, constants_text, flops_text, unit_of
from phaze.report.view_model import Story, planned
from phaze.search.plan_words import precision_words
from phaze.units import show


@dataclass(frozen=True, slots=True)
class PlanView:
    """One plan, whole."""

    key: str
    name: str
    title: str
    short: str
    badges: tuple[str, ...]
    fit: Fit
    speed: Speed
    cost: Cost
    gain: Gain
    launches: tuple[LaunchText, ...]
    first: str
    time: TimeView
    memory: MemoryView
    timeline: TimelineView
    shortage: list[Part]


@dataclass(frozen=True, slots=True)
class Told:
    """A plan of the document with its job opened and its times taken apart."""

    plan: NamedPlan
    opened: Reopened
    story: Story


def _told(plan: NamedPlan, where: str) -> Told:
    opened = reopened(plan.document, where)
    job = opened.job
    return Told(plan, opened, planned(opened.model, opened.setting, plan.document, job.devices, job.batch, where))


def _headroom(document: Mapping[str, Any]) -> float:
    left = document.get("memory_left")
    share = left.get("headroom", 0.0) if isinstance(left, Mapping) else 0.0
    return float(share) if isinstance(share, int | float) and 0 <= share < 1 else 0.0


def _title(fit: Fit, gain: Gain, document: Mapping[str, Any]) -> str:
    """The answer in one sentence."""
    split = short_words(document)
    if document.get("shortage") is not None:
        short = document["shortage"]
        return f"Does not fit: stage {short['stage']} lacks {gib(short['missing_bytes'])}. {split}."
    verdict = fit.verdict if fit.verdict != "Tight" else "Fits, but tightly,"
    faster = f"; {gain.headline} {gain.against}" if gain.headline.endswith("%") else ""
    return f"{verdict} with {fit.left} to spare{faster}: {split}."


def _view(told: Told, all_told: Sequence[Told], texts: Mapping[str, tuple[LaunchText, ...]]) -> PlanView:
    plan, document, setting = told.plan, told.plan.document, told.opened.setting
    first = all_told[0].plan.document
    device = DeviceMemory(float(setting.chip.hbm.size_bytes), _headroom(first))
    fit = fit_of(document, device, setting.stack.saves)
    steps = [(one.plan.key, one.plan.name, float(one.plan.document["batch_s"])) for one in all_told]
    run = document.get("training_run")
    bound = float(first["lower_bound_s"]) if first.get("proved") is True else float(document["batch_s"])
    gain = gain_of(plan.key, steps, bound, short_proof(first), run)
    found = texts.get(plan.key, ())
    chosen = next((one.key for one in found if not one.refused), found[0].key if found else "")
    return PlanView(
        key=plan.key,
        name=plan.name,
        title=_title(fit, gain, document),
        short=f"{short_words(document)}, {show(document['batch_s'], 's')}",
        badges=badges(document),
        fit=fit,
        speed=speed_of(document, first["constants"]["band"]),
        cost=cost_of(document, setting.chip, told.opened.job.devices),
        gain=gain,
        launches=found,
        first=chosen,
        time=time_view(told.story),
        memory=memory_view(document, device),
        timeline=timeline_view(told.story),
        shortage=parts_of(missing_sections(document), f"{plan.key}-shortage-"),
    )


def _launch_words(found: tuple[LaunchText, ...]) -> str:
    if not found:
        return "not tried"
    able = [one.name + (" (deviates)" if one.deviations else "") for one in found if not one.refused]
    return ", ".join(able) or f"none: {found[0].refused}"


def _groups(all_told: Sequence[Told], views: Sequence[PlanView]) -> list[tuple[str, list[dict[str, Any]]]]:
    """The rows of all plans, those that some framework can launch first."""
    rows: list[tuple[bool, dict[str, Any]]] = []
    best_s = float(all_told[0].plan.document["batch_s"])
    order = sorted(range(len(views)), key=lambda at: float(all_told[at].plan.document["batch_s"]))
    for at in order:
        document, view = all_told[at].plan.document, views[at]
        slower = float(document["batch_s"]) / best_s - 1
        loss = str(all_told[at].plan.row.get("loses_by") or "")
        row = {
            "key": view.key,
            "name": view.name,
            "badges": view.badges,
            "step": show(document["batch_s"], "s"),
            "slower": "best" if view.key == "best" else f"{100 * slower:+.1f} %",
            "rate": view.speed.rate,
            "mfu": f"{100 * document['mfu']:.1f} %",
            "left": view.fit.left,
            "loses": LOSSES.get(loss, loss) or "-",
            "launch": _launch_words(view.launches),
        }
        rows.append((not view.launches or any(not one.refused for one in view.launches), row))
    refused = [row for able, row in rows if not able]
    return [("", [row for able, row in rows if able]), ("No framework here can launch these", refused)]


def _command(opened: Reopened, document: Mapping[str, Any]) -> str:
    """The command that asks for this plan."""
    job = opened.job
    words = ["phaze", "plan"]
    if job.family is not None and job.sizes is not None:
        words += [f"--{job.family}", ",".join(f"{key}={value}" for key, value in job.sizes.items())]
    else:
        words += ["--model", str(job.model or job.graph)]
    words += ["--chip", job.chip, "--devices", str(job.devices), "--batch", str(job.batch)]
    words += ["--cluster", job.cluster, "--stack", job.stack]
    words += ["--sequence", str(job.sequence)] if job.sequence is not None and job.family is None else []
    words += ["--datasheet"] if job.basis == "datasheet" else []
    words += ["--precision", job.precision]
    words += option_words(document["job"].get("restricted") or {})
    words += ["--imbalance", f"{job.rows:g}"] if job.rows > 1 else []
    run = document.get("training_run")
    words += ["--tokens", str(int(run["tokens"]))] if run is not None else []
    return " ".join(shlex.quote(word) for word in [*words, "--html", "plan.html"])


def _sentence(note: str) -> str:
    """A note with a capital and a full stop."""
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def _accuracy(document: Mapping[str, Any]) -> list[str]:
    trust = document["constants"]
    band = f"within {trust['band']:.0%} of measured steps in 8 of 10" if trust["band"] else "at peak, without a band"
    of = trust.get("band_of")
    runs = f" ({of['runs']:,} runs of {of['sources']} sources, held back: {of['kind']})" if of else ""
    found = [f"Times rest on {trust['basis']} constants, {band}{runs}."]
    rate = constants_text(trust)
    if rate:
        found.append(f"GEMM rate: {rate}.")
    left = document.get("memory_left")
    if left:
        off = left["band"]
        found.append(
            f"Memory is off by {off['median']:.1%} in the median and {off['ninetieth']:.0%} in the 90th percentile "
            f"({off.get('rows') or 'measured runs'})."
        )
    if document.get("proved") is True:
        found.append(_sentence(proof_words(document)))
        found.append(_sentence(choices_text(document)))
    return found


def plan_page(
    document: Mapping[str, Any], where: str, texts: Mapping[str, tuple[LaunchText, ...]] | None = None
) -> str:
    """The page of a document ``phaze.plan/1`` that carries its job; ``texts`` are the launch files of its plans."""
    require_job_plan(document, where)
    told = [_told(plan, where) for plan in plans_in(document)]
    opened, story = told[0].opened, told[0].story
    job, setting, chip = opened.job, opened.setting, opened.setting.chip
    views = [_view(one, told, texts or {}) for one in told]
    links, precision = cluster_document(setting.cluster, chip)["links"], precision_words(setting.precision)
    groups = _groups(told, views) if len(views) > 1 else []
    menu = [("plans", "Alternatives")] if groups else []
    menu += [("whatif", "What if"), ("trust", "Accuracy")]
    view = {
        "model": opened.model.name,
        "batch": f"global batch {batch_text(document)}",
        "where": f"{job.devices:,} × {chip.name}",
        "network": setting.cluster.label,
        "software": f"{setting.stack.name}, {precision}, {job.optimizer}, {opened.model.attention} attention",
        "unit": unit_of(document),
        "warnings": [_sentence(one) for one in refusals(document["approximations"])],
        "plans": views,
        "inputs": views[0].cost.inputs,
        "menu": menu,
        "groups": groups,
        "what_if": parts_of(what_if_sections(document), "what-if-"),
        "against": parts_of(against_sections(document), "against-") if "against" in document else [],
        "accuracy": _accuracy(document),
        "assumed": [
            _sentence(one)
            for one in (
                flops_text(document, setting.precision),
                *document["approximations"],
                *([links] if links else []),
            )
        ],
        "command": _command(opened, document),
        "operators": operators_parts(story),
    }
    numbers = {
        "plans": {
            one.plan.key: {"tokens_per_s": one.plan.document["tokens_per_s"], "devices": job.devices} for one in told
        },
        "timelines": {
            one.plan.key: timeline_numbers(one.story.pipeline, tail_of(one.story))
            for one in told
            if one.story.pipeline is not None
        },
    }
    title = f"phaze: {opened.model.name} on {job.devices:,} {chip.name}"
    return rendered("plan.html", {"view": view, "title": title}, ("timeline.js", "plan.js"), numbers)
