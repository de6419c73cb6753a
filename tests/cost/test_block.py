"""The block that layers are held against measurements with."""

from phaze.cost.accuracy import block_works


def test_a_block_has_the_flops_of_its_products() -> None:
    works = block_works(
        {"hidden": 6144, "heads": 64, "sequence": 2048, "microbatch": 4, "tensor": 8}
    )
    tokens, h, s = 2048 * 4, 6144, 2048
    forward = (24 * tokens * h * h + 4 * tokens * s * h) / 8
    assert [sum(work.flops for work in part) for part in works] == [forward, 2 * forward]


def test_a_split_block_reduces_twice_in_each_pass() -> None:
    for tensor, times in ((1, 0), (4, 2)):
        works = block_works(
            {"hidden": 1024, "heads": 16, "sequence": 512, "microbatch": 1, "tensor": tensor}
        )
        assert [sum(work.collective is not None for work in part) for part in works] == [
            times,
            times,
        ]
