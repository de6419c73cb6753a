"""Where the groups of a plan document lie in its cluster, as the checker counts it: devices numbered out one by one.

Shares no code with :mod:`phaze.placement.cluster_layout`, which solvers use.
"""

from collections.abc import Mapping
from typing import Any

from phaze.placement.cluster_problem import ClusterProblem


def _unit_sizes(problem: ClusterProblem) -> list[int]:
    sizes, product = [], 1
    for level in problem.cluster.levels:
        product *= level.size
        sizes.append(product)
    return sizes


def _devices(document: Mapping[str, Any], copy: int, stage: int) -> range:
    tensor, data, count = document["tensor"], document["data"], len(document["stages"])
    first = (copy * count + stage) * tensor if document["order"] == "pipeline" else (stage * data + copy) * tensor
    return range(first, first + tensor)


def crossed_level(problem: ClusterProblem, document: Mapping[str, Any], boundary: int) -> int:
    """The innermost level whose groups hold both sides of a boundary in every copy; copies next to each other join."""
    sizes, worst = _unit_sizes(problem), 0
    for copy in range(document["data"]):
        here = [*_devices(document, copy, boundary), *_devices(document, copy, boundary + 1)]
        if document["order"] == "data":
            here = [d for c in range(document["data"]) for i in (0, 1) for d in _devices(document, c, boundary + i)]
        worst = max(worst, next(i for i, size in enumerate(sizes) if len({d // size for d in here}) == 1))
        if document["order"] == "data":
            break
    return worst


def copies_met(problem: ClusterProblem, document: Mapping[str, Any]) -> tuple[int, ...]:
    """How many copies of a stage meet at each level."""
    data = document["data"]
    stride = document["tensor"] * (len(document["stages"]) if document["order"] == "pipeline" else 1)
    members, met = [], 1
    for size in _unit_sizes(problem):
        inside = max(met, min(data, size // stride))
        members.append((inside + met - 1) // met)
        met = inside
    return tuple(members)
