"""A profile with rules ``cluster`` as a problem: the cluster and stack it names, and bytes held for a parameter.

``parameter_bytes`` of a layer are 2 a parameter, 4 in fp32; :mod:`phaze.cost.memory` has what is held for one.
"""

from collections.abc import Mapping
from math import prod
from typing import Any, Literal

from phaze.cost.memory import stack_state
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import load_cluster, load_stack
from phaze.hardware.stack import Precision
from phaze.placement.cluster_problem import Choice, ClusterProblem, Extra
from phaze.placement.problem import LayerGraph, Problem
from phaze.placement.profile import LayerRow, ProfileFile, graphs_of, icml24_problem, read_profile


def _cluster(file: ProfileFile) -> Cluster:
    if isinstance(file.cluster, str):
        return load_cluster(file.cluster)
    levels = tuple(row.value() for row in file.cluster or ())
    return Cluster("levels", "levels given in place", prod(level.size for level in levels), levels)


def _extra(row: LayerRow) -> Extra:
    if row.selective_s is not None and row.selective_bytes is None:
        raise InputError(f"layer {row.id}: selective_s", "there are no selective_bytes beside it", "give both")
    if row.tied_bytes is not None and row.tied is None:
        raise InputError(f"layer {row.id}: tied_bytes", "there is no name in tied", "name what is shared")
    shared = row.parameter_bytes if row.tied_bytes is None else row.tied_bytes
    tied_bytes = shared if row.tied is not None else 0.0
    return Extra(row.selective_bytes, row.selective_s or 0.0, row.full_s, row.tied, tied_bytes)


def _extras(file: ProfileFile, graphs: tuple[LayerGraph, ...]) -> tuple[tuple[Extra, ...], ...]:
    found = []
    for graph in graphs:
        rows = {row.id: row for row in file.widths[str(graph.width)].layers}
        found.append(tuple(_extra(rows[layer.id]) for layer in graph.layers))
    return tuple(found)


def _choice(recompute: bool | Literal["best", "selective"]) -> Choice:
    if isinstance(recompute, str):
        return recompute
    return "full" if recompute else "none"


def cluster_problem(file: ProfileFile) -> ClusterProblem:
    """The problem of a file with rules ``cluster``."""
    cluster = _cluster(file)
    stack = load_stack(file.stack or cluster.stack)
    precision: Precision = file.precision or stack.precision
    graphs = graphs_of(file)
    return ClusterProblem(
        devices=file.devices,
        hbm_bytes=file.hbm_bytes,
        microbatches=file.microbatches,
        recompute=_choice(file.recompute),
        schedule=file.schedule or "1f1b",
        zero=file.zero or 0,
        state=stack_state(precision, file.optimizer, stack),
        sent_bytes=4.0 if precision == "fp32" else 2.0,
        hbm_bytes_per_s=file.hbm_bytes_per_s,
        cluster=cluster,
        stack=stack,
        graphs=graphs,
        extras=_extras(file, graphs),
    )


def any_problem_of(raw: Mapping[str, Any], where: str) -> Problem | ClusterProblem:
    """The problem that a document states, whatever its rules; ``where`` goes in front of the path of every fault."""
    file = read_profile(raw, where)
    try:
        return cluster_problem(file) if file.rules == "cluster" else icml24_problem(file)
    except InputError as fault:
        place = f"{where}: {fault.where}" if fault.where else where
        raise InputError(place, fault.problem, fault.remedy) from None
