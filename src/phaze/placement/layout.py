"""Where a plan's groups lie in a cluster: the level that a boundary crosses, how many members meet
at each level.

Devices are numbered with the innermost level filled first; U_l devices make a group of level l. Two
tensor groups that follow each other share a group of level l if the devices from the first of the
one to the last of the other do.
"""

from itertools import accumulate
from operator import mul
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from phaze.hardware.cluster import Cluster
from phaze.placement.rules import Order

Ints = npt.NDArray[np.int64]

# Levels may join more devices than 64 bits count; a plan numbers far fewer, and a group that holds
# more than this holds them all.
MOST_NUMBERED = 2**62


class Shape(NamedTuple):
    """The degrees of a plan, its order, and chunks a stage."""

    tensor: int
    stages: int
    data: int
    order: Order = ""
    chunks: int = 1
    family: str | None = None


def group_sizes(cluster: Cluster) -> Ints:
    """U_l for every level, or what no plan reaches."""
    joined = accumulate((level.size for level in cluster.levels), mul)
    return np.array([min(count, MOST_NUMBERED) for count in joined], np.int64)


def _levels(first: Ints, last: Ints, sizes: Ints) -> Ints:
    """The innermost level whose groups hold devices ``first`` and ``last`` both."""
    apart = first[..., None] // sizes != last[..., None] // sizes
    return np.asarray(apart.sum(axis=-1), np.int64)


def boundary_levels(cluster: Cluster, shape: Shape) -> Ints:
    """The level that each boundary crosses in the replica where it crosses most, first boundary
    first."""
    tensor, stages, data = shape.tensor, shape.stages, shape.data
    if len(cluster.levels) == 1:
        return np.zeros(stages - 1, np.int64)
    boundary = np.arange(stages - 1)
    if shape.order == "data":
        begin = boundary * data * tensor
        return _levels(begin, begin + 2 * data * tensor - 1, group_sizes(cluster))
    begin = (np.arange(data)[:, None] * stages + boundary) * tensor
    levels = _levels(begin, begin + 2 * tensor - 1, group_sizes(cluster))
    return np.asarray(levels.max(axis=0), np.int64)


def boundary_levels_of(cluster: Cluster, shape: Shape) -> Ints:
    """The same for every number of replicas up to those of the shape, [replicas, boundaries]."""
    tensor, boundary, many = (
        shape.tensor,
        np.arange(shape.stages - 1),
        np.arange(1, shape.data + 1)[:, None],
    )
    if shape.order == "data":
        begin = boundary * many * tensor
        return _levels(begin, begin + 2 * many * tensor - 1, group_sizes(cluster))
    begin = ((many - 1) * shape.stages + boundary) * tensor
    return np.maximum.accumulate(
        _levels(begin, begin + 2 * tensor - 1, group_sizes(cluster)), axis=0
    )


def outermost_level(cluster: Cluster, shape: Shape) -> int:
    """The outermost level that the pipeline crosses; the innermost if it crosses none."""
    return int(boundary_levels(cluster, shape).max(initial=0))
