"""The files of ``graph/data``: graphs of one model, or of a family, in all its cases, as functions
of their sizes.

A *case* is a way to run the model in which its operators are the same whatever the sizes: attention
eager or fused, sequence parallel or not, one tensor width (families: 1 or more), microbatch 1 or
more. A file holds

    expressions   each distinct one once, as text (:mod:`phaze.graph.sizes`)
    templates     structures (:mod:`phaze.graph.template`): of a layer as in ``phaze.graph/1`` but
                  slim (operators as [id, kind, sizes, reads, writes, module] without names of sizes
                  and with tensor and bytes in turn, roles by their first letters), or of a *frame*,
                  the rest of a model (calls, edges, ties)
    cases         by name: frame and layers, each [template, which expression each of its leaves
                  is], names of the layers, approximations
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from importlib import resources
from typing import Any

from phaze.errors import InputError
from phaze.graph import sizes, store
from phaze.graph.ir import MOST_WHOLE, Model
from phaze.graph.shipped_layer import ROLES, LayerForm, layer_form
from phaze.graph.sizes import Expression
from phaze.graph.supply.point import RankPoint
from phaze.graph.template import Symbolic, filled, group_alike, template

HEAD = ("name", "sequence_parallel", "attention", "approximations", "layers")


def case_name(rank: RankPoint, *conditions: str) -> str:
    """The name of the case that a rank belongs to under these conditions."""
    return " ".join((rank.attention, *(("sequence-parallel",) if rank.split else ()), *conditions))


def frame_of(model: Model) -> dict[str, Any]:
    """What of a model is no layer and no text: sizes, calls, edges, ties."""
    return {key: value for key, value in store.plain(model).items() if key not in HEAD}


def layers_of(model: Model) -> list[dict[str, Any]]:
    """The layers of a model as slim plain values; their names are kept apart."""
    return [slim(layer) for layer in store.plain(model)["layers"]]


def _flat(rows: Sequence[Sequence[int]]) -> list[int]:
    return [number for row in rows for number in row]


def _slim_graph(graph: Any) -> Any:
    if graph == store.AGAIN:
        return graph
    rows = []
    for number, kind, _, named, reads, writes, module, parts in graph["operators"]:
        if parts:
            raise ValueError("graphs are shipped before fusion")
        rows.append([number, kind, list(named.values()), *map(_flat, (reads, writes)), module])
    return {"operators": rows, "outputs": graph["outputs"]}


def _graphs(layer: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    recomputed = {
        key: {**layer[key], "rerun": change(layer[key]["rerun"])}
        for key in ("none", "selective", "full")
    }
    return {
        **layer,
        "forward": change(layer["forward"]),
        "backward": change(layer["backward"]),
        **recomputed,
    }


def slim(layer: Mapping[str, Any]) -> dict[str, Any]:
    """A layer of ``phaze.graph/1`` with less text, and without its name."""
    rows = [
        [number, elements, width, ROLES[role]] for number, elements, width, role in layer["tensors"]
    ]
    document = _graphs({**layer, "tensors": rows}, _slim_graph)
    del document["name"]
    return document


@dataclass(frozen=True, slots=True)
class Case:
    """A model in one case, as a function of its sizes."""

    frame: Symbolic
    layers: tuple[Symbolic, ...]
    names: tuple[str, ...]
    approximations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ShippedGraphs:
    """A file of graphs, parsed."""

    expressions: Sequence[str]
    templates: Sequence[Any]
    cases: Mapping[str, Mapping[str, Any]]
    forms: dict[int, LayerForm] = field(default_factory=dict, compare=False)
    parsed: dict[int, Expression] = field(default_factory=dict, compare=False)

    def expression(self, number: int) -> Expression:
        """An expression, read once."""
        if number not in self.parsed:
            self.parsed[number] = sizes.parse(self.expressions[number])
        return self.parsed[number]

    def form(self, number: int) -> LayerForm:
        """A template of a layer, read once."""
        if number not in self.forms:
            self.forms[number] = layer_form(self.templates[number])
        return self.forms[number]


def pack(cases: Mapping[str, Case]) -> dict[str, Any]:
    """The content of a file: templates shared by all cases, expressions numbered in order of first
    use."""
    pieces: dict[tuple[str, int], Symbolic] = {}
    for name, case in cases.items():
        for place, piece in enumerate((case.frame, *case.layers)):
            pieces[name, place] = piece
    numbers: dict[str, int] = {}

    def number(expression: Expression) -> int:
        return numbers.setdefault(sizes.text(expression), len(numbers))

    templates: list[Any] = []
    placed: dict[tuple[str, int], list[Any]] = {}
    for keys in group_alike(pieces):
        shared = template([pieces[key] for key in keys])
        for key, row in zip(keys, shared.rows, strict=True):
            placed[key] = [len(templates), [number(expression) for expression in row]]
        templates.append(shared.structure)
    documents = {
        name: {
            "frame": placed[name, 0],
            "layers": [placed[name, place + 1] for place in range(len(case.layers))],
            "names": list(case.names),
            "approximations": list(case.approximations),
        }
        for name, case in cases.items()
    }
    return {"expressions": list(numbers), "templates": templates, "cases": documents}


def text_of(content: Mapping[str, Any]) -> str:
    """A packed file as text, a line for each template and case."""
    spell = partial(json.dumps, separators=(",", ":"), ensure_ascii=False)

    def lines(values: Iterable[str]) -> str:
        return ",\n".join(values)

    cases = lines(f"{spell(name)}:{spell(case)}" for name, case in content["cases"].items())
    templates = lines(spell(structure) for structure in content["templates"])
    head = f'"expressions":{spell(content["expressions"])}'
    return f'{{{head},\n"templates":[\n{templates}\n],\n"cases":{{\n{cases}\n}}}}\n'


@lru_cache(maxsize=1)
def open_shipped(name: str) -> ShippedGraphs:
    """The shipped file of a model or family, read once for all widths and microbatches."""
    file = resources.files("phaze.graph").joinpath("data", f"{name}.json")
    if not file.is_file():
        raise InputError(
            name, "its graphs are not bundled", "trace it: phaze graph --fresh (needs PyTorch)"
        )
    raw = json.loads(file.read_text(encoding="utf-8"))
    return ShippedGraphs(raw["expressions"], raw["templates"], raw["cases"])


def model_at(
    shipped: ShippedGraphs, case: str, letters: sizes.Point, name: str, rank: RankPoint
) -> Model:
    """The model called ``name`` in a case of ``shipped`` at these sizes, as ``rank`` runs."""
    raw = shipped.cases[case]
    values: dict[int, int] = {}

    def value(number: int) -> int:
        if number not in values:
            values[number] = shipped.expression(number).at(letters)
        return values[number]

    def numbers(place: Sequence[Any]) -> list[int]:
        return [value(number) for number in place[1]]

    layers = [
        shipped.form(place[0]).layer(called, numbers(place))
        for called, place in zip(raw["names"], raw["layers"], strict=True)
    ]
    frame = filled(shipped.templates[raw["frame"][0]], numbers(raw["frame"]))
    if max(values.values(), default=0) > MOST_WHOLE:
        raise InputError(
            name,
            f"at these sizes a tensor has more than {MOST_WHOLE:.1g} elements",
            "make it smaller",
        )
    text = {"name": name, "sequence_parallel": rank.split, "attention": rank.attention}
    return store.framed({**text, **frame, "approximations": raw["approximations"]}, layers)
