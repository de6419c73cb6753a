"""What the cost of an operator depends on: products, lanes, the bytes that it moves (docs/cost.md,
docs/graph.md).

The table of lane operations is the cost model's and no part of any run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from math import ceil
from types import MappingProxyType

from .kernels import Kernel, alone, kernel_of, pairs
from .reading import digest_of

NEVER = float("inf")
LANE_OPERATIONS = MappingProxyType({
    "fused": 0, "add": 1, "accumulate": 1, "multiply": 1, "divide": 4, "compare": 1, "select": 1,
    "cast": 1, "power": 2,
    "root": 4, "exp": 4, "log": 4, "tanh": 6, "sigmoid": 6, "trigonometric": 8, "relu": 1,
    "gelu": 10,
    "gelu_backward": 14, "silu": 7, "silu_backward": 10, "activation_backward": 4, "dropout": 6,
    "dropout_backward": 2,
    "random": 4, "reduce": 1, "scan": 2, "sort": 16, "softmax": 8, "softmax_backward": 4,
    "layer_norm": 7,
    "layer_norm_backward": 11, "batch_norm": 7, "batch_norm_backward": 11, "pool": 1,
    "embedding": 0,
    "embedding_backward": 1, "gather": 0, "scatter": 1, "copy": 0, "fill": 0, "attention": 8,
    "attention_backward": 10,
})  # fmt: skip
TWICE = frozenset(
    {
        "softmax",
        "softmax_backward",
        "layer_norm",
        "layer_norm_backward",
        "batch_norm",
        "batch_norm_backward",
        "sort",
    }
)
SUMMED = frozenset({"reduce", "scan", "sort", "pool"})
LOOKED_UP = frozenset({"embedding", "embedding_backward", "gather", "scatter"})
MATRIX = frozenset({"product", "convolution"})
ATTENTION = frozenset({"attention", "attention_backward"})
COLLECTIVES = MappingProxyType({"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0})
EXCHANGES = frozenset({"all_to_all", "ring", "context_gather", "context_scatter"})
BURST = 64
"""Bytes of the least transfer of HBM: docs/cost.md."""
COST_MODEL = digest_of(
    [
        dict(LANE_OPERATIONS),
        sorted(TWICE),
        sorted(SUMMED),
        sorted(LOOKED_UP),
        dict(COLLECTIVES),
        BURST,
        "phaze.cost/1",
    ]
)
"""The digest of the cost model's tables, which a certificate names: with other tables it is about
another model."""

Moved = tuple[float, float]
"""Bytes, and how many must fit in half of the global buffer for them to need no trip to HBM."""


@dataclass(frozen=True, slots=True)
class Product:
    """``batch`` products of m x k by k x n, ``e`` bytes an element, with the bytes of A, B and C;
    ``bits`` of an operand in a format of its own, ``grouped``: of many experts."""

    batch: int
    m: int
    n: int
    k: int
    e: int
    a: Moved = (0.0, NEVER)
    b: Moved = (0.0, NEVER)
    c: Moved = (0.0, NEVER)
    bits: int = 16
    grouped: bool = False

    def packed(self, rates: Mapping[int, float], grouped_share: float) -> "Product":
        """As arrays run it that make r multiply-accumulates in its format for one in 16 bits (of
        experts, of which a share is reached): k / r deep; wider operands are fewer values of as
        many bytes."""
        if self.grouped and grouped_share != 1.0:
            return replace(self, k=ceil(self.k / grouped_share), grouped=False).packed(rates, 1.0)
        rate = rates.get(self.bits, 1.0) if self.bits != 16 else 1.0
        if rate == 1.0:
            return self
        return replace(self, k=ceil(self.k / rate), e=max(1, round(self.e * min(1.0, rate))))

    @property
    def experts(self) -> int:
        """How many kernels it is where every expert has one of its own; 0 where it is of none."""
        return self.batch if self.grouped and self.m * self.n * self.k else 0

    def expert(self) -> "Product":
        """What one of its experts computes, of equal bytes each."""
        a, b, c = ((size * (1.0 / self.batch), need) for size, need in (self.a, self.b, self.c))
        return replace(self, batch=1, a=a, b=b, c=c)


@dataclass(frozen=True, slots=True)
class Lanes:
    """What is moved, and operations on each of ``elements``, in ``rows`` if any; ``twice``: a row
    that no core keeps is read again."""

    reads: tuple[Moved, ...]
    writes: tuple[Moved, ...]
    elements: int
    operations: float
    rows: int = 0
    twice: bool = False


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator costs: products beside lanes, or a collective: bytes, devices of its group,
    every how many-th device is one of them, copies of a byte; ``kernel``: a fused attention as
    kernels are measured."""

    core: str
    products: tuple[Product, ...] = ()
    lanes: Lanes | None = None
    collective: tuple[str, int, int, int, int] | None = None
    kernel: Kernel | None = None


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator as traced, or several fused ones with their members."""

    kind: str
    core: str
    sizes: Mapping[str, int]
    reads: tuple[tuple[int, int], ...]
    writes: tuple[tuple[int, int], ...]
    parts: tuple["Operator", ...] = ()

    def size(self, name: str) -> int:
        return self.sizes[name]


def needs_of(
    operators: Sequence[Operator], outputs: frozenset[int]
) -> list[tuple[list[float], list[float]]]:
    """For every access the bytes touched since the last one of its tensor, itself included."""
    last: dict[int, tuple[int, int]] = {}
    clock, reads, worst = 0, [], dict[int, float]()
    for op in operators:
        found = []
        for tensor, _ in op.reads:
            since = last.get(tensor)
            need = (
                NEVER
                if since is None
                else float(sum(size for when, size in last.values() if when >= since[0]))
            )
            found.append(need)
            worst[tensor] = max(worst.get(tensor, 0.0), need)
        reads.append(found)
        for tensor, size in (*op.reads, *op.writes):
            clock += 1
            last[tensor] = (clock, size)
    return [
        (found, [NEVER if t in outputs else worst.get(t, NEVER) for t, _ in op.writes])
        for op, found in zip(operators, reads, strict=True)
    ]


def _keys(part: Operator) -> int:
    """Keys that a query sees on the average, rounded up."""
    queries, keys = part.size("queries"), part.size("keys")
    if not queries:
        return keys
    seen = pairs(queries, keys, bool(part.sizes.get("causal", 0)), part.sizes.get("window", 0))
    return -(-seen // queries)


def _elements(part: Operator) -> tuple[int, int]:
    """Elements that lanes go through, and in how many rows."""
    if part.kind in ATTENTION:
        rows = part.size("batch") * part.size("queries")
        return rows * _keys(part), rows
    return part.size("elements"), 0 if part.kind in LOOKED_UP else part.sizes.get("rows", 0)


def _comes_back(parts: Sequence[Operator]) -> bool:
    """Whether a member applies to the elements of a row what another one has summed over it."""
    rows_of: dict[int, int] = {}
    for part in parts:
        sums = [rows_of[tensor] for tensor, _ in part.reads if tensor in rows_of]
        if sums and _elements(part)[0] > max(sums):
            return True
        if part.kind in SUMMED:
            sums.append(part.size("rows"))
        if sums:
            rows_of.update({tensor: max(sums) for tensor, _ in part.writes})
    return False


def _lanes(parts: Sequence[Operator], reads: Sequence[Moved], writes: Sequence[Moved]) -> Lanes:
    sizes = [_elements(part) for part in parts]
    largest = max(n for n, _ in sizes)
    total = sum(n * LANE_OPERATIONS[part.kind] for part, (n, _) in zip(parts, sizes, strict=True))
    rows = max(((n, r) for n, r in sizes if r), default=(0, 0))[1]
    twice = _comes_back(parts) or any(part.kind in TWICE for part in parts)
    each = total / largest if largest else 0.0
    return Lanes(tuple(reads), tuple(writes), largest, each, rows, twice)


def _together(moved: Sequence[Moved]) -> Moved:
    """Several operands as one, on the chip only when all are."""
    return (
        (sum(size for size, _ in moved), max(need for _, need in moved)) if moved else (0.0, NEVER)
    )


def _widest(accesses: Sequence[tuple[int, int]], width_of: Mapping[int, int]) -> int:
    return max((width_of[t] for t, _ in accesses if t in width_of), default=2)


def _operands(part: Operator, width_of: Mapping[int, int]) -> Sequence[tuple[int, int]]:
    """A and B among what a product reads: the ordered pair whose bytes are nearest to those of its
    sizes."""
    if len(part.reads) < 2:
        return part.reads

    def off(pair: tuple[tuple[int, int], ...]) -> float:
        each = _widest(pair, width_of) * part.size("batch") * part.size("k")
        return abs(pair[0][1] - each * part.size("m")) + abs(pair[1][1] - each * part.size("n"))

    return min(permutations(part.reads, 2), key=off)


def _attention(part: Operator, e: int, operands: Moved) -> list[Product]:
    """Scores and values forward; backward the scores again and the gradients of v, scores, q and
    k."""
    queries, keys, depth, values = (
        part.size("queries"),
        _keys(part),
        part.size("width"),
        part.size("value_width"),
    )

    def made(m: int, n: int, k: int) -> Product:
        return Product(part.size("batch"), m, n, k, e, bits=part.sizes.get("bits", 16))

    scores = replace(made(queries, keys, depth), a=operands)
    if part.kind == "attention":
        return [scores, made(queries, values, keys)]
    return [
        scores,
        made(keys, values, queries),
        made(queries, keys, values),
        made(queries, depth, keys),
        made(keys, depth, queries),
    ]


def _is_grouped(part: Operator, tensors: Mapping[int, tuple[int, int]]) -> bool:
    """Whether a product is of many experts: it reads the offsets of their rows, 32 bits each."""
    offsets = (
        tensors[t][1] == 4 and tensors[t][0] % part.size("batch") == 0 for t, _ in part.reads
    )
    return (
        part.kind == "product" and part.size("batch") > 1 and len(part.reads) > 2 and any(offsets)
    )


def _products(
    op: Operator,
    tensors: Mapping[int, tuple[int, int]],
    reads: Sequence[Moved],
    writes: Sequence[Moved],
) -> tuple[Product, ...]:
    """The products of an operator; what belongs to no operand of any counts as the result of the
    first."""
    width_of = {tensor: width for tensor, (_, width) in tensors.items()}
    outer = dict(zip((tensor for tensor, _ in op.reads), reads, strict=True))
    named: set[int] = set()
    found: list[Product] = []
    for part in op.parts or (op,):
        if part.kind in ATTENTION:
            named.update(outer)
            own = (0.0, NEVER) if found else _together(list(outer.values()))
            found += _attention(part, _widest(part.reads, width_of), own)
        elif part.kind in MATRIX:
            pair = _operands(part, width_of)
            named.update(tensor for tensor, _ in pair)
            a, b = ([outer.get(tensor, (0.0, NEVER)) for tensor, _ in pair] + [(0.0, NEVER)] * 2)[
                :2
            ]
            shape = [part.size(name) for name in ("batch", "m", "n", "k")]
            made = Product(shape[0], shape[1], shape[2], shape[3], _widest(pair, width_of), a, b)
            found.append(
                replace(made, bits=part.sizes.get("bits", 16), grouped=_is_grouped(part, tensors))
            )
    rest = _together([*writes, *(moved for tensor, moved in outer.items() if tensor not in named)])
    return (replace(found[0], c=rest), *found[1:])


def _bursts(moved: Moved, rows: int) -> Moved:
    """A look-up moves whole bursts for every row."""
    return (rows * BURST * float(ceil(moved[0] / rows / BURST)), moved[1]) if rows else moved


def _looked_up_rows(op: Operator, tensors: Mapping[int, tuple[int, int]]) -> int:
    """Rows that a look-up moves: its own, or as many as it has indices, of 64 bits each; 0 for any
    other operator."""
    if op.kind not in LOOKED_UP:
        return 0
    indices = [tensors[tensor][0] for tensor, _ in op.reads if tensors[tensor][1] == 8]
    return op.sizes.get("rows", 0) or max(indices, default=0)


def work_of(
    op: Operator, needs: tuple[list[float], list[float]], tensors: Mapping[int, tuple[int, int]]
) -> Work:
    """What an operator costs; ``needs``: of what it reads and writes the bytes that must fit for it
    to stay."""
    if op.core == "network":
        sizes = (
            op.size("bytes"),
            op.size("group"),
            op.sizes.get("stride", 1),
            op.sizes.get("copies", 1),
        )
        return Work("network", collective=(op.kind, *sizes))
    if op.core == "none":
        return Work("none")
    reads = [(float(size), need) for (_, size), need in zip(op.reads, needs[0], strict=True)]
    writes = [(float(size), need) for (_, size), need in zip(op.writes, needs[1], strict=True)]
    members = op.parts or (op,)
    kinds = [part.kind for part in members]
    if not any(kind in MATRIX or kind in ATTENTION for kind in kinds):
        rows = _looked_up_rows(op, tensors)
        reads = [_bursts(moved, rows) for moved in reads]
        writes = [_bursts(moved, rows) for moved in writes]
        return Work("vector", lanes=_lanes(members, reads, writes))
    products = _products(op, tensors, reads, writes)
    beside = [part for part in members if part.kind not in MATRIX]
    lanes = _lanes(beside, (), ()) if beside else None
    place = alone(kinds, MATRIX, ATTENTION)
    kernel = None if place is None else kernel_of(members[place].kind, members[place].sizes)
    return Work("both" if lanes else "tensor", products, lanes, kernel=kernel)
