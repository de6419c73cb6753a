"""Every plan on real tensors: two ranks as two threads equal the unsharded model, and one
collective less does not."""

import pytest

pytest.importorskip("torch")

from phaze.graph.torch.program import TensorShape
from tests.graph.torch.ranks import double_precision, ranks, whole, worst
from tests.graph.torch.small import EVERY, OTHERS, small

REFUSED = {("deepseek_v2", True)}
CASES = [
    (name, spread)
    for name in (*EVERY, *OTHERS)
    for spread in (False, True)
    if (name, spread) not in REFUSED
]


@pytest.mark.parametrize(("name", "sequence_parallel"), CASES)
def test_two_ranks_train_like_the_whole_model_and_need_every_collective(
    name: str, sequence_parallel: bool
) -> None:
    source = small(name)
    shape = TensorShape(2, 10 if name == "vit-large" else 8)
    with double_precision():
        model, weights = whole(source, shape)
        parts = ranks(source, shape, weights, sequence_parallel)
        assert worst(model, parts, sequence_parallel) < 1e-5
        sums = parts[0].sums
        lost = [("sum", 1), ("sum", sums // 2), ("sum", sums - 1), ("all_gather", 0)]
        for collective in lost if sequence_parallel else lost[:3]:
            broken = ranks(source, shape, weights, sequence_parallel, collective)
            assert worst(model, broken, sequence_parallel) > 1e-3, collective
