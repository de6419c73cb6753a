"""Collectives over the levels of a cluster: every way that its library has is costed, the best is
taken and named.

S bytes of the whole (gathered or reduced) tensor, n ranks. Ranks fill the innermost level first:
g_l of them (or of the groups below) meet at level l, of bandwidth B_l = share x bandwidth a device,
latency a_l a step, start-up s_l.

One level, or several as one (:func:`flat`): a ring through all ranks enters and leaves every group
once, and with as many rings as a group has members each has its own way out, so B = min over levels
of B_l x (members of a group below l), and a, s are those of the outermost level used. With f = (n -
1)/n:

    ring              all_reduce  s + 2(n-1) a + 2 f S/B     all_gather, reduce_scatter  s/2 + (n-1)
                      a + f S/B
    halving-doubling  all_reduce  s + 2 log2(n) a + 2 f S/B  gather, scatter  s/2 + log2(n) a + f
                      S/B    one switch, 2^i
    tree              all_reduce  s + 2 log2(n) a + 2 S/B
                      switch
    torus             as ring, a path of sum(e_i - 1) steps over axes of extents e_i; B is the share
                      of the links that lie on axes in use, halved where the group does not close an
                      axis of more than two into a ring in these four each device also copies and
                      adds its own bytes: + S/local, a gather S/(2 local)
    in-switch         all_reduce  s + 2 log2(n) a + S/B'', B'' = in_switch_share x bandwidth: the
                      switch adds, within one level of switches that can
    direct            all_to_all  s/2 + a + the slowest level's (S x share that crosses it)/B_l; on
                      a ring or torus the mean distance, e_i/4 hops on each axis, loads the links: x
                      max(1, mean hops / axes in use), and
                      sum(e_i/2) steps. point_to_point  s/2 + a + S/B_l of the level that alone
                                                        joins both
    small             any, by stores into the peers' memory: s' + log2(n) a' + w S/(share'
                      bandwidth), w = 1 for all_reduce, f else: the way of small messages, within
                      one level; a' = a/4 if nothing is said
    hierarchical      all_reduce = reduce_scatter inside (S) + all_reduce across (S/g) + all_gather
                      inside (S); a gather or scatter is one level after the other

A message is cut into pieces that follow each other; each piece costs d seconds beside its bytes,
and the last one arrives a piece after the first would have: k d + W/k beside the W seconds of its
bytes, least 2 sqrt(d W). It is added to every way but small, with W the term in S; in the switch a
piece costs log2(n) d.

The library decides which ways there are. ``any`` has them all; ``nccl`` has neither
halving-doubling nor hierarchical, small for all_reduce and point_to_point alone, and begins each
message of an all_to_all, two at a time: max(s/2 + a, (n - 1) a/2).

S/n per pair of ranks is what all_to_all moves; the ranks of point_to_point say how far the two are
apart. The paper's rules have one link and no latency: 2 (n-1)/n S/B, half of it for a gather or
scatter.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError, unknown_name
from phaze.hardware.calibration import Basis, LinkConstants
from phaze.hardware.cluster import Cluster, Level, Library

Kind = Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "point_to_point"]
KINDS: tuple[Kind, ...] = get_args(Kind)
# Every rank sends each of its bytes once, to the rank that needs it: no rings, no levels one after
# another.
DIRECT: tuple[Kind, ...] = ("all_to_all", "point_to_point")
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CollectiveCost:
    """Seconds, the way that gives them, its latency part, and bytes that one device sends."""

    time_s: float
    way: str
    latency_s: float
    sent_bytes: float


@dataclass(frozen=True, slots=True)
class Stretch:
    """A level, or several as one, as a group of ``ranks`` sees it: bytes per second, seconds a
    step, around a ring and down a tree; ``doubles``: whether the library halves and doubles."""

    kind: str
    ranks: int
    bytes_per_s: float
    step_s: float
    constants: LinkConstants
    extents: tuple[int, ...]
    raw_bytes_per_s: float
    ring_s: float
    tree_s: float
    doubles: bool
    single: bool = True


def kind_named(text: str) -> Kind:
    """``text`` as a kind of collective."""
    for kind in KINDS:
        if kind == text:
            return kind
    raise unknown_name("collective", "collective", text, KINDS)


def members(cluster: Cluster, ranks: int) -> list[int]:
    """How many meet at each level when ranks fill the innermost level first."""
    if not 1 <= ranks <= cluster.devices:
        raise InputError(
            "ranks",
            f"{ranks} is out of range",
            f"{cluster.name} has 1 to {cluster.devices} devices",
        )
    left, found = ranks, []
    for level in cluster.levels:
        found.append(min(left, level.size))
        left = -(-left // level.size)
    return found


def _extents(level: Level, count: int) -> tuple[tuple[int, ...], float]:
    """Extents of the axes that ``count`` members of a ring or torus take, and the share of the
    links they use."""
    axes = level.shape if level.kind == "torus" else (level.size,)
    left, taken, share = count, [], 0.0
    for axis in axes:
        extent = min(axis, left)
        left = -(-left // axis)
        if extent > 1:
            taken.append(extent)
            share += (1.0 if extent in (axis, 2) else 0.5) / len(axes)
    return tuple(taken), share


def _stretch(level: Level, count: int, basis: Basis, library: Library) -> Stretch:
    constants = level.constants(basis)
    extents, share = ((count,), 1.0) if level.kind == "switch" else _extents(level, count)
    raw, step_s = level.bandwidth_bytes_per_s, level.latency_s
    steps = sum(extent - 1 for extent in extents) if level.kind == "torus" else count - 1
    rate, doubles = raw * share * constants.share, library == "any"
    return Stretch(
        level.kind, count, rate, step_s, constants, extents, raw, steps * step_s,
        log2(count) * step_s, doubles
    )  # fmt: skip


def flat(cluster: Cluster, ranks: int, basis: Basis) -> Stretch:
    """All levels that ``ranks`` need, as one."""
    counts = members(cluster, ranks)
    stretches = [
        _stretch(level, count, basis, cluster.library)
        for level, count in zip(cluster.levels, counts, strict=True)
    ]
    below, bandwidth, outer = 1, float("inf"), stretches[0]
    for stretch in stretches:
        if stretch.ranks > 1:
            bandwidth, outer = min(bandwidth, stretch.bytes_per_s * below), stretch
        below *= stretch.ranks
    used = [s for s in stretches if s.ranks > 1]
    kind = outer.kind if len({s.kind for s in used}) <= 1 else "switch"
    extents = tuple(e for s in used for e in s.extents)
    steps = sum(extent - 1 for extent in extents) if kind == "torus" else ranks - 1
    ring_s, tree_s = steps * outer.step_s, log2(ranks) * outer.step_s
    return replace(
        outer, kind=kind, ranks=ranks, bytes_per_s=bandwidth, extents=extents, ring_s=ring_s,
        tree_s=tree_s,
        single=len(used) <= 1,
    )  # fmt: skip


def pieces_s(piece_s: float, wire_s: Any) -> Any:
    """What cutting a message whose bytes take ``wire_s`` into the best number of pieces adds."""
    return 2.0 * np.sqrt(piece_s * wire_s)


def _ring_like(
    kind: Kind, s: Stretch, size: Any, path_s: float, way: str, whole: bool = False
) -> CollectiveCost:
    """start + rounds x path + rounds x f S / B + S / local + its pieces, two rounds for an
    all-reduce."""
    rounds = 2.0 if kind == "all_reduce" else 1.0
    sent = rounds * size * (1.0 if whole else (s.ranks - 1) / s.ranks)
    latency = rounds * (0.5 * s.constants.start_s + path_s)
    local = 0.5 * rounds * size / s.constants.local_bytes_per_s
    wire_s = sent / s.bytes_per_s
    return CollectiveCost(
        latency + wire_s + local + pieces_s(s.constants.piece_s, wire_s), way, latency, sent
    )


def _in_switch(s: Stretch, size: Any) -> CollectiveCost:
    latency = s.constants.start_s + 2.0 * log2(s.ranks) * s.step_s
    wire_s = size / (s.constants.in_switch_share * s.raw_bytes_per_s)
    cut_s = pieces_s(s.constants.piece_s * log2(s.ranks), wire_s)
    return CollectiveCost(latency + wire_s + cut_s, "in-switch", latency, size)


def _used(cluster: Cluster, ranks: int, basis: Basis) -> list[Stretch]:
    counts = members(cluster, ranks)
    levels = zip(cluster.levels, counts, strict=True)
    return [_stretch(level, n, basis, cluster.library) for level, n in levels if n > 1]


def crossings(cluster: Cluster, ranks: int, basis: Basis) -> list[tuple[float, float, float]]:
    """For each level, innermost first: seconds that an exchange among ``ranks`` takes to start
    there, seconds for each byte that a device sends through it, and seconds a piece; nothing where
    none meet."""
    found = []
    for level, count in zip(cluster.levels, members(cluster, ranks), strict=True):
        if count == 1:
            found.append((0.0, 0.0, 0.0))
            continue
        s, load, steps = _stretch(level, count, basis, cluster.library), 1.0, 1.0
        if s.kind != "switch":
            steps = sum(extent / 2 for extent in s.extents)
            load = max(1.0, sum(extent / 4 for extent in s.extents) / max(1, len(s.extents)))
        start_s = 0.5 * s.constants.start_s + steps * s.step_s
        if cluster.library == "nccl":
            start_s = max(start_s, 0.5 * (count - 1) * s.step_s)
        found.append((start_s, load / s.bytes_per_s, s.constants.piece_s))
    return found


def _exchange(cluster: Cluster, ranks: int, size: Any, basis: Basis) -> CollectiveCost:
    """All to all: each device's own bytes over each level that they cross, the slowest level
    counts."""
    latency, slowest, below = 0.0, 0.0 * size, 1
    for count, (start_s, s_per_byte, piece_s) in zip(
        members(cluster, ranks), crossings(cluster, ranks, basis), strict=True
    ):
        inside = min(below * count, ranks)
        wire_s = s_per_byte * (inside - below) / ranks * size
        latency, slowest = (
            max(latency, start_s),
            np.maximum(slowest, wire_s + pieces_s(piece_s, wire_s)),
        )
        below = inside
    return CollectiveCost(latency + slowest, "direct", latency, size * (ranks - 1) / ranks)


def _transfer(cluster: Cluster, ranks: int, size: Any, basis: Basis) -> CollectiveCost:
    """One device to another that only the outermost level of ``ranks`` devices joins it with."""
    outer = _used(cluster, ranks, basis)[-1]
    latency, wire_s = 0.5 * outer.constants.start_s + outer.step_s, size / outer.bytes_per_s
    return CollectiveCost(
        latency + wire_s + pieces_s(outer.constants.piece_s, wire_s), "direct", latency, size
    )


def _single_ways(kind: Kind, s: Stretch, size: Any) -> Iterator[CollectiveCost]:
    n = s.ranks
    if kind not in DIRECT:
        yield _ring_like(kind, s, size, s.ring_s, "torus" if s.kind == "torus" else "ring")
        if s.single and s.doubles and s.kind == "switch" and n & (n - 1) == 0:
            yield _ring_like(kind, s, size, log2(n) * s.step_s, "halving-doubling")
        if s.kind == "switch" and kind == "all_reduce":
            yield _ring_like(kind, s, size, s.tree_s, "tree", whole=True)
            if s.single and s.constants.in_switch_share > 0:
                yield _in_switch(s, size)
    if (
        s.single
        and s.constants.small_share > 0
        and (s.doubles or kind in ("all_reduce", "point_to_point"))
    ):
        weight = 1.0 if kind in ("all_reduce", "point_to_point") else (n - 1) / n
        said = s.constants.small_step_s
        latency = s.constants.small_start_s + log2(n) * (s.step_s / 4 if said is None else said)
        rate = s.constants.small_share * s.raw_bytes_per_s
        yield CollectiveCost(latency + weight * size / rate, "small", latency, weight * size)


def _steps(kind: Kind, outermost: bool) -> tuple[Kind, ...]:
    """What a level does of a hierarchical collective."""
    return ("reduce_scatter", "all_gather") if kind == "all_reduce" and not outermost else (kind,)


def _hierarchical(
    kind: Kind, cluster: Cluster, ranks: int, size: float, basis: Basis
) -> CollectiveCost | None:
    used = _used(cluster, ranks, basis)
    if len(used) < 2 or kind in DIRECT or cluster.library == "nccl":
        return None
    total, names, latency, sent, left = 0.0, [], 0.0, 0.0, size
    for index, stretch in enumerate(used):
        for step in _steps(kind, index == len(used) - 1):
            best = min(_single_ways(step, stretch, left), key=lambda cost: cost.time_s)
            total, latency, sent = (
                total + best.time_s,
                latency + best.latency_s,
                sent + best.sent_bytes,
            )
        names.append(best.way)
        left /= stretch.ranks
    return CollectiveCost(total, f"hierarchical ({', '.join(names)})", latency, sent)


def ways(
    kind: Kind, size_bytes: float, ranks: int, cluster: Cluster, basis: Basis = "calibrated"
) -> list[CollectiveCost]:
    """Every way to run a collective over ``ranks`` neighbouring devices of ``cluster``, best
    first."""
    if size_bytes < 0:
        raise InputError("bytes", f"{size_bytes!r} is out of range", "it must be at least 0")
    if ranks == 1 or size_bytes == 0:
        members(cluster, ranks)
        return [CollectiveCost(0.0, "nothing", 0.0, 0.0)]
    found = list(_single_ways(kind, flat(cluster, ranks, basis), size_bytes))
    if kind == "all_to_all":
        found.append(_exchange(cluster, ranks, size_bytes, basis))
    if kind == "point_to_point":
        found.append(_transfer(cluster, ranks, size_bytes, basis))
    deeper = _hierarchical(kind, cluster, ranks, size_bytes, basis)
    return sorted([*found, *([deeper] if deeper else [])], key=lambda cost: cost.time_s)


def collective(
    kind: Kind, size_bytes: float, ranks: int, cluster: Cluster, basis: Basis = "calibrated"
) -> CollectiveCost:
    """The best way."""
    return ways(kind, size_bytes, ranks, cluster, basis)[0]


@dataclass(frozen=True, slots=True)
class GroupLevels:
    """The levels of a network that a group of ``ranks`` uses, each by itself and all as one."""

    ranks: int
    whole: Stretch
    used: tuple[Stretch, ...]
    cluster: Cluster
    basis: Basis


def group_levels(cluster: Cluster, ranks: int, basis: Basis) -> GroupLevels:
    """Those of neighbouring devices."""
    whole, used = flat(cluster, ranks, basis), tuple(_used(cluster, ranks, basis))
    return GroupLevels(ranks, whole, used, cluster, basis)


def collective_seconds(
    kind: Kind, sizes_bytes: Floats, ranks: int, cluster: Cluster, basis: Basis = "calibrated"
) -> Floats:
    """Seconds of the best way for each of many sizes: what :func:`collective` gives for one, ways
    costed as arrays."""
    if ranks == 1:
        return np.zeros_like(sizes_bytes)
    return seconds_over(kind, sizes_bytes, group_levels(cluster, ranks, basis))


def seconds_over(kind: Kind, sizes_bytes: Floats, group: GroupLevels) -> Floats:
    """The same of a group of two or more whose levels are known."""
    ways_s: list[Any] = [way.time_s for way in _single_ways(kind, group.whole, sizes_bytes)]
    if kind in DIRECT:
        direct = _exchange if kind == "all_to_all" else _transfer
        ways_s.append(direct(group.cluster, group.ranks, sizes_bytes, group.basis).time_s)
    left = sizes_bytes
    if len(group.used) > 1 and kind not in DIRECT and group.cluster.library == "any":
        total_s = np.zeros_like(sizes_bytes)
        for index, stretch in enumerate(group.used):
            for step in _steps(kind, index == len(group.used) - 1):
                total_s = total_s + _least(
                    [way.time_s for way in _single_ways(step, stretch, left)]
                )
            left = left / stretch.ranks
        ways_s.append(total_s)
    return np.where(sizes_bytes > 0, _least(ways_s), 0.0)


def _least(seconds: Sequence[Any]) -> Floats:
    found: Floats = np.asarray(seconds[0])
    for other in seconds[1:]:
        found = np.minimum(found, other)
    return found
