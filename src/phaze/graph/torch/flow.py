"""Which linear maps of a block feed which: what a tensor-parallel plan can be made of.

A map is a call that multiplies an activation by a weight: ``linear``, a matrix product, an
``einsum``. One run of the model notes of every tensor from which maps it comes without another map
between. Maps that all end in one map are its columns (query, key, value -> output; gate, up ->
down); what their code does with the result says how heads lie in it: the first view splits the
outputs into (stacked parts, heads, width of a head).
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from phaze.graph.torch.follow import SPLITS, VIEWS, function_name, shapes, user_place
from phaze.graph.torch.record import tensors_in
from phaze.graph.torch.reshaping import Shape, aligned

KEEPS = frozenset(
    {
        "to",
        "float",
        "contiguous",
        "type_as",
        "type",
        "clone",
        "requires_grad_",
        "detach",
        "bfloat16",
    }
)
SWAPS = frozenset({"t", "get T", "get mT", "transpose", "swapaxes", "swapdims", "adjoint"})
PRODUCTS = frozenset({"matmul", "__matmul__", "mm", "bmm"})
# A fused map of more stacked matrices than this is none (query, key and value are three).
MOST_STACKED = 4


@dataclass(slots=True)
class Map:
    """One linear map: its weight, the weight's dimensions of outputs and inputs, the bias, and
    where it comes from.

    ``sources`` are the maps that its input comes from, or -1 for what the block is given; ``parts``
    the sizes that its outputs are split into, ``factors`` those of the first view of its
    outputs."""

    number: int
    weight: str
    outputs: int
    inputs: int
    bias: str
    block: str
    line: str
    elements: int
    sources: frozenset[int]
    parts: tuple[int, ...] = ()
    factors: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Weight:
    """A tensor that is a parameter, perhaps transposed or one of a stack: its axes are these of the
    parameter."""

    name: str
    axes: tuple[int, ...]


@dataclass(slots=True)
class Trail:
    """A tensor one axis of which is the outputs of a map, as they came."""

    map: Map
    axis: int


class MapRecorder(TorchFunctionMode):
    """Notes the maps of a run, and the lookups in tables of tokens."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.maps: list[Map] = []
        self.tables: dict[str, int] = {}
        self.exchanged: Shape = ()
        self._weights = {
            id(p): Weight(n, tuple(range(p.dim()))) for n, p in model.named_parameters()
        }
        self._held: list[Any] = []
        self._from: dict[int, frozenset[int]] = {}
        self._trails: dict[int, Trail] = {}
        self._block = ""

    @contextmanager
    def within(self, path: str) -> Iterator[None]:
        """While the code of the block at ``path`` runs: what it was given comes from outside."""
        before, self._block = self._block, path
        try:
            yield
        finally:
            self._block = before

    def enter(self, values: Any) -> None:
        """What a block is given; masks and tables of positions, which have no gradient, come from
        nowhere."""
        for tensor in tensors_in(values):
            self._hold(tensor)
            self._from[id(tensor)] = frozenset({-1}) if tensor.requires_grad else frozenset()
            if tensor.requires_grad and not self.exchanged:
                self.exchanged = tuple(map(int, tensor.shape))
            self._trails.pop(id(tensor), None)

    def _hold(self, tensor: Tensor) -> None:
        self._held.append(tensor)

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        named = kwargs or {}
        before = shapes((args, named))
        result = func(*args, **named)
        name, operands, results = (
            function_name(func),
            list(tensors_in((args, named))),
            list(tensors_in(result)),
        )
        for tensor in (*operands, *results):
            self._hold(tensor)
        if self._weight(name, args, operands, results):
            return result
        if not self._map(name, args, named, results):
            self._pass_on(name, args, named, operands, before, results)
        return result

    def _weight(
        self, name: str, args: tuple[Any, ...], operands: list[Tensor], results: list[Tensor]
    ) -> bool:
        """Whether the result is a weight seen otherwise."""
        weight = (
            self._weights.get(id(operands[0])) if len(operands) == 1 and len(results) == 1 else None
        )
        if weight is None:
            return False
        axes = weight.axes
        if name in SWAPS and len(axes) >= 2:
            axes = (*axes[:-2], axes[-1], axes[-2])
        elif name == "__getitem__" and isinstance(args[1], int):
            axes = axes[1:]
        elif name not in KEEPS:
            return False
        self._weights[id(results[0])] = Weight(weight.name, axes)
        return True

    def _operands(
        self, name: str, args: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Tensor, Tensor, int, int, int] | None:
        """Input, weight, its axes of outputs and inputs, and the axis of the result that is the
        outputs."""
        if name == "linear":
            return args[0], args[1] if len(args) > 1 else named["weight"], 0, 1, -1
        if name in PRODUCTS or name == "addmm":
            left, right = args[1:3] if name == "addmm" else (*args, *named.values())[:2]
            if left.dim() < 2 or right.dim() < 2:
                return None
            return (
                (left, right, -1, -2, -1)
                if id(right) in self._weights
                else (right, left, -2, -1, -2)
            )
        if name == "einsum" and "." not in args[0] and "->" in args[0]:
            pair = args[1:] if isinstance(args[1], Tensor) else tuple(args[1])
            inputs, _, output = str(args[0]).replace(" ", "").partition("->")
            terms = inputs.split(",")
            weight = next((i for i, x in enumerate(pair) if id(x) in self._weights), None)
            if weight is None or len(pair) != 2:
                return None
            other = terms[1 - weight]
            outs = [a for a, c in enumerate(terms[weight]) if c in output and c not in other]
            ins = [a for a, c in enumerate(terms[weight]) if c in other and c not in output]
            if outs and ins:
                return (
                    pair[1 - weight],
                    pair[weight],
                    outs[0],
                    ins[0],
                    output.index(terms[weight][outs[0]]),
                )
        return None

    def _map(
        self, name: str, args: tuple[Any, ...], named: dict[str, Any], results: list[Tensor]
    ) -> bool:
        operands = self._operands(name, args, named)
        if operands is None or id(operands[1]) not in self._weights:
            return False
        x, tensor, outputs, inputs, axis = operands
        weight = self._weights[id(tensor)]
        bias = args[2] if name == "linear" and len(args) > 2 else named.get("bias")
        bias_weight = self._weights.get(id(bias))
        linear_map = Map(
            len(self.maps),
            weight.name,
            weight.axes[outputs],
            weight.axes[inputs],
            "" if bias_weight is None else bias_weight.name,
            self._block,
            user_place(),
            math.prod(tensor.shape),
            self._from.get(id(x), frozenset()),
        )
        self.maps.append(linear_map)
        self._from[id(results[0])] = frozenset({linear_map.number})
        self._trails[id(results[0])] = Trail(linear_map, axis % results[0].dim())
        return True

    def _pass_on(
        self,
        name: str,
        args: tuple[Any, ...],
        named: dict[str, Any],
        operands: list[Tensor],
        before: tuple[Shape, ...],
        results: list[Tensor],
    ) -> None:
        """Note where results come from, and what is done with outputs of maps."""
        if name == "embedding" and id(args[1]) in self._weights:
            self.tables[self._weights[id(args[1])].name] = int(args[1].shape[0])
        sources = frozenset[int]().union(
            *(self._from.get(id(tensor), frozenset()) for tensor in operands)
        )
        changed = operands[:1] if name.endswith("_") or name == "__setitem__" else []
        for tensor in (*results, *changed):
            self._from[id(tensor)] = self._from.get(id(tensor), frozenset()) | sources
        for tensor, shape in zip(operands, before, strict=True):
            trail = self._trails.get(id(tensor))
            if trail is not None:
                self._follow(trail, name, args, named, shape, results)

    def _follow(
        self,
        trail: Trail,
        name: str,
        args: tuple[Any, ...],
        named: dict[str, Any],
        shape: Shape,
        results: list[Tensor],
    ) -> None:
        linear_map, axis = trail.map, trail.axis
        if name in VIEWS and results:
            self._view(trail, shape, results[0])
        elif name in SPLITS and results:
            if (
                int(args[2] if len(args) > 2 else named.get("dim", 0)) % len(shape) == axis
                and not linear_map.parts
            ):
                linear_map.parts = tuple(int(part.shape[axis]) for part in results)
            for part in results:
                self._trails.setdefault(id(part), trail)
        elif name == "__getitem__" and results and results[0].dim() == len(shape):
            size = int(results[0].shape[axis])
            if size != shape[axis] and shape[axis] % size == 0 and not linear_map.parts:
                linear_map.parts = (size,) * (shape[axis] // size)
            self._trails.setdefault(id(results[0]), trail)
        else:
            self._trails |= {
                id(x): trail
                for x in results
                if tuple(x.shape) == shape and id(x) not in self._trails
            }

    def _view(self, trail: Trail, shape: Shape, viewed: Tensor) -> None:
        """The outputs of a map as they were, or split into factors for the first time."""
        result = tuple(map(int, viewed.shape))
        for inner, outer in aligned(shape, result):
            if trail.axis in inner and len(inner) == 1:
                if len(outer) == 1:
                    self._trails[id(viewed)] = Trail(trail.map, outer[0])
                elif not trail.map.factors:
                    trail.map.factors = tuple(result[a] for a in outer)


@dataclass(frozen=True, slots=True)
class Layout:
    """How the outputs of a map may be cut: sizes of stacked matrices (none: one) and the elements
    of a head."""

    parts: tuple[int, ...] = ()
    unit: int = 1


def layouts(linear_map: Map, outputs: int) -> list[Layout]:
    """The layouts that what the code does with the outputs allows, the likeliest first."""
    factors = list(linear_map.factors)
    if linear_map.parts:
        unit = (
            factors[-1]
            if len(factors) > 1 and all(part % factors[-1] == 0 for part in linear_map.parts)
            else 1
        )
        return [Layout(linear_map.parts, unit)]
    if len(factors) < 2:
        return [Layout()]
    candidates = []
    for place in range(len(factors) - 1):
        stacked, unit = math.prod(factors[:place]), math.prod(factors[place + 1 :])
        parts = (outputs // stacked,) * stacked if stacked > 1 else ()
        candidates.append((stacked <= MOST_STACKED, Layout(parts, unit), factors[place]))
    likely = [layout for small, layout, heads in candidates if small and heads % 2 == 0]
    fused = (
        [layout for layout in likely if layout.parts]
        if factors[0] <= 3 and len(factors) > 2
        else []
    )
    return list(
        dict.fromkeys([*fused, *likely, *(layout for small, layout, _ in candidates if small)])
    )


@dataclass(frozen=True, slots=True)
class Pair:
    """Maps whose outputs are cut, and the maps that sum over them."""

    block: str
    columns: tuple[int, ...]
    rows: tuple[int, ...]
    elements: int = field(default=0)


def pairs(maps: list[Map], within: Callable[[str], bool]) -> list[Pair]:
    """Every set of maps that could be cut together, those of most weights first."""
    by_columns: dict[frozenset[int], list[int]] = {}
    for linear_map in maps:
        ends = linear_map.sources
        if (
            not within(linear_map.block)
            or not ends
            or -1 in ends
            or any(maps[n].block != linear_map.block for n in ends)
        ):
            continue
        early = {source for number in ends for source in maps[number].sources}
        by_columns.setdefault(ends - early or ends, []).append(linear_map.number)
    candidates = []
    for columns, rows in by_columns.items():
        elements = sum(maps[number].elements for number in (*columns, *rows))
        candidates.append(Pair(maps[rows[0]].block, tuple(sorted(columns)), tuple(rows), elements))
    return sorted(
        candidates, key=lambda pair: (len(pair.columns) < 2, -pair.elements, pair.columns)
    )
