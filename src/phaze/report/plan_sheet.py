"""A plan on hardware that exists: can I launch this tonight?

First whether it fits, how fast it is, what it costs and what it gains; then what it is, its launch
flags, time, memory, timeline, the alternatives that switch the whole page, and how far to trust all
of it. What only traced layers tell (the cause of every cost, the timeline, operators) stands where
a :class:`PlanPage` brings it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.evaluate.plan_set import NamedPlan, choices_text, plans_in
from phaze.evaluate.restrictions import proof_words, short_proof
from phaze.graph.refusals import refusals
from phaze.hardware.chip import Chip
from phaze.hardware.formats import PLAIN
from phaze.report.against_sheet import against_sections
from phaze.report.alternatives_sheet import alternatives_group, what_if_group
from phaze.report.launch_text import LaunchText
from phaze.report.memory_bars import memory_bars
from phaze.report.page.operators import operators_group
from phaze.report.page.pipeline_timeline import pipeline_timeline
from phaze.report.placement_sheet import missing_sections
from phaze.report.plan_cards import (
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
from phaze.report.plan_text import (
    constants_text,
    exchange_rows,
    flops_text,
    keeping_rows,
    launch_words,
    subject_of,
)
from phaze.report.sections import Cards, Figures, Group, Notes, Section, Variant, Variants
from phaze.report.step_time import step_time, what_would_help
from phaze.report.view_model import Story
from phaze.units import show


@dataclass(frozen=True, slots=True)
class PlanPage:
    """What a page tells of a document's plans beside it: their times taken apart and their launch
    files, by key; the chip, which prices an example of a run; the command that asks again."""

    stories: Mapping[str, Story]
    launches: Mapping[str, Sequence[LaunchText]]
    chip: Chip
    command: str


@dataclass(frozen=True, slots=True)
class ShownPlan:
    """A plan of the document: whether it fits, what it gains, and what its page has of it."""

    plan: NamedPlan
    fit: Fit
    gain: Gain
    page: PlanPage | None

    @property
    def document(self) -> Mapping[str, Any]:
        """The plan as a document of its own."""
        return self.plan.document

    @property
    def story(self) -> Story | None:
        """Its times taken apart."""
        return None if self.page is None else self.page.stories[self.plan.key]


def _device(document: Mapping[str, Any], page: PlanPage | None) -> DeviceMemory:
    """The memory of a device, and what of it the plan was chosen to leave free."""
    left = document.get("memory_left") or {}
    if page is not None:
        return DeviceMemory(float(page.chip.hbm.size_bytes), float(left.get("headroom", 0.0)))
    fullest = max(float(stage["memory_bytes"]) for stage in document["stages"])
    return DeviceMemory(fullest + float(left["left_bytes"]), float(left["headroom"]))


def _shown_plans(document: Mapping[str, Any], page: PlanPage | None) -> list[ShownPlan]:
    plans, device = plans_in(document), _device(document, page)
    first = plans[0].document
    steps = [(plan.key, plan.name, float(plan.document["batch_s"])) for plan in plans]
    proved, shown = first.get("proved") is True, list[ShownPlan]()
    for plan in plans:
        bound_s = float(
            (first if proved else plan.document)["lower_bound_s" if proved else "batch_s"]
        )
        run = plan.document.get("training_run")
        gain = gain_of(plan.key, steps, bound_s, short_proof(first), run)
        shown.append(ShownPlan(plan, fit_of(plan.document, device), gain, page))
    return shown


def _title(shown: ShownPlan) -> str:
    """The answer in one sentence."""
    split, short = short_words(shown.document), shown.document.get("shortage")
    if short is not None:
        return f"Does not fit: stage {short['stage']} lacks {gib(short['missing_bytes'])}. {split}."
    verdict = shown.fit.verdict[0].replace("Tight", "Fits, but tightly,")
    faster = f"; {shown.gain.figure} {shown.gain.unit}" if shown.gain.figure.endswith("%") else ""
    return f"{verdict} with {shown.fit.left} to spare{faster}: {split}."


def _sentence(note: str) -> str:
    """A note with a capital and a full stop."""
    return f"{note[:1].upper()}{note[1:]}{'' if note.endswith('.') else '.'}"


def _facts(shown: ShownPlan) -> Figures:
    """What the plan is: how it computes and keeps its state, its exchanges, who launches it."""
    document = shown.document
    words = launch_words(document.get("launch") or shown.plan.row.get("launch") or {})
    rows = [
        ("attention", str(document.get("attention") or "")),
        *keeping_rows(document),
        *exchange_rows(document),
        ("launched by", words),
    ]
    return Figures([(name, text) for name, text in rows if text])


def _first_screen(shown: ShownPlan, document: Mapping[str, Any]) -> Variant:
    page, devices = shown.page, int(document.get("devices") or document["job"]["devices"])
    warnings = [_sentence(note) for note in refusals(document["approximations"])]
    cards = [
        shown.fit.card(),
        speed_card(shown.document, document["constants"]),
        *cost_card(shown.document, None if page is None else page.chip, devices),
        shown.gain.card(),
    ]
    sections: list[Section] = [
        Notes(badges(shown.document), _title(shown), look="tags"),
        *([Notes(warnings, look="warning")] if warnings else []),
        Cards(cards),
        _facts(shown),
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


def _launches(key: str, launches: Sequence[LaunchText]) -> Section:
    """The flags of every framework, the first that can launch the plan in front."""
    if not launches:
        return Notes(["Launch flags: phaze export plan.json --to megatron"], "Launch it")
    ordered = sorted(launches, key=lambda launch: bool(launch.refused))
    note = "Written for the framework's own argument parser; no GPU run was made."
    tabs = [_launch(launch) for launch in ordered]
    return Variants(f"framework-{key}", tabs, "tabs", title="Launch it", notes=[note])


def _details(shown: ShownPlan) -> Variant:
    """Launch flags, time, memory and timeline of a plan."""
    document, story, key = shown.document, shown.story, shown.plan.key
    missing, time = missing_sections(document), step_time(document)
    sections: list[Section] = [Group(missing, "What is short", columns=True)] if missing else []
    if story is not None and shown.page is not None:
        time = [
            *step_time(story.plan, story.steps, story.split.devices),
            what_would_help(story.steps, float(story.plan["batch_s"])),
        ]
        sections.append(_launches(key, shown.page.launches.get(key, ())))
    sections += [Group(time, "Step time"), memory_bars(document, shown.fit.device)]
    sections += [] if story is None else [pipeline_timeline(story)]
    return Variant(key, shown.plan.name, sections)


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
    if document.get("proved") is True:
        lines.append(_sentence(proof_words(document)))
        lines.append(_sentence(choices_text(document)))
    return lines


def _trust(document: Mapping[str, Any], page: PlanPage | None) -> Group:
    links = (document.get("cluster") or {}).get("links")
    precision = document.get("precision") or document["job"].get("precision")
    assumed = [
        flops_text(document, str(precision or PLAIN)),
        *(note for note in document["approximations"] if not refusals([note])),
        *([str(links)] if links else []),
    ]
    lists = [
        Notes(_accuracy(document), "Bands and proofs", look="list"),
        Notes([_sentence(note) for note in assumed], "Assumed", look="list"),
    ]
    sections: list[Section] = [Group(lists, columns=True)]
    if page is not None:
        sections.append(Notes([page.command], "Ask again", verbatim=True))
    return Group(sections, "Accuracy")


def plan_sections(document: Mapping[str, Any], page: PlanPage | None = None) -> list[Section]:
    """A plan (``phaze.plan/1``), with its alternatives and other jobs where they were planned."""
    plans = _shown_plans(document, page)
    shown = [(plan.plan, plan.fit.left) for plan in plans]
    against = against_sections(document) if "against" in document else []
    what_if = what_if_group(document)
    return [
        Variants("plan", [_first_screen(plan, document) for plan in plans], "bar"),
        Variants("plan", [_details(plan) for plan in plans]),
        *([alternatives_group(document, shown)] if document.get("alternatives") else []),
        *([Group(against, "From your plan to the best one")] if against else []),
        *([what_if] if what_if else []),
        _trust(document, page),
        *([operators_group(plans[0].story)] if plans[0].story else []),
    ]


def planned_sections(document: Mapping[str, Any]) -> list[Section]:
    """A plan below the job that it answers."""
    return [Notes(subject_of(document), look="tags"), *plan_sections(document)]
