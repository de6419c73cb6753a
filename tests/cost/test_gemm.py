"""Products: the physics of the best mapping, the compiled kernels against the plain enumeration,
and odd cases."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost import gemm
from phaze.cost.gemm import best
from phaze.cost.mapping import NEVER, Product, TensorPart, product
from phaze.cost.products import map_product, parts_of, sweep_products
from phaze.errors import InputError
from phaze.hardware.chip_parts import LATENCY_CYCLES, SUSTAINED_SHARE

TPU = TensorPart(8, 128, 128, 2.0**18, 1024 * 1.05e9, 1.05e9, 2.0**27, 4096 * 1.05e9, 1.2e12)

sizes = st.one_of(st.integers(1, 600), st.sampled_from([1, 2, 7, 127, 128, 997, 4096, 12288]))
needs = st.sampled_from([NEVER, 1e4, 1e6, 3e7])
small_products = st.builds(
    lambda b, m, n, k, needed: replace(
        product(b, m, n, k), a_need_bytes=needed[0], b_need_bytes=needed[1], c_need_bytes=needed[2]
    ),
    st.sampled_from([1, 1, 3, 16]), sizes, sizes, sizes, st.tuples(needs, needs, needs),
)  # fmt: skip
sides = st.one_of(st.sampled_from([2, 16, 128, 256]), st.integers(1, 200))
plain_cores = st.builds(
    TensorPart,
    cores=st.one_of(st.sampled_from([1, 2, 8, 108, 4096]), st.integers(1, 500)),
    rows=sides,
    columns=sides,
    buffer_bytes=st.sampled_from([2.0**12, 2.0**16, 2.0**20]),
    buffer_bytes_per_s=st.sampled_from([1e10, 1e12]),
    clock_hz=st.sampled_from([7e8, 1.05e9]),
    global_bytes=st.sampled_from([512.0, 1e5, 2.0**21, 2.0**27]),
    global_bytes_per_s=st.sampled_from([1e11, 4.3e12]),
    hbm_bytes_per_s=st.sampled_from([1e11, 1.2e12]),
    block_cycles=st.sampled_from([0.0, 60.0]),
)
cluster_sides = st.one_of(st.sampled_from([2, 16, 64]), st.integers(1, 130))
clusters = st.builds(
    lambda fan_out, **fields: TensorPart(
        **fields,
        buffer_bytes_per_s=2.0 * fields["rows"] + 6.0 * fields["columns"],
        clock_hz=1.0,
        sustained_share=SUSTAINED_SHARE,
        latency_cycles=LATENCY_CYCLES,
        fan_out=fan_out,
        multicast=fan_out,
    ),
    cores=st.one_of(st.sampled_from([1, 2, 8, 108]), st.integers(1, 200)),
    arrays=st.sampled_from([1, 2, 3, 4, 6, 8]),
    rows=cluster_sides,
    columns=cluster_sides,
    buffer_bytes=st.sampled_from([2.0**12, 2.0**16, 2.0**19]),
    sum_bytes=st.sampled_from([64.0, 2.0**14, 2.0**17, 2.0**21]),
    port_bytes_per_s=st.sampled_from([8.0, 64.0, 500.0]),
    fan_out=st.sampled_from([1, 2, 16, 20]),
    global_bytes=st.sampled_from([512.0, 1e5, 2.0**22]),
    global_bytes_per_s=st.sampled_from([64.0, 5120.0]),
    hbm_bytes_per_s=st.sampled_from([20.0, 1500.0]),
)
parts = st.one_of(plain_cores, clusters)
GROWING = (
    "cores", "buffer_bytes", "buffer_bytes_per_s", "sum_bytes", "port_bytes_per_s", "clock_hz",
    "global_bytes",
    "global_bytes_per_s", "hbm_bytes_per_s",
)  # fmt: skip


def time_of(p: Product, part: TensorPart) -> float:
    return float(sweep_products([p], parts_of(part)).time_s[0, 0])


def assert_equal_to_the_definition(p: Product, part: TensorPart) -> None:
    swept = sweep_products([p], parts_of(part))
    if not any(True for _ in gemm.core_options(p, part)):
        assert np.isinf(swept.time_s[0, 0])
        return
    plain = best(p, part)
    assert map_product(p, part) == plain
    assert swept.time_s[0, 0] == plain.time_s
    assert swept.hbm_bytes[0, 0] == plain.hbm_bytes
    assert swept.global_bytes[0, 0] == plain.global_bytes
    assert swept.core_bytes[0, 0] == plain.core.core_bytes
    assert swept.port_bytes[0, 0] == plain.core.port_bytes


@settings(max_examples=30, deadline=None)
@given(small_products, parts)
def test_the_kernels_give_the_bits_of_the_definition(p: Product, part: TensorPart) -> None:
    assert_equal_to_the_definition(p, part)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(small_products, parts)
def test_the_kernels_give_the_bits_of_the_definition_on_many(p: Product, part: TensorPart) -> None:
    assert_equal_to_the_definition(p, part)


@settings(max_examples=150, deadline=None)
@given(small_products, parts)
def test_time_is_never_below_operations_over_peak_or_compulsory_bytes_over_bandwidth(
    p: Product, part: TensorPart
) -> None:
    time_s = time_of(p, part)
    peak_macs = part.macs * part.array_hz
    a, b, c = gemm.operand_bytes(p, part.global_bytes, True)
    assert time_s >= p.macs / peak_macs * (1 - 1e-12)
    assert time_s >= (a + b + c) / part.hbm_bytes_per_s * (1 - 1e-12)


@settings(max_examples=300, deadline=None)
@given(small_products, parts, st.sampled_from(GROWING), st.sampled_from([1.0001, 1.37, 2.0, 16.0]))
def test_more_of_anything_never_slows_the_best_mapping(
    p: Product, part: TensorPart, field: str, factor: float
) -> None:
    grown = getattr(part, field) * factor
    larger = replace(part, **{field: int(grown) + (factor < 1.1) if field == "cores" else grown})
    assert time_of(p, larger) <= time_of(p, part)


def test_doubling_each_field_of_a_part_changes_some_product() -> None:
    chip = replace(TPU, buffer_bytes=2.0**18, global_bytes=2.0**22, block_cycles=10.0)
    tried = [
        product(1, 4096, 4096, 4096),
        product(64, 512, 512, 64),
        product(1, 1, 8192, 8192),
        product(1, 64, 64, 2**20),
    ]
    slow: tuple[dict[str, Any], ...] = (
        {},
        {"buffer_bytes_per_s": 1e10},
        {"global_bytes_per_s": 2e11},
        {"hbm_bytes_per_s": 5e10},
        {"sum_bytes": 2.0**17, "port_bytes_per_s": 5e10, "latency_cycles": 1000.0},
        {"sum_bytes": 2.0**18, "fan_out": 2.0, "multicast": 2.0, "global_bytes_per_s": 2e11},
        {"fan_out": 4.0, "multicast": 1.0, "global_bytes_per_s": 2e11, "sustained_share": 0.5},
        {"latency_cycles": 1e5},
    )
    narrow = [replace(chip, **rates) for rates in slow]
    others = (
        "rows",
        "columns",
        "block_cycles",
        "arrays",
        "latency_cycles",
        "fan_out",
        "multicast",
        "sustained_share",
    )
    for field in (*GROWING, *others):
        doubled = [replace(part, **{field: getattr(part, field) * 2}) for part in narrow]
        changed = [
            time_of(p, a) != time_of(p, b)
            for p in tried
            for a, b in zip(narrow, doubled, strict=True)
        ]
        assert any(changed), field


def test_a_large_square_product_runs_near_peak_and_is_bound_by_the_arrays() -> None:
    found = map_product(product(1, 8192, 8192, 8192), TPU)
    peak = 8 * 128 * 128 * 1.05e9
    assert found.bound == "array"
    assert 8192.0**3 / peak / found.time_s > 0.98


def test_a_matrix_times_a_vector_is_bound_by_hbm() -> None:
    found = map_product(product(1, 1, 8192, 8192), TPU)
    assert found.bound == "hbm"
    assert found.time_s == pytest.approx(product(1, 1, 8192, 8192).b_bytes / 1.2e12, rel=1e-3)


def test_the_mapper_falls_with_the_number_of_cores() -> None:
    fast = replace(TPU, hbm_bytes_per_s=1e14, global_bytes_per_s=1e15)
    seconds = [
        time_of(product(1, 512, 4096, 1024), replace(fast, cores=cores)) for cores in (1, 8, 128)
    ]
    assert seconds[0] / seconds[1] == pytest.approx(8, rel=0.05)
    assert seconds[1] / seconds[2] > 10


def test_k_is_split_when_the_outputs_do_not_fill_the_cores() -> None:
    assert map_product(product(1, 128, 128, 2**20), TPU).core.ks > 1


def test_operands_left_in_the_global_buffer_save_their_hbm_trip() -> None:
    p = product(1, 1024, 1024, 1024)
    kept = replace(p, a_need_bytes=p.a_bytes)
    assert map_product(kept, TPU).hbm_bytes == p.b_bytes + p.c_bytes
    assert (
        map_product(kept, replace(TPU, global_bytes=p.a_bytes)).hbm_bytes
        >= p.a_bytes + p.b_bytes + p.c_bytes
    )


@pytest.mark.parametrize(
    "shape", [(1, 10**5, 10**5, 10**5), (10**15, 1, 1, 1), (1, 1, 1, 10**15), (7, 31, 99991, 2)]
)
def test_enormous_prime_and_one_wide_products_have_an_answer(
    shape: tuple[int, int, int, int],
) -> None:
    for part in (TPU, replace(TPU, cores=1), replace(TPU, rows=2, columns=3, cores=4096)):
        time_s = time_of(product(*shape), part)
        assert (
            product(*shape).macs / (part.cores * part.rows * part.columns * part.clock_hz)
            <= time_s
            < 1e9
        )


def test_an_empty_product_takes_no_time_and_a_sum_over_nothing_only_writes() -> None:
    assert time_of(product(0, 4, 4, 4), TPU) == time_of(product(1, 4, 0, 4), TPU) == 0
    assert time_of(product(1, 1024, 1024, 0), TPU) == pytest.approx(2 * 1024**2 / 1.2e12)


def test_a_core_buffer_too_small_for_any_tile_is_one_sentence() -> None:
    tiny = replace(TPU, buffer_bytes=100.0)
    assert np.isinf(time_of(product(1, 512, 512, 512), tiny))
    for solve in (best, map_product):
        with pytest.raises(
            InputError, match="hold no tile of a 128 x 128 array; give at least 1024 bytes"
        ):
            solve(product(1, 512, 512, 512), tiny)


def test_sizes_beyond_all_bounds_are_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"product\.m: -1 is out of range"):
        product(1, -1, 4, 4)
