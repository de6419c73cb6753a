"""Layers of the files of ``graph/data``, made straight from a template and the numbers of its
leaves.

A template holds a layer slim: operators as [id, kind, sizes, reads, writes, module] without names
of sizes, with tensor and bytes in turn, and roles by their first letters. Every plan asks for one
template at many sizes, so a template is read once into a :class:`LayerForm`: all that is no number,
and the numbers and numbered leaves in the order in which :meth:`LayerForm.layer` takes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.graph import opset
from phaze.graph.ir import (
    Access,
    Core,
    Layer,
    Operator,
    OperatorGraph,
    Parameter,
    Recompute,
    Role,
    Tensor,
)
from phaze.graph.store import AGAIN
from phaze.graph.summary import MASK, SIZES

ROLES: Mapping[Role, str] = MappingProxyType(
    {"input": "in", "parameter": "pa", "intermediate": "im", "constant": "co"}
)


@dataclass(frozen=True, slots=True)
class _OperatorForm:
    """An operator without its numbers: how many operands it reads and writes."""

    kind: str
    core: Core
    names: tuple[str, ...]
    reads: int
    writes: int
    module: str


@dataclass(frozen=True, slots=True)
class _GraphForm:
    operators: tuple[_OperatorForm, ...]
    outputs: int

    def graph(self, numbers: Iterator[int], tensors: Mapping[int, Tensor]) -> OperatorGraph:
        """The graph of the next numbers; its tensors and inputs follow."""
        operators, read, written = [], set[int](), set[int]()
        for form in self.operators:
            number = next(numbers)
            sizes = tuple([(name, next(numbers)) for name in form.names])
            reads = tuple([Access(next(numbers), next(numbers)) for _ in range(form.reads)])
            writes = tuple([Access(next(numbers), next(numbers)) for _ in range(form.writes)])
            read.update([access.tensor for access in reads])
            written.update([access.tensor for access in writes])
            operators.append(
                Operator(number, form.kind, form.core, sizes, reads, writes, form.module)
            )
        used = tuple([tensors[number] for number in sorted(read | written)])
        outputs = tuple([next(numbers) for _ in range(self.outputs)])
        return OperatorGraph(used, tuple(operators), tuple(sorted(read - written)), outputs)


@dataclass(frozen=True, slots=True)
class LayerForm:
    """A layer without its numbers; ``recomputes`` are none, selective and full: how many tensors
    each saves, and what it runs again, None for the forward pass. ``leaves`` are numbers, and -1 -
    i for leaf number i."""

    leaves: tuple[int, ...]
    roles: tuple[Role, ...]
    forward: _GraphForm
    backward: _GraphForm
    parameters: tuple[tuple[str, bool, bool, bool], ...]
    recomputes: tuple[tuple[int, _GraphForm | None], ...]
    sharded: bool

    def layer(self, name: str, numbers: Sequence[int]) -> Layer:
        """The layer whose numbered leaves have these values."""
        left = iter([leaf if leaf >= 0 else numbers[-1 - leaf] for leaf in self.leaves])
        rows = [Tensor(next(left), next(left), next(left), role) for role in self.roles]
        tensors = {tensor.id: tensor for tensor in rows}
        forward, backward = self.forward.graph(left, tensors), self.backward.graph(left, tensors)
        parameters = [
            Parameter(
                called,
                next(left),
                next(left),
                next(left),
                trained,
                split,
                next(left) if mixed else 0,
            )
            for called, trained, split, mixed in self.parameters
        ]
        recomputes = []
        for count, form in self.recomputes:
            saved, size = tuple([next(left) for _ in range(count)]), next(left)
            recomputes.append(
                Recompute(saved, size, forward if form is None else form.graph(left, tensors))
            )
        shared, entering, leaving = left
        none, selective, full = recomputes
        return Layer(
            name,
            forward,
            backward,
            tuple(parameters),
            none,
            selective,
            full,
            shared,
            entering,
            leaving,
            self.sharded,
        )


def _graph_form(raw: Mapping[str, Any], leaves: list[int]) -> _GraphForm:
    operators = []
    for number, kind, sizes, reads, writes, module in raw["operators"]:
        row = opset.KINDS[kind]
        names = (*SIZES[row.rule], *MASK)[: len(sizes)]
        leaves += [number, *sizes, *reads, *writes]
        operators.append(
            _OperatorForm(kind, row.core, names, len(reads) // 2, len(writes) // 2, module)
        )
    leaves += raw["outputs"]
    return _GraphForm(tuple(operators), len(raw["outputs"]))


def layer_form(raw: Mapping[str, Any]) -> LayerForm:
    """The form of a template."""
    leaves, names = list[int](), {short: role for role, short in ROLES.items()}
    for number, elements, width, _ in raw["tensors"]:
        leaves += [number, elements, width]
    forward, backward = (_graph_form(raw[key], leaves) for key in ("forward", "backward"))
    parameters = []
    for called, tensor, elements, width, trained, split, *experts in raw["parameters"]:
        leaves += [tensor, elements, width, *experts]
        parameters.append((called, trained, split, bool(experts)))
    recomputes = []
    for key in ("none", "selective", "full"):
        recompute = raw[key]
        leaves += [*recompute["saved"], recompute["saved_bytes"]]
        recomputes.append(
            (
                len(recompute["saved"]),
                None if recompute["rerun"] == AGAIN else _graph_form(recompute["rerun"], leaves),
            )
        )
    leaves += [raw[key] for key in ("shared_bytes", "input_bytes", "output_bytes")]
    roles = tuple(names[short] for *_, short in raw["tensors"])
    return LayerForm(
        tuple(leaves),
        roles,
        forward,
        backward,
        tuple(parameters),
        tuple(recomputes),
        raw["sharded"],
    )
