"""Numbers that scripts draw from: designs and zoomable timelines, packed little-endian as text."""

from base64 import b64encode
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.report.drawings import BlockKind, Column, DesignPlot, Timeline

Floats = NDArray[np.float64]

LEVELS = 65535
"""16 bits a coordinate: finer than any screen."""
STEPS = 2**32 - 1
"""32 bits a time: a microsecond of an hour."""
FEW = 1000
"""Figures of so many designs are written out, to six digits."""


def packed(values: NDArray[Any], width: int) -> dict[str, Any]:
    """Whole numbers of ``width`` bytes, little-endian, as text."""
    return {
        "bytes": width,
        "data": b64encode(np.ascontiguousarray(values).astype(f"<u{width}").tobytes()).decode(),
    }


def levels(values: Floats, least: float, most: float) -> NDArray[np.int64]:
    """Values in steps of 1 / LEVELS of a range."""
    span = (most - least) or 1.0
    return np.rint((values - least) / span * LEVELS).astype(np.int64)


def _column(column: Column) -> dict[str, Any]:
    least, most = float(column.values.min()), float(column.values.max())
    figures: dict[str, Any] = {"values": [float(f"{value:.6g}") for value in column.values]}
    if len(column.values) > FEW:
        figures = {"least": least, "most": most, **packed(levels(column.values, least, most), 2)}
    zero = {"floor": 0} if column.bound and column.more else {}
    return {
        "name": column.name,
        "unit": column.unit,
        "more": column.more,
        "bound": column.bound,
        **zero,
        **figures,
    }


def _names(plot: DesignPlot) -> dict[str, Any]:
    """What designs are called; numbers of more than 4 bytes one by one."""
    if not isinstance(plot.names, np.ndarray):
        return {"names": list(plot.names), "numbers": None}
    small = int(plot.names.max(initial=0)) < 2**32
    return {"names": None, "numbers": packed(plot.names, 4) if small else plot.names.tolist()}


def plot_numbers(plot: DesignPlot) -> dict[str, Any]:
    """What the script of a plot draws from: figures as columns, parameters as fields."""
    fields = []
    for parameter in plot.parameters:
        width = 1 if len(parameter.values) < 256 else 2
        fields.append(
            {
                "name": parameter.name,
                "values": list(parameter.values),
                **packed(parameter.which, width),
            },
        )
    return {
        "columns": [_column(column) for column in plot.columns],
        "fields": fields,
        "closed": None if plot.decided_by is None else packed(plot.decided_by.which, 1),
        "reasons": [] if plot.decided_by is None else list(plot.decided_by.values),
        "exact": None if plot.exact is None else packed(plot.exact.astype(np.int64), 1),
        "best": plot.best,
        "pins": list(plot.pinned) or [plot.best],
        "stands": None if plot.stands_for is None else packed(plot.stands_for, 4),
        "links": list(plot.addresses) or None,
        "x": 1,
        "y": 0,
        **_names(plot),
    }


def timeline_numbers(section: Timeline, colours: Mapping[BlockKind, str]) -> dict[str, Any]:
    """What the script of a timeline draws: every block by lane, start, length, kind, and its words
    by their place."""
    words: dict[tuple[str, str], int] = {}
    kinds = list(colours)
    lanes, times, looks, names = [], [], [], []
    for lane, (_, blocks) in enumerate(section.lanes):
        for block in blocks:
            lanes.append(lane)
            times.append((block.start_s, block.end_s - block.start_s))
            looks.append((kinds.index(block.kind), round(255 * block.pale)))
            names.append(words.setdefault((block.name, block.symbol), len(words)))
    starts, lengths = np.rint(np.array(times).T / section.end_s * STEPS)
    shades, pales = np.array(looks).T
    return {
        "lanes": [name for name, _ in section.lanes],
        "colours": list(colours.values()),
        "words": [list(pair) for pair in words],
        "lane": packed(np.array(lanes), 2),
        "start": packed(starts, 4),
        "length": packed(lengths, 4),
        "kind": packed(shades, 1),
        "pale": packed(pales, 1),
        "word": packed(np.array(names), 4),
        "end": section.end_s,
        "zoom": section.zoom_s,
        "skipped": section.skipped,
    }
