"""What of a pass may run beside a collective, and what a second forward pass needs: read off the graph, on no chip yet.

A product may run beside a collective c if it neither leads to c nor follows from it and reads what the last products
before c read: the weight gradient of the same map. Piece by piece, also the products that a scatter waits for or that
wait for a gather: while a piece is on its way, the product works on the next (:func:`companions`). Exchanges of experts
and of parts of a sequence stand apart (:mod:`phaze.evaluate.exchange_overlap`, rings of
:mod:`phaze.evaluate.schedule_operators`).
:mod:`phaze.evaluate.ruled_pass` makes schedules of that.
"""

from collections.abc import Sequence

from phaze.graph.ir import Layer, OperatorGraph
from phaze.graph.opset import KINDS


def closure(edges: Sequence[tuple[int, int]], start: set[int], forward: bool) -> set[int]:
    """Everything that can be reached from ``start`` along (or against) the edges."""
    steps: dict[int, list[int]] = {}
    for tail, head in edges:
        key, value = (tail, head) if forward else (head, tail)
        steps.setdefault(key, []).append(value)
    seen, open_ = set(start), list(start)
    while open_:
        for other in steps.get(open_.pop(), []):
            if other not in seen:
                seen.add(other)
                open_.append(other)
    return seen


def companions(graph: OperatorGraph, pieces: bool = False, weights: bool = True) -> dict[int, tuple[int, ...]]:
    """For the place of every collective, the places of the products that may run beside it.

    ``weights``: products of weight gradients; ``pieces``: also those after a gather and before a scatter.
    """
    edges = list(graph.edges())
    place = {operator.id: index for index, operator in enumerate(graph.operators)}
    products = [operator for operator in graph.operators if operator.core in ("tensor", "both")]
    matrix = {product.id for product in products}
    taken: set[int] = set()
    found: dict[int, tuple[int, ...]] = {}
    for operator in graph.operators:
        if operator.core != "network" or KINDS[operator.kind].rule == "exchange":
            continue
        before, after = (closure(edges, {operator.id}, forward) for forward in (False, True))
        last = closure([edge for edge in edges if edge[1] not in matrix], {operator.id}, False) & matrix
        near: set[int] = set()
        if pieces and operator.kind == "reduce_scatter":
            near = last
        elif pieces and operator.kind == "all_gather":
            near = closure([edge for edge in edges if edge[0] not in matrix], {operator.id}, True) & matrix
        inputs = {a.tensor for product in products if weights and product.id in last for a in product.reads}
        beside = [
            product.id
            for product in products
            if product.id not in taken
            and (
                product.id in near
                or (product.id not in before | after and inputs & {access.tensor for access in product.reads})
            )
        ]
        taken.update(beside)
        found[place[operator.id]] = tuple(place[id_] for id_ in beside)
    return found


def needed_again(layer: Layer) -> OperatorGraph:
    """The forward pass without operators that lead to nothing the backward pass reads."""
    read = {access.tensor for operator in layer.backward.operators for access in operator.reads}
    start = {op.id for op in layer.forward.operators if read & {access.tensor for access in op.writes}}
    kept = closure(list(layer.forward.edges()), start, False)
    operators = tuple(op for op in layer.forward.operators if op.id in kept)
    taken = {access.tensor for op in operators for access in op.reads}
    made = {access.tensor for op in operators for access in op.writes}
    touched = taken | made
    return OperatorGraph(
        tensors=tuple(tensor for tensor in layer.forward.tensors if tensor.id in touched),
        operators=operators,
        inputs=tuple(id_ for id_ in layer.forward.inputs if id_ in taken),
        outputs=tuple(sorted(made & read)),
    )
