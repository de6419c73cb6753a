"""Prices of transfers and collectives, as a placement problem asks for them, and plain rings as a first answer.

A group of devices is given by how many of its members meet at each level: (8, 4) are four groups of eight. A ring
through all of them enters and leaves each group of level l - 1 once, and the members of such a group have a way out
each, so

    all-reduce  2 (n - 1) latency + 2 (n - 1)/n size / B,   B = min over levels l with members of B_l (members below l)

with the latency of the outermost level that has members; a gather, or a reduce-scatter, takes half of it. Prices must
not fall with size.
"""

from dataclasses import dataclass
from math import prod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from phaze.hardware.cluster import Cluster

Floats = npt.NDArray[np.float64]


class Prices(Protocol):
    """Seconds for arrays of sizes; no bytes and a group of one cost nothing. ``basis`` names the constants."""

    @property
    def basis(self) -> str: ...

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """An all-reduce over a group, of each size."""

    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """A gather (or reduce-scatter) over a group of what has each size in all."""

    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats:
        """A message from one device to another across a level, of each size."""


@dataclass(frozen=True, slots=True)
class RingPrices:
    """Rings and single messages at the bandwidths of the cluster file."""

    cluster: Cluster

    @property
    def basis(self) -> str:
        """Rings at full bandwidth, without constants."""
        return "rings"

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """2 (n - 1) latency + 2 (n - 1)/n size / B."""
        n, below, slowest, latency_s = prod(members), 1, np.inf, 0.0
        if n == 1:
            return np.zeros_like(sizes_bytes)
        for level, count in zip(self.cluster.levels, members, strict=True):
            if count > 1:
                slowest, latency_s = min(slowest, level.bandwidth_bytes_per_s * below), level.latency_s
            below *= count
        seconds = 2 * (n - 1) * latency_s + 2 * (n - 1) / n * sizes_bytes / slowest
        return np.where(sizes_bytes > 0, seconds, 0.0)

    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """Half of an all-reduce."""
        return self.all_reduce_s(members, sizes_bytes) / 2

    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats:
        """latency + size / B of the level."""
        crossed = self.cluster.levels[level]
        return np.where(sizes_bytes > 0, crossed.latency_s + sizes_bytes / crossed.bandwidth_bytes_per_s, 0.0)
