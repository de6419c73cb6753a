"""``make graphs``: trace every named model and family at several points, fit its sizes, write
``graph/data``.

For each case of a model: traces of a shallow copy (two calls of the repeated layer) at enough
points for the fit, made as deep as the model (:mod:`phaze.graph.depth`), fitted
(:mod:`phaze.graph.template`), and compared, number by number, with traces that the fit has not
seen, one of them of the whole model.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from math import gcd
from multiprocessing import get_context
from pathlib import Path
from types import MappingProxyType
from typing import Any

from phaze.errors import PhazeError
from phaze.files import write_whole
from phaze.graph import depth, store
from phaze.graph.fit import Values
from phaze.graph.ir import Attention, Model
from phaze.graph.shipped import (
    Case,
    ShippedGraphs,
    case_name,
    frame_of,
    layers_of,
    model_at,
    pack,
    text_of,
)
from phaze.graph.supply.point import RankPoint as Rank
from phaze.graph.template import symbolic
from phaze.graph.torch.named import NAMED
from phaze.graph.torch.program import Source
from phaze.graph.torch.source import named_source
from phaze.graph.torch.trace import Discovery, discover, trace_model
from phaze.graph.zoo import ZOO, ZooModel

DATA = Path(store.__file__).parent / "data"
ATTENTIONS: tuple[Attention, ...] = ("eager", "fused")
SHALLOW: Mapping[str, int] = MappingProxyType({"num_hidden_layers": 2, "n_layer": 2})
"""Sizes of a shallow copy. Encoder and decoder are traced whole: what all blocks read gets a
gradient from each."""
MICROBATCHES = (2, 4, 6, 64, 3)
"""Three to fit a quadratic, a large one and an odd one to check it."""


class RebuildError(PhazeError):
    """A fitted graph differs from a trace."""


def _tensor_bytes(documents: Sequence[Mapping[str, Any]]) -> list[Values]:
    """Bytes of each tensor of a layer at all points: what a look-up reads at most."""
    rows = zip(*(document["tensors"] for document in documents), strict=True)
    return [tuple(row[1] * row[2] for row in tensors) for tensors in rows]


def _kept(documents: Sequence[Mapping[str, Any]]) -> dict[Values, list[Values]]:
    """What the bytes that a layer keeps are made of: the elements of the tensors that it keeps."""
    rows = zip(*(document["tensors"] for document in documents), strict=True)
    elements = {row[0][0]: tuple(tensor[1] for tensor in row) for row in rows}
    found: dict[Values, list[Values]] = {}
    for way in ("none", "selective", "full"):
        total = tuple(document[way]["saved_bytes"] for document in documents)
        found.setdefault(total, []).extend(
            elements[number] for number in documents[0][way]["saved"]
        )
    return found


def fit_case(
    points: Sequence[Mapping[str, int]], models: Sequence[Model], letters: Sequence[str]
) -> Case:
    """The case whose model is ``models[i]`` at ``points[i]``."""
    first = models[0]
    if any(model.approximations != first.approximations for model in models):
        raise RebuildError(f"{first.name}: the approximations depend on the sizes.")
    plain = [layers_of(model) for model in models]
    layers = []
    for documents in zip(*plain, strict=True):
        layers.append(
            symbolic(points, documents, letters, _tensor_bytes(documents), _kept(documents))
        )
    frame = symbolic(points, [frame_of(model) for model in models], letters)
    return Case(
        frame, tuple(layers), tuple(layer.name for layer in first.layers), first.approximations
    )


@dataclass(frozen=True, slots=True)
class Point:
    """Where to trace a named model."""

    microbatch: int
    sequence: int

    def letters(self) -> dict[str, int]:
        return {"b": self.microbatch, "s": self.sequence}


def _whole_rows(name: str) -> int:
    """Sequences of a multiple of this give every expert of a model a whole number of rows."""
    sizes = NAMED[name].sizes
    experts = sizes.get("num_local_experts") or sizes.get("num_experts") or 1
    return int(experts // gcd(experts, sizes.get("num_experts_per_tok", 1)))


def _points(entry: ZooModel, one: bool) -> tuple[list[Point], list[Point], tuple[str, ...]]:
    """Points to fit at, points to check at, and the variables."""
    step = _whole_rows(entry.name)
    full = (
        entry.sequence if entry.fixed else entry.sequence // (4 * step) * 4 * step or entry.sequence
    )
    longest = 16 * full if entry.positions is None else entry.positions
    lengths = (
        [full] if entry.fixed else [full // 4, full // 2, 3 * full // 4, longest // step * step]
    )
    b0, b1, b2, many, other = (1,) * 5 if one else MICROBATCHES
    if entry.fixed:
        grid = [(b0, full)] if one else [(b0, full), (b1, full), (b2, full), (many, full)]
        return [Point(*p) for p in grid], [Point(other, full)], () if one else ("b",)
    s0, s1, s2, s3 = lengths
    if one:
        return [Point(1, s) for s in lengths], [Point(1, full // (8 * step) * 7 * step)], ("s",)
    grid = [(b0, s0), (b1, s0), (b0, s1), (b2, s2), (many, s3)]
    return [Point(*p) for p in grid], [Point(other, full)], ("b", "s")


@dataclass(frozen=True, slots=True)
class _Way:
    """How a case of a named model runs."""

    attention: Attention
    tensor: int
    spread: bool
    one: bool

    @property
    def name(self) -> str:
        rank = Rank(self.tensor, 1, 0, self.attention, self.spread)
        return case_name(rank, f"t={self.tensor}", "b=1" if self.one else "b>1")


def _ways(entry: ZooModel) -> Iterator[_Way]:
    for attention in ATTENTIONS:
        for tensor in entry.shipped:
            for spread in (False, True) if tensor > 1 else (False,):
                for one in (True, False):
                    yield _Way(attention, tensor, spread, one)


def _traced(source: Source, way: _Way, point: Point, found: Discovery) -> Model:
    return trace_model(
        source,
        tensor=way.tensor,
        microbatch=point.microbatch,
        sequence=point.sequence,
        attention=way.attention,
        sequence_parallel=way.spread,
        discovery=found,
    )


def _renamed(model: Model, whole: Model) -> Model:
    """``model`` with the names of layers and calls that the whole model has; what is no block is
    named by its place."""
    layers = tuple(replace(a, name=b.name) for a, b in zip(model.layers, whole.layers, strict=True))
    calls = tuple(
        replace(a, module=b.module) for a, b in zip(model.calls, whole.calls, strict=True)
    )
    return replace(model, layers=layers, calls=calls)


def rebuild_model(name: str) -> str:
    """The text of the file of a named model."""
    entry, sizes = ZOO[name], NAMED[name].sizes
    whole = named_source(name)
    fewer = {key: value for key, value in SHALLOW.items() if key in sizes}
    if (
        "sliding_window" in sizes
    ):  # layers of two kinds in turns: no run of equal ones to make longer
        fewer = {}
    if (
        "first_k_dense_replace" in sizes
    ):  # blocks without experts first: two of each kind, or the one there is
        dense = min(2, sizes["first_k_dense_replace"])
        fewer |= {"first_k_dense_replace": dense, "num_hidden_layers": 2 + dense}
    found: dict[tuple[bool, Attention], Discovery] = {}
    shallow: dict[Attention, Source] = {}
    patterns: dict[Attention, Model] = {}
    for attention in ATTENTIONS:
        found[True, attention] = discover(whole, fused=attention == "fused")
        usual = _Way(attention, 1, False, True)
        patterns[attention] = _traced(
            whole, usual, Point(1, entry.sequence), found[True, attention]
        )
        # Layers that take turns are shown by two of each.
        turns = {"num_hidden_layers": 4} if fewer and depth.alternates(patterns[attention]) else {}
        shallow[attention] = named_source(name, **{**fewer, **turns})
        found[False, attention] = discover(shallow[attention], fused=attention == "fused")

    def deep(way: _Way, point: Point) -> Model:
        kind, pattern = way.attention, patterns[way.attention]
        model = _traced(shallow[kind], way, point, found[False, kind])
        if not fewer:
            return model
        if depth.alternates(model):
            return _renamed(depth.alternated(model, entry.layers // 2), pattern)
        return _renamed(
            depth.deepen(model, [pattern.count(layer) for layer in depth.runs(pattern)]), pattern
        )

    cases: dict[str, Case] = {}
    checks: list[tuple[_Way, Point, Model]] = []
    for way in _ways(entry):
        points, unseen, letters = _points(entry, way.one)
        cases[way.name] = fit_case(
            [p.letters() for p in points], [deep(way, p) for p in points], letters
        )
        entire = way.attention == "eager" and not way.spread
        for p in unseen:
            fresh = _traced(whole, way, p, found[True, way.attention]) if entire else deep(way, p)
            checks.append((way, p, fresh))
    content = pack(cases)
    _check(name, content, checks)
    return text_of(content)


def _check(
    name: str, content: Mapping[str, Any], checks: Iterable[tuple[_Way, Point, Model]]
) -> None:
    shipped = ShippedGraphs(content["expressions"], content["templates"], content["cases"])
    for way, point, fresh in checks:
        rank = Rank(way.tensor, point.microbatch, point.sequence, way.attention, way.spread)
        made = model_at(shipped, way.name, point.letters(), name, rank)
        if made != fresh:
            raise RebuildError(f"{name}, {way.name}, {point}: {difference(made, fresh)}.")


def difference(made: Model, fresh: Model) -> str:
    """Where two models first differ, in words."""

    def first(a: Any, b: Any, path: str) -> str | None:
        if isinstance(a, dict) and isinstance(b, dict) and a.keys() == b.keys():
            return next((d for k in a if (d := first(a[k], b[k], f"{path}.{k}"))), None)
        if isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            return next(
                (d for i in range(len(a)) if (d := first(a[i], b[i], f"{path}[{i}]"))), None
            )
        return None if a == b else f"{path} is {a!r:.80} and was traced as {b!r:.80}"

    return first(store.plain(made), store.plain(fresh), "") or "equal"


def files() -> tuple[str, ...]:
    """Every file that is rebuilt: families, then models that are not of one."""
    from phaze.graph.family import FAMILIES, UNGATED

    return (*FAMILIES, UNGATED, *(name for name in ZOO if NAMED[name].architecture))


def rebuild(name: str) -> str:
    """The text of one file."""
    from phaze.graph.family import FAMILIES, UNGATED
    from tools.graphs.rebuild_family import rebuild_family

    return rebuild_family(name) if name in (*FAMILIES, UNGATED) else rebuild_model(name)


def _attempt(name: str) -> tuple[str, str]:
    """The text of one file, or nothing and the sentence that says why."""
    try:
        return rebuild(name), ""
    except PhazeError as fault:
        return "", str(fault)


def main(names: Sequence[str]) -> int:
    """Write the files of ``names``, or all, two at a time; the exit code is 1 if one of them
    failed."""
    DATA.mkdir(exist_ok=True)
    failed = 0
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = {pool.submit(_attempt, name): name for name in names or files()}
        for done in as_completed(found):
            name, (text, fault) = found[done], done.result()
            if text:
                write_whole(DATA / f"{name}.json", text)
            failed |= not text
            sys.stderr.write(f"{name}: {fault or f'{len(text.encode())} bytes'}\n")
    return failed
