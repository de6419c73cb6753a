"""The rules of fusion: each a function from a graph to a graph with fewer operators.

    chains        element-wise a, b with b the only reader of a; a fill, scattered into  -> one
                  vector operator
    clusters      vector a, b with b reading a, nothing between them (reductions too)    -> one
                  vector operator
    siblings      vector a, b that share at least half of what one of them reads         -> one
                  vector operator
    epilogues     a product and an element-wise reader of its result, of the same size   -> one
                  operator of both cores
    bias_sums     a product and a sum over one of its operands (the bias' gradient)      -> one
                  operator of both cores

Every merge is tested: two operators become one only if no third lies between them on a path.
"""

from collections.abc import Callable, Iterator

from phaze.graph import opset
from phaze.graph.fuse.contract import contract, leaves, produced
from phaze.graph.fuse.partition import FusionPartition, bits
from phaze.graph.ir import Operator, OperatorGraph

ALONE = frozenset({"sort", "scan", "scatter", "embedding_backward", "pool", "accumulate"})
"""Vector kinds that are kernels of their own: their writes go where their data say, they pass over
it in order, or (sums of gradients that several layers send) each runs when its gradient arrives."""
APART = ("apart", 1)
"""What marks an operator that a stack runs as a kernel of its own."""
POINTWISE = frozenset({"copy", "fill"})


def is_elementwise(operator: Operator) -> bool:
    """Each element of the result depends on the same element of the operands: maps, casts,
    copies."""
    return all(opset.KINDS[p.kind].rule == "map" or p.kind in POINTWISE for p in leaves(operator))


def is_vector(operator: Operator) -> bool:
    """Runs on vector cores and may share a loop with others: element-wise, reductions,
    normalisations, look-ups."""
    return operator.core == "vector" and all(
        part.kind not in ALONE and APART not in part.sizes for part in leaves(operator)
    )


def is_product(operator: Operator) -> bool:
    return any(part.kind == "product" for part in leaves(operator))


class _Groups:
    """A partition with what the rules ask about its groups."""

    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.partition = FusionPartition.of(graph)

    def operators(self, group: int) -> Iterator[Operator]:
        return (self.graph.operators[place] for place in self.partition.members[group])

    def all(self, group: int, test: Callable[[Operator], bool]) -> bool:
        return all(test(op) for op in self.operators(group))

    def reads(self, group: int) -> dict[int, int]:
        """Bytes that a group takes from outside, by tensor."""
        inner = {access.tensor for op in self.operators(group) for access in op.writes}
        entering: dict[int, int] = {}
        for op in self.operators(group):
            for access in op.reads:
                if access.tensor not in inner:
                    entering[access.tensor] = max(entering.get(access.tensor, 0), access.bytes)
        return entering


def _made_inside(fill: Operator, scatter: Operator) -> bool:
    """Whether ``scatter`` may make what ``fill`` does: its values, or the place it writes to, if it
    writes all of it (else the clearing of the rest would be left out)."""
    if fill.kind != "fill" or scatter.kind != "scatter":
        return False
    filled = {access.tensor: access.bytes for access in fill.writes}
    if not scatter.reads or scatter.reads[0].tensor not in filled:
        return True
    return sum(access.bytes for access in scatter.writes) >= sum(filled.values())


def chains(graph: OperatorGraph) -> OperatorGraph:
    """Element-wise operators with one reader each become one with it; a scatter clears the place it
    writes to."""
    partition = FusionPartition.of(graph)
    usable = {
        place for place, op in enumerate(graph.operators) if is_vector(op) and is_elementwise(op)
    }
    for place in reversed(range(len(graph.operators))):
        group = partition.group[place]
        readers = partition.after[group]
        if place in usable and readers and not readers & (readers - 1):
            reader = readers.bit_length() - 1
            inside = _made_inside(graph.operators[place], graph.operators[reader])
            if (reader in usable or inside) and partition.mergeable(group, reader):
                partition.merge(group, reader)
                if inside:
                    usable.discard(place)
    return contract(graph, partition)


def clusters(graph: OperatorGraph) -> OperatorGraph:
    """Vector operators become one with the vector operators that read them, wherever nothing lies
    between."""
    partition = FusionPartition.of(graph)
    usable = sum(1 << place for place, op in enumerate(graph.operators) if is_vector(op))
    open_groups = partition.groups()
    while open_groups:
        group = open_groups.pop()
        if group not in partition.members or not usable >> group & 1:
            continue
        for reader in bits(partition.after[group] & usable):
            if partition.mergeable(group, reader):
                open_groups.append(partition.merge(group, reader))
                break
    return contract(graph, partition)


def siblings(graph: OperatorGraph) -> OperatorGraph:
    """Vector operators that read mostly the same become one."""
    groups = _Groups(graph)
    partition = groups.partition
    usable = [place for place, op in enumerate(graph.operators) if is_vector(op)]
    for i, first in enumerate(usable):
        for second in usable[i + 1 :]:
            a, b = partition.group[first], partition.group[second]
            if not partition.mergeable(a, b):
                continue
            left, right = groups.reads(a), groups.reads(b)
            shared = sum(min(left[tensor], right[tensor]) for tensor in left.keys() & right.keys())
            if 2 * shared >= min(sum(left.values()), sum(right.values())) > 0:
                partition.merge(a, b)
    return contract(graph, partition)


def epilogues(graph: OperatorGraph) -> OperatorGraph:
    """A product takes in the element-wise operator that reads its result; of two products the later
    one does."""
    partition = FusionPartition.of(graph)
    for place, op in enumerate(graph.operators):
        if not (is_vector(op) and is_elementwise(op)):
            continue
        for source in sorted(bits(partition.before[partition.group[place]]), reverse=True):
            product = graph.operators[source]
            if (
                product.kind != "product"
                or len(partition.members[source]) > 1
                or produced(product) != produced(op)
            ):
                continue
            if partition.mergeable(source, partition.group[place]):
                partition.merge(source, partition.group[place])
                break
    return contract(graph, partition)


def bias_sums(graph: OperatorGraph) -> OperatorGraph:
    """A product takes in the sum over the rows of a matrix that it reads."""
    partition = FusionPartition.of(graph)
    readers: dict[int, list[int]] = {}
    for place, op in enumerate(graph.operators):
        if is_product(op):
            for access in op.reads:
                readers.setdefault(access.tensor, []).append(place)
    for place, op in enumerate(graph.operators):
        if (
            op.core != "vector"
            or len(op.reads) != 1
            or any(part.kind != "reduce" for part in leaves(op))
        ):
            continue
        for source in reversed(readers.get(op.reads[0].tensor, [])):
            a, b = partition.group[source], partition.group[place]
            if partition.mergeable(a, b):
                partition.merge(a, b)
                break
    return contract(graph, partition)
