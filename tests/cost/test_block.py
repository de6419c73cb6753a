"""The hand-written block against the traced one, once the families are there."""

import pytest

from phaze.cost.block import BlockSizes, backward_works, forward_works
from phaze.cost.layer import estimate_pass
from phaze.cost.work import works_of
from phaze.hardware.calibration import constants_of
from phaze.hardware.library import load_chip


def test_a_block_has_the_flops_of_its_products() -> None:
    z = BlockSizes(6144, 64, 2048, 4, 8)
    tokens, h, s = 2048 * 4, 6144, 2048
    forward = (24 * tokens * h * h + 4 * tokens * s * h) / 8
    assert sum(work.flops for work in forward_works(z)) == forward
    assert sum(work.flops for work in backward_works(z)) == 2 * forward


def test_the_traced_family_takes_the_same_time() -> None:
    zoo = pytest.importorskip("phaze.graph.zoo")
    from phaze.graph.fuse import fuse_graph

    sizes = {"hidden": 6144, "layers": 2, "heads": 64, "vocabulary": 51200, "sequence": 2048}
    model = zoo.load_family("gpt", sizes, tensor=8, microbatch=4)
    block = next(layer for i, layer in enumerate(model.layers) if model.count(i) > 1)
    chip = load_chip("a100-80gb")
    constants = constants_of(chip.calibration, "calibrated", "training")
    z = BlockSizes(6144, 64, 2048, 4, 8)
    pairs = ((block.forward, forward_works(z)), (block.backward, backward_works(z)[:-1]))
    for graph, works in pairs:
        traced = estimate_pass(works_of(fuse_graph(graph, "elementwise")), chip, constants, None)
        assert traced.time_s == pytest.approx(estimate_pass(works, chip, constants, None).time_s, rel=0.04)
