"""All chips as throughput against area, TDP and cost: numbers packed for the script, and a table of the nearest.

A chip that was evaluated is exact; of every other one only a bound is known, "at most this". Figures are
rounded to 1/65535 of their range and packed little-endian. Beyond ``MOST`` chips those that lie in the same cell of a
grid over all figures are drawn as one, which says for how many it stands; exact ones and fronts are always kept.
"""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST = 24_000
"""Points drawn one by one: 2 bytes for each figure of each, within the size of a page."""
LEVELS = 65535
"""16 bits a coordinate: finer than any screen."""
CELLS = 96
"""Cells of a grid along each axis at first, fewer until the points are few enough."""
NEAREST = 12
"""Near ties that the page lists."""


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
class ChipScatter:
    """Every chip that has a bound: figures by chip, how it was closed, and whether its height is exact; of a space that
    was searched in boxes a sample, beside which there are ``others``."""

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
    others: int = 0


def packed(values: NDArray[Any], width: int) -> dict[str, Any]:
    """Whole numbers of ``width`` bytes, little-endian, as text."""
    return {"bytes": width, "data": b64encode(values.astype(f"<u{width}").tobytes()).decode()}


def _called(numbers: Integers) -> dict[str, Any] | list[int]:
    """What chips are called; numbers of more than 4 bytes one by one."""
    return packed(numbers, 4) if int(numbers.max(initial=0)) < 2**32 else numbers.tolist()


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


def kept(scatter: ChipScatter) -> tuple[Integers, Integers]:
    """The chips that are drawn, and for how many each stands."""
    count = len(scatter.height.values)
    if count <= MOST:
        return np.arange(count), np.ones(count, np.int64)
    always = scatter.exact.copy()
    for axis in scatter.axes:
        always[front(axis.values, scatter.height.values)] = True
    always[scatter.best] = True
    scales = (scatter.height, *scatter.axes)
    cells = CELLS
    while True:
        key = np.zeros(count, np.int64)
        for scale in scales:
            low, high = float(scale.values.min()), float(scale.values.max())
            key = key * cells + np.minimum(cells - 1, _steps(scale.values, low, high) * cells // (LEVELS + 1))
        _, first, which, size = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
        index = np.union1d(first, np.flatnonzero(always))
        if len(index) <= MOST or cells <= 4:
            extra = ~np.isin(index, first)
            stands = np.where(extra, 1, size[which[index]])
            # What is drawn for itself is not counted by the one that stands for its cell too.
            place = np.searchsorted(index, first[which[index[extra]]])
            np.subtract.at(stands, place, 1)
            return index, stands
        cells = cells * 3 // 4


def numbers(scatter: ChipScatter) -> dict[str, Any]:
    """What the script draws from: figures as columns, parts as fields."""
    index, stands = kept(scatter)

    def column(one: Scale, more: bool, bound: bool) -> dict[str, Any]:
        values = one.values[index]
        least, most = float(values.min()), float(values.max())
        known = {"name": one.name, "unit": one.unit, "more": more, "bound": bound, "least": least, "most": most}
        return {**known, **packed(_steps(values, least, most), 2)}

    whole = len(index) == len(scatter.numbers) and bool((scatter.numbers == np.arange(len(scatter.numbers))).all())
    return {
        "columns": [
            {**column(scatter.height, True, True), "floor": 0},
            *(column(axis, False, False) for axis in scatter.axes),
            *(column(one, True, True) for one in _densities(scatter)),
        ],
        "fields": [
            {
                "name": one.name,
                "values": list(one.values),
                **packed(one.which[index], 1 if len(one.values) < 256 else 2),
            }
            for one in scatter.fields
        ],
        "closed": packed(scatter.closed[index], 1),
        "reasons": list(scatter.reasons),
        "exact": packed(scatter.exact[index].astype(np.int64), 1),
        "best": int(np.searchsorted(index, scatter.best)),
        "numbers": None if whole else _called(scatter.numbers[index]),
        "stands": packed(stands, 4) if len(index) < len(scatter.numbers) else None,
        "names": None,
        "links": None,
        "x": 1,
        "y": 0,
    }


def _densities(scatter: ChipScatter) -> list[Scale]:
    """Throughput a W and a USD, where the chips have both."""
    height, found = scatter.height.values, []
    for axis, unit in ((one, one.unit) for one in scatter.axes if one.unit in ("W", "USD")):
        known = np.maximum(axis.values, 1e-9)
        found.append(Scale(f"{scatter.height.name} a {unit}", f"{scatter.height.unit} a {unit}", height / known))
    return found


@dataclass(frozen=True, slots=True)
class NearRow:
    """A chip of the table: its place among those that are drawn, and texts."""

    place: int
    name: str
    known: str
    value: str
    share: str
    figures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChipScatterView:
    """The scatter as a template tells it."""

    count: int
    left_out: int
    others: int
    columns: tuple[str, ...]
    fields: tuple[tuple[str, tuple[str, ...]], ...]
    heads: tuple[tuple[str, bool], ...]
    rows: tuple[NearRow, ...]


def chip_scatter_view(scatter: ChipScatter) -> ChipScatterView:
    """Its axes, filters and the chips with the highest values, exact ones first, then bounds."""
    index, _ = kept(scatter)
    place = {int(chip): at for at, chip in enumerate(index)}
    order = [int(chip) for chip in np.lexsort((scatter.axes[0].values, -scatter.height.values, ~scatter.exact))]
    best = scatter.height.values[scatter.best]
    rows = []
    for chip in [chip for chip in order if chip in place][:NEAREST]:
        value = scatter.height.values[chip]
        known = "exact" if scatter.exact[chip] else "upper bound"
        figures = tuple(f"{axis.values[chip]:,.0f}" for axis in scatter.axes)
        rows.append(NearRow(place[chip], scatter.name(chip), known, f"{value:,.4g}", f"{value / best:.1%}", figures))
    names = (scatter.height.name, *(axis.name for axis in scatter.axes), *(one.name for one in _densities(scatter)))
    axes = tuple((f"{axis.name}, {axis.unit}", True) for axis in scatter.axes)
    heads = (("Chip", False), ("Known", False), (scatter.height.unit, True), ("of the best", True), *axes)
    return ChipScatterView(
        count=len(scatter.numbers),
        left_out=scatter.left_out,
        others=scatter.others,
        columns=names,
        fields=tuple((one.name, one.values) for one in scatter.fields),
        heads=heads,
        rows=tuple(rows),
    )
