"""Bands from held-back runs: weighted quantiles of their errors by kind, and the share of runs that
lie inside.

With e = |measured / predicted - 1| of the runs of a kind (:mod:`tools.fits.held_back`), a source of
n of them weighing each 1 / sqrt(n), so that one large sweep does not speak for all laboratories,

    q(runs, level) = least e at which the weight of the runs with errors up to it reaches the level
                     of all
    kind counts      if it has at least 5 runs of at least 2 sources, 20 if it names a stack; else
                     the next wider one's band holds (:func:`phaze.evaluate.bands.wider_kinds`)
    held back        every run of a kind is held against q of those of the kind that are of another
                     part: of another source where 4 and more speak for it, of another job (source,
                     model, devices, batch) where fewer do
    level            of a kind: the least of 0.50, 0.51, ... 0.99 at which 80 % of its runs lie inside
                     when held back
    band(kind)     = least of q(its runs, level) and 60 %; of fewer than 15 runs no less than that of
                     the next wider kind that has as many, for a handful may widen a band and never
                     narrow it
    unmeasured       chips: at least the band of measured ones, for the data sheets' defaults were
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
from dataclasses import dataclass
from math import sqrt
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.bands import MOST, SHARE, BandKind, wider_kinds
from phaze.evaluate.headroom import USUAL_HEADROOM
from phaze.hardware.stack import Saves
from phaze.validate.rows import MeasuredRun
from tools.fits.held_back import HeldBack

LEAST_ROWS, LEAST_SOURCES, LEAST_OF_STACK = 5, 2, 20
MANY_SOURCES, MANY_RUNS = 4, 15
"""Of a kind with a band of its own: below, one laboratory or a handful of runs would speak for it.
From so many sources on its runs are held back by source, else by job."""
COMMAND = "python -m tools.fits bands --write src/phaze/evaluate/data/bands.json"
LEVELS = tuple(round(0.80 + 0.01 * step, 2) for step in range(20))
TIME_LEVELS = tuple(round(0.50 + 0.01 * step, 2) for step in range(50))
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


Part = Callable[[HeldBack], object]


class Pool:
    """The runs of every kind, and what a kind says with or without a part of them."""

    def __init__(self, rows: Iterable[HeldBack]) -> None:
        self.rows = [row for row in rows if row.time_ratio is not None]
        self._of: dict[BandKind, list[HeldBack]] = {}
        for row in self.rows:
            for kind in wider_kinds(row.kind):
                self._of.setdefault(kind, []).append(row)
        self.kinds = tuple(
            sorted((kind for kind in self._of if kind_counts(kind, self.of(kind))), key=_order)
        )

    def of(self, kind: BandKind) -> list[Speaking]:
        """The errors of a kind."""
        return [Speaking(row.source, error_of(row)) for row in self._of.get(kind, ())]

    def band(self, kind: BandKind, level: float) -> float:
        """The band of a kind."""
        return min(MOST, quantile(self.of(kind), level))

    def inside(self, kind: BandKind, level: float) -> list[tuple[str, bool]]:
        """The source of every run of a kind that another part speaks for, and whether the run lies
        in the band that the other parts give."""
        rows, found = self._of[kind], []
        many = len({row.source for row in rows}) >= MANY_SOURCES
        part: Part = _source if many else _job
        bands: dict[object, float | None] = {}
        for row in rows:
            own = part(row)
            if own not in bands:
                rest = [Speaking(r.source, error_of(r)) for r in rows if part(r) != own]
                bands[own] = min(MOST, quantile(rest, level)) if rest else None
            band = bands[own]
            if band is not None:
                found.append((row.source, error_of(row) <= band))
        return found


def _source(row: HeldBack) -> object:
    return row.source


def _job(row: HeldBack) -> object:
    return row.source, row.job


def error_of(row: HeldBack) -> float:
    """How far a run's time is from what was predicted."""
    assert row.time_ratio is not None
    return abs(row.time_ratio - 1)


def _order(kind: BandKind) -> tuple[str, ...]:
    return (kind.chip, kind.layout or "", kind.bits or "", kind.trait or "", kind.stack or "")


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


def _time(rows: Sequence[HeldBack]) -> list[dict[str, Any]]:
    pool = Pool(rows)
    if not pool.rows:
        raise InputError(
            "", "no run determines a band", "give runs that state their plan and their seconds"
        )
    found: list[dict[str, Any]] = []
    bands: dict[BandKind, float] = {}
    for kind in sorted(pool.kinds, key=lambda each: len(pool.of(each)), reverse=True):
        bands[kind] = pool.band(kind, _level(pool, kind))
        if len(pool.of(kind)) < MANY_RUNS:
            wider = (each for each in wider_kinds(kind) if len(pool.of(each)) >= MANY_RUNS)
            bands[kind] = max(bands[kind], next((bands[x] for x in wider if x in bands), 0.0))
    for kind in pool.kinds:
        level = _level(pool, kind)
        judged = [inside for _, inside in pool.inside(kind, level)]
        said = {"layout": kind.layout, "bits": kind.bits, "stack": kind.stack, "trait": kind.trait}
        named = {name: value for name, value in said.items() if value is not None}
        band = round(bands[kind], DIGITS)
        # Kinds come in order, measured before unmeasured.
        band = max([band, *(entry["band"] for entry in found if _same(entry, kind))])
        counted = _counted(pool.of(kind), judged)
        found.append({"chip": kind.chip, **named, "band": band, "level": level, **counted})
    return found


def _level(pool: Pool, kind: BandKind) -> float:
    """The least level with which enough runs of a kind lie inside when held back."""
    return next(
        (each for each in TIME_LEVELS if _runs_inside(pool.inside(kind, each)) >= SHARE),
        TIME_LEVELS[-1],
    )


def _runs_inside(judged: Sequence[tuple[str, bool]]) -> float:
    return sum(inside for _, inside in judged) / len(judged) if judged else 1.0


def _same(entry: dict[str, Any], kind: BandKind) -> bool:
    """Whether an entry is of the same kind but for the chip."""
    said = (entry.get("layout"), entry.get("bits"), entry.get("stack"), entry.get("trait"))
    return said == (kind.layout, kind.bits, kind.stack, kind.trait)


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
