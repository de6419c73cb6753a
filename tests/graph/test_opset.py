"""The table of operators: every name has a kind, every kind a rule, and work follows from sizes."""

import pytest

from phaze.graph.ir import Access, Operator
from phaze.graph.opset import KINDS, NAMES, flops, kind_of, vector_operations


def test_every_name_has_a_known_kind() -> None:
    assert set(NAMES.values()) <= set(KINDS)


def test_a_name_is_found_with_and_without_its_overload() -> None:
    assert kind_of("aten.addmm.default") == kind_of("aten.addmm") == "product"
    assert kind_of("aten.sum.dim_IntList") == "reduce"
    assert kind_of("phaze.all_gather.default") == "all_gather"
    assert kind_of("aten.no_such_thing.default") is None


def sized(kind: str, **sizes: int) -> Operator:
    return Operator(
        0, kind, KINDS[kind].core, tuple(sizes.items()), (Access(0, 2),), (Access(1, 2),)
    )


def test_a_product_does_two_operations_for_each_multiplication() -> None:
    assert flops(sized("product", batch=2, m=3, n=5, k=7)) == 2 * 2 * 3 * 5 * 7


def test_backward_of_fused_attention_makes_the_scores_again() -> None:
    sizes = {"batch": 2, "queries": 16, "keys": 16, "width": 8, "value_width": 8}
    assert flops(sized("attention_backward", **sizes)) == pytest.approx(
        2.5 * flops(sized("attention", **sizes))
    )


def test_a_fused_operator_does_the_work_of_its_parts() -> None:
    parts = (sized("product", batch=1, m=4, n=4, k=4), sized("gelu", elements=16))
    fused = Operator(0, "fused", "both", (), (), (), parts=parts)
    assert flops(fused) == flops(parts[0])
    assert vector_operations(fused) == 16 * KINDS["gelu"].operations


def test_sizes_are_asked_for_by_name() -> None:
    assert sized("softmax", elements=64, rows=8).size("rows") == 8
    with pytest.raises(KeyError):
        sized("add", elements=4).size("rows")
