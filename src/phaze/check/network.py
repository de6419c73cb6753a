"""Collectives and transfers over the levels of a cluster (docs/cost.md, Collectives;
docs/placement.md, Rules cluster).

A group is given by how many of its members meet at each level. With S bytes in all, n members, f =
(n - 1)/n, rounds u = 2 for an all-reduce and 1 for a gather or scatter, C(W) = W + 2 sqrt(piece W)
the seconds of bytes that take W and of cutting them into pieces, one level of switches, or several
as one, take the least of

    ring, halving-doubling   u (start/2 + steps latency) + C(u f S/B) + u S/(2 local)    steps n -
                             1; log2 n for n = 2^i
    tree (all-reduce)        u (start/2 + log2(n) latency) + C(u S/B) + u S/(2 local)
    in-switch (all-reduce)   start + 2 log2(n) latency + C(S/(in-switch share bandwidth)), a piece
                             log2(n) times; alone
    small, one level alone   small start + log2(n) small step + (S, of an all-reduce, or f S) /
                             (small share bandwidth)

several as one have B = min over levels of share bandwidth x members below, the outermost level's
start and latency, and no halving-doubling. A ring, and a torus of axes that a group takes extents e
of, have the first way alone, a torus with sum (e - 1) steps; of their bandwidth they use the axes
in use, half of one that is not closed. Level after level: an all-reduce scatters and gathers S
inside and reduces S / members across.

The library ``nccl`` has no halving-doubling, no level after level, small for an all-reduce alone,
and an exchange begins its messages two at a time. The library ``rings`` knows the first way alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import log2, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .reading import cover, listed, number, only, positive, require, whole

Floats = NDArray[np.float64]
Members = tuple[int, ...]
REACHED = ("share", "start_s", "local_bytes_per_s", "small_start_s", "small_share", "small_step_s",
"piece_s",
           "in_switch_share")  # fmt: skip
# A small step is a quarter of the level's latency where nothing is said of it.
IDEAL, DATASHEET = (
    (1.0, 0.0, np.inf, 0.0, 0.0, None, 0.0, 0.0),
    (0.8, 20e-6, np.inf, 13e-6, 0.15, None, 0.0, 0.0),
)
LEVEL = (
    "name",
    "kind",
    "size",
    "bandwidth_bytes_per_s",
    "latency_s",
    "shape",
    "calibration",
    "of_chip",
)


@dataclass(frozen=True, slots=True)
class Level:
    """A level: groups of ``size``, bytes a second of a device, and what software reaches of it;
    axes of a ring or torus, none of switches."""

    size: int
    bandwidth: float
    latency: float
    share: float
    start: float
    local: float
    small_start: float
    small_share: float
    small_step: float
    piece: float
    in_switch: float
    kind: str = "switch"
    axes: tuple[int, ...] = ()

    def stretch(self, n: int, alone: bool) -> tuple[float, tuple[int, ...]]:
        """Bytes a second that so many members of a group reach, and the extents that they take;
        ``alone``: they are spread over the level, so that they close a ring of their own."""
        if not self.axes:
            return self.rate, (n,)
        axes, left, extents, share = (n,) if alone else self.axes, n, list[int](), 0.0
        for axis in axes:
            extent, left = min(axis, left), -(-left // axis)
            if extent > 1:
                extents.append(extent)
                share += (1.0 if extent in (axis, 2) else 0.5) / len(axes)
        return self.rate * share, tuple(extents)

    @property
    def rate(self) -> float:
        return self.bandwidth * self.share

    def cut(self, wire: Any, times: float = 1.0) -> Any:
        """Seconds of bytes that take ``wire``, sent in pieces."""
        return wire + 2.0 * np.sqrt(self.piece * times * wire)


@dataclass(frozen=True, slots=True)
class Network:
    """The levels of a cluster, innermost first, and the library that runs its collectives."""

    levels: tuple[Level, ...]
    library: str = "any"

    def at_links(self, bandwidth: float) -> "Network":
        """With another bandwidth of the innermost level."""
        return replace(
            self, levels=(replace(self.levels[0], bandwidth=bandwidth), *self.levels[1:])
        )

    def groups(self) -> list[int]:
        """Devices of a group of each level."""
        found, joined = [], 1
        for level in self.levels:
            joined *= level.size
            found.append(joined)
        return found


def network_of(cluster: Mapping[str, Any], basis: str) -> Network:
    """The network of a machine."""
    cover(basis in ("ideal", "datasheet", "calibrated", "rings"), f"the basis {basis}")
    levels = []
    for table in listed(cluster["levels"], "levels"):
        level = only(table, "levels", LEVEL)
        kind, size = (
            "switch" if basis == "rings" else str(level["kind"]),
            whole(level["size"], "levels.size", 1),
        )
        cover(kind in ("switch", "ring", "torus"), f"a level of kind {kind[:20]}")
        shape = tuple(
            whole(extent, "levels.shape", 1) for extent in listed(level["shape"], "levels.shape")
        )
        require(
            kind != "torus" or int(np.prod(shape)) == size,
            "levels.shape: it has not the level's members",
        )
        axes: tuple[int, ...] = shape if kind == "torus" else (size,) if kind == "ring" else ()
        latency = number(level["latency_s"], "latency")
        said: dict[str, Any] = dict(
            zip(REACHED, IDEAL if basis in ("ideal", "rings") else DATASHEET, strict=True)
        )
        given = set(level["calibration"])
        # Answers of version 1 and before know the first five alone.
        require(set(REACHED[:5]) <= given <= set(said), "levels.calibration: other keys")
        if basis == "calibrated":
            said |= {
                key: number(v, f"levels.{key}")
                for key, v in level["calibration"].items()
                if v is not None
            }
        levels.append(
            Level(size, positive(level["bandwidth_bytes_per_s"], "bandwidth"), latency,
                  said["share"], said["start_s"], said["local_bytes_per_s"], said["small_start_s"],
                  said["small_share"],
                  latency / 4 if said["small_step_s"] is None else said["small_step_s"],
                  said["piece_s"],
                  said["in_switch_share"], kind, axes)
        )  # fmt: skip
    require(bool(levels), "levels: there is none")
    library = cluster.get("library", "any")
    cover(library in ("any", "nccl"), "the library of a cluster")
    return Network(tuple(levels), "rings" if basis == "rings" else library)


def neighbours(network: Network, ranks: int) -> Members:
    """How many of so many devices in a row meet at each level: groups of the level inside, full or
    begun."""
    inner = [1, *network.groups()[:-1]]
    return tuple(
        min(level.size, -(-ranks // size))
        for level, size in zip(network.levels, inner, strict=True)
    )


def strided(network: Network, axes: Sequence[tuple[int, int]]) -> Members:
    """How many members of a group of axes (stride, count) meet at each level.

    A group of devices holds of an axis those members whose stride ends inside it, and the first.
    """
    inside = [1]
    for size in network.groups():
        ending = [range(stride, min(size, stride * count) + 1, stride) for stride, count in axes]
        inside.append(prod(len(ends) or 1 for ends in ending))
    return tuple(-(-outer // inner) for inner, outer in pairwise(inside))


@dataclass(frozen=True, slots=True)
class _Stretch:
    """One level, or several as one: members, bytes a second, seconds of the steps of a ring through
    all of them and of a tree, whether of switches, whether one level alone."""

    level: Level
    n: int
    rate: float
    ring: float
    tree: float
    switch: bool
    alone: bool


Way = tuple[Floats, float]
"""Seconds of a collective, and bytes that a rank sends for each of its size."""


def _ways(kind: str, stretch: _Stretch, size: Floats, library: str) -> Iterator[Way]:
    """The ways over one level, or several as one."""
    level, n = stretch.level, stretch.n
    reduces = kind == "all_reduce"
    rounds, share = 2.0 if kind == "all_reduce" else 1.0, (n - 1) / n
    added = 0.5 * rounds * size / level.local
    begun = rounds * 0.5 * level.start
    sent = level.cut(rounds * size * share / stretch.rate)
    yield begun + rounds * stretch.ring + sent + added, rounds * share
    if library == "rings":
        return
    nccl, doubles = library == "nccl", n & (n - 1) == 0
    if stretch.alone and stretch.switch and doubles and not nccl:
        yield begun + rounds * log2(n) * level.latency + sent + added, rounds * share
    if reduces and stretch.switch:
        whole_s = level.cut(rounds * size / stretch.rate)
        yield begun + rounds * stretch.tree + whole_s + added, rounds
    if reduces and stretch.switch and stretch.alone and level.in_switch > 0:
        through = level.cut(size / (level.in_switch * level.bandwidth), log2(n))
        yield level.start + 2.0 * log2(n) * level.latency + through, 1.0
    if stretch.alone and level.small_share > 0 and (reduces or not nccl):
        carried = 1.0 if reduces else share
        small_s = carried * size / (level.small_share * level.bandwidth)
        yield level.small_start + log2(n) * level.small_step + small_s, carried


def _one(kind: str, stretch: _Stretch, size: Floats, library: str) -> Floats:
    """Seconds of the best way over one level, or several as one."""
    return np.asarray(
        np.min([seconds for seconds, _ in _ways(kind, stretch, size, library)], axis=0)
    )


def _one_sent(kind: str, stretch: _Stretch, size: float, library: str) -> float:
    """Bytes that a rank sends in that way."""
    ways = list(_ways(kind, stretch, np.array([size]), library))
    seconds = [float(way[0][0]) for way in ways]
    return ways[seconds.index(min(seconds))][1] * size


def _used(
    network: Network, members: Members, spread: bool
) -> tuple[list[_Stretch], list[int], float]:
    """The levels at which members of a group meet, each alone; the extents that they take of tori,
    and the bytes a second of all levels as one."""
    used, extents, rate, below = list[_Stretch](), list[int](), np.inf, 1
    for level, n in zip(network.levels, members, strict=True):
        if n > 1:
            reached, axes = level.stretch(n, spread)
            steps = sum(extent - 1 for extent in axes) if level.kind == "torus" else n - 1
            ring, tree = steps * level.latency, log2(n) * level.latency
            used.append(_Stretch(level, n, reached, ring, tree, level.kind == "switch", True))
            extents += axes
            rate = min(rate, reached * below)
        below *= n
    return used, extents, rate


@dataclass(frozen=True, slots=True)
class _Group:
    """A group of ranks: the levels at which they meet, each alone, and all of them as one."""

    used: list[_Stretch]
    together: _Stretch
    library: str

    @property
    def by_levels(self) -> bool:
        """Whether a collective may run one level after the other."""
        return len(self.used) > 1 and self.library == "any"

    def steps(self, kind: str, size: Floats) -> Iterator[tuple[str, _Stretch, Floats]]:
        """Each level with what the inner ones leave of it; an all-reduce scatters and gathers at
        all but the outermost."""
        left = size
        for stretch in self.used:
            inner = kind == "all_reduce" and stretch is not self.used[-1]
            for step in ("reduce_scatter", "all_gather") if inner else (kind,):
                yield step, stretch, left
            left = left / stretch.n

    def level_after_level(self, kind: str, size: Floats) -> Floats:
        """Seconds of a collective so."""
        total = np.zeros_like(size)
        for step, stretch, left in self.steps(kind, size):
            total = total + _one(step, stretch, left, self.library)
        return total


def _group(network: Network, members: Members, ranks: int, spread: bool) -> _Group:
    used, extents, rate = _used(network, members, spread)
    kinds, outer = {stretch.level.kind for stretch in used}, used[-1].level
    steps = sum(extent - 1 for extent in extents) if kinds == {"torus"} else ranks - 1
    ring, tree = steps * outer.latency, log2(ranks) * outer.latency
    switch = kinds == {"switch"} or len(kinds) > 1
    together = _Stretch(outer, ranks, rate, ring, tree, switch, len(used) == 1)
    return _Group(used, together, network.library)


def collective(
    network: Network, kind: str, members: Members, size: Floats, ranks: int = 0
) -> Floats:
    """Seconds of a collective of each size, of the whole tensor, over a group of ``ranks``
    neighbours; of as many as its members make if not said, spread over the levels."""
    cover(kind in ("all_reduce", "all_gather", "reduce_scatter"), f"the collective {kind}")
    spread, ranks = ranks == 0, ranks or prod(members)
    if ranks == 1:
        return np.zeros_like(size)
    group = _group(network, members, ranks, spread)
    best = _one(kind, group.together, size, network.library)
    if group.by_levels:
        best = np.minimum(best, group.level_after_level(kind, size))
    return np.where(size > 0, best, 0.0)


def collective_sent(
    network: Network, kind: str, members: Members, size: float, ranks: int
) -> float:
    """Bytes that a rank sends in a collective over so many neighbours, in its fastest way."""
    if ranks == 1 or size == 0:
        return 0.0
    group, sizes = _group(network, members, ranks, False), np.array([float(size)])
    together = float(_one(kind, group.together, sizes, network.library)[0])
    if group.by_levels and float(group.level_after_level(kind, sizes)[0]) < together:
        steps = [
            _one_sent(step, stretch, float(left[0]), network.library)
            for step, stretch, left in group.steps(kind, sizes)
        ]
        return sum(steps)
    return _one_sent(kind, group.together, float(size), network.library)


def exchange(network: Network, work: tuple[str, int, int, int, int], once: bool) -> float:
    """Seconds of an exchange of experts or of parts of a sequence (docs/cost.md, Exchanges): own
    bytes of a rank over every ``stride``-th of a group; ``once``: a token goes to a node once and
    is copied there."""
    kind, size, group, stride, copies = work
    members = strided(network, ((stride, group),))
    used = [level for level, n in zip(network.levels, members, strict=True) if n > 1]
    if group == 1 or size == 0 or not used:
        return 0.0
    if kind == "ring":
        outer = used[-1]
        return float((group - 1) * (outer.start / 2 + outer.latency + outer.cut(size / outer.rate)))
    if kind == "all_to_all":
        sent = _sent_once(members, size, copies) if once else _sent(members, size)
        return _all_to_all(network, members, sent)
    same = "all_gather" if kind == "context_gather" else "reduce_scatter"
    return float(collective(network, same, members, np.array([float(size) * group]))[0])


def exchange_sent(network: Network, work: tuple[str, int, int, int, int], once: bool) -> float:
    """Bytes that a rank sends in such an exchange, over all levels."""
    kind, size, group, stride, copies = work
    if group == 1 or size == 0:
        return 0.0
    if kind != "all_to_all":
        return (group - 1) * float(size)
    members = strided(network, ((stride, group),))
    return sum(_sent_once(members, size, copies) if once else _sent(members, size))


def _sent(members: Members, size: float) -> list[float]:
    """Bytes that a rank sends across each level: to all that share it and no inner one."""
    ranks, inside, sent = float(prod(members)), 1, []
    for n in members:
        sent.append(size * (inside * n - inside) / ranks)
        inside *= n
    return sent


def _sent_once(members: Members, size: float, copies: int) -> list[float]:
    """The same where a token with so many copies goes to a node once: of the bytes of a rank the
    share that the copies reach of nodes, spread over the levels outside as the others are."""
    inner, nodes = members[0], prod(members[1:])
    reached = size / copies * (1 - (1 - 1 / nodes) ** copies)
    outside = [nodes * reached * share for share in _sent(members, 1.0)[1:]]
    return [size * (inner - 1) / inner, *outside]


def _all_to_all(network: Network, members: Members, sent: Sequence[float]) -> float:
    """The slowest level. On a ring or torus a byte goes a quarter of the way around on the average,
    a message half of it at most."""
    late, slowest = 0.0, 0.0
    for level, n, size in zip(network.levels, members, sent, strict=True):
        if n == 1:
            continue
        steps, way = (n / 2, max(1.0, n / 4)) if level.axes else (1.0, 1.0)
        late = max(late, level.start / 2 + steps * level.latency)
        if network.library == "nccl":
            late = max(late, 0.5 * (n - 1) * level.latency)
        slowest = max(slowest, float(level.cut(size * way / level.rate)))
    return late + slowest


def transfer(network: Network, level: int, size: Floats) -> Floats:
    """Seconds of a message of each size across a level."""
    own = network.levels[level]
    return np.where(size > 0, own.start / 2 + own.latency + own.cut(size / own.rate), 0.0)
