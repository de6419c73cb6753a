"""The models that phaze knows by name, and the families ``gpt``, ``llama`` and ``moe`` by their
sizes; none needs PyTorch.

A model's row says where it is searched and what experts chose for it; its graphs lie in ``data/``.
To add a model: a row in :data:`phaze.graph.torch.named.NAMED` (its configuration), a row here, and
``make graphs``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Unpack

from phaze.errors import InputError, unknown_name
from phaze.graph.depth import deepen, runs
from phaze.graph.family import (
    FAMILIES,
    ROTARY_FAMILIES,
    check_sizes,
    family_case,
    family_point,
    file_of,
)
from phaze.graph.ir import Model
from phaze.graph.positions import extended, require_positions
from phaze.graph.shipped import case_name, model_at, open_shipped
from phaze.graph.supply.point import RankPoint, RankVariant
from phaze.graph.torch.named import NAMED

SHIPPED_WIDTHS = (1, 2, 4, 8)
"""Widths within a node of eight."""


@dataclass(frozen=True, slots=True)
class ZooModel:
    """A named model. ``positions``: the longest sequence (None: any); ``fixed``: the sequence
    cannot be chosen.

    ``widths`` are the tensor widths that a search tries, ``shipped`` those whose graphs are
    bundled; ``experts`` is the published split of 1024 devices as (pipeline, data, tensor), where
    there is one; ``approximation`` what of its graphs is not as published, empty if nothing is;
    ``rotary``: positions can be extended.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    sequence: int
    positions: int | None
    widths: tuple[int, ...]
    shipped: tuple[int, ...]
    fixed: bool = False
    experts: tuple[int, int, int] | None = None
    approximation: str = ""
    rotary: bool = False


NEMOTRON = (
    "RMS norms and rotary positions on whole heads, as of a llama, stand for the "
    "published layer norms and rotary "
    "positions on half of each head; products and parameters are the published ones but "
    "for the norms' biases"
)
ALL = SHIPPED_WIDTHS
# Kinds of models whose positions are a table of weights, or none.
LEARNED = ("bert", "gpt2", "opt", "megatron-bert", "gpt", "t5", "vit")


def _entry(
    name: str, layers: int, hidden: int, heads: int, positions: int | None, **more: Any
) -> ZooModel:
    most = more.pop("most", max(ALL))
    divides = tuple(width for width in ALL if heads % width == 0 and width <= most)
    sequence, widths = more.pop("sequence", positions), more.pop("widths", divides)
    more.setdefault("rotary", NAMED[name].kind not in LEARNED)
    return ZooModel(name, layers, hidden, heads, sequence, positions, widths, divides, **more)


ZOO: Mapping[str, ZooModel] = MappingProxyType(
    {
        entry.name: entry
        for entry in (
            _entry("bert-large", 24, 1024, 16, 512, widths=(1,), experts=(8, 128, 1)),
            _entry("gpt2-xl", 48, 1600, 25, 1024, widths=(1,), experts=(32, 32, 1)),
            _entry("opt-350m", 24, 1024, 16, 2048, widths=(1,), experts=(12, 85, 1)),
            _entry("llama2-7b", 32, 4096, 32, 4096, widths=(1,), experts=(8, 128, 1)),
            _entry("megatron-bert-large", 24, 1024, 16, 512, experts=(8, 128, 1)),
            _entry("megatron-gpt2-54", 54, 1920, 20, 1024, experts=(8, 32, 4)),
            _entry("megatron-gpt2-72", 72, 3072, 24, 1024, experts=(8, 16, 8)),
            _entry("gpt3-175b", 96, 12288, 96, 2048, widths=(4, 8), experts=(32, 8, 4)),
            _entry("llama3-8b", 32, 4096, 32, 8192),
            _entry("llama3-70b", 80, 8192, 64, 8192),
            _entry("llama3.1-405b", 126, 16384, 128, 131072, sequence=8192),
            _entry("nemotron-4-340b", 96, 18432, 96, 4096, approximation=NEMOTRON),
            _entry("gemma-2-27b", 46, 4608, 32, 8192),
            _entry("mixtral-8x7b", 32, 4096, 32, 32768, sequence=4096),
            _entry("mixtral-8x22b", 56, 6144, 48, 65536, sequence=4096),
            _entry("grok-1", 64, 6144, 48, 8192),
            _entry("qwen3-30b-a3b", 48, 2048, 32, 40960, sequence=4096, most=4),
            _entry("qwen3-235b-a22b", 94, 4096, 64, 40960, sequence=4096, most=4),
            _entry("deepseek-v3", 61, 7168, 128, 131072, sequence=4096, most=1),
            _entry("kimi-k2", 61, 7168, 64, 131072, sequence=4096, most=1),
            _entry("gpt-oss-120b", 36, 2880, 64, 131072, sequence=4096, most=1),
            _entry("t5-large", 48, 1024, 16, None, sequence=512),
            _entry("vit-large", 24, 1024, 16, 197, fixed=True),
        )
    }
)


def entry_of(name: str) -> ZooModel:
    """The row of a named model, or an InputError with the nearest name."""
    if name not in ZOO:
        if Path(name).is_dir():
            raise InputError(
                name,
                "no bundled model is called that, and a folder is",
                f"for the folder give ./{name}",
            )
        raise unknown_name("", "model", name, ZOO)
    return ZOO[name]


def check_sequence(entry: ZooModel, sequence: int | None) -> int:
    """The sequence to use: the model's own if none is requested."""
    length = entry.sequence if sequence is None else sequence
    if entry.fixed and length != entry.sequence:
        raise InputError(
            "--sequence", f"{entry.name} always has {entry.sequence} positions, not {length}"
        )
    if length < 2:
        raise InputError(
            "--sequence", f"{length} is too short, a sequence has at least 2 positions"
        )
    require_positions(entry.name, length, entry.positions, entry.rotary)
    return length


def _check_split(name: str, tensor: int, microbatch: int, widths: tuple[int, ...]) -> None:
    if microbatch < 1:
        raise InputError("--microbatch", f"{microbatch} is not a positive number")
    if tensor not in widths:
        listed = ", ".join(map(str, widths))
        raise InputError(
            "--tensor", f"the bundled graphs of {name} have TP degrees {listed}, not {tensor}"
        )


def is_shipped(name: str, tensor: int, sequence: int, sequence_parallel: bool) -> bool:
    """Whether :func:`load_model` has this graph; if not, it can still be traced."""
    if name not in ZOO or tensor not in ZOO[name].shipped:
        return False
    return not sequence_parallel or ZOO[name].fixed or sequence % tensor == 0


def load_model(
    name: str,
    tensor: int = 1,
    microbatch: int = 1,
    sequence: int | None = None,
    **variant: Unpack[RankVariant],
) -> Model:
    """The graph of a named model on one of ``tensor`` ranks, from the bundled files."""
    length = check_sequence(entry_of(name), sequence)
    return model_at_point(name, RankPoint(tensor, microbatch, length, **variant))


def model_at_point(name: str, point: RankPoint) -> Model:
    """The graph of a named model at a point, from the bundled files."""
    entry, row = entry_of(name), NAMED[name]
    length = check_sequence(entry, point.sequence)
    if not row.architecture:
        model = family_at_point(row.kind, row.sizes, point, name)
        noted = (
            (*model.approximations, entry.approximation)
            if entry.approximation
            else model.approximations
        )
        return replace(model, approximations=noted)
    _check_split(name, point.tensor, point.microbatch, entry.shipped)
    check_shards(name, length, point.tensor, point.split and not entry.fixed)
    letters = {"s": length} if point.microbatch == 1 else {"s": length, "b": point.microbatch}
    case = case_name(point, f"t={point.tensor}", "b=1" if point.microbatch == 1 else "b>1")
    model = model_at(open_shipped(name), case, letters, name, point)
    notes = extended(length, entry.positions, entry.rotary)
    return replace(model, approximations=(*model.approximations, *notes)) if notes else model


def check_shards(name: str, sequence: int, tensor: int, spread: bool) -> None:
    """An InputError if a sequence is to be sharded and cannot be."""
    if spread and sequence % tensor:
        raise InputError(
            "--sequence",
            f"{sequence} positions of {name} cannot be sharded over {tensor} ranks evenly",
        )


def load_family(
    family: str,
    sizes: Mapping[str, Any],
    *,
    tensor: int = 1,
    microbatch: int = 1,
    sequence: int | None = None,
    name: str = "",
    **variant: Unpack[RankVariant],
) -> Model:
    """The graph of a family by its sizes (keys as in ``phaze.run/1``), at any width that divides
    it."""
    length = check_sizes(family, sizes)["sequence"] if sequence is None else sequence
    return family_at_point(family, sizes, RankPoint(tensor, microbatch, length, **variant), name)


def family_at_point(
    family: str, sizes: Mapping[str, Any], point: RankPoint, name: str = ""
) -> Model:
    """The graph of a family by its sizes at a point, called ``name`` or as the family."""
    values, length, called = check_sizes(family, sizes), point.sequence, name or family
    if length == 1 or (family == "gpt" and values["hidden"] == values["heads"]):
        what = "a sequence of 1" if length == 1 else "heads of width 1"
        raise InputError(called, f"no graphs of {what} are bundled", "trace it, with --fresh")
    if length < 1:
        raise InputError("--sequence", f"{length} is out of range", "it must be at least 1")
    require_positions(called, length, values["sequence"], family in ROTARY_FAMILIES)
    notes = extended(length, values["sequence"], family in ROTARY_FAMILIES)
    values = {**values, "sequence": max(length, values["sequence"])}
    if point.microbatch < 1:
        raise InputError("--microbatch", f"{point.microbatch} is not a positive number")
    check_shards(called, length, point.tensor, point.split)
    letters = family_point(family, values, point.tensor, point.microbatch, length)
    case = family_case(family, values, letters, point)
    model = model_at(open_shipped(file_of(family, values)), case, letters, called, point)
    model = deepen(model, [values["layers"]] * len(runs(model)))
    model = replace(model, approximations=(*model.approximations, *notes)) if notes else model
    if family != "moe" or not values["dense_layers"]:
        return model
    dense = {key: values[key] for key in (*FAMILIES["llama"].letters, "layers", "tied")}
    return _first_dense(model, family_at_point("llama", dense, point), values["dense_layers"])


def _first_dense(model: Model, dense: Model, count: int) -> Model:
    """A mixture of experts whose first blocks are those of another decoder of the same sizes."""
    block = dense.layers[dense.calls[1].layer]
    calls = [
        replace(call, layer=len(model.layers)) if 1 <= place <= count else call
        for place, call in enumerate(model.calls)
    ]
    return replace(
        model,
        layers=(*model.layers, replace(block, name=f"dense {block.name}")),
        calls=tuple(calls),
    )
