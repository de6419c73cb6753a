"""From an operator of a graph to what its cost depends on: products, vector work, a collective.
Equal works cost once.

An operator runs its products one after the other on the tensor cores and its vector work beside
them:

    time = start-up + max(sum of product times, time of the vector work)

An epilogue's operands and results go to HBM with the product's, so they are the product's ``c``
bytes, and its elements cost lane operations alone. Fused attention: both products of the forward
pass, the five of the backward pass (scores again, then the gradients of values, scores, queries and
keys), over the keys that a query sees (:func:`phaze.graph.pairs.mean_keys`); scores never leave the
chip. Where the kernel was measured on the chip's family (:class:`AttentionWork`,
:class:`phaze.hardware.attention.AttentionRates`) its seconds are those instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

from phaze.cost.mapping import NEVER, Product
from phaze.cost.residency import Needs, needs_of
from phaze.cost.vector import PASSES, ROW_KINDS, Moved, VectorWork, whole_bursts
from phaze.graph.ir import Access, Core, Operator, OperatorGraph, Tensor
from phaze.graph.opset import KINDS
from phaze.graph.pairs import attention_pairs, mean_keys

# Bytes of an element of a tensor that is not in the graph.
UNKNOWN_BYTES = 2
# Rules of the kinds that run on tensor cores.
MATRIX = frozenset({"product", "convolution", "attention"})


@dataclass(frozen=True, slots=True)
class CollectiveWork:
    """A collective of ``bytes`` (of the whole tensor; of an exchange, this rank's part) over
    ``group`` ranks, every ``stride``-th; ``copies``: how many ranks get the same bytes."""

    kind: str
    bytes: int
    group: int
    stride: int = 1
    copies: int = 1


@dataclass(frozen=True, slots=True)
class AttentionWork:
    """A fused attention kernel: its pass, the width of its heads, FLOP of its pairs, and of one key
    for each query."""

    backward: bool
    width: int
    flops: float
    key_flops: float


@dataclass(frozen=True, slots=True)
class Work:
    """What an operator's cost depends on; ``core`` says which cores it keeps."""

    core: Core
    products: tuple[Product, ...] = ()
    vector: VectorWork | None = None
    collective: CollectiveWork | None = None
    attention: AttentionWork | None = None

    @property
    def flops(self) -> float:
        return 2.0 * sum(p.macs for p in self.products)


# Works by operator, kept with it, and by what must still be on the chip.
KnownOperators = dict[tuple[int, tuple[float, ...], tuple[float, ...]], tuple[Operator, Work]]


def works_of(
    graph: OperatorGraph, residency: bool = True, known: KnownOperators | None = None
) -> tuple[Work, ...]:
    """The work of every operator, in the order of the graph; ``known`` keeps those of operators
    that are in several graphs, whose tensors have elements of the same sizes."""
    tensors = {tensor.id: tensor for tensor in graph.tensors}
    found = []
    for op, needs in zip(graph.operators, needs_of(graph, residency), strict=True):
        if known is None:
            found.append(_work(op, needs, tensors))
            continue
        key = id(op), needs.reads, needs.writes
        if key not in known:
            known[key] = op, _work(op, needs, tensors)
        found.append(known[key][1])
    return tuple(found)


def _work(op: Operator, needs: Needs, tensors: dict[int, Tensor]) -> Work:
    if op.core == "network":
        return Work("network", collective=CollectiveWork(op.kind, *(size for _, size in op.sizes)))
    if op.core == "none":
        return Work("none")
    reads = tuple([Moved(a.bytes, n) for a, n in zip(op.reads, needs.reads, strict=True)])
    writes = tuple([Moved(a.bytes, n) for a, n in zip(op.writes, needs.writes, strict=True)])
    members = op.parts or (op,)
    matrix = [part for part in members if KINDS[part.kind].rule in MATRIX]
    if not matrix:
        rows = _looked_up(op, tensors)
        if rows:
            reads, writes = (
                tuple([Moved(whole_bursts(m.bytes, rows), m.need_bytes) for m in side])
                for side in (reads, writes)
            )
        return Work("vector", vector=_vector(members, reads, writes))
    products = _products(op, matrix, tensors, (reads, writes))
    lanes = [
        part
        for part in members
        if (rule := KINDS[part.kind].rule) not in MATRIX or rule == "attention"
    ]
    vector = _vector(lanes, (), ()) if lanes else None
    alone = matrix[0] if len(matrix) == 1 and KINDS[matrix[0].kind].rule == "attention" else None
    return Work(
        "both" if vector else "tensor",
        products,
        vector,
        attention=None if alone is None else _kernel(alone),
    )


def _kernel(part: Operator) -> AttentionWork:
    back, width, value_width = (
        part.kind == "attention_backward",
        part.size("width"),
        part.size("value_width"),
    )
    each = 2.0 * part.size("batch") * (3 * width + 2 * value_width if back else width + value_width)
    return AttentionWork(back, width, each * attention_pairs(part), each * part.size("queries"))


def _lane_elements(part: Operator) -> tuple[int, int]:
    if KINDS[part.kind].rule == "attention":
        rows = part.size("batch") * part.size("queries")
        return rows * mean_keys(part), rows
    elements = part.size("elements")
    if len(part.sizes) == 1 or part.kind in ROW_KINDS:
        return elements, 0
    return elements, dict(part.sizes).get("rows", 0)


def _vector(
    parts: Sequence[Operator], reads: tuple[Moved, ...], writes: tuple[Moved, ...]
) -> VectorWork:
    """Members together: lane operations add up, spread over the elements of the largest; the most
    passes count."""
    counted = [(*_lane_elements(part), KINDS[part.kind].operations) for part in parts]
    elements = max(n for n, _, _ in counted)
    operations = sum(n * o for n, _, o in counted) / elements if elements else 0.0
    rowed = [(n, r) for n, r, _ in counted if r]
    rows = max(rowed)[1] if rowed else 0
    passes = max(2 if _comes_back(parts) else 1, *(PASSES.get(part.kind, 1) for part in parts))
    return VectorWork(elements, rows, float(operations), passes, reads, writes)


def _comes_back(parts: Sequence[Operator]) -> bool:
    """Whether members apply to the elements of a row what others have summed over it, as a norm in
    pieces does."""
    summed: dict[int, int] = {}
    for part in parts:
        rows = [summed[a.tensor] for a in part.reads if a.tensor in summed]
        elements = _lane_elements(part)[0]
        if rows and elements > max(rows):
            return True
        if KINDS[part.kind].rule == "reduce":
            rows.append(part.size("rows"))
        if rows:
            summed.update({a.tensor: max(rows) for a in part.writes})
    return False


def _looked_up(op: Operator, tensors: dict[int, Tensor]) -> int:
    """Rows that a look-up touches, one for each index (64-bit operands are indices); 0 for all
    else."""
    if op.kind not in ROW_KINDS:
        return 0
    known = dict(op.sizes).get("rows", 0)
    return known or max(
        (tensors[a.tensor].elements for a in op.reads if tensors[a.tensor].element_bytes == 8),
        default=0,
    )


def _joined(moved: Sequence[Moved]) -> Moved:
    """Several operands as one: on the chip only when all are."""
    if not moved:
        return Moved(0.0)
    return Moved(sum(m.bytes for m in moved), max(m.need_bytes for m in moved))


def _products(
    op: Operator,
    matrix: list[Operator],
    tensors: dict[int, Tensor],
    moved: tuple[Sequence[Moved], Sequence[Moved]],
) -> tuple[Product, ...]:
    """The products of an operator; bytes that belong to none of its operands count as results of
    the first."""
    reads, writes = moved
    outer = dict(zip((a.tensor for a in op.reads), reads, strict=True))
    taken: set[int] = set()
    found: list[Product] = []
    for part in matrix:
        if KINDS[part.kind].rule == "attention":
            e = _element_bytes(part.reads, tensors)
            joined = _joined(list(outer.values()))
            taken.update(outer)
            found.extend(_attention(part, e, joined if not found else Moved(0.0)))
            continue
        operands = _operands(part, tensors)
        a, b = ([outer.get(x.tensor, Moved(0.0)) for x in operands] + [Moved(0.0)] * 2)[:2]
        taken.update(x.tensor for x in operands)
        found.append(_product(part, _element_bytes(operands, tensors), a, b))
    rest = _joined([*writes, *(m for tensor, m in outer.items() if tensor not in taken)])
    first = found[0]
    found[0] = _with_results(first, rest)
    return tuple(found)


def _operands(part: Operator, tensors: dict[int, Tensor]) -> tuple[Access, ...]:
    """A and B among the reads (a bias or offsets may be there too): the pair whose bytes are
    nearest to theirs."""
    if len(part.reads) <= 1:
        return part.reads

    sizes, count = dict(part.sizes), len(part.reads)
    rows, columns, depth = sizes["m"], sizes["n"], sizes["batch"] * sizes["k"]
    each = [tensors[a.tensor].element_bytes if a.tensor in tensors else 0 for a in part.reads]

    def distance(pair: tuple[int, int]) -> float:
        e = (max(each[pair[0]], each[pair[1]]) or UNKNOWN_BYTES) * depth
        return abs(part.reads[pair[0]].bytes - e * rows) + abs(
            part.reads[pair[1]].bytes - e * columns
        )

    one, other = min(permutations(range(count), 2), key=distance)
    return part.reads[one], part.reads[other]


def _element_bytes(accesses: Sequence[Access], tensors: dict[int, Tensor]) -> int:
    return max(
        (tensors[a.tensor].element_bytes for a in accesses if a.tensor in tensors),
        default=UNKNOWN_BYTES,
    )


def _product(part: Operator, element_bytes: int, a: Moved, b: Moved) -> Product:
    named = dict(part.sizes)
    sizes = (named["batch"], named["m"], named["n"], named["k"])
    bits, grouped = named.get("bits", 16), named.get("grouped", 0) > 0
    return Product(
        *sizes,
        element_bytes,
        a.bytes,
        b.bytes,
        0.0,
        a.need_bytes,
        b.need_bytes,
        NEVER,
        bits,
        grouped,
    )


def _with_results(p: Product, rest: Moved) -> Product:
    return replace(p, c_bytes=rest.bytes, c_need_bytes=rest.need_bytes)


def _attention(part: Operator, element_bytes: int, operands: Moved) -> list[Product]:
    b, q, k = part.size("batch"), part.size("queries"), mean_keys(part)
    w, v = part.size("width"), part.size("value_width")
    shapes = [(q, k, w), (q, v, k)]
    if part.kind == "attention_backward":
        shapes = [(q, k, w), (k, v, q), (q, k, v), (q, w, k), (k, w, q)]
    bits = dict(part.sizes).get("bits", 16)
    bare = [
        Product(b, m, n, depth, element_bytes, 0.0, 0.0, 0.0, bits=bits) for m, n, depth in shapes
    ]
    return [replace(bare[0], a_bytes=operands.bytes, a_need_bytes=operands.need_bytes), *bare[1:]]
