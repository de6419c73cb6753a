"""``phaze.profile/1``: layer times and sizes, ours or measured elsewhere, as a file."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from phaze.documents import Count, Document, Format, NonNegative, Positive, check
from phaze.errors import InputError
from phaze.placement.problem import Layer, Problem, layer_graph

Amount = Annotated[NonNegative, Field(lt=1e24)]


class LayerRow(Document):
    """One layer: seconds and bytes of one device and one microbatch; ``sharded`` if split over the width."""

    id: int
    forward_s: Amount
    backward_s: Amount
    parameter_bytes: Amount
    activation_bytes: Amount
    sharded: bool


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
    """A placement problem; ``recompute`` false: none, true: in every stage but the last, "best": stage by stage."""

    schema_name: Annotated[Literal["phaze.profile/1"], Field(alias="schema")]
    rules: Literal["icml24"]
    devices: Count
    hbm_bytes: Annotated[Positive, Field(lt=1e24)]
    link_bytes_per_s: Annotated[Positive, Field(ge=1e-6, lt=1e24)]
    microbatches: Count
    optimizer: Literal["sgd", "adam"]
    recompute: bool | Literal["best"]
    widths: dict[str, WidthTable]


PROFILE = Format("phaze.profile/1", ProfileFile, "layer times and sizes to place on devices")


def _width(key: str, where: str) -> int:
    if not (key.isascii() and key.isdigit() and 0 < int(key) <= 2**20 and str(int(key)) == key):
        raise InputError(f"{where}widths", f"'{key}' is no tensor width", "use whole numbers from 1 as keys")
    return int(key)


def problem_of(raw: Mapping[str, Any], where: str) -> Problem:
    """The problem that a document states; ``where`` it stands goes in front of the path of every fault."""
    file = check(ProfileFile, raw, where)
    prefix = f"{where}: "
    try:
        graphs = [
            layer_graph(
                _width(key, ""),
                [Layer(*(getattr(row, name) for name in Layer.__slots__)) for row in table.layers],
                [(row.tail, row.head, row.size_bytes) for row in table.edges],
            )
            for key, table in file.widths.items()
        ]
        return Problem(
            devices=file.devices,
            hbm_bytes=file.hbm_bytes,
            link_bytes_per_s=file.link_bytes_per_s,
            microbatches=file.microbatches,
            optimizer=file.optimizer,
            recompute="best" if file.recompute == "best" else "full" if file.recompute else "none",
            graphs=tuple(sorted(graphs, key=lambda graph: graph.width)),
        )
    except InputError as fault:
        raise InputError(prefix + fault.where, fault.problem, fault.remedy) from None
