"""Prices of collectives and transfers for the placement, from the cost room: the best way over the levels in use."""

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from phaze.cost.collective import Kind, collective_seconds, pieces_s
from phaze.cost.exchange import seen_by
from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import Cluster

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LevelPrices:
    """Seconds on a cluster; a group is given by how many of its members meet at each level."""

    cluster: Cluster
    basis: Basis

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """An all-reduce of each size."""
        return self._collective_s("all_reduce", members, sizes_bytes)

    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """A gather of each size in all."""
        return self._collective_s("all_gather", members, sizes_bytes)

    def _collective_s(self, kind: Kind, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        ranks = prod(members)
        if ranks == 1:
            return np.zeros_like(sizes_bytes)
        return collective_seconds(kind, sizes_bytes, ranks, seen_by(self.cluster, members), self.basis)

    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats:
        """A message of each size from one device to another across a level: start / 2 + latency + W + 2 sqrt(d W),
        W = size / B, with d seconds a piece."""
        crossed = self.cluster.levels[level]
        constants = crossed.constants(self.basis)
        wire_s = sizes_bytes / (constants.share * crossed.bandwidth_bytes_per_s)
        start_s = constants.start_s / 2 + crossed.latency_s
        found: Floats = np.where(sizes_bytes > 0, start_s + wire_s + pieces_s(constants.piece_s, wire_s), 0.0)
        return found


@dataclass(frozen=True, slots=True)
class KnownPrices:
    """Prices that are remembered: a search asks the same ones for every chip, as they depend on none."""

    prices: LevelPrices
    known: dict[tuple[str, tuple[int, ...], bytes], Floats] = field(default_factory=dict, compare=False)

    @property
    def basis(self) -> Basis:
        """The constants of the prices."""
        return self.prices.basis

    def _take(self, kind: str, members: tuple[int, ...], sizes: Floats, price: Callable[[], Floats]) -> Floats:
        key = (kind, members, sizes.tobytes())
        if key not in self.known:
            self.known[key] = price()
        return self.known[key]

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """An all-reduce of each size."""
        return self._take("reduce", members, sizes_bytes, lambda: self.prices.all_reduce_s(members, sizes_bytes))

    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        """A gather of each size in all."""
        return self._take("gather", members, sizes_bytes, lambda: self.prices.gather_s(members, sizes_bytes))

    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats:
        """A message of each size across a level."""
        return self._take("transfer", (level,), sizes_bytes, lambda: self.prices.transfer_s(level, sizes_bytes))
