"""The pictures of docs/paper.md as SVG, by Matplotlib: transparent, in colours that are read on
white and on black. The same values give the same bytes."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

IMAGES = Path(__file__).parents[2] / "docs" / "images" / "paper"
# A contrast of 4.5 to 1 on white and on black.
GREY = "#767676"
# Told apart by colour-blind readers, too (after Okabe and Ito), of middle lightness for both
# backgrounds.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#b07f00", "#4f9bd9", "#767676")
# Any: Matplotlib types the keys of its settings one by one.
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "phaze",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), GREY
    ),
    "axes.prop_cycle": cycler(color=COLOURS),
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}


def _saved(figure: Figure, folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.svg"
    figure.savefig(path, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return path


def _axes(width: float = 7.2, height: float = 3.6) -> "tuple[Figure, Axes]":
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def grouped_bars(
    folder: Path,
    name: str,
    series: Mapping[str, Sequence[float | None]],
    labels: Sequence[str],
    unit: str,
    log: bool,
) -> Path:
    """A bar for each series at each label; what is None has none."""
    with mpl.rc_context(STYLE):
        figure, axes = _axes()
        places, width = np.arange(len(labels)), 0.8 / len(series)
        for at, (title, values) in enumerate(series.items()):
            heights = [np.nan if value is None else value for value in values]
            axes.bar(places + (at - (len(series) - 1) / 2) * width, heights, width, label=title)
        axes.set_xticks(places, labels, rotation=20, ha="right")
        axes.set_ylabel(unit)
        if log:
            axes.set_yscale("log", base=2)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
        figure.legend(loc="outside upper center", ncols=min(4, len(series)))
        return _saved(figure, folder, name)


def stacked_bars(
    folder: Path, name: str, parts: Mapping[str, Mapping[str, float]], unit: str
) -> Path:
    """For each label its parts beside each other, in the order in which they first come."""
    with mpl.rc_context(STYLE):
        figure, axes = _axes(7.2, 1.2 + 0.32 * len(parts))
        names = list(dict.fromkeys(part for own in parts.values() for part in own))
        labels, left = list(parts), np.zeros(len(parts))
        for part in names:
            values = np.array([parts[label].get(part, 0.0) for label in labels])
            axes.barh(labels, values, left=left, label=part)
            left = left + values
        axes.invert_yaxis()
        axes.set_xlabel(unit)
        figure.legend(loc="outside upper center", ncols=min(4, len(names)))
        return _saved(figure, folder, name)


def curves_with_spread(
    folder: Path,
    name: str,
    series: Mapping[str, Sequence[tuple[float, float, float, float]]],
    labels: tuple[str, str],
) -> Path:
    """Lines of (x, least, median, most) with a band between least and most, x on a scale of
    ratios."""
    with mpl.rc_context(STYLE):
        figure, axes = _axes()
        for title, rows in series.items():
            x, low, middle, high = (np.array(column) for column in zip(*rows, strict=True))
            (line,) = axes.plot(x, middle, label=title, drawstyle="steps-post")
            axes.fill_between(
                x, low, high, step="post", alpha=0.2, color=line.get_color(), linewidth=0
            )
        axes.axhline(1.0, color=GREY, linewidth=0.8, linestyle=":")
        axes.set(xscale="log", xlabel=labels[0], ylabel=labels[1])
        figure.legend(loc="outside upper center", ncols=2)
        return _saved(figure, folder, name)


def heat_map(
    folder: Path,
    name: str,
    values: Sequence[Sequence[float | None]],
    axes_labels: tuple[Sequence[str], Sequence[str]],
    titles: tuple[str, str],
) -> Path:
    """A table of numbers as squares, each with its number; rows downwards."""
    with mpl.rc_context(STYLE):
        rows, columns = axes_labels
        figure, axes = _axes(1.6 + 1.1 * len(columns), 1.0 + 0.5 * len(rows))
        grid = np.array([[np.nan if value is None else value for value in row] for row in values])
        most = max(1.05, float(np.nanmax(grid)))
        # Opaque, so that the numbers are read on any page.
        scale = LinearSegmentedColormap.from_list("value", ["#eef4fa", COLOURS[0]]).with_extremes(
            bad="#d0d0d0"
        )
        axes.imshow(grid, cmap=scale, vmin=1.0, vmax=most, aspect="auto")
        for row in range(len(rows)):
            for column in range(len(columns)):
                value = values[row][column]
                said = "does not fit" if value is None else f"{value:.3f}"
                dark = value is not None and value - 1.0 > 0.55 * (most - 1.0)
                axes.text(
                    column,
                    row,
                    said,
                    ha="center",
                    va="center",
                    color="white" if dark else "#1a1a1a",
                )
        axes.set_xticks(range(len(columns)), columns)
        axes.set_yticks(range(len(rows)), rows)
        axes.set(xlabel=titles[0], ylabel=titles[1])
        return _saved(figure, folder, name)
