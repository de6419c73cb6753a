"""Selective recomputation on graphs written by hand: what is dropped, and what is run again."""

from collections.abc import Iterable

from phaze.graph.ir import Access, Core, Operator, OperatorGraph, Recompute, Role, Tensor
from phaze.graph.recompute import empty_graph, score_path, selective

SIZE = 8


def operator(number: int, kind: str, reads: tuple[int, ...], writes: tuple[int, ...]) -> Operator:
    core: Core = "tensor" if kind == "product" else "vector"
    return Operator(
        number,
        kind,
        core,
        (),
        tuple(Access(t, SIZE) for t in reads),
        tuple(Access(t, SIZE) for t in writes),
    )


def graph(
    steps: list[tuple[str, tuple[int, ...], tuple[int, ...]]], weights: tuple[int, ...]
) -> OperatorGraph:
    operators = tuple(operator(i, *step) for i, step in enumerate(steps))
    written = {t for _, _, writes in steps for t in writes}
    numbers = sorted(written | {t for _, reads, _ in steps for t in reads})

    def role(number: int) -> Role:
        return (
            "intermediate" if number in written else "parameter" if number in weights else "input"
        )

    tensors = tuple(Tensor(n, 4, 2, role(n)) for n in numbers)
    return OperatorGraph(
        tensors, operators, tuple(sorted(set(numbers) - written)), (steps[-1][2][0],)
    )


# x(0), weights 1-4; q(10), k(11), v(12), scores(13), probabilities(14), dropped(15, mask 16),
# context(17), out(18)
ATTENTION = graph(
    [
        ("product", (0, 1), (10,)),
        ("product", (0, 2), (11,)),
        ("product", (0, 3), (12,)),
        ("product", (10, 11), (13,)),
        ("softmax", (13,), (14,)),
        ("dropout", (14,), (15, 16)),
        ("product", (15, 12), (17,)),
        ("product", (17, 4), (18,)),
    ],
    weights=(1, 2, 3, 4),
)
ROUTER = graph(
    [
        ("product", (0, 1), (10,)),
        ("softmax", (10,), (11,)),
        ("multiply", (11, 0), (12,)),
        ("product", (12, 2), (13,)),
    ],
    weights=(1, 2),
)


def kept(tensors: Iterable[int]) -> int:
    return SIZE * len(set(tensors))


def test_the_score_path_runs_from_query_times_key_to_probabilities() -> None:
    assert score_path(ATTENTION) == {3, 4, 5}


def test_a_router_s_softmax_is_no_score_path() -> None:
    assert score_path(ROUTER) == frozenset()


def test_selective_drops_scores_and_runs_them_again_from_query_and_key() -> None:
    none = Recompute((0, 10, 11, 12, 14, 15, 16, 17), 8 * SIZE, empty_graph())
    found = selective(ATTENTION, none, kept)
    assert found.saved == (0, 10, 11, 12, 17)
    assert found.saved_bytes == 5 * SIZE
    assert [op.kind for op in found.rerun.operators] == ["product", "softmax", "dropout"]
    assert found.rerun.inputs == (10, 11)
    assert found.rerun.outputs == (14, 15, 16)


def test_without_attention_selective_is_none() -> None:
    none = Recompute((0, 11, 12), 3 * SIZE, empty_graph())
    assert selective(ROUTER, none, kept) == Recompute(none.saved, none.saved_bytes, empty_graph())
