"""Products on clusters: one front for all clocks, and measured chips."""

from dataclasses import fields
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.accuracy import measured_operators
from phaze.cost.estimate import estimate_product
from phaze.cost.gemm import best, splits
from phaze.cost.mapping import Product, TensorPart, product
from phaze.cost.products import front_of, map_product, parts_from, parts_of, sweep_products
from phaze.errors import InputError
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import at_held_clock
from phaze.hardware.library import load_chip
from phaze.validate.silicon import large_product_share, product_rate
from phaze.values import replace
from tests.hardware.chips import part_at, stated_chip

sizes = st.one_of(st.integers(1, 300), st.sampled_from([1, 7, 127, 128, 997, 4096]))
products = st.builds(product, st.sampled_from([1, 1, 3]), sizes, sizes, sizes)
names = st.sampled_from(["a100-80gb", "h100", "mi300x", "tpu-v4", "tpu-v5e"])


def cycles_of(p: Product, part: TensorPart) -> float:
    return float(sweep_products([p], parts_of(part)).time_s[0, 0])


@settings(max_examples=60, deadline=None)
@given(products, names, st.sampled_from([1.01, 1.5, 3.0]))
def test_a_faster_clock_never_slows_a_product(p: Product, name: str, factor: float) -> None:
    """HBM gives fewer bytes a cycle, never fewer a second."""
    slow, fast = (part_at(stated_chip(name), clock) for clock in (1e9, factor * 1e9))
    assert cycles_of(p, fast) / factor <= cycles_of(p, slow) * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(products, st.floats(5e8, 2e9), st.floats(5e8, 2e9))
def test_one_front_of_clusters_holds_for_every_clock(p: Product, slow: float, fast: float) -> None:
    chip = stated_chip("h100")
    (a, chosen), (b, again) = (front_of(p, part_at(chip, clock)) for clock in (slow, fast))
    assert (a == b).all()
    assert (chosen == again).all()


def test_arrays_work_together_in_every_way_or_each_alone() -> None:
    assert splits(1) == [(1, 1, 1)]
    assert splits(4) == [(1, 4, 1), (2, 2, 1), (4, 1, 1), (1, 1, 4)]


def test_many_parts_and_products_at_once_are_those_one_by_one() -> None:
    chips = [part_at(stated_chip(name), 1.2e9) for name in ("a100-80gb", "h100", "tpu-v4")]
    asked = [
        product(1, 512, 640, 768),
        product(4, 128, 128, 64),
        product(1, 512, 640, 768),
        product(0, 4, 4, 4),
    ]
    rows = np.array(
        [[getattr(part, field.name) for field in fields(part)] for part in chips], dtype=np.float64
    )
    both = sweep_products(asked, parts_from(rows)).time_s
    for i, p in enumerate(asked[:3]):
        for j, part in enumerate(chips):
            assert both[i, j] == map_product(p, part).time_s
    assert (both[3] == 0).all()


def test_a_sum_over_nothing_only_writes() -> None:
    part = part_at(stated_chip("h100"), 1e9)
    assert cycles_of(product(1, 64, 64, 0), part) == pytest.approx(
        2 * 64 * 64 / part.hbm_bytes_per_s
    )


def test_buffers_too_small_for_any_tile_are_one_sentence() -> None:
    tiny = replace(part_at(stated_chip("h100"), 1e9), buffer_bytes=16.0)
    for solve in (best, map_product):
        with pytest.raises(InputError, match="16 bytes hold no tile of 4 arrays of 16 x 32"):
            solve(product(1, 512, 512, 512), tiny)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("a100-80gb", 0.80, 0.85), ("h100", 0.78, 0.85), ("tpu-v4", 0.90, 1), ("tpu-v5e", 0.90, 1),
        ("tpu-v5p", 0.90, 1), ("tpu-v6e", 0.90, 1),
    ],
)  # fmt: skip
def test_a_large_product_holds_the_share_of_peak_that_was_measured(
    name: str, least: float, most: float
) -> None:
    assert least <= large_product_share(load_chip(name)) <= most


@pytest.mark.parametrize("name", ["h100", "mi300x", "mi325x", "mi355x"])
def test_predicted_rates_are_within_6_percent_of_the_measured_ones(name: str) -> None:
    chip = load_chip(name)
    said = chip.measured
    assert said.rate_shape is not None
    assert product_rate(chip, *said.rate_shape) == pytest.approx(said.rate_flops, rel=0.06)


def test_twenty_products_of_an_a100_are_within_2_3_percent_in_the_median() -> None:
    chip = load_chip("a100-80gb")
    rows = [row for row in measured_operators() if row.work.products]
    errors = [
        abs(estimate_product(row.work.products[0], chip).time_s / row.seconds - 1) for row in rows
    ]
    assert len(errors) == 20
    assert median(errors) <= 0.023
    assert max(errors) < 0.06


def without(chip: Chip, fan_out: int, port: float) -> Chip:
    shared = replace(chip.global_buffer, fan_out=fan_out)
    clusters = replace(chip.clusters, port_bytes_per_cycle=port)
    return at_held_clock(replace(chip, global_buffer=shared, clusters=clusters))


def test_h100_needs_its_fan_out_and_its_ports() -> None:
    chip = load_chip("h100")
    whole, alone, narrow = (
        product_rate(without(chip, fan_out, port), 8192, 8192, 8192)
        for fan_out, port in ((16, 64.0), (1, 64.0), (16, 32.0))
    )
    assert alone < 0.95 * whole
    assert narrow < 0.8 * whole
