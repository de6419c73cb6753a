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
from phaze.report.page.render import rendered
from phaze.report.page.search_page import search_page
from phaze.report.sections import Link, Notes, Table
from phaze.report.sweep_sheet import sweep_page
from phaze.search.progress_file import COLUMNS, PROGRESS
from phaze.search.result_file import read_result
from phaze.sweep.schema import sweep_in
from phaze.view.library import RunEntry, key_of, read_document

PER_PAGE = 20
"""Rows of a list on a laptop screen."""
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


def list_page(root: str, runs: Sequence[RunEntry]) -> str:
    """All runs."""
    rows = [
        {
            "key": run.key,
            "name": run.name,
            "kind": run.kind,
            "status": run.status,
            "when": datetime.fromtimestamp(run.changed_s, UTC).strftime("%Y-%m-%d %H:%M UTC"),
            "changed": run.changed_s,
            "what": run.what,
            "figures": ", ".join(f"{name} {value}" for name, value in run.figures.items()),
        }
        for run in runs
    ]
    context = {"title": "phaze view", "view": {"root": root, "rows": rows, "per_page": PER_PAGE}}
    return rendered("view.html", context, ("sorted_table.js", "view.js"), served=True)


def run_page(run: RunEntry) -> str:
    """A run's own page, made from its files."""
    if run.status in ("running", "stopped"):
        context = {
            "title": f"phaze view: {run.name}",
            "view": {"key": run.key, "name": run.name, "status": run.status},
        }
        return rendered("live.html", context, ("view.js",), served=True)
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


def live_document(run: RunEntry) -> dict[str, Any]:
    """How far a search is: its status and the rows that it kept."""
    rows: list[Any] = []
    path = run.path / PROGRESS
    if run.status in ("running", "stopped") and path.is_file():
        stated = read_document(path).get("rows")
        if isinstance(stated, list):
            rows = [row for row in stated if _is_row(row)]
    return {"status": run.status, "columns": list(COLUMNS), "rows": rows}


def _is_row(row: Any) -> bool:
    """Whether a row is numbers, or none where there is nothing yet."""
    numbers = isinstance(row, list) and len(row) == len(COLUMNS)
    return numbers and all(
        number is None or (isinstance(number, int | float) and abs(number) < 1e30) for number in row
    )


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
