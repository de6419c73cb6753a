"""The evaluator of documents' formulas reads them as people do."""

import pytest

from tests.formulas.stated import evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2R + C - 2", 2 * 3 + 5 - 2),
        ("4 (d - 1)/d w(X1) / B", 4 * (7 - 1) / 7 * 11 / 13),
        ("ceil(C/R) R x C", 2 * 3 * 5),
        ("(1 + C R / d)^-R", (1 + 5 * 3 / 7) ** -3),
        ("max(R, min(C, d)) - R", 5 - 3),
        ("core buffer bandwidth / 2", 8.5),
        ("R C <= 15", 1.0),
    ],
)
def test_formulas_are_read_as_people_write_them(text: str, value: float) -> None:
    names = {"R": 3.0, "C": 5.0, "d": 7.0, "w(X1)": 11.0, "B": 13.0, "core buffer bandwidth": 17.0}
    assert evaluate(text, names) == pytest.approx(value)


def test_an_unknown_name_is_no_zero() -> None:
    with pytest.raises(AssertionError, match="not read from 'Q'"):
        evaluate("2 Q", {})
    with pytest.raises(AssertionError, match="not read from"):
        evaluate("2 + 3 = 5", {})
