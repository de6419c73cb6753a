"""Bands from held-back runs: weighted quantiles of their errors by kind, and the share of runs that
lie inside.

With e = |measured / predicted - 1| of the runs of a kind (:mod:`tools.fits.held_back`), a source of
n of them weighing each 1 / sqrt(n), so that one large sweep does not speak for all laboratories,

    q(kind)        = least e at which the weight of the runs with errors up to it reaches the level
                   of all
    band(kind)     = q(kind) if at least 4 sources speak for it; else the greatest of q(kind), of
                   what holds 80 % of
                     each of its sources, and of q of the next wider kind with 4 sources: few
                     laboratories may widen a band, never narrow it
                     (:func:`phaze.evaluate.bands.wider_kinds`)
    a kind counts  if it has at least 5 runs of at least 2 sources, 20 if it names a stack; else the
                   next wider one's band holds
    held back      every run is held against the band of the kind that it takes its own from, made
                   without its source (at least 3 others where 4 are asked above)
    level          of kinds but for their stack: the least of 0.80, 0.81, ... 0.99 at which 80 % of
                   their runs lie inside when held back, counted as runs and by weight
                   (:func:`level_of`)
    unmeasured     chips: at least the band of measured ones, for the data sheets' defaults were
                   chosen on these chips

Memory: quantiles of measured / predicted itself, by what the stack keeps between passes. Three
sources measured it: ``band`` is for jobs of laboratories like these, its level by runs held back by
job (model, devices, batch). For another laboratory ``band_elsewhere`` is the greatest error that
holds 80 % of each source's runs, times the least of 1.0, 1.1, ... with which 80 % of all runs lie
inside when held back by source (:func:`_elsewhere`).
"""

import hashlib
import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.bands import SHARE, BandKind, wider_kinds
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.hardware.stack import Saves
from phaze.validate.rows import MeasuredRun
from tools.fits.held_back import HeldBack

LEAST_ROWS, LEAST_SOURCES, LEAST_OF_STACK = 5, 2, 20
MANY_SOURCES = 4
"""Of a kind with a band of its own: below, one laboratory or a handful of runs would speak for it.
From so many sources on a kind may have a narrower band than the next wider one."""
COMMAND = "python -m tools.fits bands --write src/phaze/evaluate/data/bands.json"
LEVELS = tuple(round(0.80 + 0.01 * step, 2) for step in range(20))
MOST_TIMES = 10
"""Of an error that sources have: beyond, they say nothing of each other."""
QUANTILES = 99
"""Of memory: a chance is said to a hundredth."""
DIGITS = 4
"""Of a band in the file: a hundredth of a per cent, beyond what any platform rounds differently."""


@dataclass(frozen=True, slots=True)
class Speaking:
    """One error and its source."""

    source: str
    error: float


def weighted(speaking: Sequence[Speaking]) -> list[tuple[float, float]]:
    """Errors in ascending order, each with the weight up to and with it; the last is 1."""
    counts = Counter(each.source for each in speaking)
    total = sum(sqrt(count) for count in counts.values())
    reached, found = 0.0, []
    for each in sorted(speaking, key=lambda one: one.error):
        reached += 1 / sqrt(counts[each.source]) / total
        found.append((each.error, reached))
    return found


def quantile(speaking: Sequence[Speaking], share: float) -> float:
    """The least error that the share of the weight does not exceed."""
    steps = weighted(speaking)
    at = bisect_left([reached for _, reached in steps], share - 1e-12)
    return steps[min(at, len(steps) - 1)][0]


def of_each(speaking: Sequence[Speaking]) -> float:
    """The least error that holds 80 % of the runs of every source."""
    sources = {each.source for each in speaking}
    return max(
        quantile([one for one in speaking if one.source == source], SHARE) for source in sources
    )


def counts(speaking: Sequence[Speaking], least: int = LEAST_ROWS) -> bool:
    """Whether so many runs of so many sources have a band of their own."""
    return len(speaking) >= least and len({each.source for each in speaking}) >= LEAST_SOURCES


def kind_counts(kind: BandKind, speaking: Sequence[Speaking]) -> bool:
    """Whether a kind has a band of its own; the widest always has."""
    least = LEAST_ROWS if kind.stack is None else LEAST_OF_STACK
    return bool(speaking) and (kind == BandKind(kind.chip) or counts(speaking, least))


Judged = list[tuple[HeldBack, bool]]


class Pool:
    """The runs of every kind, and what a kind says with or without a source."""

    def __init__(self, rows: Iterable[HeldBack]) -> None:
        self.rows = [row for row in rows if row.time_ratio is not None]
        self._of: dict[BandKind, list[Speaking]] = {}
        for row in self.rows:
            for kind in wider_kinds(row.kind):
                self._of.setdefault(kind, []).append(Speaking(row.source, error_of(row)))
        self.kinds = tuple(
            sorted((kind for kind in self._of if kind_counts(kind, self._of[kind])), key=_order)
        )

    def of(self, kind: BandKind, without: str | None = None) -> list[Speaking]:
        """The errors of a kind."""
        return [each for each in self._of.get(kind, ()) if each.source != without]

    def band(self, kind: BandKind, level: float, without: str | None = None) -> float | None:
        """The band of the kind that a run takes its own from, made of all sources but one; None if
        nothing is left."""
        found: list[float] = []
        for each in wider_kinds(kind):
            rest = self.of(each, without)
            if not rest or each not in self.kinds:
                continue
            many = len({one.source for one in rest}) >= MANY_SOURCES - (without is not None)
            if many or not found:
                found.append(
                    quantile(rest, level) if many else max(quantile(rest, level), of_each(rest))
                )
            if many:
                break
        return max(found) if found else None

    def inside(self, widest: BandKind, level: float, alone: bool = False) -> Judged:
        """Every run of a kind that another source speaks for, and whether it lies in the band that
        they give: that of its own kind, or ``alone`` that of ``widest``."""
        bands: dict[tuple[BandKind, str], float | None] = {}
        found = []
        for row in self.rows:
            if widest not in wider_kinds(row.kind):
                continue
            key = (widest if alone else row.kind, row.source)
            if key not in bands:
                bands[key] = self.band(key[0], level, key[1])
            band = bands[key]
            if band is not None:
                found.append((row, error_of(row) <= band))
        return found


def error_of(row: HeldBack) -> float:
    """How far a run's time is from what was predicted."""
    assert row.time_ratio is not None
    return abs(row.time_ratio - 1)


def _order(kind: BandKind) -> tuple[str, ...]:
    return (kind.chip, kind.layout or "", kind.bits or "", kind.stack or "")


def _share_inside(judged: Sequence[tuple[str, bool]]) -> float:
    """The lesser of the share of runs and of the weight inside; each run is its source and whether
    it is."""
    if not judged:
        return 1.0
    sizes = Counter(source for source, _ in judged)
    total = sum(sqrt(size) for size in sizes.values())
    weight = sum(1 / sqrt(sizes[source]) for source, inside in judged if inside) / total
    return min(weight, sum(inside for _, inside in judged) / len(judged))


def level_of(judge: Callable[[float], Sequence[tuple[str, bool]]]) -> float:
    """The least level at which 80 % of the runs lie inside when held back; the last if none
    does."""
    return next((level for level in LEVELS if _share_inside(judge(level)) >= SHARE), LEVELS[-1])


def _sources(judged: Judged) -> list[tuple[str, bool]]:
    return [(row.source, inside) for row, inside in judged]


def _time(rows: Sequence[HeldBack]) -> list[dict[str, Any]]:
    pool = Pool(rows)
    if not pool.rows:
        raise InputError(
            "", "no run determines a band", "give runs that state their plan and their seconds"
        )
    found: list[dict[str, Any]] = []
    levels: dict[BandKind, tuple[float, Judged]] = {}
    for kind in pool.kinds:
        widest, speaking = replace(kind, stack=None), pool.of(kind)
        if widest not in levels:
            alone = kind.layout is None
            level = level_of(lambda q, w=widest, a=alone: _sources(pool.inside(w, q, a)))  # type: ignore[misc]
            levels[widest] = level, pool.inside(widest, level, alone)
        level, judged = levels[widest]
        own = [inside for row, inside in judged if kind in wider_kinds(row.kind)]
        said = {"layout": kind.layout, "bits": kind.bits, "stack": kind.stack}
        named = {name: value for name, value in said.items() if value is not None}
        band = round(pool.band(kind, level) or 0.0, DIGITS)
        # Kinds come in order, measured before unmeasured.
        band = max([band, *(entry["band"] for entry in found if _same(entry, kind))])
        found.append(
            {"chip": kind.chip, **named, "band": band, "level": level, **_counted(speaking, own)}
        )
    return found


def _same(entry: dict[str, Any], kind: BandKind) -> bool:
    """Whether an entry is of the same kind but for the chip."""
    return (entry.get("layout"), entry.get("bits"), entry.get("stack")) == (
        kind.layout,
        kind.bits,
        kind.stack,
    )


def _counted(speaking: Sequence[Speaking], judged: Sequence[bool]) -> dict[str, int]:
    sources = len({each.source for each in speaking})
    return {
        "rows": len(speaking),
        "sources": sources,
        "held_back": len(judged),
        "inside": sum(judged),
    }


def _memory(rows: Sequence[HeldBack]) -> list[dict[str, Any]]:
    pools: dict[Saves | None, list[HeldBack]] = {None: []}
    for row in rows:
        if row.memory_ratio is not None:
            for key in (None, row.saves):
                pools.setdefault(key, []).append(row)
    if not pools[None]:
        raise InputError("", "no run determines a band of memory", "give runs with memory_gib")
    found = []
    for saves in sorted(
        (key for key in pools if key is None or counts(_ratios(pools[key]))), key=str
    ):
        own, every = pools[saves], pools[None]
        ratios, off = _ratios(own), _absolute(own)
        level = level_of(lambda q, own=own: _memory_inside(own, own, q, lambda row: row.job))  # type: ignore[misc]
        times = _elsewhere(own, every)
        by_source = [inside for _, inside in _by_source(own, every, times)]
        found.append(
            {
                **({} if saves is None else {"saves": saves}),
                "band": round(quantile(off, level), DIGITS),
                "band_elsewhere": round(times * of_each(_absolute(every)), DIGITS),
                "level": level,
                "median": round(quantile(off, 0.5), DIGITS),
                "ninetieth": round(quantile(off, 0.9), DIGITS),
                **_counted(ratios, by_source),
                "inside_by_job": sum(
                    inside for _, inside in _memory_inside(own, own, level, lambda row: row.job)
                ),
                "ratios": [
                    round(quantile(ratios, (i + 1) / (QUANTILES + 1)), DIGITS)
                    for i in range(QUANTILES)
                ],
            }
        )
    return found


def _ratios(rows: Iterable[HeldBack]) -> list[Speaking]:
    return [Speaking(row.source, row.memory_ratio) for row in rows if row.memory_ratio is not None]


def _absolute(rows: Iterable[HeldBack]) -> list[Speaking]:
    return [Speaking(each.source, abs(each.error - 1)) for each in _ratios(rows)]


def _elsewhere(rows: Sequence[HeldBack], pool: Sequence[HeldBack]) -> float:
    """How much wider than any source's own a band must be to hold 80 % of the runs of sources that
    it has not seen."""
    tried = (round(1 + 0.1 * step, 1) for step in range(MOST_TIMES * 10))
    inside = ((times, [own for _, own in _by_source(rows, pool, times)]) for times in tried)
    return next((times for times, own in inside if sum(own) >= SHARE * len(own)), float(MOST_TIMES))


def _by_source(
    rows: Sequence[HeldBack], pool: Sequence[HeldBack], times: float
) -> list[tuple[str, bool]]:
    """Whether each run lies inside so many times the band of the runs of ``pool`` that are of other
    sources."""
    found = []
    for source in sorted({row.source for row in rows}):
        rest = _absolute(other for other in pool if other.source != source)
        if not rest:
            continue
        band = times * of_each(rest)
        own = (row for row in rows if row.source == source and row.memory_ratio is not None)
        found += [(source, abs((row.memory_ratio or 0.0) - 1) <= band) for row in own]
    return found


def _memory_inside(
    rows: Sequence[HeldBack],
    pool: Sequence[HeldBack],
    level: float,
    part: Callable[[HeldBack], object],
) -> list[tuple[str, bool]]:
    """Whether each run lies inside the band of the runs of ``pool`` that are of another part (job
    or source)."""
    bands: dict[object, float | None] = {}
    found = []
    for row in rows:
        own = part(row)
        if own not in bands:
            rest = _absolute(other for other in pool if part(other) != own)
            bands[own] = quantile(rest, level) if rest else None
        band = bands[own]
        if band is not None and row.memory_ratio is not None:
            found.append((row.source, abs(row.memory_ratio - 1) <= band))
    return found


def rows_digest(rows: Iterable[MeasuredRun]) -> str:
    """A digest of the measured rows, so that a reader can tell which ones bands were made of."""
    said = [[row.id, row.seconds, row.memory_bytes, row.fits_bytes, row.source] for row in rows]
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()[:16]


def bands_document(rows: Sequence[MeasuredRun], priced: Sequence[HeldBack]) -> dict[str, Any]:
    """The bands as ``phaze.bands/1``."""
    return {
        "schema": "phaze.bands/1",
        "command": COMMAND,
        "rows_digest": rows_digest(rows),
        "fitted": _fitted(priced),
        "time": _time(priced),
        "memory": _memory(priced),
    }


def _fitted(rows: Sequence[HeldBack]) -> dict[str, int]:
    """Runs that are known to have fitted their device, and how many of them come out above what is
    left of it with the usual headroom, or above all of it."""
    full = [row.full for row in rows if row.full is not None]
    above = [sum(each > most for each in full) for most in (1 - USUAL_HEADROOM, 1.0)]
    return {"runs": len(full), "above_headroom": above[0], "too_large": above[1]}


def bands_text(document: dict[str, Any]) -> str:
    """The file's text, one kind a line."""
    lists = {
        key: ",\n".join(f"  {json.dumps(entry)}" for entry in document[key])
        for key in ("time", "memory")
    }
    head = "".join(
        f" {json.dumps(key)}: {json.dumps(document[key])},\n"
        for key in document
        if key not in lists
    )
    return (
        "{\n"
        + head
        + ",\n".join(f' "{key}": [\n{text}\n ]' for key, text in lists.items())
        + "\n}\n"
    )
