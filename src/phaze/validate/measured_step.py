"""One measured step from the traces of some ranks: seconds by class of kernel, what was exposed,
what the host did.

With n steps of a rank, all per step and averaged over ranks but for the step itself, which is the
slowest rank's:

    class_s[c]   sum of the durations of the kernels of class c
    exposed_s    time in which a collective ran and nothing else did
    host_s       time in which the host ran operators or launched kernels, waits left out
    collectives  for each kind, size and group the shortest duration over repeats and ranks: a rank
                 that comes late makes the others wait inside their collective, and the last one to
                 come shows what it takes
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from phaze.cost.collective import Kind
from phaze.errors import InputError
from phaze.validate.kernel_names import KernelClass, collective_of
from phaze.validate.profiler_trace import Interval, RankTrace

Span = tuple[float, float]
SHOWN_UNKNOWN = 5
"""Names of unknown kernels: what a reader looks up."""
SHOWN_LETTERS = 80
"""Of such a name: those of templates run over pages."""


@dataclass(frozen=True, slots=True)
class MeasuredCollective:
    """A collective of ``bytes`` over ``ranks`` and its shortest duration; ``count`` of them were
    seen."""

    kind: Kind
    bytes: float
    ranks: int
    seconds: float
    count: int


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A step; see the module."""

    step_s: float
    class_s: Mapping[KernelClass, float]
    exposed_s: float
    host_s: float
    launches: float
    collectives: tuple[MeasuredCollective, ...]
    unsized: int
    exposed_by_ranks: Mapping[int, tuple[float, float]]
    unknown: tuple[tuple[str, float], ...]
    ranks: int
    steps: int
    on_device: bool
    skipped: int


def union(spans: Iterable[Span]) -> list[Span]:
    """Spans merged where they touch, in order."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(spans: Iterable[Span]) -> float:
    """Seconds of disjoint spans."""
    return sum(end - start for start, end in spans)


def without(spans: Sequence[Span], others: Sequence[Span]) -> float:
    """Seconds of merged ``spans`` in which none of the merged ``others`` runs."""
    total, index = length(spans), 0
    for start, end in spans:
        while index and others[index - 1][1] > start:
            index -= 1
        while index < len(others) and others[index][0] < end:
            total -= max(0.0, min(end, others[index][1]) - max(start, others[index][0]))
            index += 1
    return max(0.0, total)


def _inside(rank: RankTrace) -> list[Interval]:
    """What began in or after the first step and before the last one ended, or runs on after it."""
    first, last = rank.steps[0][0], rank.steps[-1][1]
    return [interval for interval in rank.work if first <= interval.start_s <= last]


def _exposed(work: Sequence[Interval], ranks: int | None = None) -> tuple[float, float]:
    """Exposed and all seconds of collectives, of all groups or of those of so many ranks."""
    chosen = [
        interval
        for interval in work
        if interval.what == "collective" and (ranks is None or interval.ranks == ranks)
    ]
    collectives = union((interval.start_s, interval.end_s) for interval in chosen)
    rest = union(
        (interval.start_s, interval.end_s) for interval in work if interval.what != "collective"
    )
    return without(collectives, rest), length(collectives)


def measured_step(ranks: Sequence[RankTrace]) -> MeasuredStep:
    """The step that some ranks of one run measured."""
    if len({rank.on_device for rank in ranks}) > 1:
        raise InputError(
            "--trace",
            "some ranks have kernels and others only operators of a CPU",
            "give traces alike",
        )
    works = [_inside(rank) for rank in ranks]
    if not all(works):
        raise InputError(
            ranks[works.index([])].where, "nothing ran in its steps", "profile whole steps"
        )
    counts = [len(rank.steps) for rank in ranks]
    classes: dict[KernelClass, float] = {}
    unknown: dict[str, float] = {}
    for work, count in zip(works, counts, strict=True):
        for interval in work:
            classes[interval.what] = classes.get(
                interval.what, 0.0
            ) + interval.seconds / count / len(ranks)
            if interval.what == "unknown":
                name = interval.name[:SHOWN_LETTERS]
                unknown[name] = unknown.get(name, 0.0) + interval.seconds / count / len(ranks)
    exposed = [_exposed(work)[0] / count for work, count in zip(works, counts, strict=True)]
    groups = {
        interval.ranks
        for work in works
        for interval in work
        if interval.what == "collective" and interval.ranks
    }
    by_ranks = {}
    for group in sorted(groups):
        pairs = [_exposed(work, group) for work in works]
        by_ranks[group] = (sum(a for a, _ in pairs), sum(b for _, b in pairs))
    collectives, unsized = _collectives(works)
    total = sum(classes.values()) or 1.0
    largest = sorted(unknown.items(), key=lambda pair: (-pair[1], pair[0]))[:SHOWN_UNKNOWN]
    return MeasuredStep(
        step_s=max(median(end - start for start, end in rank.steps) for rank in ranks),
        class_s=dict(sorted(classes.items())),
        exposed_s=mean(exposed),
        host_s=mean(_host(rank) / count for rank, count in zip(ranks, counts, strict=True)),
        launches=mean(rank.launches / count for rank, count in zip(ranks, counts, strict=True)),
        collectives=collectives,
        unsized=unsized,
        exposed_by_ranks=by_ranks,
        unknown=tuple((name, seconds / total) for name, seconds in largest),
        ranks=len(ranks),
        steps=min(counts),
        on_device=ranks[0].on_device,
        skipped=sum(rank.skipped for rank in ranks),
    )


def _host(rank: RankTrace) -> float:
    first, last = rank.steps[0][0], rank.steps[-1][1]
    return length(
        union((max(a, first), min(b, last)) for a, b in rank.host if b > first and a < last)
    )


def _collectives(works: Sequence[Sequence[Interval]]) -> tuple[tuple[MeasuredCollective, ...], int]:
    seen: dict[tuple[Kind, float, int], list[float]] = {}
    unsized = 0
    for work in works:
        for interval in work:
            if interval.what != "collective":
                continue
            kind = collective_of(interval.name)
            if (
                kind is None
                or interval.bytes is None
                or interval.ranks is None
                or interval.ranks < 2
                or interval.seconds <= 0
            ):
                unsized += 1
                continue
            seen.setdefault((kind, interval.bytes, interval.ranks), []).append(interval.seconds)
    measured = (
        MeasuredCollective(*key, min(durations), len(durations))
        for key, durations in sorted(seen.items())
    )
    return tuple(measured), unsized
