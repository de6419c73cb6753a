"""MaxText's mesh: named axes over the devices, each with a degree inside a slice (``ici``) and one
across (``dcn``).

A slice is a TPU pod or a node of GPUs. Weights are sharded over the axes fsdp, context and
expert alike; the axis data replicates them. Of a plan the axes that lie nearest to each other come
first.
"""

from collections.abc import Mapping
from math import gcd, prod
from types import MappingProxyType

from phaze.export.flag import Flag
from phaze.export.source import PlannedSplit
from phaze.export.values import Values

REASONS: Mapping[str, str] = MappingProxyType(
    {
        "tensor": "width of a tensor group",
        "tensor_sequence": "width of a tensor group, norms split over its positions",
        "context": "ranks that share a sequence, and weights",
        "expert": "ranks that experts are distributed and other weights sharded over",
        "fsdp": "replicas that shard state, gradients and weights (ZeRO 3)",
        "data": "replicas with whole weights",
        "pipeline": "stages of a replica",
    }
)
"""Every axis of a plan."""
NOT_PRICED = (
    "diloco",
    "fsdp_transpose",
    "sequence",
    "context_usp_ulysses",
    "context_autoregressive",
    "autoregressive",
)
"""Axes that no plan of phaze has."""
LEFT_OPEN = (("ici", "fsdp"), ("dcn", "data"))
"""Degrees that a file without them leaves to the number of devices, -1."""
PLACES: Mapping[str, str] = MappingProxyType({"ici": "inside a slice", "dcn": "across slices"})


def axes(split: PlannedSplit) -> dict[str, int]:
    """The degrees of the mesh by axis, those that lie nearest to each other first."""
    replicas = split.data // split.expert
    groups = split.shards if split.zero == 3 else replicas
    near = {
        "tensor_sequence" if split.sequence_parallel else "tensor": split.tensor,
        "context": split.context,
        "expert": split.expert,
    }
    sharing = {"fsdp": replicas // groups if split.zero == 3 else 1, "data": groups}
    stages = {"pipeline": split.pipeline}
    return (
        {**near, **stages, **sharing}
        if split.order == "pipeline"
        else {**near, **sharing, **stages}
    )


def inside(split: PlannedSplit) -> dict[str, int]:
    """How much of each axis lies inside a slice, filled from the nearest on."""
    degrees = axes(split)
    if split.node == 0 or split.node >= split.processes:
        return degrees
    free, within = split.node, {}
    for axis, degree in degrees.items():
        within[axis] = gcd(degree, free)
        free //= within[axis]
    return within


def fills_no_slices(split: PlannedSplit) -> bool:
    """Whether the degrees leave a part of a slice idle."""
    if split.node == 0 or split.node >= split.processes:
        return False
    return prod(inside(split).values()) != split.node or split.processes % split.node != 0


def degrees_in_words(split: PlannedSplit) -> str:
    """The degrees above 1."""
    return " x ".join(str(degree) for degree in axes(split).values() if degree > 1)


def _key(place: str, axis: str) -> str:
    return f"{place}_{axis}_parallelism"


def _flag(place: str, axis: str) -> Flag:
    """The degree of an axis inside or across slices; those of the replicas are always written."""

    def encode(split: PlannedSplit) -> int | None:
        degree, within = axes(split).get(axis, 1), inside(split).get(axis, 1)
        if place == "ici":
            return within if degree > 1 or axis in ("fsdp", "data") else None
        return degree // within if degree // within > 1 or axis == "data" else None

    default = -1 if (place, axis) in LEFT_OPEN else 1
    return Flag(
        _key(place, axis), "devices", encode, f"{PLACES[place]}: {REASONS[axis]}", default=default
    )


MESH = (
    *(_flag(place, axis) for axis in REASONS for place in PLACES),
    *(Flag(_key(place, axis), "devices", default=1) for axis in NOT_PRICED for place in PLACES),
)


def degrees(values: Values) -> dict[str, int]:
    """The degree of every axis that a file states; one that is left open comes from the devices."""
    keys = [_key(place, axis) for axis in (*REASONS, *NOT_PRICED) for place in PLACES]
    counts = {key: values.open_count(key) for key in keys}
    if "ici_fsdp_parallelism" in values and "dcn_data_parallelism" not in values:
        counts["dcn_data_parallelism"] = 1  # a single slice, where nothing is said of more
    left_open = [key for key, count in counts.items() if count == 0]
    stated = prod(count for count in counts.values() if count)
    if left_open:
        if len(left_open) > 1 or values.devices is None or values.devices % stated:
            seen = f"{' and '.join(left_open)} left to the number of devices"
            remedy = f"state all but one and give --devices, a multiple of {stated}"
            raise values.file_fault(seen, remedy)
        counts[left_open[0]] = values.devices // stated
    whole = {
        axis: counts[_key("ici", axis)] * counts[_key("dcn", axis)]
        for axis in (*REASONS, *NOT_PRICED)
    }
    for axis in NOT_PRICED:
        if whole[axis] > 1:
            raise values.fault(_key("ici", axis), "it is not priced", "leave it at 1")
    if whole["tensor"] > 1 and whole["tensor_sequence"] > 1:
        raise values.fault(
            "ici_tensor_parallelism", "tensors are split over two axes", "use one of them"
        )
    return whole
