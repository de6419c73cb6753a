"""The figures of every chip of a finished search, over two axes: what is known of its score, area,
power and cost.

Scores are those of the journal: of every chip its bound, of evaluated ones what they score. Far
from the best bounds are loose (a search works them out only as far as they matter), but nothing is
bounded again for the picture.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.report.drawings import Column, DesignParameter, DesignPlot
from phaze.report.page.plot_thinning import thinned
from phaze.report.sections import Cell, Group, Pin, Table
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import LEAST, MOST, Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.pruned import REASONS
from phaze.search.task import SearchJob
from phaze.units import Unit, show

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

NEAREST = 12
"""Near ties that the page lists."""


def _plain(job: SearchJob) -> bool:
    """Whether the score is the batch time of one model."""
    return len(job.models) == 1 and job.objective.kind == "throughput"


def _scores(
    closed: Sequence[PrunedChip], evaluated: Sequence[Evaluated]
) -> tuple[Floats, NDArray[np.bool_]]:
    """The least score that each chip can have, and where it is exact; infinite where nothing
    fits."""
    least = np.array([np.inf if pruned.bound is None else pruned.bound for pruned in closed])
    exact = np.zeros(len(least), bool)
    for chip in evaluated:
        if np.isfinite(chip.score) and not chip.error:
            least[chip.chip], exact[chip.chip] = chip.score, True
    return least, exact


def _parameter(name: str, values: NDArray[Any], unit: Unit | None) -> DesignParameter:
    distinct, which = np.unique(values, return_inverse=True)
    words = tuple(str(value) if unit is None else show(float(value), unit) for value in distinct)
    return DesignParameter(name, words, which.astype(np.int64))


def _parameters(opened: SpaceChips) -> list[DesignParameter]:
    """Every parameter that differs between chips."""
    parameters = [_parameter(*described) for described in opened.described()]
    return [parameter for parameter in parameters if 1 < len(parameter.values) < 2**16]


def _densities(height: Column, axes: Sequence[Column]) -> list[Column]:
    """Throughput a W and a USD, where the chips have both."""
    densities = []
    for axis in axes:
        if axis.unit in ("W", "USD"):
            values = height.values / np.maximum(axis.values, 1e-9)
            name = f"{height.name} a {axis.unit}"
            densities.append(
                Column(name, f"{height.unit} a {axis.unit}", values, more=True, bound=True)
            )
    return densities


def _height(job: SearchJob, score: float, scores: Floats) -> Column:
    """Throughput of a single model, or how near a chip comes to the answer."""
    if _plain(job):
        values = job.models[0].training.batch / scores
        return Column("throughput", "sequences/s", values, more=True, bound=True)
    kind = job.objective.kind.replace("_", " ")
    return Column(kind, "% of the answer", 100 * score / scores, more=True, bound=True)


def _axes(opened: SpaceChips, hbm_bytes: int, shown: Integers) -> list[Column]:
    figures = [
        Column("area", "mm²", opened.area_mm2[shown]),
        Column("TDP", "W", opened.design_w()[shown]),
        Column("manufacturing cost", "USD", opened.making_usd(hbm_bytes)[shown]),
    ]
    return [column for column in figures if np.isfinite(column.values).all()]


def nearest_table(plot: DesignPlot, name: Callable[[int], str], axes: int) -> Table:
    """The chips with the highest values, exact ones first, then bounds; ``axes`` columns follow the
    height."""
    height, exact = plot.columns[0].values, plot.exact
    if exact is None:
        raise AssertionError("of every chip it is known whether it is exact")
    shown = plot.columns[1 : 1 + axes]
    order = (
        np.lexsort((shown[0].values, -height, ~exact)) if shown else np.lexsort((-height, ~exact))
    )
    rows: list[Sequence[Cell]] = []
    for place in order[:NEAREST].tolist():
        figures = [f"{column.values[place]:,.0f}" for column in shown]
        share = f"{height[place] / height[plot.best]:.1%}"
        basis = "exact" if exact[place] else "upper bound"
        rows.append((Pin(name(place), place), basis, f"{height[place]:,.4g}", share, *figures))
    columns = (
        "Chip",
        "Basis",
        plot.columns[0].unit,
        "of the best",
        *(column.label for column in shown),
    )
    return Table(columns, rows, texts=2)


def _caption(drawn: int, others: int, left_out: int) -> str:
    sample = (
        f"{drawn:,} of {drawn + left_out + others:,}: the space was searched in boxes, "
        "and drawn are the chips that "
        "boxes left and every so manieth of the others. "
    )
    nothing = f" {left_out:,} chips on which nothing fits are not drawn." if left_out else ""
    return (
        f"{sample if others else f'{drawn:,} chips. '}A disc is exact; a small square is "
        "an upper bound: that chip "
        f"reaches at most this. No chip of the space lies above the line.{nothing}"
    )


def space_sections(
    job: SearchJob,
    opened: SpaceChips,
    result: Mapping[str, Any],
    closed: Sequence[PrunedChip],
    evaluated: Sequence[Evaluated],
) -> Group:
    """All chips of a run, and the nearest as a table; money is reckoned with the HBM of the
    answer."""
    scores, exact = _scores(closed, evaluated)
    answer, score = (
        opened.index_of(int(result["chip"]["number"])) or 0,
        float(result["objective"]["score"]),
    )
    scores[answer], exact[answer] = score, True
    fitting = np.flatnonzero((scores >= LEAST) & (scores <= MOST))
    height = _height(job, score, scores[fitting])
    axes = _axes(opened, int(result["chip"]["hbm_bytes"]), fitting)
    index, stands_for = thinned(
        [height, *axes], exact[fitting], int(np.searchsorted(fitting, answer))
    )
    shown = fitting[index]
    columns = [height, *axes, *_densities(height, axes)]
    reasons = np.array([REASONS.index(chip.reason) for chip in closed])
    plot = DesignPlot(
        columns=[replace(column, values=column.values[index]) for column in columns],
        names=shown if opened.numbers is None else opened.numbers[shown],
        best=int(np.searchsorted(shown, answer)),
        file="chips.csv",
        parameters=[
            replace(parameter, which=parameter.which[shown]) for parameter in _parameters(opened)
        ],
        exact=exact[shown],
        decided_by=DesignParameter("decided by", REASONS, reasons[shown]),
        stands_for=stands_for if len(shown) < len(fitting) else None,
    )
    nearest = nearest_table(plot, lambda place: opened.name(int(shown[place])), len(axes))
    others, left_out = opened.total - len(opened), len(scores) - len(fitting)
    title = "A sample of the chips" if others else "All chips"
    return Group(
        [plot, Group([nearest], folded="The nearest chips as a table")],
        title,
        _caption(len(fitting), others, left_out),
    )
