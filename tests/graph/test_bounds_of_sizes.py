"""Sizes whose tensors no array of 64 bits can count are refused, whatever made them so large."""

import pytest

from phaze.errors import InputError
from phaze.graph.zoo import load_family


def test_a_tensor_beyond_64_bits_is_a_sentence() -> None:
    sizes = {"hidden": 1024, "layers": 4, "heads": 16, "vocabulary": 51200, "sequence": 2**31}
    with pytest.raises(InputError, match="gpt: at these sizes a tensor has more than"):
        load_family("gpt", sizes, microbatch=2)
    assert load_family("gpt", sizes | {"sequence": 2**12}, microbatch=2).microbatch == 2
