r"""One rank of expert parallelism, from the trace of a whole layer: its experts sharded, its
rows exchanged.

The trace of a mixture of experts holds all E experts as *grouped products* of (batch E, m rows, n,
k), the rows of T tokens times k experts each sorted by expert and every expert equally loaded. With
p ranks that hold E / p experts each, and x ranks that share the width f of one expert, rank and
layer have

    product of rows       (E, r, n, k)    ->  (E / p, r p x, n, k)           with the width f, n or
                          k, divided by x
    weight gradient       (E, m, n, r)    ->  (E / p, m, n, r p x)           with the width f, m or
                          n, divided by x
    weights of experts    1 / (p x) of the elements
    every tensor of rows that enters the experts' part: an exchange over the p ranks after it (and a
    gather over the x) every tensor of rows that leaves it: (a scatter over the x and) an exchange
    before whoever reads it

The experts' part of a pass is that of :mod:`phaze.graph.mixture`. Per-row scalars (a weight, an
expert's number) travel with their rows and are not counted. FLOP of a rank stay as they are, and so
do its rows: an exchange gives as many as it takes.

Imbalance phi >= 1 is the rows of the fullest rank over the mean; it multiplies the rows of the
experts' part.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from phaze.errors import InputError
from phaze.graph.experts import BALANCED
from phaze.graph.ir import Access, Layer, Model, Operator, OperatorGraph, Recompute, Tensor
from phaze.graph.mixture import Mixture, all_tensors, has_experts, is_grouped, mixture_of
from phaze.graph.store import graph_from

# What the graph of a layer says of its experts.
MixtureOf = Callable[[Layer], Mixture | None]


class _ExpertsRewrite:
    """One layer's rewriting; new tensors and operators are numbered after the old ones."""

    def __init__(
        self, layer: Layer, mixture: Mixture, ep: int, etp: int, imbalance: float, copies: int
    ) -> None:
        self.layer, self.mixture, self.imbalance, self.copies = layer, mixture, imbalance, copies
        self.ep, self.etp, self.tensors = ep, etp, all_tensors(layer)
        graphs = (layer.forward, layer.backward)
        # What reads nothing, a buffer of zeros, is made wherever it is wanted.
        apart = [
            op for g in graphs for op in g.operators if op.id not in mixture.inside and op.reads
        ]
        self.homes = {a.tensor for op in apart for a in op.writes}
        self.written = {
            a.tensor
            for g in graphs
            for op in g.operators
            if op.id in mixture.inside
            for a in op.writes
        }
        self.next_tensor = max(self.tensors) + 1
        self.next_operator = max(op.id for g in graphs for op in g.operators) + 1
        self.old = dict(self.tensors)
        self.elements = {number: tensor.elements for number, tensor in self.old.items()}
        self.gradients = self._gradients()
        self.entered: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.crossing = self._crossing(graphs)
        self.resized: dict[int, int] = {}
        for number in self.written:
            self._resize(number)
        for number in mixture.weights:
            self._shrink(number)
        # Operators outside that touch none of these stay the values that they are.
        rows = {number for number in self.written if self.has_rows(number)}
        self.moved = rows | {
            n for n, tensor in self.tensors.items() if tensor.elements != self.old[n].elements
        }

    def has_rows(self, tensor: int) -> bool:
        """Whether a tensor has rows to exchange: more than a number for each."""
        return (
            self.old[tensor].elements >= 2 * self.mixture.rows
            and tensor not in self.mixture.weights
        )

    def _crossing(self, graphs: Sequence[OperatorGraph]) -> set[int]:
        """Tensors of rows that enter or leave the experts' part."""
        crossing: set[int] = set()
        for graph in graphs:
            for op in graph.operators:
                for access in op.reads:
                    apart = self.written if op.id not in self.mixture.inside else self.homes
                    if access.tensor in apart and self.has_rows(access.tensor):
                        crossing.add(access.tensor)
        return crossing

    def _factor(self, tensor: int) -> float:
        """Rows of a tensor of the experts' part over those of the trace."""
        return self.imbalance * (self.etp if tensor in self.crossing or tensor in self.edges else 1)

    @property
    def edges(self) -> set[int]:
        return set(self.entered.values())

    def _set(self, number: int, elements: int) -> None:
        self.tensors[number] = replace(self.tensors[number], elements=elements)

    def _shrink(self, number: int) -> None:
        self._set(number, self.old[number].elements // (self.ep * self.etp))

    def _resize(self, number: int) -> None:
        if number in self.gradients:
            self._shrink(number)
        elif self.has_rows(number):
            self._set(number, math.ceil(self.old[number].elements * self._factor(number)))

    def _gradients(self) -> set[int]:
        """What the backward pass makes, nobody reads, and has the size of experts' weights."""
        sizes = {self.elements[weight] for weight in self.mixture.weights}
        operators = self.layer.backward.operators
        read = {a.tensor for op in operators for a in op.reads}
        return {
            a.tensor for op in operators for a in op.writes if self.elements[a.tensor] in sizes
        } - read

    def _access(self, access: Access) -> Access:
        old, new = self.old.get(access.tensor), self.tensors[access.tensor]
        if old is None or old.elements == new.elements or not old.elements:
            return access
        return Access(
            access.tensor, min(new.bytes, math.ceil(access.bytes * new.elements / old.elements))
        )

    def _new(self, like: int, elements: int) -> int:
        number, self.next_tensor = self.next_tensor, self.next_tensor + 1
        self.tensors[number] = Tensor(
            number, elements, self.tensors[like].element_bytes, "intermediate"
        )
        return number

    def _network(self, kind: str, source: int, target: int, module: str) -> Operator:
        number, self.next_operator = self.next_operator, self.next_operator + 1
        read, write = self.tensors[source].bytes, self.tensors[target].bytes
        sizes: tuple[tuple[str, int], ...] = (("bytes", max(read, write)), ("group", self.etp))
        if kind == "all_to_all":
            sizes = (
                ("bytes", min(read, write)),
                ("group", self.ep),
                ("stride", self.etp),
                ("copies", self.copies),
            )
        return Operator(
            number,
            kind,
            "network",
            sizes,
            (Access(source, read),),
            (Access(target, write),),
            module,
        )

    def _exchanged(self, tensor: int, enters: bool, module: str) -> tuple[int, list[Operator]]:
        """What a tensor is on the other side, and the operators that bring it there."""
        whole, elements_here = (
            math.ceil(self.old[tensor].elements * self.imbalance),
            self.old[tensor].elements,
        )
        steps = [("all_to_all", whole)] if self.ep > 1 else []
        if enters:
            steps += (
                [("all_gather", math.ceil(elements_here * self.imbalance * self.etp))]
                if self.etp > 1
                else []
            )
        else:
            scattered = [("reduce_scatter", whole)] if self.etp > 1 else []
            steps = [*scattered, *([("all_to_all", elements_here)] if self.ep > 1 else [])]
        exchanges, number = [], tensor
        for kind, elements in steps:
            target = self._new(tensor, elements)
            exchanges.append(self._network(kind, number, target, module))
            number = target
        return number, exchanges

    def _product(self, op: Operator) -> tuple[tuple[str, int], ...]:
        sizes = dict(op.sizes)
        rows = "m" if any(access.tensor in self.mixture.weights for access in op.reads) else "k"
        sizes["batch"] //= self.ep
        sizes[rows] = math.ceil(sizes[rows] * self.ep * self.etp * self.imbalance)
        if self.etp > 1:
            name = self._width(op, rows)
            if sizes[name] % self.etp:
                raise InputError(
                    op.module,
                    f"its width {sizes[name]} does not divide by {self.etp}",
                    "use another",
                )
            sizes[name] //= self.etp
        return tuple(sizes.items())

    def _width(self, op: Operator, rows: str) -> str:
        """Which size of a grouped product is the width of an expert: that of a tensor that does not
        cross."""
        big = [
            a.tensor
            for a in op.reads
            if self.has_rows(a.tensor) or a.tensor in self.mixture.weights
        ]
        if rows == "k":
            inner = [
                name
                for name, tensor in zip(("m", "n"), big, strict=False)
                if tensor not in self.crossing
            ]
        else:
            row = next(a.tensor for a in op.reads if self.has_rows(a.tensor))
            inner = [
                n
                for n, tensor in (("k", row), ("n", op.writes[0].tensor))
                if tensor not in self.crossing
            ]
        if len(inner) != 1:
            raise InputError(
                op.module, "its experts are not a pair of maps whose width can be divided", "use 1"
            )
        return inner[0]

    def _operator(self, op: Operator, reads: tuple[Access, ...]) -> Operator:
        inside = op.id in self.mixture.inside
        sizes = op.sizes
        if inside and is_grouped(op, self.old):
            sizes = self._product(op)
        elif inside:
            crosses = any(a.tensor in self.crossing for a in (*op.reads, *op.writes))
            if self.etp > 1 and crosses:
                raise InputError(
                    op.module, f"the operator {op.kind} works on whole rows of its experts", "use 1"
                )
            grown = any(self.has_rows(a.tensor) for a in (*op.reads, *op.writes))
            factor = self.imbalance if grown else 1
            sizes = tuple((name, math.ceil(size * factor)) for name, size in op.sizes)
        reads = tuple([self._access(access) for access in reads])
        writes = tuple([self._access(access) for access in op.writes])
        if (sizes, reads, writes) == (op.sizes, op.reads, op.writes):
            return op
        return replace(op, sizes=sizes, reads=reads, writes=writes)

    def operators(self, graph: OperatorGraph) -> list[Operator]:
        """The operators of a pass with exchanges before the first that needs each."""
        operators: list[Operator] = []
        written = {access.tensor for op in graph.operators for access in op.writes}
        here: set[int] = set()
        for op in graph.operators:
            inside, reads = op.id in self.mixture.inside, []
            if not inside and self.moved.isdisjoint(
                [access.tensor for access in (*op.reads, *op.writes)]
            ):
                operators.append(op)
                continue
            apart, exchanged = (self.homes, self.entered) if inside else (self.written, self.left)
            for access in op.reads:
                if access.tensor not in apart or not self.has_rows(access.tensor):
                    reads.append(access)
                    continue
                again = access.tensor in written and access.tensor not in here
                if access.tensor not in exchanged or (again and graph is not self.layer.forward):
                    number, steps = self._exchanged(access.tensor, inside, op.module)
                    exchanged[access.tensor] = number
                    operators += steps
                here.add(access.tensor)
                number = exchanged[access.tensor]
                share = access.bytes / max(1, self.old[access.tensor].bytes)
                reads.append(Access(number, math.ceil(self.tensors[number].bytes * share)))
            operators.append(self._operator(op, tuple(reads)))
        return operators

    def outputs(
        self, graph: OperatorGraph, operators: Iterable[Operator], later: set[int]
    ) -> list[int]:
        """What is used after a pass: each output on the side where it is read."""
        touched = {a.tensor for op in operators for a in (*op.reads, *op.writes)}
        return _sided(graph.outputs, (self.entered, self.left), later, touched)


def _sided(
    numbers: Iterable[int],
    moved: tuple[Mapping[int, int], Mapping[int, int]],
    later: set[int],
    forward_tensors: set[int],
) -> list[int]:
    """Tensors and what became of them on the other side, as far as something reads them later."""
    sided: dict[int, None] = {}
    for number in numbers:
        sides = [
            sent[number]
            for sent in moved
            if number in sent and sent[number] in forward_tensors and sent[number] in later
        ]
        if number in later or not sides:
            sided[number] = None
        sided.update(dict.fromkeys(sides))
    return list(sided)


def _rows_copied(mixture: Mixture, tokens: int) -> int:
    return max(1, mixture.rows // max(1, tokens))


def _require_ranks(mixture: Mixture, ep: int, imbalance: float) -> None:
    """Refuse ranks that the experts do not divide by, and rows of the fullest below the mean."""
    if ep < 1 or mixture.experts % ep:
        fits = ", ".join(str(n) for n in range(1, mixture.experts + 1) if mixture.experts % n == 0)
        raise InputError(
            "expert", f"{mixture.experts} experts do not divide by {ep}", f"use {fits}"
        )
    if imbalance < 1:
        raise InputError(
            "imbalance",
            f"{imbalance!r} is out of range",
            "it must be at least 1, the balanced load",
        )


def expert_split(
    layer: Layer,
    ep: int,
    etp: int = 1,
    *,
    tokens: int,
    imbalance: float = 1.0,
    mixture_at: MixtureOf = mixture_of,
) -> Layer:
    """One of ``ep`` x ``etp`` ranks of a layer's experts, which routes ``tokens`` of its own; a
    layer without experts stays as it is. ``mixture_at`` gives its mixture."""
    mixture = mixture_at(layer)
    if mixture is None or ep * etp == 1:
        return layer
    _require_ranks(mixture, ep, imbalance)
    rewrite = _ExpertsRewrite(layer, mixture, ep, etp, imbalance, _rows_copied(mixture, tokens))
    forward_operators = rewrite.operators(layer.forward)
    backward_operators = rewrite.operators(layer.backward)
    later = {a.tensor for op in backward_operators for a in op.reads}
    forward_tensors = {a.tensor for op in forward_operators for a in (*op.reads, *op.writes)}
    forward = graph_from(
        forward_operators, rewrite.outputs(layer.forward, forward_operators, later), rewrite.tensors
    )
    backward = graph_from(backward_operators, layer.backward.outputs, rewrite.tensors)

    def recompute(value: Recompute) -> Recompute:
        saved = _sided(value.saved, (rewrite.entered, rewrite.left), later, forward_tensors)
        more = sum(rewrite.tensors[n].bytes for n in saved) - sum(
            rewrite.old[n].bytes for n in value.saved
        )
        if value.rerun is layer.forward or value.rerun == layer.forward:
            return Recompute(tuple(saved), value.saved_bytes + more, forward)
        again = rewrite.operators(value.rerun)
        rerun = graph_from(again, rewrite.outputs(value.rerun, again, later), rewrite.tensors)
        return Recompute(tuple(saved), value.saved_bytes + more, rerun)

    parameters = tuple(
        replace(p, elements=p.elements // (ep * etp), split=True, experts=mixture.experts // ep)
        if p.tensor in mixture.weights
        else p
        for p in layer.parameters
    )
    return replace(
        layer,
        forward=forward,
        backward=backward,
        parameters=parameters,
        none=recompute(layer.none),
        selective=recompute(layer.selective),
        full=recompute(layer.full),
    )


def expert_parallel(
    model: Model, ep: int, etp: int = 1, imbalance: float = 1.0, mixture_at: MixtureOf = mixture_of
) -> Model:
    """One rank of a model whose experts are sharded; refused where it has none. ``mixture_at``
    gives the mixture of each of its layers."""
    if not any(has_experts(layer) for layer in model.layers):
        raise InputError(
            "expert", f"{model.name} has no experts to distribute over {ep * etp} ranks", "use 1"
        )
    # At width t > 1 the model is folded: each rank of the tensor group routes its own part of the
    # sequence.
    tokens = model.microbatch * model.sequence // model.tensor
    layers = tuple(
        expert_split(layer, ep, etp, tokens=tokens, imbalance=imbalance, mixture_at=mixture_at)
        for layer in model.layers
    )
    approximations = model.approximations
    if imbalance > 1:
        uneven = (
            f"the most loaded expert-parallel rank gets {imbalance:g} times the mean of "
            "routed tokens"
        )
        approximations = (*(text for text in approximations if text != BALANCED), uneven)
    return replace(
        model, layers=layers, expert=ep, expert_tensor=etp, approximations=approximations
    )
