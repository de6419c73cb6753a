"""Published runs beside ours in the terminal: a line for every set, or for every row of some."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from types import MappingProxyType
from typing import Any

from rich.console import Console

from phaze.report.terminal import paragraph, table
from phaze.units import Unit, show
from phaze.validate.best import Beside, plan_of
from phaze.validate.compare import Compared, Quantity, wrong_choices
from phaze.validate.statistics import Score

NAMES: Mapping[Quantity, str] = MappingProxyType(
    {"seconds": "Iteration time", "memory_bytes": "Memory of the fullest device"}
)


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.1%}".replace("%", " %")


def _signed(value: float | None) -> str:
    return "" if value is None else f"{100 * value:+.1f} %"


def _figures(name: str, score: Score) -> tuple[str, ...]:
    rank = "" if score.rank is None else f"{score.rank:.2f}"
    return (
        name,
        str(score.rows),
        _share(score.median),
        _share(score.nine_tenths),
        _signed(score.bias),
        _signed(score.worst),
        rank,
        _share(score.regret),
    )


def _between(ends: tuple[float, float] | None, form: str) -> str:
    return "" if ends is None else " to ".join(form.format(end) for end in ends)


def _show_order(console: Console, compared: Sequence[Compared]) -> None:
    """How plans of one job are ordered, with intervals, where there are jobs of several plans."""
    cells = []
    for one in compared:
        found = one.scores.get(("seconds", False))
        if found is None or found.regret_interval is None:
            continue
        wrong = f"{len(wrong_choices(one.predictions))} of {found.jobs}"
        rank = "" if found.rank is None else f"{found.rank:.2f}"
        ends = _between(found.rank_interval, "{:.2f}"), _between(found.regret_interval, "{:.1%}")
        cells.append((one.name, wrong, rank, ends[0], _share(found.regret), ends[1]))
    if cells:
        console.print("[bold]Order of plans in groups of equal job[/bold]")
        console.print(table(("", "best missed", "rank", "80 % of draws", "regret", "80 % of draws"), cells))
        console.print()


def show_scores(console: Console, compared: Sequence[Compared]) -> None:
    """One table for each quantity, rows with free choices apart."""
    columns = ("", "rows", "median", "90th", "bias", "worst", "rank", "regret")
    for quantity, title in NAMES.items():
        for free in (False, True):
            cells = [
                _figures(one.name, found) for one in compared if (found := one.scores.get((quantity, free))) is not None
            ]
            if cells:
                said = ", the best of what the rows leave open" if free else ""
                console.print(f"[bold]{title}{said}[/bold]")
                console.print(table(columns, cells))
                console.print()
    _show_order(console, compared)
    for one in compared:
        for reason, count in Counter(reason for _, reason in one.left_out).items():
            of = len(one.predictions) + len(one.left_out)
            paragraph(console, f"{one.name}: {count} of {of} rows left out, precision {reason}.")


def _plan(plan: Mapping[str, Any], free: Sequence[str] = ()) -> str:
    """Tensor x pipeline x data, and the microbatch; choices that were free are marked."""
    marks = {key: "*" if key in free else "" for key in plan}
    text = f"{plan['tensor']}x{plan['pipeline']}x{plan['data']} b{plan['microbatch']}{marks['microbatch']}"
    if plan.get("chunks", 1) > 1:
        text += f" v{plan['chunks']}{marks['chunks']}"
    spread = " sp" if plan.get("sequence_parallel") else ""
    return f"{text} {plan.get('recompute', 'none')}{marks.get('recompute', '')}{spread}"


def show_rows(console: Console, compared: Sequence[Compared]) -> None:
    """Every row of every set; a star marks what the row does not state."""
    for one in compared:
        console.print(f"[bold]{one.title}[/bold]", markup=True)
        for quantity in NAMES:
            rows = [found for found in one.predictions if getattr(found.row, quantity) is not None]
            if not rows:
                continue
            unit: Unit = "s" if quantity == "seconds" else "B"
            cells = [
                (
                    found.row.id,
                    _plan({**found.row.run["plan"], **found.chosen}, found.row.free),
                    show(getattr(found.row, quantity), unit),
                    show(getattr(found, quantity), unit),
                    _signed(found.error if quantity == "seconds" else found.memory_error),
                )
                for found in rows
            ]
            console.print(table(("", "plan", "measured", "ours", "error"), cells, left=2))
        console.print()


def show_best(console: Console, title: str, found: Sequence[Beside]) -> None:
    """The plan that was run and the best one, job by job."""
    cells = []
    for one in found:
        run, free = {**one.run.row.run["plan"], **one.run.chosen}, one.run.row.free
        best = "nothing fits" if one.best is None else _plan(plan_of(one.best))
        best_s = "" if one.best_s is None else show(one.best_s, "s")
        measured = "" if one.run.row.seconds is None else show(one.run.row.seconds, "s")
        job = f"{one.run.row.run['devices']} devices, batch {one.run.row.run['batch']}"
        cells.append((one.run.row.id, f"run  {_plan(run, free)}", measured, show(one.run.seconds, "s"), ""))
        cells.append((job, f"best {best}", "", best_s, _signed(one.gain)))
    console.print(f"[bold]{title}[/bold]")
    console.print(table(("", "plan", "measured", "ours", "gain"), cells, left=2))
    gains = [one.gain for one in found if one.gain is not None]
    if gains:
        console.print(f"median gain {median(gains):.1%} over {len(gains)} jobs\n", markup=False)
