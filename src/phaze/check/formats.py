"""Number formats other than bf16 (docs/cost.md, Precision; docs/plan.md, Memory): layers, and bytes
of a parameter.

Recipes of few bits run the linear products of blocks in their format: each operand is cast once,
before the first product that reads it, into a copy and a transposed one, which products of weight
gradients read; weights are cast once a step. Routers, products in 32 bits and all around the blocks
stay. In fp32 what a trace holds in 16 bits has 32, and casts between the two are none.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from types import MappingProxyType
from typing import Any

from .reading import cover, number, only, require
from .traced import Trace, Traced, TracedLayer
from .works import ATTENTION, Operator

WIDE = "fp32"
AROUND = ("prologue", "epilogue", "between")
ROUTERS, MOST_EXPERTS = frozenset({"router", "gate", "shared_expert_gate"}), 512
Access = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Recipe:
    """Bits of an operand, its bytes with scales; whether its largest value is sought before, and
    whether operands of weight gradients are those of a rotated copy."""

    bits: int
    bytes: float
    sought: bool = False
    rotated: bool = False


RECIPES = MappingProxyType({
    "fp8-delayed": Recipe(8, 1.0), "fp8-tensorwise": Recipe(8, 1.0, sought=True),
    "fp8-block": Recipe(8, 1 + 4 / 128),
    "mxfp8": Recipe(8, 1 + 1 / 32), "nvfp4": Recipe(4, 0.5 + 1 / 16, sought=True, rotated=True),
})  # fmt: skip
STATES = MappingProxyType({
    ("fp32", "sgd"): (4.0, 4.0, 0.0), ("fp32", "adam"): (4.0, 4.0, 8.0),
    ("bf16", "sgd"): (2.0, 4.0, 4.0), ("bf16", "adam"): (2.0, 4.0, 12.0),
})  # fmt: skip
PARTS = ("weight", "main_weight", "gradient", "first_moment", "second_moment")


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes of weight, gradient and optimizer a parameter, those that an update moves, and those
    that are sent of it; ``wire``: of a gradient, over what is sent; ``low``: of a gathered weight
    of a block; ``cleared``: of a gradient that is set to zero before a step."""

    weight: float
    gradient: float
    optimizer: float
    update: float
    sent: float
    wire: float
    low: float
    cleared: float = 0.0


def _plain(precision: str, optimizer: str, stack: Mapping[str, Any]) -> tuple[float, float, float]:
    """What a stack says is of its own precision and optimizer; where it says the parts, of bf16
    with Adam."""
    weight, gradient, rest = STATES[precision, optimizer]
    if stack["state"] is not None and (precision, optimizer) == ("bf16", "adam"):
        parts = only(stack["state"], "stack.state", PARTS)
        own = {name: number(value, f"stack.state.{name}") for name, value in parts.items()}
        return (
            own["weight"],
            own["gradient"],
            own["main_weight"] + own["first_moment"] + own["second_moment"],
        )
    if (precision, optimizer) != (stack["precision"], stack["optimizer"]):
        return weight, gradient, rest
    gradient = number(stack["gradient_bytes"] or gradient, "gradient_bytes")
    total = number(stack["state_bytes"] or weight + gradient + rest, "state_bytes")
    require(total >= weight, "state_bytes: they do not hold a weight")
    if total >= weight + gradient:
        return weight, gradient, total - weight - gradient
    return weight, total - weight, 0.0


def held_of(precision: str, optimizer: str, stack: Mapping[str, Any]) -> Held:
    """What is held, moved and sent for a parameter; the norm of the gradients reads 4 bytes of
    each."""
    held = _held_of(precision, optimizer, stack)
    read = 4.0 if stack["clips_gradients"] is True else 0.0
    cleared = held.gradient if stack["zeroes_gradients"] is True else 0.0
    return replace(held, update=held.update + read, cleared=cleared)


def _held_of(precision: str, optimizer: str, stack: Mapping[str, Any]) -> Held:
    recipe, moved = (
        RECIPES.get(precision),
        number(stack["optimizer_traffic_bytes"], "optimizer_traffic_bytes"),
    )
    known = (precision if recipe is None else "bf16", optimizer) in STATES
    cover(known, f"precision {precision} with {optimizer}")
    wire = number(stack["gradient_wire_bytes"], "gradient_wire_bytes") / 2.0
    if precision == WIDE:
        return Held(*_plain(precision, optimizer, stack), max(0.0, moved - 2.0), 4.0, 1.0, 1.0)
    weight, gradient, rest = _plain("bf16", optimizer, stack)
    if stack["state"] is not None and optimizer == "adam" and moved:
        moved = max(0.0, moved + (gradient + 2 * rest + weight) - (4.0 + 2 * 12.0 + 2.0))
    if recipe is None:
        return Held(weight, gradient, rest, moved, 2.0, wire, 1.0)
    alone = stack["low_precision_weights"] is True
    weight = recipe.bytes * (1 if recipe.bits == 4 else 2) + (0.0 if alone else 2.0)
    moved += 2.0 + 2.0 * recipe.bytes + (2.0 if recipe.sought else 0.0)
    low = recipe.bytes / 2.0 if alone and recipe.bits != 4 else 1.0
    return Held(weight, gradient, rest, moved, 2.0, wire, low)


def is_around(name: str) -> bool:
    """Whether a module is what lies before, between or after the blocks."""
    first, _, rest = name.partition(".")
    return first in AROUND and (not rest or (first == "between" and rest.isdigit()))


def in_format(layer: TracedLayer, precision: str) -> TracedLayer:
    """A layer as a precision runs it."""
    if precision == WIDE:
        return _Widened(layer).wide()
    recipe = RECIPES.get(precision)
    return layer if recipe is None or is_around(layer.name) else _Casts(layer, recipe).layer()


class _Casts:
    """A layer on its way to a recipe: the copies of its tensors in few bits, plain and
    transposed."""

    def __init__(self, layer: TracedLayer, recipe: Recipe) -> None:
        self.own, self.recipe = layer, recipe
        self.tensors, self.roles = dict(layer.tensors), dict(layer.roles)
        self.copies: dict[bool, dict[int, int]] = {False: {}, True: {}}
        self.fresh = count(max(layer.tensors) + 1)

    def _new(self, elements: int, width: int, role: str = "intermediate") -> int:
        tensor = next(self.fresh)
        self.tensors[tensor], self.roles[tensor] = (elements, width), role
        return tensor

    def _weight(self, tensor: int) -> bool:
        return self.roles[tensor] == "parameter"

    def _low(self, access: Access, turned: bool) -> Access:
        """The copy of what an access reads."""
        tensor, size = access
        elements = size // max(1, self.tensors[tensor][1])
        if tensor not in self.copies[turned]:
            role = "parameter" if self._weight(tensor) else "intermediate"
            self.copies[turned][tensor] = self._new(ceil(elements * self.recipe.bytes), 1, role)
        return self.copies[turned][tensor], ceil(elements * self.recipe.bytes)

    def _operands(self, operator: Traced) -> list[Access]:
        """The largest weight and activation, or the two largest activations."""
        by_size = sorted(operator.op.reads, key=lambda access: -access[1])
        weights = [access for access in by_size if self._weight(access[0])][:1]
        return [
            *weights,
            *[access for access in by_size if not self._weight(access[0])][: 2 - len(weights)],
        ]

    def _linear(self, operator: Traced, read: frozenset[int], backward: bool) -> bool:
        if operator.op.kind != "product" or len(operator.op.reads) < 2:
            return False
        weighted = any(map(self._weight, operator.reads))
        sides = ("n", "k") if weighted else ("m", "n")
        narrow = min(map(operator.op.size, sides)) <= MOST_EXPERTS
        if narrow and operator.module.rsplit(".", 1)[-1] in ROUTERS:
            return False
        if any(self.tensors[tensor][1] != 2 for tensor, _ in self._operands(operator)):
            return False
        return weighted or (backward and not read & set(operator.writes))

    def _cast(self, access: Access, numbers: Iterator[int], module: str) -> Iterator[Traced]:
        """The operators that make both copies of a tensor."""
        elements = access[1] // max(1, self.tensors[access[0]][1])
        reads: tuple[Access, ...] = (access,)

        def made(
            kind: str, sizes: dict[str, int], read: tuple[Access, ...], *writes: Access
        ) -> Traced:
            return Traced(next(numbers), Operator(kind, "vector", sizes, read, writes), module)

        if self.recipe.sought:
            largest = (self._new(1, 4), 4)
            yield made("reduce", {"elements": elements, "rows": 1}, reads, largest)
            reads = (access, largest)
        plain, turned, sizes = (
            self._low(access, False),
            self._low(access, True),
            {"elements": elements},
        )
        if not self.recipe.rotated:
            yield made("cast", sizes, reads, plain, turned)
            return
        rotated = (self._new(elements, 2), 2 * elements)
        yield made("cast", sizes, reads, plain)
        yield made("multiply", sizes, reads, rotated)
        yield made("cast", sizes, (rotated,), turned)

    def _pass(self, trace: Trace, backward: bool, cast: Iterable[int]) -> tuple[Traced, ...]:
        """The operators of a pass with its casts; ``cast``: what was before it."""
        read = frozenset(tensor for operator in trace.operators for tensor in operator.reads)
        done, found = set(cast), list[Traced]()
        numbers = count(max((operator.number for operator in trace.operators), default=0) + 1)
        for operator in trace.operators:
            if not self._linear(operator, read, backward):
                found.append(operator)
                continue
            low, turned = dict[int, Access](), not any(map(self._weight, operator.reads))
            for access in self._operands(operator):
                if not self._weight(access[0]) and access[0] not in done:
                    found += self._cast(access, numbers, operator.module)
                    done.add(access[0])
                low[access[0]] = self._low(access, turned)
            reads = tuple(low.get(tensor, (tensor, size)) for tensor, size in operator.op.reads)
            sizes = {**operator.op.sizes, "bits": self.recipe.bits}
            found.append(replace(operator, op=replace(operator.op, reads=reads, sizes=sizes)))
        return tuple(found)

    def layer(self) -> TracedLayer:
        own = self.own
        forward = self._pass(own.forward, False, ())
        cast = {tensor for tensor in self.copies[True] if not self._weight(tensor)}
        backward = self._pass(own.backward, True, cast)
        needed = frozenset(tensor for operator in backward for tensor in operator.reads)
        turned = {tensor: self.copies[True][tensor] for tensor in cast}
        gone = {tensor for tensor in cast if tensor not in needed and tensor in own.saved}
        results = (own.forward.outputs - gone) | {low for low in turned.values() if low in needed}
        again = self._pass(own.again, False, cast)
        saved = {
            tensor for tensor in own.saved if tensor not in self.copies[True] or tensor in needed
        }
        lows = (self.copies[True].get(tensor, -1) for tensor in own.saved)
        return replace(
            own, tensors=self.tensors, roles=self.roles, forward=_written(forward, results),
            backward=_written(backward, own.backward.outputs),
            again=_written(again, own.again.outputs),
            saved=frozenset(saved | {low for low in lows if low in needed}),
        )  # fmt: skip


def _written(operators: tuple[Traced, ...], outputs: frozenset[int] | set[int]) -> Trace:
    return Trace(
        operators,
        frozenset(outputs) & {tensor for operator in operators for tensor in operator.writes},
    )


class _Widened:
    """A layer in 32 bits: what has 16 in its trace has 32, and a cast between the two is none."""

    def __init__(self, layer: TracedLayer) -> None:
        self.layer = layer
        self.origin = dict[int, int]()
        for trace in (layer.forward, layer.backward, layer.again):
            for operator in trace.operators:
                self._same(operator)
        for tensor in self.origin:
            while self.origin[tensor] in self.origin:
                self.origin[tensor] = self.origin[self.origin[tensor]]

    def _same(self, operator: Traced) -> None:
        """What a cast of a whole tensor between 16 and 32 bits writes is the tensor that it
        reads."""
        layer, op = self.layer, operator.op
        if op.kind != "cast" or len(op.reads) != 1 or len(op.writes) != 1:
            return
        (source, read), (target, written) = op.reads[0], op.writes[0]
        elements, widths = zip(layer.tensors[source], layer.tensors[target], strict=True)
        whole = elements[0] == elements[1] and (read, written) == (
            layer.size(source),
            layer.size(target),
        )
        if whole and set(widths) == {2, 4} and layer.roles[source] != "parameter":
            self.origin[target] = source

    def _tensor(self, tensor: int) -> int:
        return self.origin.get(tensor, tensor)

    def _narrow(self, tensor: int) -> bool:
        return self.layer.tensors[tensor][1] == 2

    def _access(self, access: Access) -> Access:
        tensor, size = access
        return self._tensor(tensor), size * (2 if self._narrow(tensor) else 1)

    def _operator(self, operator: Traced) -> Traced:
        op, sizes = operator.op, dict(operator.op.sizes)
        if op.core == "network" and any(map(self._narrow, operator.reads)):
            sizes["bytes"] *= 2
        if op.kind == "product" or op.kind in ATTENTION:
            sizes["bits"] = 32
        reads, writes = tuple(map(self._access, op.reads)), tuple(map(self._access, op.writes))
        return replace(operator, op=replace(op, sizes=sizes, reads=reads, writes=writes))

    def _trace(self, trace: Trace) -> Trace:
        operators = []
        for operator in trace.operators:
            if operator.op.kind != "cast" or operator.writes[0] not in self.origin:
                operators.append(self._operator(operator))
        return Trace(tuple(operators), self._all(trace.outputs))

    def _all(self, tensors: Iterable[int]) -> frozenset[int]:
        return frozenset(map(self._tensor, tensors))

    def _input_bytes(self) -> int:
        """Bytes that enter: of a tensor and its cast the tensor alone."""
        layer, total = self.layer, self.layer.input_bytes
        entered = {tensor for tensor in layer.inputs if tensor not in self.origin}
        for tensor in sorted(layer.inputs):
            origin = self._tensor(tensor)
            if origin != tensor and origin in entered:
                total -= layer.size(tensor)
            else:
                entered.add(origin)
                total += layer.size(tensor) if self._narrow(tensor) else 0
        return total

    def wide(self) -> TracedLayer:
        """The layer."""
        layer = self.layer
        tensors = {
            tensor: (count, 4 if width == 2 else width)
            for tensor, (count, width) in layer.tensors.items()
        }
        narrow = any(map(self._narrow, layer.tensors))
        return replace(
            layer,
            tensors=tensors,
            forward=self._trace(layer.forward),
            backward=self._trace(layer.backward),
            again=self._trace(layer.again),
            saved=self._all(layer.saved),
            inputs=self._all(layer.inputs),
            input_bytes=self._input_bytes(),
            output_bytes=layer.output_bytes * (2 if narrow else 1),
        )
