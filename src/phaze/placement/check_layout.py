"""Where the groups of a plan lie, for the checker: found by counting devices, without the layout of the solver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phaze.placement.layers import LayerGraph
from phaze.placement.problem import Extra, Problem
from phaze.placement.rules import Family

Floats = npt.NDArray[np.float64]
# Ranks of more than this are counted by their strides, not one by one.
MOST_LISTED = 2**16


class Priced(Protocol):
    """What the prices of the problem can tell: an all-reduce, a gather and a message, of each size."""

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats: ...
    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats: ...
    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Stated:
    """A document beside its problem: stages, replicas, whether those of a stage lie next to each other, the layers of
    its width, its family and prices; ``width`` devices hold a stage of a replica."""

    problem: Problem
    document: Mapping[str, Any]
    prices: Priced
    count: int
    data: int
    by_stage: bool
    graph: LayerGraph
    extras: Sequence[Extra]
    family: Family

    @property
    def width(self) -> int:
        return int(self.document["tensor"]) * self.problem.sharing.context


def crossed_level(stated: Stated, boundary: int) -> int:
    """The innermost level whose groups hold both sides of a boundary in every replica."""
    tensor, wide, group, worst = stated.width, 2 * stated.width, 1, 0
    if stated.by_stage:
        spans = [(boundary * stated.data * tensor, stated.data * wide)]
    else:
        spans = [((replica * stated.count + boundary) * tensor, wide) for replica in range(stated.data)]
    for level in stated.problem.cluster.levels[:-1]:
        group *= level.size
        worst += any(first % group + length > group for first, length in spans)
    return worst


def _met(stated: Stated, ranks: list[int]) -> tuple[int, ...]:
    """How many of some ranks meet at each level, seen from the first: by counting those that share its groups."""
    members, met, group = [], 1, 1
    for level in stated.problem.cluster.levels:
        group *= level.size
        inside = max(met, sum(rank // group == ranks[0] // group for rank in ranks))
        members.append((inside + met - 1) // met)
        met = inside
    return tuple(members)


def _same_stage(stated: Stated) -> list[int]:
    """The ranks of the first stage in all replicas, in the order of their numbers."""
    apart = 1 if stated.by_stage else stated.count
    return [replica * apart * stated.width + place for replica in range(stated.data) for place in range(stated.width)]


def _aligned(stated: Stated, step: int) -> bool:
    """Whether every ``step``-th rank lies alike in all groups of the cluster; elsewhere what meets is a mean."""
    group, strides = 1, {step, stated.width * (1 if stated.by_stage else stated.count)}
    for level in stated.problem.cluster.levels[:-1]:
        group *= level.size
        if any(group % stride and stride % group for stride in strides):
            return False
    return True


def _meeting(stated: Stated, step: int) -> tuple[int, ...]:
    many = stated.width * stated.data // step
    if len(stated.problem.cluster.levels) == 1:
        return (many,)
    if many <= MOST_LISTED and _aligned(stated, step):
        return _met(stated, _same_stage(stated)[::step])
    own, apart = stated.width // step, stated.width * (1 if stated.by_stage else stated.count)
    members, met, group = [], 1, 1
    for level in stated.problem.cluster.levels:
        group *= level.size
        if stated.by_stage or stated.count == 1:
            inside = max(1, min(many, group // step))
        else:
            inside = max(1, min(own, group // step)) * max(1, min(stated.data, group // apart))
        members.append((inside + met - 1) // met)
        met = max(met, inside)
    return tuple(members)


def replica_members(stated: Stated) -> tuple[int, ...]:
    """How many ranks with the same dense weights meet at each level."""
    return _meeting(stated, stated.width // stated.problem.sharing.context)


def _counted(stated: Stated, ranks: list[int]) -> tuple[int, ...]:
    """How many of some ranks meet at each level: all of them on one; where they lie unlike in the groups of a level, a
    mean by the strides at which they follow each other."""
    if len(stated.problem.cluster.levels) == 1:
        return (len(ranks),)
    steps, runs = [b - a for a, b in pairwise(ranks)], list[tuple[int, int]]()
    for step in sorted(set(steps)):
        below = prod(count for _, count in runs)
        first = next((k for k, other in enumerate(steps) if other > step), len(steps))
        runs.append((ranks[below] - ranks[0] if below < len(ranks) else step, (first + 1) // below))
    group, found, met = 1, [], 1
    for level in stated.problem.cluster.levels:
        group *= level.size
        inside = prod(max(1, min(count, group // stride)) for stride, count in runs)
        found.append((inside + met - 1) // met)
        met = max(met, inside)
    return tuple(found)


def _alike(stated: Stated) -> list[int]:
    """The ranks with the dense weights of the first."""
    return _same_stage(stated)[:: stated.width // stated.problem.sharing.context]


def shard_members(stated: Stated) -> tuple[int, ...]:
    """How many ranks that share out dense state meet at each level."""
    shard = stated.problem.sharing.shard
    if not shard:
        return replica_members(stated)
    return _counted(stated, _alike(stated)[:shard])


def group_members(stated: Stated) -> tuple[int, ...]:
    """How many ranks that hold the same part of the state, one in every group that shares it out, meet at each."""
    return _counted(stated, _alike(stated)[:: stated.problem.sharing.shard])


def expert_members(stated: Stated) -> tuple[int, ...]:
    """How many ranks with the same experts meet at each level."""
    return _meeting(stated, stated.problem.sharing.expert * stated.problem.sharing.expert_tensor)
