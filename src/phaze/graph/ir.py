"""The operator graph of a model: values of plain integers, made by a trace, read without PyTorch.

A :class:`Model` is a list of *calls* of distinct *layers* (equal blocks are folded: one
:class:`Layer`, many :class:`Call`). A layer has a forward and a backward :class:`OperatorGraph`.
All sizes are those of one rank of a tensor-parallel group of width ``tensor`` and of one
microbatch.

Tensors are in single-assignment form: every :class:`Tensor` has at most one writer, so the edges of
a graph follow from ``reads`` and ``writes``. An operator that changes a tensor in place reads the
old value and writes a new one. Views are no operators and no tensors: whoever reads through a view
reads its tensor, and :class:`Access` says how many bytes it really touches (a slice of a fused
projection, an expanded key).

Numbers of tensors are unique in a layer and shared by its graphs: what backward reads and forward
wrote has one number in both. Operators are in an order in which they can run, and numbers and order
do not depend on sizes.

    FLOP(product)   = 2 batch m n k
    bytes(operator) = sum of ``bytes`` over reads and writes parameters(model) = sum over calls of
    the layer's parameters - sum over ties of elements (calls - 1)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Core = Literal["tensor", "vector", "both", "network", "none"]
Role = Literal["input", "parameter", "intermediate", "constant"]
Attention = Literal["eager", "fused"]
MOST_WHOLE = 2**62
"""Arrays hold whole numbers of 64 bits, and a sum of two stays in them."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A value in memory: ``input`` (of a graph: activations, incoming gradients), ``parameter``,
    ``constant`` (a buffer) or ``intermediate`` (written by an operator of the layer)."""

    id: int
    elements: int
    element_bytes: int
    role: Role

    @property
    def bytes(self) -> int:
        return self.elements * self.element_bytes


@dataclass(frozen=True, slots=True)
class Access:
    """One operand: which tensor, and how many of its bytes are touched."""

    tensor: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Operator:
    """One kernel. ``kind`` is a row of :mod:`phaze.graph.opset`; ``sizes`` are named, in the order
    of that row:

    product: batch, m, n, k · attention: batch, queries, keys, width, value_width, and where it is
    known ``causal`` (0 or 1) and ``window`` (keys a query sees at most, 0: all) · vector kinds:
    elements, and rows where rows are reduced or normalised · collectives: bytes (of the whole
    tensor), group · exchanges: bytes (of this rank's part), group, stride (between its ranks),
    copies (ranks that get the same row). ``parts`` are the members of a fused operator, in order;
    ``module`` is the path within the layer.
    """

    id: int
    kind: str
    core: Core
    sizes: tuple[tuple[str, int], ...]
    reads: tuple[Access, ...]
    writes: tuple[Access, ...]
    module: str = ""
    parts: tuple["Operator", ...] = ()

    def size(self, name: str) -> int:
        """The size called ``name``; a KeyError says that this kind has none."""
        for key, size in self.sizes:
            if key == name:
                return size
        raise KeyError(name)

    @property
    def bytes(self) -> int:
        return sum(access.bytes for access in (*self.reads, *self.writes))


@dataclass(frozen=True, slots=True)
class OperatorGraph:
    """Operators in a runnable order. ``inputs`` are read and not written here, ``outputs`` are used
    afterwards (results, what backward needs, gradients)."""

    tensors: tuple[Tensor, ...]
    operators: tuple[Operator, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    def edges(self) -> Iterator[tuple[int, int]]:
        """Pairs (writer, reader) of operator numbers, each once, in order of the reader."""
        writer = {access.tensor: op.id for op in self.operators for access in op.writes}
        for op in self.operators:
            sources = {writer[access.tensor] for access in op.reads if access.tensor in writer}
            yield from ((source, op.id) for source in sorted(sources - {op.id}))


@dataclass(frozen=True, slots=True)
class Parameter:
    """A weight of a layer on one rank; ``name`` is its path within the layer. ``split`` marks a
    shard of a larger weight, so that the others are what every rank of a tensor-parallel group
    holds alike. ``experts``: how many of a mixture's experts it holds, 0 for all other weights."""

    name: str
    tensor: int
    elements: int
    element_bytes: int
    trained: bool
    split: bool
    experts: int = 0


@dataclass(frozen=True, slots=True)
class Recompute:
    """What one microbatch leaves in memory between forward and backward, and what backward runs
    first.

    ``saved`` are the tensors kept, ``saved_bytes`` their storages, each once, without parameters
    and without what all blocks share; ``rerun`` is run before the backward graph (empty when
    nothing is recomputed).
    """

    saved: tuple[int, ...]
    saved_bytes: int
    rerun: OperatorGraph


@dataclass(frozen=True, slots=True)
class Layer:
    """A distinct block, or the part of the model before, between or after the blocks.

    ``none``, ``selective`` (attention scores and what depends on them only are made again) and
    ``full`` (inputs are kept) are the ways to hold activations. ``shared_bytes`` are what backward
    reads of masks and position tables, the same for all blocks. ``input_bytes`` and
    ``output_bytes`` carry gradients back.
    """

    name: str
    forward: OperatorGraph
    backward: OperatorGraph
    parameters: tuple[Parameter, ...]
    none: Recompute
    selective: Recompute
    full: Recompute
    shared_bytes: int
    input_bytes: int
    output_bytes: int
    sharded: bool

    @property
    def parameter_elements(self) -> int:
        return sum(parameter.elements for parameter in self.parameters)

    @property
    def parameter_bytes(self) -> int:
        return sum(parameter.elements * parameter.element_bytes for parameter in self.parameters)

    def elements(self, trained: bool, experts: bool = False) -> int:
        """Elements of the parameters that are trained, or that are not; of experts alone, if so."""
        chosen = (p for p in self.parameters if p.trained == trained and (p.experts or not experts))
        return sum(parameter.elements for parameter in chosen)


@dataclass(frozen=True, slots=True)
class Call:
    """One execution of ``layers[layer]``; ``module`` is where in the model it stands."""

    layer: int
    module: str


@dataclass(frozen=True, slots=True)
class Edge:
    """Activations from call ``source`` to call ``target``; ``gradient_bytes`` come back. What
    depends on no parameter (masks, position tables) is made by every pipeline stage itself and is
    no edge."""

    source: int
    target: int
    bytes: int
    gradient_bytes: int


@dataclass(frozen=True, slots=True)
class Tie:
    """One parameter used by several calls: counted once, its gradients are summed over
    ``calls``."""

    name: str
    calls: tuple[int, ...]
    elements: int
    element_bytes: int


@dataclass(frozen=True, slots=True)
class Model:
    """A model at one tensor width, microbatch and sequence: distinct layers, their calls in order
    of execution, the data that flows between calls, and in words where the trace is not exact. It
    is one rank of ``context`` that share a sequence, in the ``context_way``, and of ``expert`` x
    ``expert_tensor`` that shard the experts."""

    name: str
    tensor: int
    microbatch: int
    sequence: int
    sequence_parallel: bool
    attention: Attention
    layers: tuple[Layer, ...]
    calls: tuple[Call, ...]
    edges: tuple[Edge, ...]
    ties: tuple[Tie, ...]
    approximations: tuple[str, ...]
    context: int = 1
    context_way: str = ""
    expert: int = 1
    expert_tensor: int = 1

    @property
    def parameters(self) -> int:
        """Elements of all parameters on one rank, tied ones once."""
        total = sum(self.layers[call.layer].parameter_elements for call in self.calls)
        return total - sum(tie.elements * (len(tie.calls) - 1) for tie in self.ties)

    def count(self, layer: int) -> int:
        """How many calls were folded into ``layers[layer]``."""
        return sum(call.layer == layer for call in self.calls)
