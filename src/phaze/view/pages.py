"""The pages that ``phaze view`` serves: the list, a run's own page, a search under way, two runs
side by side."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from phaze.errors import InputError
from phaze.export.launch_files import launch_texts
from phaze.export.load_run import read_plan, run_of
from phaze.front.design import design_in
from phaze.front.schema import front_in
from phaze.report.front_sheet import front_page
from phaze.report.html import sections_page
from phaze.report.numbers import signed_percent
from phaze.report.page.design_page import design_page
from phaze.report.page.plan_page import plan_page
from phaze.report.page.search_page import search_page
from phaze.report.sections import Cell, Link, Notes, Number, Pick, Section, Table
from phaze.report.sweep_sheet import sweep_page
from phaze.search.result_file import read_result
from phaze.sweep.schema import sweep_in
from phaze.view.course import course_sections
from phaze.view.library import RunEntry, key_of

# A list is asked for again after so many seconds, one of very many runs less often.
LIST_S, RUNS_A_SECOND = 3.0, 100
# A search under way keeps a row twice a second; one that was stopped may be resumed.
RUNNING_S, STOPPED_S = 1.0, 3.0
# Figures of a chip that two runs are compared by: key, name, what one unit shown is in the file's,
# unit.
CHIP_ROWS = (
    ("area_mm2", "area", 1.0, "mm²"),
    ("design_power_w", "TDP", 1.0, "W"),
    ("making_usd", "manufacturing cost", 1.0, "USD"),
    ("peak_flops", "peak", 1e12, "TFLOP/s"),
    ("hbm_bytes", "HBM", 2.0**30, "GiB"),
    ("hbm_bytes_per_s", "HBM bandwidth", 1e12, "TB/s"),
    ("global_buffer_bytes", "global buffer", 2.0**20, "MiB"),
    ("link_bytes_per_s", "links", 1e9, "GB/s"),
    ("clock_hz", "clock", 1e9, "GHz"),
)


def _listed(run: RunEntry) -> list[Cell]:
    when = datetime.fromtimestamp(run.changed_s, UTC).strftime("%Y-%m-%d %H:%M UTC")
    is_search = run.kind == "search" and run.status == "finished"
    return [
        Pick(run.name, run.key if is_search else ""),
        Link(run.name, f"/run/{run.key}"),
        run.kind,
        run.status,
        Number(when, run.changed_s),
        run.what,
        ", ".join(f"{name} {value}" for name, value in run.figures.items()),
    ]


def list_page(root: str, runs: Sequence[RunEntry]) -> str:
    """All runs."""
    title = f"{len(runs)} run{'' if len(runs) == 1 else 's'}"
    columns = ("Compare", "Run", "Kind", "Status", "Changed", "What", "Figures")
    section: Section = Notes(
        ["No run is here yet: phaze search --model bert-large makes one."], title
    )
    if runs:
        rows = [_listed(run) for run in runs]
        section = Table(columns, rows, title, texts=len(columns), compares="/compare")
    return sections_page(
        [section],
        "view",
        subject=(root,),
        foot="On this machine alone; Ctrl-C in the terminal ends it.",
        served=True,
        home=True,
        refresh_s=max(LIST_S, len(runs) / RUNS_A_SECOND),
    )


def run_page(run: RunEntry) -> str:
    """A run's own page, made from its files."""
    if run.status in ("running", "stopped"):
        every_s = RUNNING_S if run.status == "running" else STOPPED_S
        sections = course_sections(run)
        return sections_page(sections, "view", served=True, refresh_s=every_s)
    if run.kind == "search":
        return search_page(run_of(run.path))
    if run.kind == "front":
        document = front_in(run.path)[0]
        return front_page(
            document,
            {index: f"/run/{run.key}/{index}" for index in range(len(document["points"]))},
            run.name,
        )
    if run.kind == "sweep":
        document = sweep_in(run.path)
        points = (f"points/{index:03d}" for index in range(len(document["points"])))
        names = [point if run.name == "." else f"{run.name}/{point}" for point in points]
        there = [
            (run.path / "points" / f"{index:03d}" / "result.json").is_file()
            for index in range(len(names))
        ]
        return sweep_page(
            document,
            {index: f"/run/{key_of(names[index])}" for index in range(len(names)) if there[index]},
        )
    document, where = read_plan(str(run.path))
    return plan_page(document, where, launch_texts(document, where))


def point_page(run: RunEntry, index: int) -> str:
    """The page of one design of a front."""
    if run.kind != "front" or run.status != "finished":
        raise InputError(run.name, f"this is a {run.status} {run.kind}", "open a finished front")
    return design_page(design_in(run.path, index))


def _pair(name: str, unit: str, first: float, second: float) -> tuple[str, ...]:
    change = signed_percent(second / first - 1) if first else ""
    return f"{name}, {unit}" if unit else name, f"{first:,.4g}", f"{second:,.4g}", change


def _result(run: RunEntry) -> Mapping[str, Any]:
    if run.kind != "search" or run.status != "finished":
        raise InputError(
            run.name, f"this is a {run.status} {run.kind}", "compare two finished searches"
        )
    return read_result(Path(run.path))


def compare_page(first: RunEntry, second: RunEntry) -> str:
    """Two searches side by side: their chips, and every model that both have."""
    a, b = _result(first), _result(second)
    rows = [
        _pair(name, unit, a["chip"][key] / scale, b["chip"][key] / scale)
        for key, name, scale, unit in CHIP_ROWS
    ]
    models = {model["name"]: model for model in b["models"]}
    for model in a["models"]:
        other = models.get(model["name"])
        if other is not None:
            for key, name, scale in (
                ("throughput_per_s", "sequences/s", 1.0),
                ("mfu", "MFU, %", 0.01),
            ):
                rows.append(
                    _pair(f"{model['name']}: {name}", "", model[key] / scale, other[key] / scale)
                )
    rows.append(
        _pair("proved gap", "%", 100 * a["certificate"]["gap"], 100 * b["certificate"]["gap"])
    )
    alone = sorted({model["name"] for model in a["models"]} ^ set(models))
    notes = [f"Only one of them has: {', '.join(alone)}."] if alone else []
    pages = [Link(run.name, f"/run/{run.key}") for run in (first, second)]
    chips = ("chip", str(a["chip"]["name"]), str(b["chip"]["name"]), "")
    columns = ("figure", first.name, second.name, "second vs first")
    title = f"{first.name} compared with {second.name}"
    table = Table(columns, [("run", *pages, ""), chips, *rows], title, notes=notes)
    return sections_page([table], "view", served=True)


def fault_page(sentence: str) -> str:
    """Why there is no page."""
    return sections_page([Notes([], sentence)], "view", served=True)
