"""Numbers that functions and options take: finite, and whole ones of 64 bits; others are one
sentence."""

from typing import Any

import pytest

from phaze.errors import InputError
from phaze.options.arguments import number, numbers, whole


@pytest.mark.parametrize(
    "value", ["nan", "inf", "-inf", "1e400", float("nan"), float("inf"), 10**400, True, "many"]
)
def test_a_number_is_finite(value: Any) -> None:
    with pytest.raises(InputError, match=r"--gap: .* is not a number; give one such as 0.5"):
        number("--gap", value)


def test_a_number_or_its_text_is_taken() -> None:
    assert (number("--gap", "1e-3"), number("--gap", 2), number("--gap", 0.5)) == (1e-3, 2, 0.5)


@pytest.mark.parametrize("value", [2**63, str(2**63), -(2**63), "9" * 5000])
def test_a_whole_number_has_64_bits(value: Any) -> None:
    with pytest.raises(
        InputError, match=r"--devices: .* is out of range; give a number below 9,223,372"
    ):
        whole("--devices", value)
    with pytest.raises(InputError, match=r"--tensor: .* is out of range"):
        numbers("--tensor", value)


def test_the_largest_whole_number_is_taken() -> None:
    assert whole("--devices", str(2**63 - 1)) == 2**63 - 1
    assert numbers("--tensor", str(2**63 - 1)) == (2**63 - 1,)
    assert whole("--devices", "-3") == -3
