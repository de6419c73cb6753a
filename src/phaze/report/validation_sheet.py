"""Published runs beside ours in the terminal: a line for every set, or for every row of some."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from rich.console import Console

from phaze.report.terminal import table
from phaze.units import Unit, show
from phaze.validate.compare import Compared, Quantity
from phaze.validate.predict import Prediction
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


def _plan(one: Prediction) -> str:
    """Tensor x pipeline x data, and the microbatch; choices that were free are marked."""
    plan = {**one.row.run["plan"], **one.chosen}
    marks = {key: "*" if key in one.row.free else "" for key in plan}
    text = f"{plan['tensor']}x{plan['pipeline']}x{plan['data']} b{plan['microbatch']}{marks['microbatch']}"
    if plan.get("chunks", 1) > 1:
        text += f" v{plan['chunks']}{marks['chunks']}"
    return f"{text} {plan.get('recompute', 'none')}{marks.get('recompute', '')}"


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
                    _plan(found),
                    show(getattr(found.row, quantity), unit),
                    show(getattr(found, quantity), unit),
                    _signed(found.error if quantity == "seconds" else found.memory_error),
                )
                for found in rows
            ]
            console.print(table(("", "plan", "measured", "ours", "error"), cells, left=2))
        console.print()
