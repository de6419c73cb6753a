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


@pytest.mark.parametrize(
    "text", ["", "32", "32 Gib", "GiB", "1 2 GiB", "1e999999 GiB", "nan B", "inf B", "32 GiB/s"]
)
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


@pytest.mark.parametrize(
    ("text", "sequence", "sequences"),
    [
        ("1024", 4096, 1024),
        ("4M-tokens", 4096, 1024),
        ("4M tokens", 2048, 2048),
        ("4Mi-tokens", 4096, 1024),
        ("6M-tokens", 4096, 1536),
        ("5000-tokens", 4096, 1),
    ],
)
def test_a_batch_in_tokens_is_a_round_number_of_sequences(
    text: str, sequence: int, sequences: int
) -> None:
    assert units.sequences_in(units.parse_batch(text), sequence) == sequences


@given(st.integers(1, 10**9), st.integers(1, 10**6))
def test_rounding_a_batch_changes_it_by_at_most_a_twentieth_or_half_a_sequence(
    tokens: int, sequence: int
) -> None:
    if tokens < sequence:
        with pytest.raises(ValueError, match="less than one sequence"):
            units.sequences_in(units.TokenBatch(tokens), sequence)
        return
    found = units.sequences_in(units.TokenBatch(tokens), sequence)
    assert abs(found - tokens / sequence) <= max(0.5, 0.05 * tokens / sequence) * (1 + 1e-9)


def test_lengths_count_in_1024_and_tokens_in_1000() -> None:
    assert units.parse_length("32k") == 32768 and units.parse_length("4096") == 4096
    assert units.parse_tokens("15T") == 15 * 10**12 and units.parse_tokens("2e12") == 2 * 10**12
    assert units.parse_tokens("1Mi") == 2**20 and units.parse_batch(
        "4M-tokens"
    ) == units.TokenBatch(4 * 10**6)
    for text in ("", "4M", "-4", "4.5", "4 apples", "1e999-tokens"):
        with pytest.raises(ValueError, match="give"):
            units.parse_batch(text)
