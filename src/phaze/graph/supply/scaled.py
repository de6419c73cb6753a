"""Graphs at more microbatches than were traced: two traces say how every size grows, one more
checks the rule.

Of a size that is v0 at microbatch b0 and v1 at b1 > b0 the value at b, b0 < b < b1, is

    power     v0 (b / b0)^e                        where v1 / v0 = (b1 / b0)^e, e = 0, 1 or 2
    look-up   min(v0 b / b0, c)                    bytes touched of a tensor of c bytes, where v1 =
              c: a row for each
                                                   token, at most the whole table
    sum       v0 + (v1 - v0) (b - b0) / (b1 - b0)  what every sequence has, and what all share

and whole, or there is none (:class:`UnscaledError`). All else (operators, tensors, their order)
must be equal in both. One width and sequence of each kind of attention is traced at one more
microbatch (:attr:`Sampling.checks`); where that graph is not the scaled one, number by number, all
microbatches are traced.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from phaze.errors import PhazeError
from phaze.graph.ir import (
    Access,
    Attention,
    Edge,
    Layer,
    Model,
    Operator,
    OperatorGraph,
    Recompute,
    Tensor,
)
from phaze.graph.supply.point import RankPoint

# A microbatch of 1 has operators of its own: a dimension of one element needs fewer copies.
LEAST = 2
POWERS = (0, 1, 2)


class UnscaledError(PhazeError):
    """Two graphs differ in more than sizes that grow with the microbatch."""


@dataclass(frozen=True, slots=True)
class GraphScale:
    """From the microbatches ``low`` and ``high`` to ``wanted``, between them."""

    low: int
    high: int
    wanted: int

    def size(self, low: int, high: int, most: tuple[int, int] | None = None) -> int:
        """A size that is ``low`` and ``high``; of a tensor that has ``most`` bytes at the two."""
        step = Fraction(self.high, self.low)
        if any(low * step**power == high for power in POWERS):
            power = next(power for power in POWERS if low * step**power == high)
            return _whole(low * Fraction(self.wanted, self.low) ** power)
        if most is not None and most[0] == most[1] == high > low and low * step > high:
            return min(high, _whole(low * Fraction(self.wanted, self.low)))
        slope = Fraction(high - low, self.high - self.low)
        if slope < 0 or low - slope * self.low < 0:
            raise UnscaledError(
                f"a size is {low} at microbatch {self.low} and {high} at {self.high}."
            )
        return _whole(low + slope * (self.wanted - self.low))

    def model(self, low: Model, high: Model) -> Model:
        """The graph at the wanted microbatch."""
        layers = _pairs(low.layers, high.layers)
        scaled = replace(
            low,
            microbatch=self.wanted,
            layers=tuple(self._layer(a, b) for a, b in layers),
            edges=tuple(self._edge(a, b) for a, b in _pairs(low.edges, high.edges)),
        )
        _same(
            replace(low, microbatch=0, layers=(), edges=()),
            replace(high, microbatch=0, layers=(), edges=()),
        )
        return scaled

    def _edge(self, a: Edge, b: Edge) -> Edge:
        _same((a.source, a.target), (b.source, b.target))
        return Edge(
            a.source,
            a.target,
            self.size(a.bytes, b.bytes),
            self.size(a.gradient_bytes, b.gradient_bytes),
        )

    def _layer(self, a: Layer, b: Layer) -> Layer:
        _same((a.name, a.parameters, a.sharded), (b.name, b.parameters, b.sharded))
        forward = self._graph(a.forward, b.forward)

        def recompute(low: Recompute, high: Recompute) -> Recompute:
            _same(low.saved, high.saved)
            again = low.rerun == a.forward and high.rerun == b.forward
            rerun = forward if again else self._graph(low.rerun, high.rerun)
            return Recompute(low.saved, self.size(low.saved_bytes, high.saved_bytes), rerun)

        return replace(
            a,
            forward=forward,
            backward=self._graph(a.backward, b.backward),
            none=recompute(a.none, b.none),
            selective=recompute(a.selective, b.selective),
            full=recompute(a.full, b.full),
            shared_bytes=self.size(a.shared_bytes, b.shared_bytes),
            input_bytes=self.size(a.input_bytes, b.input_bytes),
            output_bytes=self.size(a.output_bytes, b.output_bytes),
        )

    def _graph(self, a: OperatorGraph, b: OperatorGraph) -> OperatorGraph:
        _same((a.inputs, a.outputs), (b.inputs, b.outputs))
        most = {low.id: (low.bytes, high.bytes) for low, high in _pairs(a.tensors, b.tensors)}
        tensors = tuple(self._tensor(low, high) for low, high in _pairs(a.tensors, b.tensors))
        return OperatorGraph(
            tensors,
            tuple(
                self._operator(low, high, most) for low, high in _pairs(a.operators, b.operators)
            ),
            a.inputs,
            a.outputs,
        )

    def _tensor(self, a: Tensor, b: Tensor) -> Tensor:
        _same((a.id, a.element_bytes, a.role), (b.id, b.element_bytes, b.role))
        return replace(a, elements=self.size(a.elements, b.elements))

    def _operator(self, a: Operator, b: Operator, most: Mapping[int, tuple[int, int]]) -> Operator:
        _same((a.id, a.kind, a.core, a.module), (b.id, b.kind, b.core, b.module))
        _same([name for name, _ in a.sizes], [name for name, _ in b.sizes])

        def accesses(low: Sequence[Access], high: Sequence[Access]) -> tuple[Access, ...]:
            _same([access.tensor for access in low], [access.tensor for access in high])
            return tuple(
                Access(p.tensor, self.size(p.bytes, q.bytes, most[p.tensor]))
                for p, q in _pairs(low, high)
            )

        return replace(
            a,
            sizes=tuple((name, self.size(p, q)) for (name, p), (_, q) in _pairs(a.sizes, b.sizes)),
            reads=accesses(a.reads, b.reads),
            writes=accesses(a.writes, b.writes),
            parts=tuple(self._operator(low, high, most) for low, high in _pairs(a.parts, b.parts)),
        )


def _whole(value: Fraction) -> int:
    if value.denominator != 1:
        raise UnscaledError(f"a size between two microbatches is {value}.")
    return value.numerator


def _same(a: Any, b: Any) -> None:
    if a != b:
        raise UnscaledError("two microbatches run different operators.")


def _pairs(a: Sequence[Any], b: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    _same(len(a), len(b))
    return zip(a, b, strict=True)


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which of some points to trace ``first``; ``scaled`` follow from two of those, if the
    ``checks`` hold."""

    first: tuple[RankPoint, ...]
    scaled: Mapping[RankPoint, tuple[RankPoint, RankPoint]]
    checks: Mapping[Attention, tuple[RankPoint, tuple[RankPoint, RankPoint]]]

    def predicted(self, models: Mapping[RankPoint, Model]) -> dict[RankPoint, Model]:
        """The graphs that follow from those in ``models``."""
        holds = {
            attention
            for attention, (point, pair) in self.checks.items()
            if _predicted(point, pair, models) == models.get(point)
        }
        models_found = {}
        for point, pair in self.scaled.items():
            model = _predicted(point, pair, models) if point.attention in holds else None
            if model is not None:
                models_found[point] = model
        return models_found


def _predicted(
    point: RankPoint, pair: tuple[RankPoint, RankPoint], models: Mapping[RankPoint, Model]
) -> Model | None:
    low, high = (models.get(sample) for sample in pair)
    if low is None or high is None:
        return None
    try:
        return GraphScale(pair[0].microbatch, pair[1].microbatch, point.microbatch).model(low, high)
    except UnscaledError:
        return None


def sampled(points: Sequence[RankPoint]) -> Sampling:
    """What to trace of ``points``: of every width its least and its largest microbatch above 1, and
    of the first width of every kind of attention one more as the check."""
    ways: dict[RankPoint, list[RankPoint]] = {}
    for point in points:
        if point.microbatch >= LEAST:
            ways.setdefault(replace(point, microbatch=0), []).append(point)
    scaled: dict[RankPoint, tuple[RankPoint, RankPoint]] = {}
    checks: dict[Attention, tuple[RankPoint, tuple[RankPoint, RankPoint]]] = {}
    for way in sorted(ways):
        inner = sorted(ways[way])
        if len(inner) < 3:  # two are traced anyway
            continue
        pair = inner[0], inner[-1]
        between = inner[1:-1]
        if way.attention not in checks:
            checks[way.attention] = between.pop(0), pair
        scaled.update((point, pair) for point in between)
    return Sampling(tuple(point for point in points if point not in scaled), scaled, checks)
