r"""Exchanges of expert and context parallelism over the levels of a cluster.

A group of n ranks has M_l members that meet at level l; G_l = M_1 .. M_l of it share a group of
level l, G_L = n.

**Experts.** A rank routes T tokens of h features, each to k of the E experts, in a bytes a feature:
D = T k h a. Balanced routing reaches every rank alike. Bytes that a rank sends through level l:

    plain             D (G_l - G_(l-1)) / n
    deduplicated      a token crosses the network once for each node that it goes to, and is copied
                      inside:
      outer levels    T h a (N_l - N_(l-1)) P,   N_l = G_l / M_1 nodes, N = N_L; a token goes to a
                      node with P = 1 - (1 - 1/N)^k, at most g / N where routing is limited to g of
                      N or more groups
      innermost       D (M_1 - 1) / M_1
    seconds           max over l of what level l takes to start + max over l of (W_l + 2 sqrt(d_l
                      W_l)),   (exchange_s) W_l = bytes_l / B_l, start and pieces d_l as for
                      all_to_all in collective.py

Dispatch and combine are an exchange each, and so are their gradients. With x expert-tensor ranks
the rows that arrive are gathered before the products and scattered after them: T k x h a over x
ranks each.

**Context.** c ranks hold s / c positions each; keys and values of a rank have V bytes, before heads
are expanded.

    ring           c - 1 steps, each a transfer of V across the outermost level that neighbours
                   cross; backward sends 2 V (keys, values and their gradients). A step runs beside
                   one block of attention: of A seconds of
                   attention in all, exposed are (c - 1) max(0, step - A / c)          (ring_step_s)
    all_gather     forward gathers c V; backward gathers them again and scatters the gradients of c
                   V  (gathered_s)
    ulysses        an exchange of queries, keys and values before attention and of its result after
                   it (exchange_s)
    hierarchical   ulysses inside c1 ranks, then a ring over the c / c1 groups: the sum of both

Every price is nondecreasing in bytes and nonincreasing in the bandwidth of every level.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from phaze.cost.collective import CollectiveCost, Kind, collective_seconds, crossings, pieces_s
from phaze.cost.ranks import members_by_level
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import Cluster
from phaze.values import replace

Members = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Routed:
    """What one rank routes: tokens, experts of each, bytes of a token, and how many of ``groups``
    of experts it may reach (0: any)."""

    tokens: float
    top_k: int
    token_bytes: float
    groups: int = 0
    top_groups: int = 0

    @property
    def bytes(self) -> float:
        """D: every row that the rank sends, its own share included."""
        return self.tokens * self.top_k * self.token_bytes


@dataclass(frozen=True, slots=True)
class ExchangeCost:
    """Seconds, their latency part, and the bytes that a rank sends through each level."""

    time_s: float
    latency_s: float
    level_bytes: tuple[float, ...]


def seen_by(cluster: Cluster, members: Members) -> Cluster:
    """The cluster as a group sees it: its own members at each level, on that level's links."""
    levels = tuple(
        replace(level, size=count, shape=(count,) if level.kind == "torus" else ())
        for level, count in zip(cluster.levels, members, strict=True)
    )
    return replace(cluster, devices=prod(members), levels=levels)


def plain_bytes(members: Members, routed: Routed) -> tuple[float, ...]:
    """Bytes a rank sends through each level when every row goes straight to its expert."""
    found, inside, ranks = [], 1, prod(members)
    for count in members:
        found.append(routed.bytes * (inside * count - inside) / ranks)
        inside *= count
    return tuple(found)


def deduplicated_bytes(members: Members, routed: Routed) -> tuple[float, ...]:
    """The same when a token is sent to a node once and copied there to the ranks of its experts."""
    inner, nodes = members[0], prod(members[1:])
    reached = 1 - (1 - 1 / nodes) ** routed.top_k
    if routed.top_groups and nodes <= routed.groups:
        reached = min(reached, routed.top_groups / nodes)
    found, met = [routed.bytes * (inner - 1) / inner], 1
    for count in members[1:]:
        found.append(routed.tokens * routed.token_bytes * (met * count - met) * reached)
        met *= count
    return tuple(found)


def exchange_s(
    cluster: Cluster, members: Members, level_bytes: tuple[float, ...], basis: Basis
) -> ExchangeCost:
    """One exchange in which a rank sends so many bytes through each level."""
    ranks = prod(members)
    if ranks == 1 or not any(level_bytes):
        return ExchangeCost(0.0, 0.0, level_bytes)
    latency_s = slowest_s = 0.0
    for sent, (start_s, s_per_byte, piece_s) in zip(
        level_bytes, crossings(seen_by(cluster, members), ranks, basis), strict=True
    ):
        wire_s = sent * s_per_byte
        latency_s, slowest_s = (
            max(latency_s, start_s),
            max(slowest_s, wire_s + float(pieces_s(piece_s, wire_s))),
        )
    return ExchangeCost(latency_s + slowest_s, latency_s, level_bytes)


def expert_exchange(
    cluster: Cluster, members: Members, routed: Routed, basis: Basis, deduplicated: bool = False
) -> ExchangeCost:
    """Dispatch or combine among the ranks that share the experts."""
    level_bytes = (
        deduplicated_bytes(members, routed) if deduplicated else plain_bytes(members, routed)
    )
    return exchange_s(cluster, members, level_bytes, basis)


def _collective_s(
    kind: Kind, cluster: Cluster, members: Members, size_bytes: float, basis: Basis
) -> float:
    if prod(members) == 1:
        return 0.0
    seen = seen_by(cluster, members)
    return float(collective_seconds(kind, np.array([size_bytes]), prod(members), seen, basis)[0])


def ring_step_s(cluster: Cluster, members: Members, size_bytes: float, basis: Basis) -> float:
    """A message between neighbours of a ring, across the outermost level where members meet."""
    used = [level for level, count in zip(cluster.levels, members, strict=True) if count > 1]
    if not used or size_bytes == 0:
        return 0.0
    constants = used[-1].constants(basis)
    wire_s = size_bytes / (constants.share * used[-1].bandwidth_bytes_per_s)
    return (
        constants.start_s / 2
        + used[-1].latency_s
        + wire_s
        + float(pieces_s(constants.piece_s, wire_s))
    )


def gathered_s(
    cluster: Cluster, members: Members, size_bytes: float, basis: Basis
) -> tuple[float, float]:
    """Forward and backward of gathering keys and values of ``size_bytes`` a rank."""
    whole = size_bytes * prod(members)
    gather_s = _collective_s("all_gather", cluster, members, whole, basis)
    return gather_s, gather_s + _collective_s("reduce_scatter", cluster, members, whole, basis)


def exchange_cost(
    kind: str,
    sizes: tuple[int, int, int, int],
    cluster: Cluster,
    basis: Basis,
    deduplicated: bool = False,
) -> CollectiveCost:
    """An exchange of a graph with its sizes (bytes, group, stride, copies); a ring is that of all
    its steps."""
    own, group, stride, copies = sizes
    members = members_by_level(cluster, ((stride, group),))
    if group == 1 or own == 0:
        return CollectiveCost(0.0, "nothing", 0.0, 0.0)
    if kind == "all_to_all":
        found = expert_exchange(
            cluster, members, Routed(1.0, copies, own / copies), basis, deduplicated
        )
        way = "deduplicated" if deduplicated else "direct"
        return CollectiveCost(found.time_s, way, found.latency_s, sum(found.level_bytes))
    sent = (group - 1) * float(own)
    if kind == "ring":
        step_s = ring_step_s(cluster, members, own, basis)
        return CollectiveCost((group - 1) * step_s, "ring", 0.0, sent)
    same: Kind = "all_gather" if kind == "context_gather" else "reduce_scatter"
    return CollectiveCost(
        _collective_s(same, cluster, members, float(own) * group, basis), kind, 0.0, sent
    )
