"""``phaze.profile/1``: layer times and sizes, ours or measured elsewhere, as a file."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from phaze.documents import Count, Document, Format, NonNegative, Positive, check
from phaze.errors import InputError
from phaze.hardware.files import LevelTable
from phaze.placement.problem import Layer, LayerGraph, Problem, layer_graph

# Nothing real is smaller, and beneath it quotients of bytes and rates lose the digits that a checker compares.
SMALLEST = 1e-30


def _real_amount(value: float) -> float:
    if 0 < value < SMALLEST:
        raise ValueError(f"it must be 0 or at least {SMALLEST:g}")
    return value


Amount = Annotated[NonNegative, Field(lt=1e24), AfterValidator(_real_amount)]
CLUSTER_KEYS = ("cluster", "stack", "precision", "zero", "schedule", "hbm_bytes_per_s")
# What a level may have from measurements; :class:`phaze.placement.cluster_prices.RingPrices` knows nothing of it.
MEASURED = ("share", "start", "local", "small_start", "small_share")
LAYER_KEYS = ("selective_bytes", "selective_s", "full_s", "tied", "tied_bytes")


class LayerRow(Document):
    """One layer: seconds and bytes of one device and one microbatch; ``sharded`` if split over the width.

    For rules ``cluster``: what selective recomputation keeps and runs again, and parameters shared by name.
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


class EdgeRow(Document):
    """Bytes that go from one layer to another, once forward and once backward."""

    tail: Annotated[int, Field(alias="from")]
    head: Annotated[int, Field(alias="to")]
    size_bytes: Annotated[Amount, Field(alias="bytes")]


class WidthTable(Document):
    """The layers at one tensor width."""

    layers: list[LayerRow]
    edges: list[EdgeRow]


class ProfileFile(Document):
    """A placement problem; ``recompute`` false: none, true: in every stage (icml24: but the last), "best": by stage.

    Rules ``icml24`` need ``link_bytes_per_s``; rules ``cluster`` need ``cluster`` and may have the keys after it.
    """

    schema_name: Annotated[Literal["phaze.profile/1"], Field(alias="schema")]
    rules: Literal["icml24", "cluster"]
    devices: Count
    hbm_bytes: Annotated[Positive, Field(ge=SMALLEST, lt=1e24)]
    link_bytes_per_s: Annotated[Positive, Field(ge=1e-6, lt=1e24)] | None = None
    microbatches: Count
    optimizer: Literal["sgd", "adam"]
    recompute: bool | Literal["best", "selective"]
    cluster: str | list[LevelTable] | None = None
    stack: str | None = None
    precision: Literal["fp32", "bf16", "fp8"] | None = None
    zero: Annotated[int, Field(ge=0, le=3)] | None = None
    schedule: Literal["1f1b", "gpipe"] | None = None
    hbm_bytes_per_s: Annotated[Positive, Field(ge=1e-6, lt=1e24)] | None = None
    widths: dict[str, WidthTable]


PROFILE = Format("phaze.profile/1", ProfileFile, "layer times and sizes to place on devices")


def _width(key: str) -> int:
    if not (key.isascii() and key.isdigit() and 0 < int(key) <= 2**20 and str(int(key)) == key):
        raise InputError("widths", f"'{key}' is no tensor width", "use whole numbers from 1 as keys")
    return int(key)


def graphs_of(file: ProfileFile) -> tuple[LayerGraph, ...]:
    """The layer graphs by ascending width."""
    graphs = [
        layer_graph(
            _width(key),
            [
                Layer(la.id, la.forward_s, la.backward_s, la.parameter_bytes, la.activation_bytes, la.sharded)
                for la in table.layers
            ],
            [(row.tail, row.head, row.size_bytes) for row in table.edges],
        )
        for key, table in file.widths.items()
    ]
    return tuple(sorted(graphs, key=lambda graph: graph.width))


def read_profile(raw: Mapping[str, Any], where: str) -> ProfileFile:
    """The checked file, each rule with its own keys."""
    file = check(ProfileFile, raw, where)
    if file.rules == "cluster":
        if file.cluster is None:
            raise InputError(f"{where}: cluster", "this key is missing", "name a cluster or give its levels")
        if file.link_bytes_per_s is not None:
            raise InputError(f"{where}: link_bytes_per_s", "rules cluster take links from the cluster", "remove it")
        for at, level in enumerate(() if isinstance(file.cluster, str) else file.cluster):
            given = [key for key in MEASURED if getattr(level, key) is not None]
            if given:
                seen = "levels of a profile are priced as plain rings at their bandwidth, and nothing measured counts"
                raise InputError(f"{where}: cluster[{at}].{given[0]}", seen, "leave it out")
        return file
    if file.link_bytes_per_s is None:
        raise InputError(f"{where}: link_bytes_per_s", "this key is missing", "add it")
    for key in CLUSTER_KEYS:
        if getattr(file, key) is not None:
            raise InputError(f"{where}: {key}", "this key belongs to rules cluster", "remove it or change the rules")
    if file.recompute == "selective":
        raise InputError(f"{where}: recompute", "'selective' belongs to rules cluster", 'use false, true or "best"')
    for width, table in file.widths.items():
        for index, layer in enumerate(table.layers):
            if not layer.model_fields_set.isdisjoint(LAYER_KEYS):
                place = f"{where}: widths.{width}.layers[{index}]"
                raise InputError(place, "it has keys of rules cluster", f"remove {', '.join(LAYER_KEYS)}")
    return file


def icml24_problem(file: ProfileFile) -> Problem:
    """The problem of a file with rules ``icml24``."""
    return Problem(
        devices=file.devices,
        hbm_bytes=file.hbm_bytes,
        link_bytes_per_s=file.link_bytes_per_s or 0.0,
        microbatches=file.microbatches,
        optimizer=file.optimizer,
        recompute="best" if file.recompute == "best" else "full" if file.recompute else "none",
        graphs=graphs_of(file),
    )


def problem_of(raw: Mapping[str, Any], where: str) -> Problem:
    """The problem that a document with rules ``icml24`` states; ``where`` goes in front of the path of every fault."""
    file = read_profile(raw, where)
    try:
        return icml24_problem(file)
    except InputError as fault:
        raise InputError(f"{where}: {fault.where}", fault.problem, fault.remedy) from None
