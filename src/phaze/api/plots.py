"""Values as pictures, for notebooks: Matplotlib axes that can be changed and saved like any
others."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from phaze.errors import InputError
from phaze.export.frame import Frame

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def _axes(axes: "Axes | None") -> "Axes":
    if axes is not None:
        return axes
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise InputError("plot", "Matplotlib is not installed", "pip install matplotlib") from None
    return Figure(figsize=(7, 4), layout="constrained").subplots()


def plot_plan(document: Mapping[str, Any], axes: "Axes | None") -> "Axes":
    """Where the time of a batch goes, in seconds by cause."""
    drawn = _axes(axes)
    terms = {name.removesuffix("_s"): float(value) for name, value in document["breakdown"].items()}
    names = [name for name, value in terms.items() if value > 0]
    drawn.barh(names[::-1], [terms[name] for name in names[::-1]])
    drawn.set_xlabel("seconds of a batch")
    return drawn


def plot_chips(frame: Frame, answer: str, axes: "Axes | None") -> "Axes":
    """Every chip with a bound: area against the least score that it can have; evaluated ones
    exactly."""
    drawn, area = _axes(axes), np.asarray(frame["area_mm2"])
    bound, score, best = (np.asarray(frame[name]) for name in ("score_bound", "score", "is_answer"))
    bounded = np.isfinite(bound) & ~np.isfinite(score)
    exact = np.isfinite(score)
    drawn.scatter(area[bounded], bound[bounded], s=4, c="0.7", label="lower bound")
    drawn.scatter(area[exact], score[exact], s=16, label="evaluated")
    drawn.scatter(area[best], score[best], s=80, marker="*", label=answer)
    drawn.set(xlabel="area, mm2", ylabel="score (less is better)", yscale="log")
    drawn.legend()
    return drawn


def plot_front(document: Mapping[str, Any], axes: "Axes | None") -> "Axes":
    """The designs of a front, its first two metrics against each other."""
    drawn, (x, y) = _axes(axes), document["of"][:2][::-1]
    points = sorted((point["metrics"][x], point["metrics"][y]) for point in document["points"])
    drawn.plot(
        [first for first, _ in points], [other for _, other in points], marker="o", markersize=3
    )
    units = dict(document["units"])
    drawn.set(xlabel=f"{x}, {units[x]}", ylabel=f"{y}, {units[y]}")
    return drawn


def plot_sweep(document: Mapping[str, Any], axes: "Axes | None") -> "Axes":
    """The score of the best chip at every value that has one."""
    drawn = _axes(axes)
    points = [
        (point["value"], point["score"])
        for point in document["points"]
        if point.get("chip") is not None
    ]
    drawn.plot([value for value, _ in points], [score for _, score in points], marker="o")
    drawn.set(xlabel=document["over"], ylabel="score (less is better)")
    return drawn
