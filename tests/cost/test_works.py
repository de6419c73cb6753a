"""Operators as the graph room writes them, turned into works."""

import pytest

from phaze.cost.work import works_of
from phaze.graph.ir import Access, Core, Operator, OperatorGraph, Tensor


def graph(*operators: Operator) -> OperatorGraph:
    touched = {a.tensor: a.bytes for op in operators for a in (*op.reads, *op.writes)}
    tensors = tuple(
        Tensor(number, size // 2, 2, "intermediate") for number, size in sorted(touched.items())
    )
    return OperatorGraph(tensors, operators, (), ())


def operator(kind: str, core: Core, reads: list[int], writes: list[int], **sizes: int) -> Operator:
    accesses = [Access(index, size) for index, size in enumerate((*reads, *writes))]
    return Operator(
        0,
        kind,
        core,
        tuple(sizes.items()),
        tuple(accesses[: len(reads)]),
        tuple(accesses[len(reads) :]),
    )


def test_a_bias_goes_with_the_results() -> None:
    m, n, k = 64, 128, 256
    op = operator(
        "product", "tensor", [2 * n, 2 * m * k, 2 * k * n], [2 * m * n], batch=1, m=m, n=n, k=k
    )
    (p,) = works_of(graph(op))[0].products
    assert (p.a_bytes, p.b_bytes, p.c_bytes) == (2 * m * k, 2 * k * n, 2 * m * n + 2 * n)


def test_operands_are_found_even_where_a_bias_is_larger() -> None:
    op = operator(
        "product",
        "tensor",
        [2 * 4096, 2 * 64, 2 * 64 * 4096],
        [2 * 4096],
        batch=1,
        m=1,
        n=4096,
        k=64,
    )
    (p,) = works_of(graph(op))[0].products
    assert (p.a_bytes, p.b_bytes, p.c_bytes) == (2 * 64, 2 * 64 * 4096, 2 * 2 * 4096)


def test_a_look_up_moves_whole_bursts_for_every_index() -> None:
    rows, width = 100, 24
    table, out = Access(0, 2 * rows * width), Access(2, 2 * rows * width)
    op = Operator(
        0,
        "embedding",
        "vector",
        (("elements", rows * width),),
        (table, Access(1, 8 * rows)),
        (out,),
    )
    tensors = (
        Tensor(0, 10**6, 2, "parameter"),
        Tensor(1, rows, 8, "input"),
        Tensor(2, rows * width, 2, "intermediate"),
    )
    work = works_of(OperatorGraph(tensors, (op,), (0, 1), (2,)))[0].vector
    assert work is not None
    assert work.reads[0].bytes == 64 * rows
    assert work.writes[0].bytes == 64 * rows


def test_a_tensor_times_itself_is_read_once() -> None:
    op = operator("product", "tensor", [2 * 64 * 64], [2 * 64 * 64], batch=1, m=64, n=64, k=64)
    (p,) = works_of(graph(op))[0].products
    assert (p.a_bytes, p.b_bytes) == (2 * 64 * 64, 0)


@pytest.mark.parametrize(("kind", "count"), [("attention", 2), ("attention_backward", 5)])
def test_fused_attention_keeps_its_scores_on_the_chip(kind: str, count: int) -> None:
    sizes = {"batch": 8, "queries": 512, "keys": 512, "width": 64, "value_width": 64}
    operand = 2 * 8 * 512 * 64
    work = works_of(graph(operator(kind, "both", [operand] * 3, [operand], **sizes)))[0]
    assert len(work.products) == count
    assert sum(p.a_bytes + p.b_bytes + p.c_bytes for p in work.products) == 4 * operand
    assert work.flops == 2 * 8 * 512 * 512 * 64 * count
    assert work.vector is not None
    assert work.vector.elements == 8 * 512 * 512
    assert work.vector.reads == work.vector.writes == ()


def test_a_fused_chain_sums_its_members() -> None:
    n = 1000
    scale = Operator(
        1, "multiply", "vector", (("elements", n),), (Access(0, 2 * n),), (Access(1, 2 * n),)
    )
    soft = Operator(
        2,
        "softmax",
        "vector",
        (("elements", n), ("rows", 10)),
        (Access(1, 2 * n),),
        (Access(2, 2 * n),),
    )
    op = Operator(
        0, "fused", "vector", (), (Access(0, 2 * n),), (Access(2, 2 * n),), "", (scale, soft)
    )
    work = works_of(graph(op))[0].vector
    assert work is not None
    assert (work.elements, work.rows, work.operations, work.passes) == (n, 10, 9.0, 2)
    assert sum(m.bytes for m in (*work.reads, *work.writes)) == 4 * n


def test_a_norm_in_pieces_goes_twice_over_a_row_and_a_bias_sum_once() -> None:
    n, rows = 4096, 16
    a = {i: Access(i, 2 * n) for i in (0, 1, 4)} | {i: Access(i, 2 * rows) for i in (2, 3)}
    square = Operator(1, "power", "vector", (("elements", n),), (a[0],), (a[1],))
    mean = Operator(2, "reduce", "vector", (("elements", n), ("rows", rows)), (a[1],), (a[2],))
    root = Operator(3, "root", "vector", (("elements", rows),), (a[2],), (a[3],))
    scale = Operator(4, "multiply", "vector", (("elements", n),), (a[0], a[3]), (a[4],))
    norm = Operator(0, "fused", "vector", (), (a[0],), (a[4],), "", (square, mean, root, scale))
    bias = Operator(0, "fused", "vector", (), (a[0],), (a[2], a[1]), "", (square, mean))
    passes = []
    for op in (norm, bias):
        work = works_of(graph(op))[0].vector
        assert work is not None
        passes.append(work.passes)
    assert passes == [2, 1]


def test_collectives_and_free_operators_keep_no_core() -> None:
    network = operator("all_reduce", "network", [64], [64], bytes=64, group=4)
    free = operator("free", "none", [], [])
    works = works_of(graph(network, free))
    assert works[0].collective is not None
    assert (works[0].collective.bytes, works[0].collective.group) == (64, 4)
    assert works[1].core == "none"
