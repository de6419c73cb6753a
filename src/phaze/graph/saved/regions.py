"""The parts of a layer that a stack can recompute, found in the traced graph by what they do.

    core_attn        the fused attention, or the score paths and the products that end them
    layernorm        what makes the operand of products with a norm: its result is dropped and made
                     again
    mlp              the products around an activation, and the activation; in a layer of experts
                     that is the shared expert, and the part is called ``shared_experts``
    moe_act          the activation between grouped products: its result is dropped and made again
    moe              the module that holds the grouped products: router, exchange, products
    mla_up_proj      products that read a normalised result of a product (the latent), to the
                     operands of attention: dropped and made again

A part that is *rerun* keeps what others read of it (the next product keeps its own operand); of a
part whose result is *dropped* nothing is kept.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field

from phaze.graph.fuse.structure import Structures
from phaze.graph.ir import Layer, Operator
from phaze.graph.recompute import score_path
from phaze.graph.saved.rules import ForwardFlow, is_batched, is_kernel

MODULES = ("core_attn", "layernorm", "mlp", "shared_experts", "moe_act", "moe", "mla_up_proj")
"""Names of the parts, as Megatron's --recompute-modules has them."""
NORMS = frozenset({"layer_norm", "batch_norm", "root"})
ACTIVATIONS = frozenset({"silu", "gelu", "relu", "sigmoid", "tanh"})


@dataclass(frozen=True, slots=True)
class SavedRegion:
    """Numbers of the operators of a part, and whether its results are dropped."""

    operators: frozenset[int]
    drops: bool = False


def _kernel_of(flow: ForwardFlow, tensor: int) -> tuple[frozenset[int], frozenset[int]]:
    """The vector operators that make a tensor from what other kernels wrote, and those tensors."""
    operators: set[int] = set()
    entering: set[int] = set()
    stack = [tensor]
    while stack:
        writer = flow.writer.get(stack[-1])
        last = stack.pop()
        if writer is None or is_kernel(writer):
            entering.add(last)
        elif writer.id not in operators:
            operators.add(writer.id)
            stack.extend(flow.made_from(last))
    return frozenset(operators), frozenset(entering)


@dataclass(frozen=True, slots=True)
class _Reading:
    """A layer as the search for parts reads it."""

    layer: Layer
    flow: ForwardFlow
    by_id: Mapping[int, Operator]
    roles: Mapping[int, str]

    def weighted(self, op: Operator) -> bool:
        """Whether an operator is a product with a parameter."""
        return op.kind == "product" and any(self.roles[a.tensor] == "parameter" for a in op.reads)

    def grouped(self, op: Operator) -> bool:
        return self.weighted(op) and is_batched(op)

    def operands(self) -> Iterable[tuple[Operator, int]]:
        """Every product with a parameter, and the activation that it reads, before it is gathered
        over the network."""
        for op in self.layer.forward.operators:
            if self.weighted(op):
                for tensor in sorted({a.tensor for a in op.reads} - self.flow.free):
                    writer = self.flow.writer.get(tensor)
                    gathered = writer is not None and writer.kind == "all_gather"
                    yield op, writer.reads[0].tensor if writer is not None and gathered else tensor

    def kinds(self, operators: Collection[int]) -> frozenset[str]:
        return frozenset(self.by_id[number].kind for number in operators)


def _own_norm(read: _Reading, tensor: int) -> tuple[frozenset[int], frozenset[int]] | None:
    """The operators of the norm that makes a tensor, and what it reads; None if none does.

    A norm is one operator, or a chain with a root; it starts at its rows' own tensor, not at what
    was added before."""
    writer = read.flow.writer.get(tensor)
    if writer is None:
        return None
    if writer.kind in NORMS:
        return frozenset({writer.id}), frozenset(read.flow.made_from(tensor))
    if is_kernel(writer):
        return None
    operators, entering = _kernel_of(read.flow, tensor)
    if "root" not in read.kinds(operators):
        return None
    written = {a.tensor for number in operators for a in read.by_id[number].writes}
    # What others read of the kernel as well (the residual) is where the norm starts.
    waits = {
        t
        for t in written
        if t != tensor and any(op.id not in operators for op in read.flow.readers.get(t, ()))
    }
    inside: set[int] = set()
    stack = [tensor]
    while stack:
        last = stack.pop()
        writer = read.flow.writer.get(last)
        if (
            writer is not None
            and writer.id in operators
            and writer.id not in inside
            and last not in waits
        ):
            inside.add(writer.id)
            stack.extend(read.flow.made_from(last))
    return frozenset(inside), frozenset(waits or entering)


def _core_attention(read: _Reading) -> frozenset[int]:
    fused = {op.id for op in read.layer.forward.operators if op.kind == "attention"}
    path = score_path(read.layer.forward)
    written = {a.tensor for number in path for a in read.by_id[number].writes}
    ends = {
        op.id
        for op in read.layer.forward.operators
        if op.kind == "product" and op.id not in path and any(a.tensor in written for a in op.reads)
    }
    return frozenset(fused | path | ends)


def _around(read: _Reading) -> tuple[frozenset[int], frozenset[int]]:
    """Operators of dense products around activations, and the activations between grouped
    products."""
    dense: set[int] = set()
    between: set[int] = set()
    for op, tensor in read.operands():
        kernel, entering = _kernel_of(read.flow, tensor)
        if not kernel or not read.kinds(kernel) & ACTIVATIONS:
            continue
        before = {read.flow.writer[t].id for t in entering if t in read.flow.writer}
        before = {number for number in before if read.weighted(read.by_id[number])}
        if not before:
            continue
        if read.grouped(op):
            between |= kernel
            continue
        gathers = {
            read.flow.writer[a.tensor].id
            for number in before
            for a in read.by_id[number].reads
            if a.tensor in read.flow.writer and read.flow.writer[a.tensor].kind == "all_gather"
        }
        dense |= kernel | before | gathers | {op.id}
    return frozenset(dense), frozenset(between)


def _experts(read: _Reading) -> frozenset[int]:
    """All operators of the module that holds the grouped products."""
    modules = {op.module for op in read.layer.forward.operators if read.grouped(op) and op.module}
    above = {module.rpartition(".")[0] or module for module in modules}
    return frozenset(
        op.id
        for op in read.layer.forward.operators
        if any(op.module == path or op.module.startswith(f"{path}.") for path in above)
    )


def _latent(read: _Reading) -> frozenset[int]:
    """Products of normalised results of products, and the vector work between them and
    attention."""
    operators: set[int] = set()
    for op, tensor in read.operands():
        norm = _own_norm(read, tensor)
        if norm is None or not norm[1]:
            continue
        sources = [read.flow.writer.get(t) for t in norm[1]]
        if all(writer is not None and read.weighted(writer) for writer in sources):
            operators.add(op.id)
    if not operators:
        return frozenset()
    written = {a.tensor for number in operators for a in read.by_id[number].writes}
    for op in read.layer.forward.operators:
        if op.core == "vector" and not is_kernel(op) and any(a.tensor in written for a in op.reads):
            operators.add(op.id)
            written.update(a.tensor for a in op.writes)
    return frozenset(operators)


@dataclass(frozen=True, slots=True)
class KnownRegions:
    """The parts of layers of one structure, found once: they ask for no size but whether a product
    is grouped."""

    structures: Structures
    regions: dict[Hashable, dict[str, SavedRegion]] = field(default_factory=dict)

    def of(self, layer: Layer, flow: ForwardFlow) -> dict[str, SavedRegion]:
        """As :func:`regions_of`."""
        graph = layer.forward
        grouped = tuple([is_batched(op) for op in graph.operators if op.kind == "product"])
        roles = tuple([(tensor.id, tensor.role) for tensor in graph.tensors])
        key = self.structures.of(graph), roles, grouped, flow.free
        regions = self.regions.get(key)
        if regions is None:
            regions = self.regions[key] = regions_of(layer, flow)
        return regions


def regions_of(layer: Layer, flow: ForwardFlow) -> dict[str, SavedRegion]:
    """The parts that a layer has, by name, in the order of :data:`MODULES`."""
    by_id = {op.id: op for op in layer.forward.operators}
    read = _Reading(layer, flow, by_id, {t.id: t.role for t in layer.forward.tensors})
    latent = _latent(read)
    norms: set[int] = set()
    for _, tensor in read.operands():
        norm = _own_norm(read, tensor)
        # A latent is normalised apart; the norm of the residual is what Megatron means.
        if norm is not None and not any(
            (writer := flow.writer.get(t)) and read.weighted(writer) for t in norm[1]
        ):
            norms |= norm[0]
    dense, between = _around(read)
    experts = _experts(read)
    regions = {
        "core_attn": SavedRegion(_core_attention(read)),
        "layernorm": SavedRegion(frozenset(norms), drops=True),
        "shared_experts" if experts else "mlp": SavedRegion(dense),
        "moe_act": SavedRegion(between, drops=True),
        "moe": SavedRegion(experts),
        "mla_up_proj": SavedRegion(latent, drops=True),
    }
    return {name: regions[name] for name in MODULES if name in regions and regions[name].operators}
