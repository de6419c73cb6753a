"""What of a pass may run beside a collective: read off the graph, on no chip yet.

A product may run beside a collective c if it neither leads to c nor follows from it and reads what
the last products before c read: the weight gradient of the same map. Piece by piece, also the
products that a scatter waits for or that wait for a gather: while a piece is on its way, the
product works on the next (:func:`companions`). Exchanges of experts and of parts of a sequence
stand apart (:mod:`phaze.evaluate.exchange_overlap`, rings of
:mod:`phaze.evaluate.schedule_operators`). :mod:`phaze.evaluate.lowered_pass` makes schedules of
that.
"""

from phaze.graph.ir import OperatorGraph
from phaze.graph.opset import KINDS
from phaze.graph.recompute import closure


def companions(
    graph: OperatorGraph, pieces: bool = False, weights: bool = True
) -> dict[int, tuple[int, ...]]:
    """For the place of every collective, the places of the products that may run beside it.

    ``weights``: products of weight gradients; ``pieces``: also those after a gather and before a
    scatter.
    """
    edges = list(graph.edges())
    place = {operator.id: index for index, operator in enumerate(graph.operators)}
    products = [operator for operator in graph.operators if operator.core in ("tensor", "both")]
    matrix = {product.id for product in products}
    used: set[int] = set()
    companions_of: dict[int, tuple[int, ...]] = {}
    for operator in graph.operators:
        if operator.core != "network" or KINDS[operator.kind].rule == "exchange":
            continue
        before, after = (closure(edges, {operator.id}, forward) for forward in (False, True))
        last = (
            closure([edge for edge in edges if edge[1] not in matrix], {operator.id}, False)
            & matrix
        )
        near: set[int] = set()
        if pieces and operator.kind == "reduce_scatter":
            near = last
        elif pieces and operator.kind == "all_gather":
            near = (
                closure([edge for edge in edges if edge[0] not in matrix], {operator.id}, True)
                & matrix
            )
        inputs = {
            a.tensor
            for product in products
            if weights and product.id in last
            for a in product.reads
        }
        beside = [
            product.id
            for product in products
            if product.id not in used
            and (
                product.id in near
                or (
                    product.id not in before | after
                    and inputs & {access.tensor for access in product.reads}
                )
            )
        ]
        used.update(beside)
        companions_of[place[operator.id]] = tuple(place[id_] for id_ in beside)
    return companions_of
