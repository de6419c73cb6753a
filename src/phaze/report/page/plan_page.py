"""The page of a plan on hardware that exists: can I launch this tonight?

First whether it fits, how fast it is, what it costs and what it gains; then the launch flags, since
they are what the reader came to take away; then time, memory, timeline, the alternatives that
switch the whole page, and how far to trust all of it. A chip that one cannot change has no floor
plan here.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.evaluate.job_file import JobTable, Reopened, reopened
from phaze.evaluate.plan_file import require_job_plan
from phaze.evaluate.plan_set import NamedPlan, choices_text, plans_in
from phaze.evaluate.restrictions import option_words, proof_words, short_proof
from phaze.graph.refusals import refusals
from phaze.hardware.cluster import cluster_document
from phaze.report.against_sheet import against_sections
from phaze.report.alternatives_sheet import what_if_sections
from phaze.report.html import sections_page
from phaze.report.launch_text import LaunchText
from phaze.report.page.memory_bars import memory_bars
from phaze.report.page.operators import operators_group
from phaze.report.page.pipeline_timeline import pipeline_timeline
from phaze.report.page.plan_cards import (
    Fit,
    Gain,
    badges,
    cost_card,
    fit_of,
    gain_of,
    gib,
    short_words,
    speed_card,
)
from phaze.report.plan_sheet import missing_sections
from phaze.report.plan_text import batch_text, constants_text, flops_text, unit_of
from phaze.report.sections import (
    Cards,
    Cell,
    Choice,
    Group,
    Notes,
    Section,
    Table,
    Variant,
    Variants,
)
from phaze.report.step_time import part_words, step_time, what_would_help
from phaze.report.view_model import Story, planned
from phaze.search.plan_words import precision_words
from phaze.units import digits, show

LaunchTexts = Mapping[str, tuple[LaunchText, ...]]
NO_WHAT_IF = (
    "Other devices, batches, sequences and chips were not planned: phaze plan ... "
    "--what-if --html plan.html adds them "
    "(a plan each)."
)


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A plan of the document: its job, its times taken apart, whether it fits, what it gains, its
    launch files."""

    plan: NamedPlan
    opened: Reopened
    story: Story
    fit: Fit
    gain: Gain
    launches: tuple[LaunchText, ...]

    @property
    def document(self) -> Mapping[str, Any]:
        """The plan as a document of its own."""
        return self.plan.document

    @property
    def launchable(self) -> bool:
        """Whether some framework can launch it; where none was tried, it may."""
        return not self.launches or any(not launch.refused for launch in self.launches)


def _headroom(document: Mapping[str, Any]) -> float:
    left = document.get("memory_left")
    share = left.get("headroom", 0.0) if isinstance(left, Mapping) else 0.0
    return float(share) if isinstance(share, int | float) and 0 <= share < 1 else 0.0


def _shown_plans(document: Mapping[str, Any], where: str, texts: LaunchTexts) -> list[ShownPlan]:
    plans = plans_in(document)
    first, steps = (
        plans[0].document,
        [(plan.key, plan.name, float(plan.document["batch_s"])) for plan in plans],
    )
    shown = []
    for plan in plans:
        opened = reopened(plan.document, where)
        job, setting = opened.job, opened.setting
        story = planned(opened.model, setting, plan.document, job.devices, job.batch, where)
        bound_s = (
            float(first["lower_bound_s"])
            if first.get("proved") is True
            else float(plan.document["batch_s"])
        )
        gain = gain_of(
            plan.key, steps, bound_s, short_proof(first), plan.document.get("training_run")
        )
        device = DeviceMemory(float(setting.chip.hbm.size_bytes), _headroom(first))
        fit = fit_of(plan.document, device, setting.stack.saves)
        shown.append(ShownPlan(plan, opened, story, fit, gain, texts.get(plan.key, ())))
    return shown


def _title(shown: ShownPlan) -> str:
    """The answer in one sentence."""
    split, short = short_words(shown.document), shown.document.get("shortage")
    if short is not None:
        return f"Does not fit: stage {short['stage']} lacks {gib(short['missing_bytes'])}. {split}."
    verdict = shown.fit.verdict[0].replace("Tight", "Fits, but tightly,")
    faster = f"; {shown.gain.figure} {shown.gain.unit}" if shown.gain.figure.endswith("%") else ""
    return f"{verdict} with {shown.fit.left} to spare{faster}: {split}."


def _first_screen(shown: ShownPlan, band: float | None, warnings: Sequence[str]) -> Variant:
    cards = [
        shown.fit.card(),
        speed_card(shown.document, band),
        cost_card(shown.document, shown.opened.setting.chip, shown.opened.job.devices),
        shown.gain.card(),
    ]
    sections: list[Section] = [
        Notes(badges(shown.document), _title(shown), look="tags"),
        *([Notes(warnings, look="warning")] if warnings else []),
        Cards(cards),
    ]
    name = (
        f"{shown.plan.name}: {short_words(shown.document)}, {show(shown.document['batch_s'], 's')}"
    )
    return Variant(shown.plan.key, name, sections)


def _launch(launch: LaunchText) -> Variant:
    if launch.refused:
        reason = f"{launch.name} cannot launch this plan: {launch.refused}."
        return Variant(launch.key, f"{launch.name} (refused)", [Notes([reason], look="box")])
    warnings = [f"{launch.name} will do otherwise than planned:", *launch.deviations]
    sections: list[Section] = [Notes(warnings, look="box")] if launch.deviations else []
    sections.append(Notes([launch.text], verbatim=True, file=launch.file))
    return Variant(launch.key, launch.name, sections)


def _launches(shown: ShownPlan) -> Section:
    """The flags of every framework, the first that can launch the plan in front."""
    if not shown.launches:
        return Notes(["Launch flags: phaze export plan.json --to megatron"], "Launch it")
    ordered = sorted(shown.launches, key=lambda launch: bool(launch.refused))
    note = "Written for the framework's own argument parser; no GPU run was made."
    tabs = [_launch(launch) for launch in ordered]
    return Variants(f"framework-{shown.plan.key}", tabs, "tabs", title="Launch it", notes=[note])


def _details(shown: ShownPlan) -> Variant:
    story, missing = shown.story, missing_sections(shown.document)
    time = step_time(story.plan, story.steps, story.split.devices)
    help_bars = what_would_help(story.steps, float(story.plan["batch_s"]))
    sections: list[Section] = [
        *([Group(missing, "What is short", columns=True)] if missing else []),
        _launches(shown),
        Group([*time, help_bars], "Step time"),
        memory_bars(shown.document, shown.fit.device),
        pipeline_timeline(story),
    ]
    return Variant(shown.plan.key, shown.plan.name, sections)


def _launch_words(shown: ShownPlan) -> str:
    if not shown.launches:
        return "not tried"
    names = [
        f"{it.name} (deviates)" if it.deviations else it.name
        for it in shown.launches
        if not it.refused
    ]
    return ", ".join(names) or f"none: {shown.launches[0].refused}"


def _alternatives(plans: Sequence[ShownPlan]) -> list[Section]:
    """The rows of all plans, those that some framework can launch first."""
    best_s = float(plans[0].document["batch_s"])
    tables: dict[bool, list[Sequence[Cell]]] = {True: [], False: []}
    for shown in sorted(plans, key=lambda shown: float(shown.document["batch_s"])):
        document, key = shown.document, shown.plan.key
        loss = str(shown.plan.row.get("loses_by") or "")
        row = (
            Choice(shown.plan.name, "plan", key, badges(document)),
            part_words(loss) if loss else "-",
            _launch_words(shown),
            show(document["batch_s"], "s"),
            "best"
            if key == "best"
            else f"{100 * (float(document['batch_s']) / best_s - 1):+.1f} %",
            digits(float(document["tokens_per_s_per_device"])),
            f"{100 * document['mfu']:.1f} %",
            shown.fit.left,
        )
        tables[shown.launchable].append(row)
    rate = f"{unit_of(plans[0].document)}/s a device"
    columns = ("Plan", "Loses most by", "Launch", "Step", "vs best", rate, "MFU", "Memory left")
    sections: list[Section] = [Table(columns, tables[True], texts=3)] if tables[True] else []
    if tables[False]:
        sections.append(
            Table(columns, tables[False], "No framework here can launch these", texts=3)
        )
    caption = (
        "The best plan of each different choice, and what people usually run. Choosing one "
        "shows it on the whole page."
    )
    return [Group(sections, "Alternatives", caption)]


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


def _sentence(note: str) -> str:
    """A note with a capital and a full stop."""
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def _accuracy(document: Mapping[str, Any]) -> list[str]:
    trust = document["constants"]
    band = (
        f"within {trust['band']:.0%} of measured steps in 8 of 10"
        if trust["band"]
        else "at peak, without a band"
    )
    origin = trust.get("band_of")
    runs = (
        f" ({origin['runs']:,} runs of {origin['sources']} sources, held back: {origin['kind']})"
        if origin
        else ""
    )
    lines = [f"Times rest on {trust['basis']} constants, {band}{runs}."]
    rate = constants_text(trust)
    if rate:
        lines.append(f"GEMM rate: {rate}.")
    left = document.get("memory_left")
    if left:
        error = left["band"]
        lines.append(
            f"Memory is off by {error['median']:.1%} in the median and "
            f"{error['ninetieth']:.0%} in the 90th percentile "
            f"({error.get('rows') or 'measured runs'})."
        )
    if document.get("proved") is True:
        lines.append(_sentence(proof_words(document)))
        lines.append(_sentence(choices_text(document)))
    return lines


def _trust(opened: Reopened, document: Mapping[str, Any]) -> Group:
    setting = opened.setting
    links = cluster_document(setting.cluster, setting.chip)["links"]
    assumed = [
        flops_text(document, setting.precision),
        *document["approximations"],
        *([links] if links else []),
    ]
    sections: list[Section] = [
        Group(
            [
                Notes(_accuracy(document), "Bands and proofs", look="list"),
                Notes([_sentence(note) for note in assumed], "Assumed", look="list"),
            ],
            columns=True,
        ),
        Notes([_command(opened.job, document)], "Ask again", verbatim=True),
    ]
    return Group(sections, "Accuracy")


def _what_if(document: Mapping[str, Any]) -> Section:
    groups = what_if_sections(document)
    if not groups:
        return Notes([NO_WHAT_IF], "What if")
    caption = (
        "Every row is planned anew, so its split changes with it. Bars: "
        f"{unit_of(document)}/s a device."
    )
    return Group(groups, "What if", caption)


def plan_page_sections(
    document: Mapping[str, Any], where: str, texts: LaunchTexts
) -> list[Section]:
    """What the page of a plan shows."""
    plans = _shown_plans(document, where, texts)
    opened, band = plans[0].opened, plans[0].document["constants"]["band"]
    warnings = [_sentence(note) for note in refusals(document["approximations"])]
    against = against_sections(document) if "against" in document else []
    return [
        Variants("plan", [_first_screen(shown, band, warnings) for shown in plans], "bar"),
        Variants("plan", [_details(shown) for shown in plans]),
        *(_alternatives(plans) if len(plans) > 1 else []),
        *([Group(against, "From your plan to the best one")] if against else []),
        _what_if(document),
        _trust(opened, document),
        operators_group(plans[0].story),
    ]


def plan_page(document: Mapping[str, Any], where: str, texts: LaunchTexts | None = None) -> str:
    """The page of a document ``phaze.plan/1`` that carries its job; ``texts`` are the launch files
    of its plans."""
    require_job_plan(document, where)
    sections = plan_page_sections(document, where, texts or {})
    opened = reopened(document, where)
    job, setting, model = opened.job, opened.setting, opened.model
    precision = precision_words(setting.precision)
    subject = (
        model.name,
        f"global batch {batch_text(document)}",
        f"{job.devices:,} × {setting.chip.name}",
        setting.cluster.label,
        f"{setting.stack.name}, {precision}, {job.optimizer}, {model.attention} attention",
    )
    foot = "Times under rules cluster; power and cost are estimates."
    return sections_page(sections, "plan", subject=subject, foot=foot)
