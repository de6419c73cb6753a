"""Quantities: what files may say and what people are shown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze import units


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("32 GiB", "B", 32 * 2**30),
        ("80GB", "B", 80e9),
        ("1200 GB/s", "B/s", 1.2e12),
        ("200 Gb/s", "B/s", 25e9),
        ("4.3008 TB/s", "B/s", 4.3008e12),
        ("1.05 GHz", "Hz", 1.05e9),
        ("2 us", "s", 2e-6),
        ("0.5 s", "s", 0.5),
        ("400 W", "W", 400.0),
        ("278.8 mm2", "mm2", 278.8),
        ("275 TFLOP/s", "FLOP/s", 2.75e14),
    ],
)
def test_a_quantity_reads_to_its_exact_value(text: str, unit: units.Unit, value: float) -> None:
    assert units.parse(text, unit) == value


@pytest.mark.parametrize("text", ["", "32", "32 Gib", "GiB", "1 2 GiB", "1e999999 GiB", "nan B", "inf B", "32 GiB/s"])
def test_a_wrong_quantity_says_what_would_be_right(text: str) -> None:
    with pytest.raises(ValueError, match="give"):
        units.parse(text, "B")


@given(st.floats(1e-9, 1e18), st.sampled_from(["B", "B/s", "Hz", "s", "W", "J", "FLOP/s"]))
def test_what_is_shown_reads_back_to_four_digits(value: float, unit: units.Unit) -> None:
    assert units.parse(units.show(value, unit), unit) == pytest.approx(value, rel=6e-4)


@given(st.text(max_size=30))
def test_any_text_is_a_quantity_or_a_value_error(text: str) -> None:
    for unit in ("B", "B/s", "Hz", "s"):
        try:
            units.parse(text, unit)
        except ValueError:
            continue
