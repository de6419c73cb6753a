"""A profile (``phaze.profile/1``) as a problem of one of the two settings.

``parameter_bytes`` of a layer are 2 a parameter, 4 in fp32; :mod:`phaze.cost.memory` has what is held for one.
"""

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError
from phaze.hardware.cluster import Cluster
from phaze.hardware.library import load_cluster, load_stack
from phaze.placement.one.problem import Choice, Extra, Problem
from phaze.placement.one.rules import GPIPE, ONE_F_ONE_B
from phaze.placement.one.settings import icml24_problem, stack_problem
from phaze.placement.profile import LayerRow, ProfileFile, graphs_of, read_profile


def _choice(file: ProfileFile) -> Choice:
    if isinstance(file.recompute, str):
        return file.recompute
    return "full" if file.recompute else "none"


def _icml24(file: ProfileFile) -> Problem:
    return icml24_problem(
        graphs_of(file),
        devices=file.devices,
        microbatches=file.microbatches,
        hbm_bytes=file.hbm_bytes,
        link_bytes_per_s=file.link_bytes_per_s or 0.0,
        optimizer=file.optimizer,
        recompute=_choice(file),
    )


def _extra(row: LayerRow) -> Extra:
    if row.selective_s is not None and row.selective_bytes is None:
        raise InputError(f"layer {row.id}: selective_s", "there are no selective_bytes beside it", "give both")
    if row.tied_bytes is not None and row.tied is None:
        raise InputError(f"layer {row.id}: tied_bytes", "there is no name in tied", "name what is shared")
    shared = row.parameter_bytes if row.tied_bytes is None else row.tied_bytes
    return Extra(
        row.selective_bytes, row.selective_s or 0.0, row.full_s, row.tied, shared if row.tied is not None else 0.0
    )


def _cluster_of(file: ProfileFile) -> Cluster:
    if isinstance(file.cluster, str):
        return load_cluster(file.cluster)
    levels = tuple(row.value() for row in file.cluster or ())
    return Cluster("levels", "levels given in place", prod(level.size for level in levels), levels)


def _cluster(file: ProfileFile) -> Problem:
    cluster = _cluster_of(file)
    stack = load_stack(file.stack or cluster.stack)
    precision, graphs = file.precision or stack.precision, graphs_of(file)
    rows = [{row.id: row for row in file.widths[str(graph.width)].layers} for graph in graphs]
    extras = (tuple(_extra(of[la.id]) for la in g.layers) for g, of in zip(graphs, rows, strict=True))
    return stack_problem(
        list(zip(graphs, extras, strict=True)),
        stack,
        cluster,
        families=(GPIPE if file.schedule == "gpipe" else ONE_F_ONE_B,),
        devices=file.devices,
        microbatches=file.microbatches,
        hbm_bytes=file.hbm_bytes,
        hbm_bytes_per_s=file.hbm_bytes_per_s,
        precision=precision,
        optimizer=file.optimizer,
        zero=file.zero or 0,
        recompute=_choice(file),
    )


SETTINGS: Mapping[str, Callable[[ProfileFile], Problem]] = MappingProxyType({"icml24": _icml24, "cluster": _cluster})


def problem_of(raw: Mapping[str, Any], where: str) -> Problem:
    """The problem that a document states; ``where`` goes in front of the path of every fault."""
    file = read_profile(raw, where)
    try:
        return SETTINGS[file.rules](file)
    except InputError as fault:
        place = f"{where}: {fault.where}" if fault.where else where
        raise InputError(place, fault.problem, fault.remedy) from None
