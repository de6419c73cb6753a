"""A profile (``phaze.profile/1``) as a problem: the one place where its rules become values.

``parameter_bytes`` of a layer are 2 a parameter, 4 in fp32; :mod:`phaze.cost.memory` has what is held for one. Rules
``icml24`` count in bytes of parameters: as many again for gradients, and with Adam as many for its state.
"""

from collections.abc import Callable, Mapping
from math import prod
from types import MappingProxyType
from typing import Any

from phaze.cost.memory import State, stack_state
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, Level
from phaze.hardware.library import load_cluster, load_stack
from phaze.placement.one.problem import Choice, Extra, Problem
from phaze.placement.one.rules import GPIPE, ONE_F_ONE_B, Rules, icml24_rules
from phaze.placement.profile import LayerRow, ProfileFile, graphs_of, read_profile

PLAIN = State(1.0, 1.0, 0.0)
WITH_ADAM = State(1.0, 1.0, 1.0)


def _choice(file: ProfileFile) -> Choice:
    if isinstance(file.recompute, str):
        return file.recompute
    return "full" if file.recompute else "none"


def _icml24(file: ProfileFile) -> Problem:
    graphs, link = graphs_of(file), file.link_bytes_per_s or 0.0
    # Devices beyond these help no plan: every layer a stage of the widest split.
    most = max([file.devices, *(len(graph.layers) * graph.width for graph in graphs)])
    adam = file.optimizer == "adam"
    return Problem(
        rules=icml24_rules(link),
        devices=file.devices,
        hbm_bytes=file.hbm_bytes,
        microbatches=file.microbatches,
        recompute=_choice(file),
        state=WITH_ADAM if adam else PLAIN,
        cluster=Cluster("flat", "one flat link", most, (Level("all", "switch", most, link, 0.0),)),
        graphs=graphs,
        extras=tuple((Extra(),) * len(graph.layers) for graph in graphs),
        sent_bytes=1.0,
        sgd_state=PLAIN if adam else None,
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
    family = GPIPE if file.schedule == "gpipe" else ONE_F_ONE_B
    return Problem(
        rules=Rules("cluster", (family,), hidden=stack.hidden_synchronisation),
        devices=file.devices,
        hbm_bytes=file.hbm_bytes,
        microbatches=file.microbatches,
        recompute=_choice(file),
        state=stack_state(precision, file.optimizer, stack),
        cluster=cluster,
        graphs=graphs,
        extras=tuple(tuple(_extra(of[la.id]) for la in g.layers) for g, of in zip(graphs, rows, strict=True)),
        zero=file.zero or 0,
        sent_bytes=4.0 if precision == "fp32" else 2.0,
        hbm_bytes_per_s=file.hbm_bytes_per_s,
        optimizer_traffic_bytes=stack.optimizer_traffic_bytes,
        reserve_bytes=stack.reserve_bytes,
        scatter_gather=stack.scatter_gather,
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
