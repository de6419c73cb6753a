"""Collectives and transfers over the levels of a cluster (docs/cost.md, Collectives; docs/placement.md, Rules cluster).

A group is given by how many of its members meet at each level. With S bytes in all, n members, f = (n - 1)/n, rounds
u = 2 for an all-reduce and 1 for a gather or scatter, one level of switches, or several as one, take the least of

    ring, halving-doubling   u (start/2 + steps latency) + u f S/B + u S/(2 local)    steps n - 1; log2 n for n = 2^i
    tree (all-reduce)        u (start/2 + log2(n) latency) + u S/B + u S/(2 local)
    small, one level alone   small start + log2(n) latency / 4 + (S, of an all-reduce, or f S) / (small share bandwidth)

several as one have B = min over levels of share bandwidth x members below, the outermost level's start and latency, and
no halving-doubling. Level after level: an all-reduce scatters and gathers S inside and reduces S / members across.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .reading import cover, listed, number, only, positive, require, whole

Floats = NDArray[np.float64]
Members = tuple[int, ...]
REACHED = ("share", "start_s", "local_bytes_per_s", "small_start_s", "small_share")
IDEAL, DATASHEET = (1.0, 0.0, np.inf, 0.0, 0.0), (0.8, 20e-6, np.inf, 13e-6, 0.15)
LEVEL = ("name", "kind", "size", "bandwidth_bytes_per_s", "latency_s", "shape", "calibration", "of_chip")


@dataclass(frozen=True, slots=True)
class Level:
    """A level of switches: groups of ``size``, bytes a second of a device, and what software reaches of it."""

    size: int
    bandwidth: float
    latency: float
    share: float
    start: float
    local: float
    small_start: float
    small_share: float

    @property
    def rate(self) -> float:
        return self.bandwidth * self.share


@dataclass(frozen=True, slots=True)
class Network:
    """The levels of a cluster, innermost first."""

    levels: tuple[Level, ...]

    def at_links(self, bandwidth: float) -> "Network":
        """With another bandwidth of the innermost level."""
        return Network((replace(self.levels[0], bandwidth=bandwidth), *self.levels[1:]))

    def groups(self) -> list[int]:
        """Devices of a group of each level."""
        found, joined = [], 1
        for level in self.levels:
            joined *= level.size
            found.append(joined)
        return found


def network_of(cluster: Mapping[str, Any], basis: str) -> Network:
    """The network of a machine; levels of other kinds than switches are not covered."""
    cover(basis in ("ideal", "datasheet", "calibrated"), f"the basis {basis}")
    levels = []
    for table in listed(cluster["levels"], "levels"):
        level = only(table, "levels", LEVEL)
        cover(level["kind"] == "switch", f"a level of kind {level['kind']}")
        said = dict(zip(REACHED, IDEAL if basis == "ideal" else DATASHEET, strict=True))
        require(set(level["calibration"]) == set(said), "levels.calibration: other keys")
        if basis == "calibrated":
            said |= {key: number(v, f"levels.{key}") for key, v in level["calibration"].items() if v is not None}
        levels.append(
            Level(whole(level["size"], "levels.size", 1), positive(level["bandwidth_bytes_per_s"], "bandwidth"),
                  number(level["latency_s"], "latency"), *said.values())
        )  # fmt: skip
    require(bool(levels), "levels: there is none")
    return Network(tuple(levels))


def neighbours(network: Network, ranks: int) -> Members:
    """How many of so many devices in a row meet at each level."""
    found, left = [], ranks
    for level in network.levels:
        found.append(min(left, level.size))
        left = -(-left // level.size)
    return tuple(found)


def strided(network: Network, axes: Sequence[tuple[int, int]]) -> Members:
    """How many members of a group of axes (stride, count) meet at each level."""
    met, found = 1, []
    for size in network.groups():
        inside = 1
        for stride, count in axes:
            inside *= min(count, max(1, size // stride))
        found.append(-(-inside // met))
        met = max(met, inside)
    return tuple(found)


def _one(kind: str, level: Level, n: int, size: Floats, rate: float, alone: bool) -> Floats:
    """The best way over one level, or several as one."""
    rounds, share = 2.0 if kind == "all_reduce" else 1.0, (n - 1) / n
    added = 0.5 * rounds * size / level.local
    best = rounds * (0.5 * level.start + (n - 1) * level.latency) + rounds * size * share / rate + added
    doubled = rounds * (0.5 * level.start + log2(n) * level.latency)
    if alone and n & (n - 1) == 0:
        best = np.minimum(best, doubled + rounds * size * share / rate + added)
    if kind == "all_reduce":
        best = np.minimum(best, doubled + rounds * size / rate + added)
    if alone and level.small_share > 0:
        weight = 1.0 if kind == "all_reduce" else share
        small = level.small_start + log2(n) * level.latency / 4 + weight * size / (level.small_share * level.bandwidth)
        best = np.minimum(best, small)
    return np.asarray(best)


def collective(network: Network, kind: str, members: Members, size: Floats, ranks: int = 0) -> Floats:
    """Seconds of a collective of each size, of the whole tensor, over a group of ``ranks``; of as many as its members
    make if not said."""
    cover(kind in ("all_reduce", "all_gather", "reduce_scatter"), f"the collective {kind}")
    ranks = ranks or int(np.prod(members))
    if ranks == 1:
        return np.zeros_like(size)
    used = [(level, n) for level, n in zip(network.levels, members, strict=True) if n > 1]
    rate, below = np.inf, 1
    for level, n in zip(network.levels, members, strict=True):
        rate = min(rate, level.rate * below) if n > 1 else rate
        below *= n
    best = _one(kind, used[-1][0], ranks, size, rate, len(used) == 1)
    if len(used) > 1:
        total, left = np.zeros_like(size), size
        for level, n in used:
            inner = kind == "all_reduce" and level is not used[-1][0]
            for step in ("reduce_scatter", "all_gather") if inner else (kind,):
                total = total + _one(step, level, n, left, level.rate, True)
            left = left / n
        best = np.minimum(best, total)
    return np.where(size > 0, best, 0.0)


def exchange(network: Network, work: tuple[str, int, int, int, int], once: bool) -> float:
    """Seconds of an exchange of experts or of parts of a sequence (docs/cost.md, Exchanges): own bytes of a rank over
    every ``stride``-th of a group; ``once``: a token goes to a node once and is copied there."""
    kind, own, group, stride, copies = work
    members = strided(network, ((stride, group),))
    used = [(level, n) for level, n in zip(network.levels, members, strict=True) if n > 1]
    if group == 1 or own == 0 or not used:
        return 0.0
    if kind == "ring":
        level = used[-1][0]
        return (group - 1) * (level.start / 2 + level.latency + own / level.rate)
    if kind != "all_to_all":
        same, size = "all_gather" if kind == "context_gather" else "reduce_scatter", np.array([float(own) * group])
        return float(collective(network, same, members, size)[0])
    ranks, inside, sent = float(np.prod(members)), 1, list[float]()
    for n in members:
        sent.append(own * (inside * n - inside) / ranks)
        inside *= n
    if once:
        nodes = ranks / members[0]
        reached = own / copies * (1 - (1 - 1 / nodes) ** copies)
        sent = [own * (members[0] - 1) / members[0], *(size / own * ranks / members[0] * reached for size in sent[1:])]
    late = max(level.start / 2 + level.latency for level, _ in used)
    rates = zip(sent, network.levels, members, strict=True)
    return late + max(size / level.rate for size, level, n in rates if n > 1)


def transfer(network: Network, level: int, size: Floats) -> Floats:
    """Seconds of a message of each size across a level."""
    own = network.levels[level]
    return np.where(size > 0, own.start / 2 + own.latency + size / own.rate, 0.0)
