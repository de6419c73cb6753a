"""Sizes as sums of monomials: text and back, exact fits, held-out points, and what cannot be
fitted."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.graph.fit import FitError, fit
from phaze.graph.sizes import Expression, Term, constant, one_sum, parse, text
from phaze.graph.template import Symbolic, filled, group_alike, leaves, symbolic, template

POINTS = tuple(
    {"b": b, "s": s}
    for b, s in ((2, 16), (4, 16), (2, 32), (4, 32), (6, 48), (2, 48), (64, 64), (3, 80), (5, 24))
)
SHAPES = ((), (("b", 1),), (("s", 1),), (("b", 1), ("s", 1)), (("b", 1), ("s", 2)), (("s", 2),))

terms = st.builds(
    Term,
    st.fractions(min_value=1, max_value=99, max_denominator=8),
    st.sampled_from((*SHAPES, (("s", -1), ("t", -2)), (("a", 3),))),
)
sums = st.lists(terms, max_size=4, unique_by=lambda term: term.exponents).map(one_sum)


@given(sums, sums)
@settings(max_examples=80, deadline=None)
def test_an_expression_is_the_same_after_text_and_back(left: Expression, right: Expression) -> None:
    for expression in (left, Expression((*left.sums, *right.sums))):
        assert parse(text(expression)) == expression


def test_text_reads_like_the_formula() -> None:
    found = parse("5*a*b*s^2*t^-1 + 34*b*h*s + 8*b*s")
    assert (
        found.at({"a": 16, "b": 1, "s": 512, "t": 1, "h": 1024})
        == 34 * 512 * 1024 + 5 * 16 * 512**2 + 8 * 512
    )
    assert text(constant(0)) == "0"
    assert parse("0").at({}) == 0
    for wrong in ("", "x^", "2**b", "b + ", "B", "1.5", "b*-"):
        with pytest.raises(ValueError, match="not a product"):
            parse(wrong)


def test_a_share_that_is_not_whole_is_rounded_up() -> None:
    assert parse("1/4*b*s").at({"b": 1, "s": 10}) == 3
    assert parse("s*t^-1").at({"s": 7, "t": 2}) == 4


@given(st.lists(st.integers(0, 99), min_size=6, max_size=6))
@settings(max_examples=60, deadline=None)
def test_every_sum_of_known_monomials_is_found_exactly(weights: list[int]) -> None:
    wanted = one_sum(Term(Fraction(w), shape) for w, shape in zip(weights, SHAPES, strict=True))
    singles = [one_sum([Term(Fraction(3), shape)]) for shape in SHAPES]
    rows = [tuple(e.at(p) for p in POINTS) for e in (wanted, *singles)]
    found = fit(POINTS, rows, ("b", "s"))
    assert found[rows[0]] == wanted
    assert found[rows[0]].at({"b": 7, "s": 99}) == wanted.at({"b": 7, "s": 99})


def test_a_total_of_known_parts_needs_few_points() -> None:
    parts = [tuple(p["b"] * p["s"] ** 2 for p in POINTS[:5]), tuple(3 * p["s"] for p in POINTS[:5])]
    other = [
        tuple(p["b"] ** i * p["s"] ** j for p in POINTS[:5]) for i in range(3) for j in range(3)
    ]
    total = tuple(7 * a + 2 * b for a, b in zip(*parts, strict=True))
    found = fit(POINTS[:5], [*parts, *other, total], ("b", "s"), {total: parts})
    assert text(found[total]) == "7*b*s^2 + 6*s"


def test_two_of_many_shapes_need_few_points() -> None:
    shapes = [
        tuple(p["b"] ** i * p["s"] ** j for p in POINTS[:5]) for i in range(3) for j in range(3)
    ]
    total = tuple(2048 * p["b"] * p["s"] + 32 * p["s"] ** 2 for p in POINTS[:5])
    assert text(fit(POINTS[:5], [*shapes, total], ("b", "s"))[total]) == "2048*b*s + 32*s^2"


def test_negative_exponents_are_found() -> None:
    points = [{"s": 8, "t": 2}, {"s": 16, "t": 2}, {"s": 8, "t": 4}, {"s": 24, "t": 8}]
    row = tuple(6 * p["s"] ** 2 // p["t"] for p in points)
    assert text(fit(points, [row], ("s", "t"))[row]) == "6*s^2*t^-1"


def test_a_table_is_read_once_or_row_by_row() -> None:
    rows = [tuple(p["b"] * p["s"] * 4 for p in POINTS), (800,) * len(POINTS)]
    least = tuple(map(min, *rows))
    found = fit(POINTS, [*rows, least], ("b", "s"))[least]
    assert text(found) in ("4*b*s | 800", "800 | 4*b*s")
    assert [found.at(p) for p in POINTS] == list(least)


def test_what_is_no_sum_of_monomials_is_refused() -> None:
    with pytest.raises(FitError, match=r"no sum of monomials takes the values"):
        fit(POINTS, [tuple(2 ** p["b"] for p in POINTS)], ("b", "s"))
    with pytest.raises(FitError, match="no sum of monomials"):
        fit(POINTS, [tuple(p["s"] // 7 for p in POINTS)], ("b", "s"))


def test_points_that_do_not_tell_apart_are_refused() -> None:
    points = [{"b": 1, "s": 2}, {"b": 2, "s": 2}, {"b": 1, "s": 4}, *[{"b": 2, "s": 4}] * 4]
    rows = [tuple(p["b"] * p["s"] for p in points), tuple(p["b"] + p["s"] for p in points)]
    singles = [tuple(p[n] ** e for p in points) for n in ("b", "s") for e in (1, 2)]
    with pytest.raises(FitError, match="no sum of monomials"):
        fit(points, [*singles, *rows], ("b", "s"))


def document(b: int, s: int, t: int) -> dict[str, Any]:
    return {
        "ops": [
            [0, "product", {"m": b * s, "n": 64 // t}],
            [1, "gelu", {"elements": b * s * 64 // t}],
        ],
        "ok": True,
    }


def test_alike_documents_share_one_structure() -> None:
    groups: dict[int, Symbolic] = {}
    for t in (1, 2):
        found = [document(p["b"], p["s"], t) for p in POINTS]
        groups[t] = symbolic(POINTS, found, ("b", "s"))
    assert group_alike(groups) == [[1, 2]]
    shared = template([groups[1], groups[2]])
    assert shared.structure == {
        "ops": [[0, "product", {"m": -1, "n": -2}], [1, "gelu", {"elements": -3}]],
        "ok": True,
    }
    assert [text(e) for e in shared.rows[1]] == ["b*s", "32", "32*b*s"]
    point = {"b": 9, "s": 10}
    assert filled(shared.structure, [e.at(point) for e in shared.rows[0]]) == document(9, 10, 1)
    assert groups[2].at(point) == document(9, 10, 2)
    assert list(leaves(document(1, 2, 1))) == [0, 2, 64, 1, 128]


def test_documents_that_differ_in_more_than_numbers_are_refused() -> None:
    other = document(2, 16, 1)
    other["ops"][0][1] = "copy"
    with pytest.raises(FitError, match="more than numbers"):
        symbolic(POINTS[:2], [document(2, 16, 1), other], ("b", "s"))
    with pytest.raises(FitError, match="more than numbers"):
        symbolic(POINTS[:2], [document(2, 16, 1), {**document(2, 16, 1), "ok": 1}], ("b", "s"))


def test_a_number_below_zero_is_no_literal() -> None:
    found = template([symbolic([{"s": 1}, {"s": 2}], [[-1, 5], [-1, 5]], ("s",))])
    assert found.structure == [-1, 5]
    assert [text(e) for e in found.rows[0]] == ["-1"]
