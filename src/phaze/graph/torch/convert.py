"""From the log of a region to operators: sizes by the rule of each kind, dead steps removed, values
numbered.

A step is alive if a value it writes is needed: in backward by a gradient, in forward by a result or
by backward. Numbers of tensors and operators follow the order of first use, so they do not depend
on sizes.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from phaze.graph import opset
from phaze.graph.ir import Access, Core, Operator, OperatorGraph, Role, Tensor
from phaze.graph.torch.record import Log, Operand, RecordedStep

Value = tuple[int, int]
Sizes = tuple[tuple[str, int], ...]
OVERWRITES = frozenset({"aten.copy_"})
SOURCES = frozenset({"embedding", "gather"})


def live(steps: Iterable[RecordedStep], needed: set[Value]) -> list[RecordedStep]:
    """The steps that a needed value depends on, in order; views are left out, their storages
    stay."""
    running: list[RecordedStep] = []
    wanted = set(needed)
    for step in reversed(list(steps)):
        if step.view or not any(operand.value in wanted for operand in step.writes):
            continue
        if opset.kind_of(step.name) == "free":
            continue
        running.append(step)
        wanted.update(operand.value for operand in real_reads(step))
    return running[::-1]


def real_reads(step: RecordedStep) -> tuple[Operand, ...]:
    """Operands whose values matter: filling looks at shapes only, overwriting a whole tensor at
    what it writes."""
    if opset.kind_of(step.name) == "fill":
        return ()
    if step.name.rsplit(".", 1)[0] in OVERWRITES and step.writes and step.writes[0].whole:
        return step.reads[1:]
    return step.reads


def _product(batch: int, m: int, n: int, k: int) -> Sizes:
    return ("batch", batch), ("m", m), ("n", n), ("k", k)


def _matrix_sizes(step: RecordedStep) -> Sizes:
    if step.name.split(".")[1] in ("mv", "addmv", "dot", "vdot"):
        left, _ = [o.shape for o in step.reads][-2:]
        return _product(1, math.prod(left[:-1]), 1, left[-1])
    left, right = [
        o.shape for o in step.reads if len(o.shape) > 1 or step.name.startswith("aten._grouped")
    ][-2:]
    if step.name.startswith("aten._grouped_mm"):
        left, right = step.reads[0].shape, step.reads[1].shape
        experts = step.reads[2].shape[0]
        if len(right) == 3:
            return _product(experts, math.ceil(left[0] / experts), right[2], right[1])
        return _product(experts, left[0], right[1], math.ceil(right[0] / experts))
    batch = left[0] if len(left) == 3 else 1
    return _product(batch, left[-2], right[-1], left[-1])


def _attention_sizes(step: RecordedStep) -> Sizes:
    """Operands: query, key, value in forward; gradient, query, key, value in backward; (batch,
    head, length, width)."""
    query, key, value = step.reads[1:4] if "backward" in step.name else step.reads[:3]
    batch = math.prod(query.shape[:-2])
    sizes = (batch, query.shape[-2], key.shape[-2], query.shape[-1], value.shape[-1], *_mask(step))
    names = ("batch", "queries", "keys", "width", "value_width", "causal", "window")
    return tuple(zip(names, sizes, strict=True))


def _mask(step: RecordedStep) -> tuple[int, int]:
    """Causal (0 or 1) and window: the last arguments of our operators, the flag after the dropout
    of PyTorch's."""
    settings = list(step.settings[0])
    if step.name.startswith("phaze."):
        return int(settings[-2]), int(settings[-1])
    return int(any(value is True for value in settings)), 0


def _largest(operands: Iterable[Operand]) -> tuple[int, ...]:
    return max((o.shape for o in operands), key=math.prod, default=())


def _map_sizes(step: RecordedStep) -> Sizes:
    return (("elements", math.prod(_largest((*step.writes, *step.reads)))),)


def _reduce_sizes(step: RecordedStep) -> Sizes:
    return ("elements", math.prod(_largest(step.reads))), ("rows", math.prod(_largest(step.writes)))


def _normalize_sizes(step: RecordedStep) -> Sizes:
    shape = _largest(step.reads)
    return ("elements", math.prod(shape)), ("rows", math.prod(shape[:-1]))


def _move_sizes(step: RecordedStep) -> Sizes:
    moved = step.reads[-1:] if opset.kind_of(step.name) == "scatter" else step.writes
    return (("elements", math.prod(_largest(moved))),)


def _collective_sizes(step: RecordedStep) -> Sizes:
    """Bytes of the whole tensor: what a gather makes, what a reduction takes."""
    group = next(value for value in reversed(step.settings[0]) if isinstance(value, int))
    whole = max((*step.reads, *step.writes), key=lambda o: math.prod(o.shape))
    return ("bytes", math.prod(whole.shape) * whole.element_bytes), ("group", group)


def _exchange_sizes(step: RecordedStep) -> Sizes:
    """Bytes of the rank's own part; the ranks of a trace are neighbours."""
    group, copies = [value for value in step.settings[0] if isinstance(value, int)][-2:]
    result = step.writes[0]
    size = math.prod(result.shape) * result.element_bytes
    return ("bytes", size), ("group", group), ("stride", 1), ("copies", copies)


RULES: Mapping[str, Callable[[RecordedStep], Sizes]] = MappingProxyType(
    {
        "product": _matrix_sizes,
        "attention": _attention_sizes,
        "map": _map_sizes,
        "reduce": _reduce_sizes,
        "normalize": _normalize_sizes,
        "move": _move_sizes,
        "collective": _collective_sizes,
        "exchange": _exchange_sizes,
    }
)


def _convolutions(
    step: RecordedStep,
) -> list[tuple[str, Sizes, tuple[Operand, ...], tuple[Operand, ...]]]:
    """The products of a convolution: m positions, n channels, k channels x window, for each group.

    Backward has an output mask: the gradient of the input, of the weight (both products), of the
    bias (a sum).
    """
    arguments = list(step.settings[0])
    if step.name.startswith("aten.convolution_backward"):
        (gradient, data, weight), mask = step.reads[:3], arguments[-1]
        groups = int(arguments[-2])
    else:
        data, weight, gradient = step.reads[0], step.reads[1], step.writes[0]
        groups, mask = int(arguments[-1]), None
    transposed = bool(arguments[6 if mask is None else 7])
    positions = (data if transposed else gradient).shape
    places = positions[0] * math.prod(positions[2:])
    first, second = weight.shape[0] // groups, math.prod(weight.shape[1:])
    outer, inner = (second, first) if transposed else (first, second)
    if mask is None:
        return [("product", _product(groups, places, outer, inner), step.reads, step.writes)]
    results = iter(step.writes)
    products: list[tuple[str, Sizes, tuple[Operand, ...], tuple[Operand, ...]]] = []
    if mask[0]:
        products.append(
            (
                "product",
                _product(groups, places, inner, outer),
                (gradient, weight),
                (next(results),),
            )
        )
    if mask[1]:
        products.append(
            ("product", _product(groups, outer, inner, places), (gradient, data), (next(results),))
        )
    if mask[2]:
        bias = next(results)
        sizes = ("elements", math.prod(gradient.shape)), ("rows", math.prod(bias.shape))
        products.append(("reduce", sizes, (gradient,), (bias,)))
    return products


@dataclass(slots=True)
class Numbering:
    """Gives the values of a layer their tensor numbers; one for both graphs of the layer."""

    log: Log
    parameters: frozenset[int]
    inputs: frozenset[Value]
    path: str = ""
    numbers: dict[Value, int] = field(default_factory=dict)
    tensors: dict[int, Tensor] = field(default_factory=dict)
    written: set[Value] = field(default_factory=set)

    def of(self, operand: Operand) -> int:
        if operand.value not in self.numbers:
            number = self.numbers[operand.value] = len(self.numbers)
            elements = self.log.bytes_of[operand.storage] // operand.element_bytes
            self.tensors[number] = Tensor(
                number, elements, operand.element_bytes, self._role(operand.value)
            )
        return self.numbers[operand.value]

    def _role(self, value: Value) -> Role:
        if value in self.written:
            return "intermediate"
        if value[0] in self.parameters:
            return "parameter"
        return "input" if value in self.inputs else "constant"


def _accesses(
    step: RecordedStep, reads: Sequence[Operand], writes: Sequence[Operand], kind: str
) -> tuple[list[int], list[int]]:
    """Bytes touched by each operand; look-ups read the rows they take, scatters write the rows they
    change."""
    read = [operand.touched * operand.element_bytes for operand in reads]
    written = [operand.touched * operand.element_bytes for operand in writes]
    if kind in SOURCES and read:
        read[0] = min(read[0], written[0])
    if kind == "scatter" and len(read) > 1:
        smaller = min(read[0], read[-1])
        read[0], written = smaller, [min(size, smaller) for size in written]
    if step.name.rsplit(".", 1)[0] in OVERWRITES and len(reads) == len(step.reads) and read:
        read[0] = 0
    return read, written


def _operators(step: RecordedStep, numbering: Numbering, first: int) -> list[Operator]:
    kind = opset.kind_of(step.name)
    assert kind is not None
    if kind == "convolution":
        forms = _convolutions(step)
    else:
        forms = [(kind, RULES[opset.KINDS[kind].rule](step), real_reads(step), step.writes)]
    operators: list[Operator] = []
    for name, sizes, reads, writes in forms:
        read, written = _accesses(step, reads, writes, name)
        numbering.written.update(operand.value for operand in writes)
        read_bytes: dict[int, int] = {}
        for operand, size in zip(reads, read, strict=True):
            partial = (
                operand.storage in {o.storage for o in writes}
                and size < numbering.log.bytes_of[operand.storage]
            )
            if size or (partial and operand.value in numbering.numbers):
                number = numbering.of(operand)
                read_bytes[number] = max(read_bytes.get(number, 0), size)
        core: Core = opset.KINDS[name].core
        inputs = tuple(Access(tensor, size) for tensor, size in read_bytes.items())
        outputs = tuple(
            Access(numbering.of(o), size)
            for o, size in zip(writes, written, strict=True)
            if math.prod(o.shape)
        )
        operators.append(
            Operator(
                first + len(operators),
                name,
                core,
                sizes,
                inputs,
                outputs,
                _within(step.module, numbering.path),
            )
        )
    return operators


def _within(module: str, path: str) -> str:
    """The path of a module inside the layer at ``path``."""
    return module.removeprefix(path).removeprefix(".") if path else module


def graph_of(
    steps: Iterable[RecordedStep], numbering: Numbering, needed: set[Value], first: int
) -> OperatorGraph:
    """The graph of live steps; ``needed`` values that it has are its outputs; operators are
    numbered from ``first``."""
    operators: list[Operator] = []
    for step in live(steps, needed):
        operators.extend(_operators(step, numbering, first + len(operators)))
    written = {access.tensor for op in operators for access in op.writes}
    read = {access.tensor for op in operators for access in op.reads}
    results = {numbering.numbers[value] for value in needed if value in numbering.numbers}
    tensors = tuple(numbering.tensors[number] for number in sorted(written | read))
    return OperatorGraph(
        tensors, tuple(operators), tuple(sorted(read - written)), tuple(sorted(results & written))
    )
