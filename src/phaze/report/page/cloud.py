"""All chips as throughput against area, power and cost: numbers packed for the script, and a table of the nearest.

A chip that was opened to its end is exact; of every other one only a bound is known, "at most this". Figures are
rounded to 1/65535 of their range and packed little-endian. Beyond ``MOST`` chips those that lie in the same cell of a
grid over all figures are drawn as one, which says for how many it stands; exact ones and fronts are always kept.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.report.page.frame import table

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST = 30_000
LEVELS = 65535
CELLS = 96
NEAREST = 12


@dataclass(frozen=True, slots=True)
class Scale:
    """A figure of every chip."""

    name: str
    unit: str
    values: Floats


@dataclass(frozen=True, slots=True)
class Field:
    """A part of every chip: which of the ``values``, already in words, it has."""

    name: str
    values: tuple[str, ...]
    which: Integers


@dataclass(frozen=True, slots=True)
class Cloud:
    """Every chip that has a bound: figures by chip, how it was closed, and whether its height is exact."""

    height: Scale
    axes: tuple[Scale, ...]
    fields: tuple[Field, ...]
    numbers: Integers
    closed: Integers
    reasons: tuple[str, ...]
    exact: NDArray[np.bool_]
    best: int
    name: Callable[[int], str]
    left_out: int


def packed(values: NDArray[Any], width: int) -> dict[str, Any]:
    """Whole numbers of ``width`` bytes, little-endian, as text."""
    return {"bytes": width, "data": b64encode(values.astype(f"<u{width}").tobytes()).decode()}


def _steps(values: Floats, least: float, most: float) -> Integers:
    span = (most - least) or 1.0
    return np.rint((values - least) / span * LEVELS).astype(np.int64)


def front(axis: Floats, height: Floats) -> Integers:
    """The chips than which none is both lower on the axis and higher."""
    order = np.lexsort((-height, axis))
    rising = np.maximum.accumulate(height[order])
    first = np.ones(len(order), bool)
    first[1:] = height[order][1:] > rising[:-1]
    return np.asarray(order[first], dtype=np.int64)


def kept(cloud: Cloud) -> tuple[Integers, Integers]:
    """The chips that are drawn, and for how many each stands."""
    count = len(cloud.height.values)
    if count <= MOST:
        return np.arange(count), np.ones(count, np.int64)
    always = cloud.exact.copy()
    for axis in cloud.axes:
        always[front(axis.values, cloud.height.values)] = True
    always[cloud.best] = True
    scales = (cloud.height, *cloud.axes)
    cells = CELLS
    while True:
        key = np.zeros(count, np.int64)
        for scale in scales:
            low, high = float(scale.values.min()), float(scale.values.max())
            key = key * cells + np.minimum(cells - 1, _steps(scale.values, low, high) * cells // (LEVELS + 1))
        _, first, which, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        index = np.union1d(first, np.flatnonzero(always))
        if len(index) <= MOST or cells <= 4:
            stands = np.where(np.isin(index, first), size[which[index]], 1)
            return index, stands
        cells = cells * 3 // 4


def numbers(cloud: Cloud) -> dict[str, Any]:
    """What the script draws from."""
    index, stands = kept(cloud)

    def scale(one: Scale, floor: float | None = None) -> dict[str, Any]:
        values = one.values[index]
        least, most = float(values.min()) if floor is None else floor, float(values.max())
        span = {"name": one.name, "unit": one.unit, "least": least, "most": most}
        return {**span, **packed(_steps(values, least, most), 2)}

    whole = len(index) == len(cloud.numbers) and bool((cloud.numbers == np.arange(len(cloud.numbers))).all())
    return {
        "height": scale(cloud.height, 0.0),
        "axes": [scale(axis) for axis in cloud.axes],
        "fields": [
            {
                "name": one.name,
                "values": list(one.values),
                **packed(one.which[index], 1 if len(one.values) < 256 else 2),
            }
            for one in cloud.fields
        ],
        "closed": packed(cloud.closed[index], 1),
        "reasons": list(cloud.reasons),
        "exact": packed(cloud.exact[index].astype(np.int64), 1),
        "best": int(np.searchsorted(index, cloud.best)),
        "numbers": None if whole else packed(cloud.numbers[index], 4),
        "stands": packed(stands, 4) if len(index) < len(cloud.numbers) else None,
    }


def nearest(cloud: Cloud) -> str:
    """The chips with the highest values, exact ones first, then those of which only a bound is known."""
    index, _ = kept(cloud)
    place = {int(chip): at for at, chip in enumerate(index)}
    order = [int(chip) for chip in np.lexsort((cloud.axes[0].values, -cloud.height.values, ~cloud.exact))]
    chosen = [chip for chip in order if chip in place][:NEAREST]
    best = cloud.height.values[cloud.best]
    columns = ("chip", "known", cloud.height.unit, "of the best", *(axis.unit for axis in cloud.axes))
    rows = []
    for chip in chosen:
        value = cloud.height.values[chip]
        known = "exact" if cloud.exact[chip] else "at most"
        figures = [f"{axis.values[chip]:,.4g}" for axis in cloud.axes]
        rows.append((escape(cloud.name(chip)), known, f"{value:,.5g}", f"{value / best:.2%}", *figures))
    text = table(columns, rows, left=2)
    for chip in chosen:
        text = text.replace("<tr><td>", f'<tr data-chip="{place[chip]}"><td>', 1)
    return text


def cloud_part(cloud: Cloud) -> str:
    """Canvas, its buttons, what was picked, and the table."""
    tabs = "".join(
        f'<button type="button" data-axis="{at}" aria-pressed="{"true" if at == 0 else "false"}">'
        f"{escape(axis.name)}</button>"
        for at, axis in enumerate(cloud.axes)
    )
    lost = f" {cloud.left_out:,} chips on which nothing fits are not drawn." if cloud.left_out else ""
    about = (
        f"<p>{len(cloud.numbers):,} chips. A green disc is exact; a grey point is a bound: that chip reaches at most "
        f"this. So no chip of the space lies above the line, the front of all of them. The answer is ringed.{lost}</p>"
    )
    drawn = (
        '<canvas id="cloud" tabindex="0" role="img" aria-label="every chip: throughput against '
        f'{escape(", ".join(axis.name for axis in cloud.axes))}">A script draws this.</canvas>'
    )
    hint = '<p class="soft">Hover or tap for a chip; arrow keys walk along the front.</p>'
    picked = '<div class="picked" id="picked" aria-live="polite"></div>'
    listed = f"<h3>The nearest</h3>{nearest(cloud)}"
    frame = f'<div class="cloud"><div>{drawn}{hint}</div>{picked}</div>'
    return f'{about}<div class="tabs" role="group" aria-label="against">{tabs}</div>{frame}{listed}'
