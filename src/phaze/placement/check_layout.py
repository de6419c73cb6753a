"""Where the groups of a plan lie, for the checker: found by counting devices, without the layout of the solver."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from phaze.placement.layers import LayerGraph
from phaze.placement.problem import Extra, Problem
from phaze.placement.rules import Family

Floats = npt.NDArray[np.float64]


class Priced(Protocol):
    """What the prices of the problem can tell: an all-reduce, a gather and a message, of each size."""

    def all_reduce_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats: ...
    def gather_s(self, members: tuple[int, ...], sizes_bytes: Floats) -> Floats: ...
    def transfer_s(self, level: int, sizes_bytes: Floats) -> Floats: ...


@dataclass(frozen=True, slots=True)
class Stated:
    """A document beside its problem: stages, replicas, whether those of a stage lie next to each other, the layers of
    its width, its family and prices."""

    problem: Problem
    document: Mapping[str, Any]
    prices: Priced
    count: int
    data: int
    by_stage: bool
    graph: LayerGraph
    extras: Sequence[Extra]
    family: Family


def crossed_level(stated: Stated, boundary: int) -> int:
    """The innermost level whose groups hold both sides of a boundary in every replica."""
    tensor, wide, group, worst = stated.document["tensor"], 2 * stated.document["tensor"], 1, 0
    if stated.by_stage:
        spans = [(boundary * stated.data * tensor, stated.data * wide)]
    else:
        spans = [((replica * stated.count + boundary) * tensor, wide) for replica in range(stated.data)]
    for level in stated.problem.cluster.levels[:-1]:
        group *= level.size
        worst += any(first % group + length > group for first, length in spans)
    return worst


def replica_members(stated: Stated) -> tuple[int, ...]:
    """How many replicas of a stage meet at each level: all of them where there is one."""
    if len(stated.problem.cluster.levels) == 1:
        return (stated.data,)
    stride = stated.document["tensor"] * (1 if stated.by_stage else stated.count)
    members, met, group = [], 1, 1
    for level in stated.problem.cluster.levels:
        group *= level.size
        inside = max(met, min(stated.data, group // stride))
        members.append((inside + met - 1) // met)
        met = inside
    return tuple(members)
