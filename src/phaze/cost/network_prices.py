r"""Prices of transfers and collectives between the devices of a cluster, as a placement asks for
them.

A group of devices is given by how many of its members meet at each level: (8, 4) are four groups of
eight. By the constants of a ``basis`` the best way over the levels in use counts
(:mod:`phaze.cost.collective`), and a message takes

    transfer    start / 2 + latency + W + 2 sqrt(d W),   W = size / B,  d seconds a piece

``rings`` are plain rings at the bandwidths of the cluster file, without constants. A ring through
all of a group enters and leaves each group of level l - 1 once, and the members of such a group
have a way out each, so

    all-reduce  2 (n - 1) latency + 2 (n - 1)/n size / B,   B = min over levels l with members of
                B_l (members below l)

with the latency of the outermost level that has members; a gather, or a reduce-scatter, takes half
of it, and a message latency + size / B. No bytes and a group of one cost nothing. Prices never fall
with size.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np
import numpy.typing as npt

from phaze.cost.collective import GroupLevels, Kind, group_levels, pieces_s, seconds_over
from phaze.cost.exchange import seen_by
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import Cluster

Floats = npt.NDArray[np.float64]
PriceBasis = Basis | Literal["rings"]
# What is asked, the levels that it crosses, and the bytes of all sizes.
Question = tuple[str, tuple[int, ...], bytes]


@dataclass(frozen=True, slots=True)
class NetworkPrices:
    """Seconds for arrays of sizes. They depend on no chip, and a search asks for the same ones
    often: each is remembered."""

    cluster: Cluster
    basis: PriceBasis = "rings"
    prices: dict[Question, Floats] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )
    groups: dict[tuple[int, ...], GroupLevels] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """An all-reduce over a group, of each size."""
        return self._remembered("all_reduce", members, sizes_bytes, self._collective_s)

    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """A gather (or reduce-scatter) over a group of what has each size in all."""
        return self._remembered("all_gather", members, sizes_bytes, self._collective_s)

    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats:
        """A message from one device to another across a level, of each size."""
        return self._remembered("transfer", (level,), sizes_bytes, self._message_s)

    def _remembered(
        self,
        kind: str,
        crossed: tuple[int, ...],
        sizes_bytes: Floats,
        price: Callable[[str, tuple[int, ...], Floats], Floats],
    ) -> Floats:
        key = kind, crossed, sizes_bytes.tobytes()
        if key not in self.prices:
            self.prices[key] = price(kind, crossed, sizes_bytes)
        return self.prices[key]

    def _collective_s(self, kind: str, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        ranks = prod(members)
        if ranks == 1:
            return np.zeros_like(sizes_bytes)
        if self.basis == "rings":
            ring_s = _ring_s(self.cluster, members, sizes_bytes)
            return ring_s if kind == "all_reduce" else ring_s / 2
        if members not in self.groups:
            self.groups[members] = group_levels(seen_by(self.cluster, members), ranks, self.basis)
        collective: Kind = "all_reduce" if kind == "all_reduce" else "all_gather"
        return seconds_over(collective, sizes_bytes, self.groups[members])

    def _message_s(self, _: str, crossed: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        level = self.cluster.levels[crossed[0]]
        if self.basis == "rings":
            return np.where(
                sizes_bytes > 0, level.latency_s + sizes_bytes / level.bandwidth_bytes_per_s, 0.0
            )
        constants = level.constants(self.basis)
        wire_s = sizes_bytes / (constants.share * level.bandwidth_bytes_per_s)
        start_s = constants.start_s / 2 + level.latency_s
        return np.where(
            sizes_bytes > 0, start_s + wire_s + pieces_s(constants.piece_s, wire_s), 0.0
        )


def _ring_s(cluster: Cluster, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
    """2 (n - 1) latency + 2 (n - 1)/n size / B."""
    n, below, slowest, latency_s = prod(members), 1, np.inf, 0.0
    for level, count in zip(cluster.levels, members, strict=True):
        if count > 1:
            slowest, latency_s = min(slowest, level.bandwidth_bytes_per_s * below), level.latency_s
        below *= count
    seconds = 2 * (n - 1) * latency_s + 2 * (n - 1) / n * sizes_bytes / slowest
    return np.where(sizes_bytes > 0, seconds, 0.0)
