"""What recomputation drops and runs again: selectively attention scores and what depends on them
only, in full what leads to anything that the backward pass reads.

In the forward graph a *score path* runs from a product of two activations (query and key), through
vector operators among them a softmax, to another product of two activations (probabilities and
value).

    dropped = saved tensors written on a score path, the first product included, the last one not
    rerun   = the operators that lead from what is kept to what was dropped
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from phaze.graph.ir import Layer, Operator, OperatorGraph, Recompute


def _activations_only(operator: Operator, roles: Mapping[int, str]) -> bool:
    return operator.kind == "product" and all(
        roles[access.tensor] != "parameter" for access in operator.reads
    )


def score_path(forward: OperatorGraph) -> frozenset[int]:
    """Numbers of the operators on score paths, from the first product to just before the second."""
    roles = {tensor.id: tensor.role for tensor in forward.tensors}
    behind: dict[int, bool] = {}
    reached: dict[int, set[int]] = {}
    on_path: set[int] = set()
    for operator in forward.operators:
        paths: set[int] = set()
        normalized = False
        for access in operator.reads:
            paths |= reached.get(access.tensor, set())
            normalized |= behind.get(access.tensor, False)
        if operator.kind == "product":
            if _activations_only(operator, roles):
                if normalized:
                    on_path |= paths
                    continue
                paths, normalized = {operator.id}, False
            else:
                continue
        elif not paths or operator.core != "vector":
            continue
        else:
            paths = paths | {operator.id}
            normalized |= operator.kind == "softmax"
        for access in operator.writes:
            reached[access.tensor], behind[access.tensor] = paths, normalized
    return frozenset(on_path)


def empty_graph() -> OperatorGraph:
    return OperatorGraph((), (), (), ())


def part_of(
    graph: OperatorGraph, operators: Iterable[Operator], outputs: Iterable[int]
) -> OperatorGraph:
    """The graph of some operators of ``graph``, in its order."""
    chosen = tuple(operators)
    written = {access.tensor for op in chosen for access in op.writes}
    read = {access.tensor for op in chosen for access in op.reads}
    touched = written | read
    tensors = tuple([tensor for tensor in graph.tensors if tensor.id in touched])
    return OperatorGraph(
        tensors, chosen, tuple(sorted(read - written)), tuple(sorted(set(outputs) & written))
    )


def selective(
    forward: OperatorGraph, none: Recompute, bytes_kept: Callable[[Iterable[int]], int]
) -> Recompute:
    """``none`` without what score paths wrote; ``bytes_kept`` counts the storages of tensors, each
    once."""
    path = score_path(forward)
    written = {access.tensor for op in forward.operators if op.id in path for access in op.writes}
    dropped = {tensor for tensor in none.saved if tensor in written}
    wanted = set(dropped)
    rerun: list[Operator] = []
    for operator in reversed(forward.operators):
        if any(access.tensor in wanted for access in operator.writes) and operator.id in path:
            rerun.append(operator)
            wanted.update(access.tensor for access in operator.reads if access.tensor in written)
    saved = tuple(tensor for tensor in none.saved if tensor not in dropped)
    return Recompute(saved, bytes_kept(saved), part_of(forward, rerun[::-1], dropped))


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


def needed_again(layer: Layer) -> OperatorGraph:
    """The forward pass without operators that lead to nothing the backward pass reads."""
    read = {access.tensor for operator in layer.backward.operators for access in operator.reads}
    start = {
        op.id for op in layer.forward.operators if read & {access.tensor for access in op.writes}
    }
    needed = closure(list(layer.forward.edges()), start, False)
    operators = tuple(op for op in layer.forward.operators if op.id in needed)
    consumed = {access.tensor for op in operators for access in op.reads}
    written = {access.tensor for op in operators for access in op.writes}
    touched = consumed | written
    return OperatorGraph(
        tensors=tuple(tensor for tensor in layer.forward.tensors if tensor.id in touched),
        operators=operators,
        inputs=tuple(id_ for id_ in layer.forward.inputs if id_ in consumed),
        outputs=tuple(sorted(written & read)),
    )
