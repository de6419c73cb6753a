"""A traced block in a recipe of low precision: casts before its linear products, operands in few
bits.

    linear product     forward: it reads one weight; backward: it reads one weight (gradient of the
                       input), or none and makes what nobody reads (gradient of a weight)
    never              what lies around the blocks (embeddings, logits), routers, attention,
                       products of activations
    cast               each activation or gradient that linear products read is cast once, for all
                       of them, right before the first: read in 16 bits, written as it is and
                       transposed (:mod:`phaze.hardware.formats`); an operator of its own, so that a
                       stack fuses it with what comes before where it fuses such. Where a stack has
                       casts ``apart`` those that depend on the values, and those of experts' rows,
                       stay alone (marked ``apart``)
    weights            are read in the low format; they are cast once a step, which no pass sees
    saved              gradients of weights read the transposed cast of forward, so it is kept, and
                       its 16-bit original only where something else of the backward pass reads it

Products keep their sizes and get ``bits``. A recipe changes no FLOP and no result's bytes.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil

from phaze.graph.ir import Access, Layer, Operator, OperatorGraph, Recompute, Tensor
from phaze.hardware.formats import Recipe

# How traced graphs name what lies around their blocks.
AROUND = re.compile(r"prologue|epilogue|between(\.\d+)?")
# What their names start with, which is quicker to ask.
_AROUND_STARTS = ("prologue", "epilogue", "between")
# Modules whose small products decide where tokens go: they stay in 16 bits.
ROUTERS = frozenset({"router", "gate", "shared_expert_gate"})
OFFSET_BYTES = 4
"""Products of experts read where each one's rows end."""
APART = ("apart", 1)
FEWEST = 2
"""Operands of a product."""
MOST_EXPERTS = 512
"""A router's outputs are one for each expert; the most that models of 2025 have."""


def is_around(name: str) -> bool:
    """Whether a layer or module lies before, between or after the blocks."""
    return name.startswith(_AROUND_STARTS) and AROUND.fullmatch(name) is not None


@dataclass(slots=True)
class _Casts:
    """The casts of a layer: the low-precision tensors of an original, and all its tensors by
    number."""

    recipe: Recipe
    tensors: dict[int, Tensor]
    apart: bool = False
    plain: dict[int, int] = field(default_factory=dict)
    turned: dict[int, int] = field(default_factory=dict)
    number: int = 0

    def new(self, elements: int, element_bytes: int, role: str = "intermediate") -> int:
        """The number of a new tensor."""
        number = max(self.tensors) + 1
        self.tensors[number] = Tensor(number, elements, element_bytes, role)  # type: ignore[arg-type]
        return number

    def low(self, of: int, elements: int, turned: bool) -> int:
        """The cast of a tensor of so many elements, as it is or transposed."""
        casts = self.turned if turned else self.plain
        if of not in casts:
            role = "parameter" if self.tensors[of].role == "parameter" else "intermediate"
            casts[of] = self.new(ceil(elements * self.recipe.operand_bytes), 1, role)
        return casts[of]

    def elements(self, access: Access) -> int:
        """Elements that an access touches."""
        return access.bytes // max(1, self.tensors[access.tensor].element_bytes)

    def read(self, access: Access, turned: bool) -> Access:
        """The access to the cast of what it reads."""
        elements = self.elements(access)
        return Access(
            self.low(access.tensor, elements, turned), ceil(elements * self.recipe.operand_bytes)
        )


def _weights(op: Operator, casts: _Casts) -> list[Access]:
    return [a for a in op.reads if casts.tensors[a.tensor].role == "parameter"]


def _linear(op: Operator, casts: _Casts, read: frozenset[int], backward: bool) -> bool:
    """Whether a product is one of a linear map of the block."""
    if op.kind != "product" or len(op.reads) < FEWEST or _routes(op, bool(_weights(op, casts))):
        return False
    if any(casts.tensors[a.tensor].element_bytes != 2 for a in _operands(op, casts)):
        return False
    if _weights(op, casts):
        return True
    return backward and not read & {a.tensor for a in op.writes}


def _routes(op: Operator, weighted: bool) -> bool:
    """Whether a product belongs to a router; a gate that is as wide as an MLP is none. The sides of
    its weight are n and k where it reads it, m and n where it makes its gradient."""
    sides = ("n", "k") if weighted else ("m", "n")
    return min(map(op.size, sides)) <= MOST_EXPERTS and op.module.rsplit(".", 1)[-1] in ROUTERS


def _operands(op: Operator, casts: _Casts) -> list[Access]:
    """The two operands: the largest weight and the largest activation, or the two largest
    activations."""
    weights = sorted(_weights(op, casts), key=lambda a: -a.bytes)[:1]
    others = sorted((a for a in op.reads if a not in _weights(op, casts)), key=lambda a: -a.bytes)
    return [*weights, *others[: FEWEST - len(weights)]]


def _of_experts(op: Operator, casts: _Casts) -> bool:
    """Whether a product is one of experts: beside its operands it reads offsets of their rows."""
    return len(op.reads) > FEWEST and any(
        casts.tensors[a.tensor].element_bytes == OFFSET_BYTES for a in op.reads
    )


def _cast(
    casts: _Casts, access: Access, numbers: Iterator[int], reader: Operator
) -> Iterator[Operator]:
    """The operators that cast a tensor for the first product that reads it."""
    recipe, elements, module = casts.recipe, casts.elements(access), reader.module
    alone = casts.apart and (not recipe.scale_known or _of_experts(reader, casts))
    mark = (APART,) if alone else ()
    sizes = (("elements", elements), *mark)
    read: tuple[Access, ...] = (access,)
    if recipe.looks_first:
        largest = casts.new(1, 4)
        # The kernel that makes a tensor may seek its largest value, not that of a rotated copy.
        seeks = mark if recipe.rotates else ()
        rows = (("elements", elements), ("rows", 1), *seeks)
        yield Operator(next(numbers), "reduce", "vector", rows, read, (Access(largest, 4),), module)
        read = (access, Access(largest, 4))
    plain, turned = (
        Access(casts.low(access.tensor, elements, way), ceil(elements * recipe.operand_bytes))
        for way in (False, True)
    )
    if not recipe.rotates:
        yield Operator(next(numbers), "cast", "vector", sizes, read, (plain, turned), module)
        return
    rotated = Access(casts.new(elements, 2), 2 * elements)
    yield Operator(next(numbers), "cast", "vector", sizes, read, (plain,), module)
    yield Operator(next(numbers), "multiply", "vector", sizes, read, (rotated,), module)
    yield Operator(next(numbers), "cast", "vector", sizes, (rotated,), (turned,), module)


def _rewritten(
    graph: OperatorGraph, casts: _Casts, backward: bool, cast_before: Iterable[int]
) -> tuple[Operator, ...]:
    """The operators of a pass with its casts; ``cast_before`` are tensors that were cast before
    it."""
    read = frozenset(a.tensor for op in graph.operators for a in op.reads)
    done, rewritten = set(cast_before), list[Operator]()
    numbers = iter(range(max((op.id for op in graph.operators), default=0) + 1, 1 << 60))
    for op in graph.operators:
        if not _linear(op, casts, read, backward):
            rewritten.append(op)
            continue
        low = {}
        weight = bool(_weights(op, casts))
        for access in _operands(op, casts):
            if casts.tensors[access.tensor].role != "parameter" and access.tensor not in done:
                rewritten.extend(_cast(casts, access, numbers, op))
                done.add(access.tensor)
            low[access.tensor] = casts.read(access, turned=not weight)
        reads = tuple(low.get(access.tensor, access) for access in op.reads)
        rewritten.append(replace(op, reads=reads, sizes=(*op.sizes, ("bits", casts.recipe.bits))))
    return tuple(rewritten)


def _graph(operators: tuple[Operator, ...], casts: _Casts, outputs: Iterable[int]) -> OperatorGraph:
    written = {access.tensor for op in operators for access in op.writes}
    read = {access.tensor for op in operators for access in op.reads}
    tensors = tuple(casts.tensors[number] for number in sorted(written | read))
    return OperatorGraph(
        tensors, operators, tuple(sorted(read - written)), tuple(sorted(set(outputs) & written))
    )


def _saved(
    recompute: Recompute, casts: _Casts, needed: frozenset[int], rerun: OperatorGraph
) -> Recompute:
    """What a mode keeps: casts that the backward pass reads, and originals that it still reads."""
    saved, size = list[int](), recompute.saved_bytes
    wanted = needed | {a.tensor for op in rerun.operators for a in op.reads}
    for number in recompute.saved:
        low = casts.turned.get(number)
        if low is not None and low in needed:
            saved.append(low)
            size += casts.tensors[low].bytes
        if low is None or number in wanted:
            saved.append(number)
        else:
            size -= casts.tensors[number].bytes
    return Recompute(tuple(saved), max(0, size), rerun)


def low_precision(layer: Layer, recipe: Recipe | None, apart: bool = False) -> Layer:
    """A layer in a recipe; what lies around the blocks, and everything without a recipe, stays as
    it is. ``apart``: casts are kernels of their own where their scales follow from the values."""
    if recipe is None or AROUND.fullmatch(layer.name):
        return layer
    graphs = (layer.forward, layer.backward, layer.selective.rerun)
    casts = _Casts(recipe, {t.id: t for graph in graphs for t in graph.tensors}, apart)
    forward = _rewritten(layer.forward, casts, False, ())
    cast = {number for number in casts.turned if casts.tensors[number].role != "parameter"}
    backward = _rewritten(layer.backward, casts, True, cast)
    needed = frozenset(a.tensor for op in backward for a in op.reads)
    results = set(layer.forward.outputs) - {
        n for n in cast if n not in needed and n in layer.none.saved
    }
    first = _graph(
        forward, casts, {*results, *(casts.turned[n] for n in cast)} - _unread(cast, casts, needed)
    )
    again = _rewritten(layer.selective.rerun, casts, False, cast)
    rerun = _graph(again, casts, layer.selective.rerun.outputs)
    return replace(
        layer,
        forward=first,
        backward=_graph(backward, casts, layer.backward.outputs),
        none=_saved(layer.none, casts, needed, layer.none.rerun),
        selective=_saved(layer.selective, casts, needed, rerun),
        full=replace(layer.full, rerun=first),
    )


def _unread(cast: set[int], casts: _Casts, needed: frozenset[int]) -> set[int]:
    """Transposed casts that no gradient reads."""
    return {casts.turned[number] for number in cast if casts.turned[number] not in needed}
