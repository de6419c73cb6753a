"""``phaze.profile/1``: layer times and sizes, ours or measured elsewhere, as a file, and the
problem that it states.

``parameter_bytes`` of a layer are 2 a parameter, 4 in fp32; :mod:`phaze.cost.memory` has what is
held for one.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from phaze.documents import Count, Document, Format, NonNegative, Positive, check
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, Level, cluster_of
from phaze.hardware.library import load_cluster, load_stack
from phaze.options.keys import ProfileKeys
from phaze.pipeline.families import FAMILIES
from phaze.placement.job import TrainingJob
from phaze.placement.layers import LayerGraph, PlacedLayer, layer_graph
from phaze.placement.machine import Machine
from phaze.placement.problem import PlacementProblem, RecomputeChoice
from phaze.placement.settings import icml24_problem, stack_problem

# Nothing real is smaller, and beneath it quotients of bytes and rates lose the digits that a
# checker compares.
SMALLEST = 1e-30


def _real_amount(value: float) -> float:
    if 0 < value < SMALLEST:
        raise ValueError(f"it must be 0 or at least {SMALLEST:g}")
    return value


Amount = Annotated[NonNegative, Field(lt=1e24), AfterValidator(_real_amount)]
CLUSTER_KEYS = ("cluster", "stack", "precision", "zero", "schedule", "hbm_bytes_per_s")
# What a level may have from measurements, of which plain rings know nothing.
MEASURED = (
    "share",
    "start",
    "local",
    "small_start",
    "small_share",
    "small_step",
    "piece",
    "in_switch_share",
)
LAYER_KEYS = ("selective_bytes", "selective_s", "full_s", "tied", "tied_bytes", "weight_s")


class LayerRow(Document):
    """One layer: seconds and bytes of one device and one microbatch; ``sharded`` if split over the
    width.

    For rules ``cluster``: what selective recomputation keeps and runs again, parameters shared by
    name, and for schedule ``zb-h1`` what of ``backward_s`` gradients of weights take.
    """

    id: int
    forward_s: Amount
    backward_s: Amount
    parameter_bytes: Amount
    activation_bytes: Amount
    sharded: bool
    selective_bytes: Amount | None = None
    selective_s: Amount | None = None
    full_s: Amount | None = None
    tied: Annotated[str, Field(min_length=1)] | None = None
    tied_bytes: Amount | None = None
    weight_s: Amount | None = None


class EdgeRow(Document):
    """Bytes that go from one layer to another, once forward and once backward."""

    tail: Annotated[int, Field(alias="from")]
    head: Annotated[int, Field(alias="to")]
    size_bytes: Annotated[Amount, Field(alias="bytes")]


class WidthTable(Document):
    """The layers at one tensor width."""

    layers: list[LayerRow]
    edges: list[EdgeRow]


class ProfileFile(ProfileKeys):
    """A placement problem; ``recompute`` false: none, true: in every stage (icml24: but the last),
    "best": by stage.

    Rules ``icml24`` need ``link_bytes_per_s``; rules ``cluster`` need ``cluster`` and may have the
    keys after it.
    """

    schema_name: Annotated[Literal["phaze.profile/1"], Field(alias="schema")]
    rules: Literal["icml24", "cluster"]
    hbm_bytes: Annotated[Positive, Field(ge=SMALLEST, lt=1e24)]
    link_bytes_per_s: Annotated[Positive, Field(ge=1e-6, lt=1e24)] | None = None
    microbatches: Count
    optimizer: Literal["sgd", "adam"]
    recompute: bool | Literal["best", "selective"]
    cluster: str | list[Level] | None = None
    stack: str | None = None
    precision: Literal["fp32", "bf16", "fp8"] | None = None
    schedule: Literal["1f1b", "gpipe", "zb-h1"] | None = None
    hbm_bytes_per_s: Annotated[Positive, Field(ge=1e-6, lt=1e24)] | None = None
    widths: dict[str, WidthTable]


PROFILE = Format("phaze.profile/1", ProfileFile, "layer times and sizes to place on devices")


def _width(key: str) -> int:
    if not (key.isascii() and key.isdigit() and 0 < int(key) <= 2**20 and str(int(key)) == key):
        raise InputError(
            "widths", f"'{key}' is not a tensor-parallel degree", "use whole numbers from 1 as keys"
        )
    return int(key)


def graphs_of(file: ProfileFile) -> tuple[LayerGraph, ...]:
    """The layer graphs by ascending width."""
    split = file.schedule == "zb-h1"
    graphs = [
        layer_graph(
            _width(key),
            [_layer(row, split) for row in table.layers],
            [(row.tail, row.head, row.size_bytes) for row in table.edges],
        )
        for key, table in file.widths.items()
    ]
    return tuple(sorted(graphs, key=lambda graph: graph.width))


def _layer(row: LayerRow, split: bool) -> PlacedLayer:
    if row.selective_s is not None and row.selective_bytes is None:
        raise InputError(f"layer {row.id}: selective_s", "selective_bytes is missing", "give both")
    if row.weight_s is not None and not split:
        raise InputError(
            f"layer {row.id}: weight_s",
            "it counts under schedule zb-h1 alone",
            "remove it, or say zb-h1",
        )
    if row.tied_bytes is not None and row.tied is None:
        raise InputError(
            f"layer {row.id}: tied_bytes", "there is no name in tied", "name what is shared"
        )
    shared = row.parameter_bytes if row.tied_bytes is None else row.tied_bytes
    return PlacedLayer(
        row.id,
        row.forward_s,
        row.backward_s,
        row.parameter_bytes,
        row.activation_bytes,
        row.sharded,
        weight_s=row.weight_s,
        selective_bytes=row.selective_bytes,
        selective_s=row.selective_s or 0.0,
        full_s=row.full_s,
        tied=row.tied,
        tied_bytes=shared if row.tied is not None else 0.0,
    )


def read_profile(raw: Mapping[str, Any], where: str) -> ProfileFile:
    """The checked file, each rule with its own keys."""
    file = check(ProfileFile, raw, where)
    if file.rules == "cluster":
        if file.cluster is None:
            raise InputError(
                f"{where}: cluster", "this key is missing", "name a cluster or give its levels"
            )
        if file.link_bytes_per_s is not None:
            raise InputError(
                f"{where}: link_bytes_per_s",
                "rules cluster take links from the cluster",
                "remove it",
            )
        for index, level in enumerate(() if isinstance(file.cluster, str) else file.cluster):
            stated = level.model_dump(by_alias=True, exclude_none=True)
            measured = [key for key in MEASURED if key in stated]
            if measured:
                seen = (
                    "levels of a profile are costed as rings at their bandwidth, without "
                    "measured constants"
                )
                raise InputError(f"{where}: cluster[{index}].{measured[0]}", seen, "leave it out")
        return file
    if file.link_bytes_per_s is None:
        raise InputError(f"{where}: link_bytes_per_s", "this key is missing", "add it")
    for key in CLUSTER_KEYS:
        if getattr(file, key) is not None:
            raise InputError(
                f"{where}: {key}",
                "this key belongs to rules cluster",
                "remove it or change the rules",
            )
    if file.recompute == "selective":
        raise InputError(
            f"{where}: recompute",
            "'selective' belongs to rules cluster",
            'use false, true or "best"',
        )
    for width, table in file.widths.items():
        for index, layer in enumerate(table.layers):
            if not layer.model_fields_set.isdisjoint(LAYER_KEYS):
                place = f"{where}: widths.{width}.layers[{index}]"
                raise InputError(
                    place, "it has keys of rules cluster", f"remove {', '.join(LAYER_KEYS)}"
                )
    return file


def _choice(file: ProfileFile) -> RecomputeChoice:
    if isinstance(file.recompute, str):
        return file.recompute
    return "full" if file.recompute else "none"


def _icml24(file: ProfileFile) -> PlacementProblem:
    return icml24_problem(
        graphs_of(file),
        devices=file.devices,
        microbatches=file.microbatches,
        hbm_bytes=file.hbm_bytes,
        link_bytes_per_s=file.link_bytes_per_s or 0.0,
        optimizer=file.optimizer,
        recompute=_choice(file),
    )


def _cluster_of(file: ProfileFile) -> Cluster:
    if isinstance(file.cluster, str):
        return load_cluster(file.cluster)
    return cluster_of("levels", "levels given in place", file.cluster or ()).on_chip(None)


def _cluster(file: ProfileFile) -> PlacementProblem:
    cluster = _cluster_of(file)
    stack = load_stack(file.stack or cluster.stack)
    families = (FAMILIES[file.schedule or "1f1b"],)
    machine = Machine(cluster, stack, precision=file.precision or stack.precision)
    job = TrainingJob(
        machine, file.devices, file.microbatches, file.optimizer, (file.zero or 0,), _choice(file)
    )
    hbm = file.hbm_bytes, file.hbm_bytes_per_s
    return stack_problem(job, graphs_of(file), families, file.microbatches, hbm)


SETTINGS: Mapping[str, Callable[[ProfileFile], PlacementProblem]] = MappingProxyType(
    {"icml24": _icml24, "cluster": _cluster}
)


def problem_of(raw: Mapping[str, Any], where: str) -> PlacementProblem:
    """The problem that a document states; ``where`` goes in front of the path of every fault."""
    file = read_profile(raw, where)
    try:
        return SETTINGS[file.rules](file)
    except InputError as fault:
        place = f"{where}: {fault.where}" if fault.where else where
        raise InputError(place, fault.problem, fault.remedy) from None
