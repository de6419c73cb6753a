r"""A block under tensor and expert parallelism, folded from two traces: the attention of one, the
experts of the other.

Under expert parallelism each of t tensor-parallel ranks routes its own T = b s / t tokens, and
experts are not cut by t. No trace has that: at width t the tokens are gathered before the router
and every expert is cut. But the router and the experts of the trace at *width 1* and s / t
positions are exactly those of such a rank. Both traces have the same operators there, in the same
order, but for the collectives around them:

    wide      attention at width t, sequence-parallel; gathers and scatters around the module that
              holds the experts
    narrow    width 1, s / t positions
    folded    wide, without these collectives, with the sizes of narrow in that module

:func:`phaze.graph.split_experts.expert_split` then shares the experts out.
"""

from dataclasses import dataclass, replace

from phaze.errors import InputError
from phaze.graph.ir import Access, Layer, Model, Operator, OperatorGraph, Recompute, Tensor
from phaze.graph.mixture import all_tensors, has_experts, mixture_of
from phaze.graph.store import graph_from


@dataclass(frozen=True, slots=True)
class _Part:
    """The operators of the module that holds the experts, by pass, and the collectives around
    them."""

    operators: tuple[tuple[Operator, ...], tuple[Operator, ...]]
    around: frozenset[int]

    @property
    def inside(self) -> frozenset[int]:
        return frozenset(op.id for ops in self.operators for op in ops)


def _holder(layer: Layer) -> str:
    """The path of the module that holds router and experts: the parent of the experts' weights."""
    mixture = mixture_of(layer)
    assert mixture is not None
    paths = {p.name.rpartition(".")[0] for p in layer.parameters if p.tensor in mixture.weights}
    return min(paths).rpartition(".")[0]


def _part(layer: Layer) -> _Part:
    holder, roles = _holder(layer), {n: t.role for n, t in all_tensors(layer).items()}
    written: set[int] = set()
    passes: list[tuple[Operator, ...]] = []
    for graph in (layer.forward, layer.backward):
        inside_pass: list[Operator] = []
        for op in graph.operators:
            if op.core == "network":
                continue
            within = op.module == holder or op.module.startswith(f"{holder}.")
            read = [a.tensor for a in op.reads if roles[a.tensor] != "parameter"]
            follows = not op.module and bool(read) and written.issuperset(read)
            if within or follows:
                inside_pass.append(op)
                written.update(a.tensor for a in op.writes)
        passes.append(tuple(inside_pass))
    inside = {op.id for ops in passes for op in ops}
    read_inside = {a.tensor for ops in passes for op in ops for a in op.reads}
    around = frozenset(
        op.id
        for graph in (layer.forward, layer.backward)
        for op in graph.operators
        if op.core == "network"
        and op.id not in inside
        and (written & {a.tensor for a in op.reads} or read_inside & {a.tensor for a in op.writes})
    )
    return _Part((passes[0], passes[1]), around)


class _Fold:
    def __init__(self, wide: Layer, narrow: Layer) -> None:
        self.wide, self.part = wide, _part(wide)
        self.tensors = dict(all_tensors(wide))
        self.alias: dict[int, int] = {}
        self.sized: dict[int, Operator] = {}
        other, narrow_tensors = _part(narrow), all_tensors(narrow)
        for graph in (wide.forward, wide.backward):
            for op in graph.operators:
                if op.id in self.part.around:
                    self.alias[op.writes[0].tensor] = self._named(op.reads[0].tensor)
        for wide_operators, others in zip(self.part.operators, other.operators, strict=True):
            if [op.kind for op in wide_operators] != [op.kind for op in others]:
                raise InputError(
                    wide.name,
                    "its experts run other operators at TP 1",
                    "use tensor 1 with expert parallelism",
                )
            for op, like in zip(wide_operators, others, strict=True):
                self.sized[op.id] = like
                self._resize(op, like, narrow_tensors)

    def _named(self, tensor: int) -> int:
        while tensor in self.alias:
            tensor = self.alias[tensor]
        return tensor

    def _resize(self, op: Operator, like: Operator, narrow_tensors: dict[int, Tensor]) -> None:
        for access, other in zip((*op.reads, *op.writes), (*like.reads, *like.writes), strict=True):
            number = self._named(access.tensor)
            self.tensors[number] = replace(
                self.tensors[number], elements=narrow_tensors[other.tensor].elements
            )

    def _accesses(
        self, accesses: tuple[Access, ...], like: tuple[Access, ...]
    ) -> tuple[Access, ...]:
        return tuple(
            Access(self._named(a.tensor), b.bytes) for a, b in zip(accesses, like, strict=True)
        )

    def operators(self, graph: OperatorGraph) -> list[Operator]:
        """The operators of a pass, those of the experts' module with the sizes of the narrow
        trace."""
        operators: list[Operator] = []
        for op in graph.operators:
            if op.id in self.part.around:
                continue
            like = self.sized.get(op.id)
            if like is None:
                # What reads nothing else stays the operator that it is, so that other ranks have it
                # in common.
                named = any(a.tensor in self.alias for a in op.reads)
                reads = (
                    tuple(Access(self._named(a.tensor), a.bytes) for a in op.reads)
                    if named
                    else op.reads
                )
                operators.append(replace(op, reads=reads) if named else op)
                continue
            reads, writes = (
                self._accesses(op.reads, like.reads),
                self._accesses(op.writes, like.writes),
            )
            operators.append(replace(op, sizes=like.sizes, reads=reads, writes=writes))
        return operators

    def numbers(self, tensors: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(self._named(number) for number in tensors))

    def recompute(self, value: Recompute, forward: OperatorGraph) -> Recompute:
        saved, old = self.numbers(value.saved), all_tensors(self.wide)
        more = sum(self.tensors[n].bytes for n in saved) - sum(old[n].bytes for n in value.saved)
        if value.rerun is self.wide.forward or value.rerun == self.wide.forward:
            return Recompute(saved, value.saved_bytes + more, forward)
        rerun = graph_from(
            self.operators(value.rerun), self.numbers(value.rerun.outputs), self.tensors
        )
        return Recompute(saved, value.saved_bytes + more, rerun)


def folded_layer(wide: Layer, narrow: Layer) -> Layer:
    """A block at width t whose router and experts are those of one rank's own tokens; without
    experts, ``wide``."""
    if not has_experts(wide):
        return wide
    fold = _Fold(wide, narrow)
    forward, backward = (
        graph_from(fold.operators(graph), fold.numbers(graph.outputs), fold.tensors)
        for graph in (wide.forward, wide.backward)
    )
    whole = {p.name: p for p in narrow.parameters}
    inside = {a.tensor for op in fold.sized.values() for a in op.reads}
    parameters = tuple(
        replace(p, elements=whole[p.name].elements, split=False)
        if whole[p.name].tensor in inside
        else p
        for p in wide.parameters
    )
    return replace(
        wide,
        forward=forward,
        backward=backward,
        parameters=parameters,
        none=fold.recompute(wide.none, forward),
        selective=fold.recompute(wide.selective, forward),
        full=fold.recompute(wide.full, forward),
    )


def require_own_tokens(sequence_parallel: bool) -> None:
    """Refuse experts that are sharded beside tensor parallelism where every rank holds all
    tokens."""
    if not sequence_parallel:
        raise InputError(
            "sequence_parallel",
            "each rank routes tokens of its own",
            "switch it on with expert > 1",
        )


def folded_model(wide: Model, narrow: Model) -> Model:
    """The model at width t whose experts are not cut; ``narrow`` is at width 1 and 1 / t of the
    positions."""
    if wide.tensor == 1:
        return wide
    require_own_tokens(wide.sequence_parallel)
    layers = tuple(folded_layer(*pair) for pair in zip(wide.layers, narrow.layers, strict=True))
    return replace(wide, layers=layers)
