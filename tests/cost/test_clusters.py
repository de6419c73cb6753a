"""Products on clusters: kernels against the definition, one front for all clocks, monotony, and measured chips."""

from dataclasses import replace
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.accuracy import measured_operators
from phaze.cost.clustered.gemm import best, best_by_front, cluster_options, splits
from phaze.cost.clustered.mapping import ClusterPart, cluster_part
from phaze.cost.clustered.products import front_on_clusters, map_on_clusters, part_rows, sweep_on_clusters
from phaze.cost.mapping import NEVER, Product, product
from phaze.cost.sustained import SustainedChip, sustain
from phaze.errors import InputError
from phaze.hardware.silicon.chip import Accelerator
from phaze.hardware.silicon.files import load_accelerator

sizes = st.one_of(st.integers(1, 300), st.sampled_from([1, 7, 127, 128, 997, 4096]))
needs = st.sampled_from([NEVER, 1e4, 1e6])
products = st.builds(
    lambda b, m, n, k, need: replace(product(b, m, n, k), a_need_bytes=need[0], b_need_bytes=need[1]),
    st.sampled_from([1, 1, 3]), sizes, sizes, sizes, st.tuples(needs, needs),
)  # fmt: skip
sides = st.one_of(st.sampled_from([2, 16, 64]), st.integers(1, 130))
parts = st.builds(
    ClusterPart,
    clusters=st.one_of(st.sampled_from([1, 2, 8, 108]), st.integers(1, 200)),
    arrays=st.sampled_from([1, 2, 3, 4, 6, 8]),
    rows=sides,
    columns=sides,
    operand_bytes=st.sampled_from([2.0**12, 2.0**16, 2.0**19]),
    sum_bytes=st.sampled_from([64.0, 2.0**14, 2.0**17, 2.0**21]),
    port=st.sampled_from([8.0, 64.0, 500.0]),
    fan_out=st.sampled_from([1, 2, 16, 20]),
    global_bytes=st.sampled_from([512.0, 1e5, 2.0**22]),
    width=st.sampled_from([64.0, 5120.0]),
    hbm_bytes_per_cycle=st.sampled_from([20.0, 1500.0]),
)
GROWING = ("clusters", "operand_bytes", "sum_bytes", "port", "global_bytes", "width", "hbm_bytes_per_cycle")


def cycles_of(p: Product, part: ClusterPart) -> float:
    return float(sweep_on_clusters([p], part_rows([part])).cycles[0, 0])


def assert_equal_to_the_definition(p: Product, part: ClusterPart) -> None:
    swept = sweep_on_clusters([p], part_rows([part]))
    if not any(True for _ in cluster_options(p, part)):
        assert np.isinf(swept.cycles[0, 0])
        return
    plain = best(p, part)
    assert map_on_clusters(p, part) == plain == best_by_front(p, part)
    assert swept.cycles[0, 0] == plain.cycles
    assert swept.hbm_bytes[0, 0] == plain.hbm_bytes
    assert swept.global_bytes[0, 0] == plain.global_bytes
    assert swept.edge_bytes[0, 0] == plain.core.edge_bytes
    assert swept.port_bytes[0, 0] == plain.core.port_bytes


@settings(max_examples=12, deadline=None)
@given(products, parts)
def test_the_kernels_give_the_bits_of_the_definition(p: Product, part: ClusterPart) -> None:
    assert_equal_to_the_definition(p, part)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(products, parts)
def test_the_kernels_give_the_bits_of_the_definition_on_many(p: Product, part: ClusterPart) -> None:
    assert_equal_to_the_definition(p, part)


@settings(max_examples=150, deadline=None)
@given(products, parts, st.sampled_from(GROWING), st.sampled_from([1.0001, 1.37, 2.0, 16.0]))
def test_more_clusters_buffers_ports_and_rates_never_slow_the_best_mapping(
    p: Product, part: ClusterPart, field: str, factor: float
) -> None:
    grown = getattr(part, field) * factor
    larger = replace(part, **{field: int(grown) + (factor < 1.1) if field == "clusters" else grown})
    assert cycles_of(p, larger) <= cycles_of(p, part)


@settings(max_examples=60, deadline=None)
@given(products, parts, st.sampled_from([1.01, 1.5, 3.0]))
def test_a_faster_clock_never_slows_a_product(p: Product, part: ClusterPart, factor: float) -> None:
    """HBM gives fewer bytes a cycle, never fewer a second."""
    faster = replace(part, hbm_bytes_per_cycle=part.hbm_bytes_per_cycle / factor)
    assert cycles_of(p, faster) / factor <= cycles_of(p, part) * (1 + 1e-12)


@settings(max_examples=40, deadline=None)
@given(products, st.floats(5e8, 2e9), st.floats(5e8, 2e9))
def test_one_front_of_clusters_holds_for_every_clock(p: Product, slow: float, fast: float) -> None:
    chip = load_accelerator("h100")
    (a, chosen), (b, again) = (front_on_clusters(p, cluster_part(chip, clock)) for clock in (slow, fast))
    assert (a == b).all()
    assert (chosen == again).all()


@settings(max_examples=60, deadline=None)
@given(products, parts)
def test_cycles_are_never_below_operations_over_units_or_bytes_over_hbm(p: Product, part: ClusterPart) -> None:
    found = sweep_on_clusters([p], part_rows([part]))
    assert found.cycles[0, 0] >= p.macs / part.macs
    assert found.cycles[0, 0] >= found.hbm_bytes[0, 0] / part.hbm_bytes_per_cycle * (1 - 1e-12)


def test_arrays_work_together_in_every_way_or_each_alone() -> None:
    assert splits(1) == [(1, 1, 1)]
    assert splits(4) == [(1, 4, 1), (2, 2, 1), (4, 1, 1), (1, 1, 4)]


def test_many_parts_and_products_at_once_are_those_one_by_one() -> None:
    chips = [cluster_part(load_accelerator(name), 1.2e9) for name in ("a100-80gb", "h100", "tpu-v4")]
    asked = [product(1, 512, 640, 768), product(4, 128, 128, 64), product(1, 512, 640, 768), product(0, 4, 4, 4)]
    both = sweep_on_clusters(asked, part_rows(chips))
    for i, p in enumerate(asked[:3]):
        for j, part in enumerate(chips):
            assert both.cycles[i, j] == map_on_clusters(p, part).cycles
    assert (both.cycles[3] == 0).all()


def test_a_sum_over_nothing_only_writes() -> None:
    part = cluster_part(load_accelerator("h100"), 1e9)
    assert cycles_of(product(1, 64, 64, 0), part) == pytest.approx(2 * 64 * 64 / part.hbm_bytes_per_cycle)


def test_buffers_too_small_for_any_tile_are_one_sentence() -> None:
    tiny = replace(cluster_part(load_accelerator("h100"), 1e9), operand_bytes=16.0)
    for solve in (best, best_by_front, map_on_clusters):
        with pytest.raises(InputError, match="16 bytes hold no tile of 4 arrays of 16 x 32"):
            solve(product(1, 512, 512, 512), tiny)


def held_share(chip: SustainedChip) -> float:
    return chip.rate_flops(8192, 8192, 8192) / chip.chip.peak_flops


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("a100-80gb", 0.80, 0.85), ("h100", 0.78, 0.85), ("tpu-v4", 0.90, 1), ("tpu-v5e", 0.90, 1),
        ("tpu-v5p", 0.90, 1), ("tpu-v6e", 0.90, 1),
    ],
)  # fmt: skip
def test_a_large_product_holds_the_share_of_peak_that_was_measured(name: str, least: float, most: float) -> None:
    assert least <= held_share(sustain(load_accelerator(name))) <= most


@pytest.mark.parametrize("name", ["h100", "mi300x", "mi325x", "mi355x"])
def test_predicted_rates_are_within_6_percent_of_the_measured_ones(name: str) -> None:
    chip = sustain(load_accelerator(name))
    said = chip.chip.measured
    assert said.rate_shape is not None
    assert chip.rate_flops(*said.rate_shape) == pytest.approx(said.rate_flops, rel=0.06)


def test_twenty_products_of_an_a100_are_within_2_3_percent_in_the_median() -> None:
    chip = sustain(load_accelerator("a100-80gb"))
    rows = [row for row in measured_operators() if row.work.products]
    errors = [abs(chip.time_s(row.work.products[0], chip.chip.measured.clock_hz) / row.seconds - 1) for row in rows]
    assert len(errors) == 20
    assert median(errors) <= 0.023
    assert max(errors) < 0.06


def without(chip: Accelerator, fan_out: int, port: float) -> Accelerator:
    shared = replace(chip.global_buffer, fan_out=fan_out)
    return replace(chip, global_buffer=shared, clusters=replace(chip.clusters, port_bytes_per_cycle=port))


def test_h100_needs_its_fan_out_and_its_ports() -> None:
    chip = load_accelerator("h100")
    whole, alone, narrow = (
        sustain(without(chip, fan_out, port)).rate_flops(8192, 8192, 8192)
        for fan_out, port in ((16, 64.0), (1, 64.0), (16, 32.0))
    )
    assert alone < 0.95 * whole
    assert narrow < 0.8 * whole
