"""What a measured run determined."""

from collections.abc import Mapping
from typing import Any

from phaze.report.numbers import signed
from phaze.report.sections import Figures, Notes, Section, Table
from phaze.units import show

DRAWN = (
    "A plan's timeline is an estimate unless you drew it from a run: what is fitted to it is "
    "no measurement."
)


def _seconds(value: float | None) -> str:
    return "" if value is None else show(value, "s")


def _steps(document: Mapping[str, Any]) -> Figures:
    step, drawn = document["step_s"], document["measured"]["kind"] == "plan"
    rows = [("step", f"{show(step['measured'], 's')} {'drawn' if drawn else 'measured'}")]
    for name in ("before", "fitted"):
        rows.append((name, f"{show(step[name], 's')}, {signed(step[name] / step['measured'] - 1)}"))
    return Figures(rows)


def _classes(measured: Mapping[str, Any]) -> Table:
    rows = [
        (name, _seconds(times["measured"]), _seconds(times["predicted"]))
        for name, times in measured["seconds"].items()
    ]
    notes = []
    if measured["unknown_share"]:
        names = ", ".join(
            f"{kernel['name']} ({kernel['share']:.1%})" for kernel in measured["unknown"]
        )
        notes.append(f"{measured['unknown_share']:.1%} of kernel time has unknown names: {names}.")
    return Table(("", "measured", "phaze"), rows, "Seconds a step by class of kernel", notes=notes)


def _fitted(document: Mapping[str, Any]) -> Table:
    rows = [
        (
            fit["file"],
            fit["key"],
            "" if fit["before"] is None else f"{fit['before']:.4g}",
            f"{fit['value']:.4g}",
            fit["how"],
        )
        for fit in document["fitted"]
    ]
    return Table(("file", "key", "before", "now", "from"), rows, "Fitted", texts=2)


def run_fit_sections(document: Mapping[str, Any]) -> list[Section]:
    """What was measured, what it determined, what not and why."""
    measured = document["measured"]
    sections: list[Section] = [_steps(document)]
    if measured["kind"] == "plan":
        sections.append(Notes([DRAWN]))
    if "seconds" in measured:
        sections.append(_classes(measured))
    if document["fitted"]:
        sections.append(_fitted(document))
    if document["undetermined"]:
        lines = [f"{missing['key']}: {missing['reason']}." for missing in document["undetermined"]]
        sections.append(Notes(lines, "Not determined"))
    files = [f"{kind}: {path}" for kind, path in document["files"].items()]
    return [*sections, *([Notes(files, verbatim=True)] if files else [])]
