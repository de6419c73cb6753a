r"""One rank of context parallelism, from the trace at s / c positions: attention sees all keys, the
rest its own part.

Ranks hold s / c positions each, in two chunks i and 2c - 1 - i, so that causal attention is equal
work on all. All operators but attention work on single positions, so they are those of the trace at
s / c; attention has queries s / c and keys s. V are the bytes of keys and values of a rank, before
heads of a group are expanded: what the copy that expands them reads.

    way          before attention                            in the backward pass
    ring         c - 1 steps of V, each behind a block       c - 1 steps of 2 V: keys and values
                 again, their gradients
    all_gather   a gather of c V                             the gather again; after it a scatter of
                 c V
    ulysses      an exchange of queries, keys and values,    the same exchanges, the other way round
                 after it one of the results: attention has
                 1 / c of the heads, queries s and keys s
    hierarchical ulysses over the nearest c_1 of the ranks, then a ring over the c_2 groups of them, c = c_1 c_2, c_1
                 the largest proper part of c: attention has 1 / c_1 of the heads, queries s / c_2
                 and keys s

A layer whose other operators mix positions (convolutions, scans, products of activations outside
attention) cannot be split so and is refused with the operator's name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from phaze.errors import InputError, unknown_name
from phaze.graph.ir import Access, Layer, Model, Operator, OperatorGraph, Recompute, Tensor
from phaze.graph.mixture import all_tensors, is_grouped
from phaze.graph.recompute import score_path
from phaze.graph.store import graph_from

Way = Literal["ring", "all_gather", "ulysses", "hierarchical"]
WAYS: tuple[Way, ...] = get_args(Way)


def way_named(text: str) -> Way:
    """``text`` as a way of context parallelism."""
    for way in WAYS:
        if way == text:
            return way
    raise unknown_name("context", "way of context parallelism", text, WAYS)


def hierarchy(ranks: int) -> tuple[int, int]:
    """c_1 and c_2 of a hierarchical way; refused where a degree has no proper part."""
    inner = next((part for part in range(ranks // 2, 1, -1) if ranks % part == 0), None)
    if inner is None:
        raise InputError(
            "context",
            f"{ranks} ranks are not a product of two degrees",
            "use 4 or more, or another method",
        )
    return inner, ranks // inner


@dataclass(frozen=True, slots=True)
class _Group:
    """Ranks that share a sequence in one plain way, every ``stride``-th."""

    ranks: int
    stride: int
    way: Way


def _groups(ranks: int, stride: int, way: Way) -> tuple[_Group, ...]:
    """The groups of a way, innermost first."""
    if way != "hierarchical":
        return (_Group(ranks, stride, way),)
    inner, outer = hierarchy(ranks)
    return _Group(inner, stride, "ulysses"), _Group(outer, stride * inner, "ring")


def require_pointwise(layer: Layer, tokens: int) -> None:
    """Refuse a layer that mixes positions elsewhere than in fused attention."""
    if score_path(layer.forward):
        raise InputError(
            layer.name,
            "its attention writes all scores, and context parallelism runs on blocks of them",
            "use fused attention",
        )
    tensors = {tensor.id: tensor for tensor in layer.forward.tensors}
    fixed = {
        number for number, tensor in tensors.items() if tensor.role in ("parameter", "constant")
    }
    for op in layer.forward.operators:
        read = {access.tensor for access in op.reads}
        if read and read <= fixed:  # a weight in another precision
            fixed.update(access.tensor for access in op.writes)
        activations = op.kind == "product" and not read & fixed and not is_grouped(op, tensors)
        scans = op.kind == "scan" and op.size("elements") >= 2 * tokens
        if op.kind in ("convolution", "pool") or scans or activations:
            raise InputError(
                layer.name,
                f"its operator {op.kind} in {op.module or 'the block'} mixes positions "
                "that context parallelism keeps "
                "on different ranks",
                "use context 1",
            )


# Whose exchange it is, and in which module.
_Place = tuple[_Group, str]


class _ContextRewrite:
    """One layer's rewriting; new tensors and operators are numbered after the old ones."""

    def __init__(self, layer: Layer, ranks: int, stride: int, way: Way) -> None:
        self.layer, self.groups = layer, _groups(ranks, stride, way)
        self.tensors = all_tensors(layer)
        self.writer = {access.tensor: op for op in layer.forward.operators for access in op.writes}
        graphs = (layer.forward, layer.backward)
        self.next_tensor = max(self.tensors, default=0) + 1
        self.next_operator = max((op.id for g in graphs for op in g.operators), default=0) + 1
        self.moved: dict[int, int] = {}
        self.plain: dict[int, int] = {}

    def _new(self, elements: int, element_bytes: int) -> int:
        number, self.next_tensor = self.next_tensor, self.next_tensor + 1
        self.tensors[number] = Tensor(number, elements, element_bytes, "intermediate")
        return number

    def _network(
        self, place: _Place, kind: str, size: int, reads: Sequence[int], writes: Sequence[int]
    ) -> Operator:
        number, self.next_operator = self.next_operator, self.next_operator + 1
        group, module = place
        sizes = (("bytes", size), ("group", group.ranks), ("stride", group.stride), ("copies", 1))
        return Operator(
            number, kind, "network", sizes, self._accesses(reads), self._accesses(writes), module
        )

    def unexpanded_bytes(self, tensor: int) -> int:
        """Bytes of keys or values before their heads are expanded for the queries of a group."""
        if tensor in self.plain:
            return self.plain[tensor]
        writer = self.writer.get(tensor)
        if writer is not None and writer.kind == "copy" and len(writer.reads) == 1:
            return min(self.tensors[tensor].bytes, writer.reads[0].bytes)
        return self.tensors[tensor].bytes

    def _wider(self, op: Operator, group: _Group) -> tuple[tuple[str, int], ...]:
        sizes = dict(op.sizes)
        sizes["keys"] *= group.ranks
        if group.way == "ulysses":
            if sizes["batch"] % group.ranks:
                raise InputError(
                    self.layer.name,
                    f"{sizes['batch']} heads of a rank do not divide by {group.ranks}",
                    "use the ring, or another degree",
                )
            sizes["batch"] //= group.ranks
            sizes["queries"] *= group.ranks
        return tuple(sizes.items())

    def _whole(self, reads: Sequence[int], factor: int) -> int:
        """A tensor that holds what all ranks have of some."""
        return self._new(
            factor * sum(self.tensors[n].elements for n in reads),
            max(self.tensors[n].element_bytes for n in reads),
        )

    def _accesses(self, numbers: Sequence[int]) -> tuple[Access, ...]:
        return tuple(Access(number, self.tensors[number].bytes) for number in numbers)

    def _is_packed(self, op: Operator, query: int) -> bool:
        """Whether queries, keys and values are one tensor."""
        sizes = dict(op.sizes)
        both = sizes["keys"] * (sizes["width"] + sizes["value_width"])
        return self.tensors[query].elements >= sizes["batch"] * (
            sizes["queries"] * sizes["width"] + both
        )

    def _keys_bytes(self, op: Operator, keys: Sequence[int]) -> int:
        """Bytes of keys and values of a rank: of their tensors, or of their part of the one that
        holds queries too."""
        if len(keys) > 1:
            return sum(self.unexpanded_bytes(number) for number in keys)
        sizes = dict(op.sizes)
        elements = sizes["batch"] * sizes["keys"] * (sizes["width"] + sizes["value_width"])
        return elements * self.tensors[keys[0]].element_bytes

    def _rotated(
        self, op: Operator, keys: Sequence[int], packed: bool, group: _Group
    ) -> list[Operator]:
        """Keys and values come round in a ring or are gathered; their gradients go back with them,
        or scattered."""
        key_bytes, place, backward = (
            self._keys_bytes(op, keys),
            (group, op.module),
            op.kind == "attention_backward",
        )
        each = self.tensors[keys[0]].element_bytes
        every = (
            self._new(group.ranks * key_bytes // each, each)
            if packed
            else self._whole(keys, group.ranks)
        )
        if group.way == "ring":
            fetch = self._network(place, "ring", key_bytes * (2 if backward else 1), keys, [every])
        else:
            fetch = self._network(place, "context_gather", key_bytes, keys, [every])
        rest = [access.tensor for access in op.reads if packed or access.tensor not in keys]
        reads, sizes = self._accesses([*rest, every]), self._wider(op, group)
        writes = [access.tensor for access in op.writes]
        if group.way == "ring" or not backward:
            return [fetch, replace(op, sizes=sizes, reads=reads)]
        gradients = writes[1:3]
        whole = self._whole(gradients, group.ranks)
        work = replace(
            op, sizes=sizes, reads=reads, writes=self._accesses([writes[0], whole, *writes[3:]])
        )
        return [fetch, work, self._network(place, "context_scatter", key_bytes, [whole], gradients)]

    def _exchanged(
        self, place: _Place, numbers: Sequence[int], size: int
    ) -> tuple[list[int], Operator]:
        """Tensors on the ranks that have their heads, and the exchange that brings them there."""
        there = [
            self._new(self.tensors[n].elements, self.tensors[n].element_bytes) for n in numbers
        ]
        self.plain.update(
            {new: self.unexpanded_bytes(n) for n, new in zip(numbers, there, strict=True)}
        )
        return there, self._network(place, "all_to_all", size, numbers, there)

    def _by_heads(self, op: Operator, keys: Sequence[int], group: _Group) -> list[Operator]:
        """Attention on 1 / c of the heads and all positions."""
        key_bytes, place, sizes = (
            self._keys_bytes(op, keys),
            (group, op.module),
            self._wider(op, group),
        )
        if op.kind == "attention":
            query, out = op.reads[0].tensor, op.writes[0].tensor
            enters = list(dict.fromkeys([query, *keys]))
            size = self.tensors[query].bytes + (key_bytes if len(enters) > 1 else 0)
            there, enter = self._exchanged(place, enters, size)
            self.moved.update(zip(enters, there, strict=True))
            result = self._new(self.tensors[out].elements, self.tensors[out].element_bytes)
            self.moved[out] = result
            rest = [access.tensor for access in op.reads[len(enters) :]]
            written = [result, *(access.tensor for access in op.writes[1:])]
            work = replace(
                op,
                sizes=sizes,
                reads=self._accesses([*there, *rest]),
                writes=self._accesses(written),
            )
            return [
                enter,
                work,
                self._network(place, "all_to_all", self.tensors[out].bytes, [result], [out]),
            ]
        gradient, *others = [access.tensor for access in op.reads]
        there, enter = self._exchanged(place, [gradient], self.tensors[gradient].bytes)
        results = [access.tensor for access in op.writes]
        gradients = [
            self._new(self.tensors[n].elements, self.tensors[n].element_bytes) for n in results[:3]
        ]
        reads = self._accesses([*there, *(self.moved.get(n, n) for n in others)])
        work = replace(
            op, sizes=sizes, reads=reads, writes=self._accesses([*gradients, *results[3:]])
        )
        return [
            enter,
            work,
            self._network(
                place,
                "all_to_all",
                self.tensors[results[0]].bytes + key_bytes,
                gradients,
                results[:3],
            ),
        ]

    def _shared(self, op: Operator, group: _Group) -> list[Operator]:
        """Attention over the ranks of a group; what is no attention stays."""
        if op.kind not in ("attention", "attention_backward"):
            return [op]
        numbers, first = (
            [access.tensor for access in op.reads],
            2 if op.kind == "attention_backward" else 1,
        )
        packed = self._is_packed(op, numbers[first - 1])
        keys = numbers[first - 1 : first] if packed else numbers[first : first + 2]
        return (
            self._by_heads(op, keys, group)
            if group.way == "ulysses"
            else self._rotated(op, keys, packed, group)
        )

    def operators(self, graph: OperatorGraph) -> list[Operator]:
        """The operators of a pass, its attention on all keys."""
        operators = list(graph.operators)
        for group in self.groups:
            operators = [new for op in operators for new in self._shared(op, group)]
        return operators


def _saved(saved: Sequence[int], moved: Mapping[int, int], later: set[int]) -> list[int]:
    kept_numbers: list[int] = []
    for number in saved:
        sides = [number] if number in later or moved.get(number) not in later else []
        other = moved.get(number)
        if other is not None and other in later:
            sides.append(other)
        kept_numbers += sides
    return kept_numbers


def _has_attention(layer: Layer) -> bool:
    return any(op.kind == "attention" for op in layer.forward.operators)


def context_split(
    layer: Layer, ranks: int, *, tokens: int, stride: int = 1, way: Way = "ring"
) -> Layer:
    """One of ``ranks`` of a layer that was traced at their share of the sequence, ``tokens`` of a
    microbatch; every ``stride``-th rank is one of them."""
    require_pointwise(layer, tokens)
    if ranks == 1 or not _has_attention(layer):
        return layer
    rewrite = _ContextRewrite(layer, ranks, stride, way)
    forward_operators, backward_operators = (
        rewrite.operators(g) for g in (layer.forward, layer.backward)
    )
    later = {access.tensor for op in backward_operators for access in op.reads}
    outputs = _saved(layer.forward.outputs, rewrite.moved, later | set(_ends(layer)))
    forward = graph_from(forward_operators, outputs, rewrite.tensors)
    backward = graph_from(backward_operators, layer.backward.outputs, rewrite.tensors)

    def recompute(value: Recompute) -> Recompute:
        saved = _saved(value.saved, rewrite.moved, later)
        more = sum(rewrite.tensors[n].bytes for n in saved) - sum(
            rewrite.tensors[n].bytes for n in value.saved
        )
        if value.rerun is layer.forward or value.rerun == layer.forward:
            return Recompute(value.saved, value.saved_bytes, forward)
        again = graph_from(rewrite.operators(value.rerun), value.rerun.outputs, rewrite.tensors)
        return Recompute(tuple(saved), value.saved_bytes + more, again)

    return replace(
        layer,
        forward=forward,
        backward=backward,
        none=recompute(layer.none),
        selective=recompute(layer.selective),
        full=recompute(layer.full),
    )


def _ends(layer: Layer) -> tuple[int, ...]:
    """Outputs of the forward pass that the backward pass does not read: the layer's results."""
    read = {access.tensor for op in layer.backward.operators for access in op.reads}
    return tuple(number for number in layer.forward.outputs if number not in read)


def context_parallel(model: Model, ranks: int, way: Way = "ring") -> Model:
    """One rank of a model that was loaded at its share of the sequence; the model then says the
    whole sequence."""
    if ranks == 1:
        return model
    if not any(_has_attention(layer) for layer in model.layers):
        raise InputError(
            "context",
            f"{model.name} has no fused attention for context parallelism",
            "use fused attention, or 1",
        )
    tokens = model.microbatch * model.sequence
    layers = tuple(
        context_split(layer, ranks, tokens=tokens, stride=model.tensor, way=way)
        for layer in model.layers
    )
    return replace(
        model, layers=layers, sequence=model.sequence * ranks, context=ranks, context_way=way
    )
