"""The best different plans, those apart that no framework can launch, and the same job on other
terms."""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.evaluate.plan import ALTERNATIVES_SHOWN, ALTERNATIVES_WITHIN
from phaze.evaluate.plan_set import USUAL, NamedPlan
from phaze.options.frameworks import FRAMEWORK_NAMES
from phaze.report.plan_cards import badges
from phaze.report.plan_text import unit_of
from phaze.report.sections import Cell, Choice, Group, Meter, Notes, Number, Section, Table
from phaze.report.step_time import part_words
from phaze.units import digits, show

NO_WHAT_IF = (
    "Other devices, batches, lengths and chips were not planned: --what-if adds them (a plan each)."
)
CHOOSER = "plan"
"""What the choice of a plan switches: all variants of this name."""
FITTING = 5
"""Columns that a terminal has room for: without rate, MFU and who launches a plan."""


def _launch_words(launch: Mapping[str, Any]) -> str:
    """Who launches a plan, or why the first does not; where none was tried, nothing is known."""
    if not launch:
        return "not tried"
    names = [
        FRAMEWORK_NAMES.get(key, key) + (" (deviates)" if target["deviations"] else "")
        for key, target in launch.items()
        if target["refused"] is None
    ]
    return ", ".join(names) or f"none: {next(iter(launch.values()))['refused']}"


def _launchable(row: Mapping[str, Any]) -> bool:
    """Whether some framework can launch a plan; where nothing is said of it, it may."""
    launch = row.get("launch")
    return not launch or any(target["refused"] is None for target in launch.values())


def _stated_in_part(document: Mapping[str, Any], whole: Sequence[NamedPlan]) -> list[NamedPlan]:
    """The plans that a document names and does not hold in full: what their rows say of them."""
    named = {plan.key for plan in whole}
    rows = enumerate((document.get("alternatives") or ())[1:], 2)
    plans = [NamedPlan(f"a{number}", f"Alternative {number}", row, row) for number, row in rows]
    usual = [(key, name, document.get(place)) for key, place, name in USUAL]
    plans += [NamedPlan(key, name, row, row) for key, name, row in usual if row]
    return [plan for plan in plans if plan.key not in named]


def _row(plan: NamedPlan, left: str, best_s: float) -> list[Cell]:
    """A plan: what it is, what it loses most by, step time and free memory; rate, MFU, launch."""
    document, step_s = plan.document, float(plan.document["batch_s"])
    loss = str(plan.row.get("loses_by") or "")
    chosen = Choice(plan.name, CHOOSER, plan.key, badges(document))
    rate, mfu = document.get("tokens_per_s_per_device"), document.get("mfu")
    return [
        chosen if left else f"{plan.name}: {', '.join(badges(document))}",
        part_words(loss) if loss else "-",
        show(step_s, "s"),
        "best" if plan.key == "best" else f"{100 * (step_s / best_s - 1):+.1f} %",
        left or "-",
        "-" if rate is None else digits(float(rate)),
        "-" if mfu is None else f"{100 * mfu:.1f} %",
        _launch_words(plan.row.get("launch") or {}),
    ]


def alternatives_group(
    document: Mapping[str, Any], plans: Sequence[tuple[NamedPlan, str]]
) -> Group:
    """The rows of all plans, those that some framework can launch first; ``plans`` are those that
    the document holds in full, each with what it leaves of a device's memory."""
    best_s = float(document["batch_s"])
    shown = [
        *plans,
        *((plan, "") for plan in _stated_in_part(document, [plan for plan, _ in plans])),
    ]
    tables: dict[bool, list[Sequence[Cell]]] = {True: [], False: []}
    for plan, left in sorted(shown, key=lambda pair: float(pair[0].document["batch_s"])):
        tables[_launchable(plan.row)].append(_row(plan, left, best_s))
    rate = f"{unit_of(document)}/s a device"
    columns = ("plan", "loses most by", "step", "vs best", "left", rate, "MFU", "launch")
    sections: list[Section] = []
    for launchable, title in ((True, ""), (False, "No framework here can launch these")):
        if tables[launchable]:
            sections.append(
                Table(columns, tables[launchable], title, texts=2, end_texts=1, on_terminal=FITTING)
            )
    caption = (
        "The best plan of each different choice, and what people usually run. Left: of a "
        "device's memory."
    )
    return Group(sections, "Alternatives", caption + _rest(document))


def _rest(document: Mapping[str, Any]) -> str:
    """What is known of the choices that are not shown, where fewer are than there is room for."""
    counted, shown = document.get("choices") or {}, len(document.get("alternatives") or ())
    if not shown < min(ALTERNATIVES_SHOWN, counted.get("bounded", 0)):
        return ""
    return (
        f" Any other choice takes more than {ALTERNATIVES_WITHIN:g} times as long, does not fit, or "
        "is never better than one of these."
    )


def what_if_group(document: Mapping[str, Any]) -> Section | None:
    """Other devices, batches, sequences and chips, and how to plan them where they were not;
    nothing of a plan that was given."""
    if document.get("proved") is not True and not document.get("what_if"):
        return None
    if not document.get("what_if"):
        return Notes([NO_WHAT_IF], "What if")
    caption = (
        "Every row is planned anew, so its split changes with it. Bars: "
        f"{unit_of(document)}/s a device."
    )
    return Group(_what_if_tables(document), "What if", caption)


def _what_if_tables(document: Mapping[str, Any]) -> list[Section]:
    sections: list[Section] = []
    for group in document.get("what_if") or ():
        rates = [row["tokens_per_s_per_device"] for row in group["rows"] if row["reason"] is None]
        rows: list[Sequence[Cell]] = []
        for row in group["rows"]:
            label = f"{row['label']} (now)" if row["same"] else row["label"]
            if row["reason"] is not None:
                rows.append((label, f"does not work: {row['reason']}", "", "", ""))
            else:
                rate = row["tokens_per_s_per_device"]
                figures = (
                    Number(digits(rate), rate),
                    f"{row['mfu']:.1%}",
                    Meter(rate / max(rates)),
                )
                rows.append((label, row["plan"], *figures))
        columns = (group["axis"], "plan", f"{unit_of(document)}/s a device", "MFU", "")
        sections.append(Table(columns, rows, group["title"], texts=2))
    return sections
