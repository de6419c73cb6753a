"""Experts that have a kernel each: what their products take one after another, as the checker says
too."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.check.operators import Constants as CheckedConstants
from phaze.check.works import Product as CheckedProduct
from phaze.cost.chip_set import chip_set
from phaze.cost.mapping import Product
from phaze.cost.table import cost_works, expert_starts, products_run
from phaze.cost.work import Work
from phaze.hardware.calibration import DATASHEET, Constants
from phaze.hardware.library import load_chip
from phaze.values import replace

RATES = ((8, 2.0),)


def grouped(experts: int, m: int, n: int, k: int, bits: int = 16) -> Product:
    e = bits // 8
    moved = (1.0 * e * experts * m * k, 1.0 * e * experts * k * n, 2.0 * experts * m * n)
    return Product(experts, m, n, k, e, *moved, bits=bits, grouped=True)


def seconds(p: Product, constants: Constants, chip: str = "h100") -> float:
    works = [Work("tensor", (p,))]
    return float(cost_works(works, chip_set([load_chip(chip)]), constants).times_s()[0, 0])


def apart(start_s: float, share: float = 1.0) -> Constants:
    return replace(DATASHEET, rates=RATES, expert_start_s=start_s, grouped_share=share)


SIZES = st.integers(1, 4096)
PRODUCTS = st.builds(grouped, st.integers(1, 32), SIZES, SIZES, SIZES, st.sampled_from([8, 16]))


@settings(max_examples=60)
@given(PRODUCTS, st.floats(0, 1e-5), st.floats(0, 1e-5))
def test_a_kernel_for_each_expert_is_never_faster_than_one_nor_with_a_longer_start(
    p: Product, start_s: float, more_s: float
) -> None:
    together = seconds(p, replace(DATASHEET, rates=RATES))
    assert together <= seconds(p, apart(start_s)) * (1 + 1e-12)
    assert seconds(p, apart(start_s)) <= seconds(p, apart(start_s + more_s)) * (1 + 1e-12)


@settings(max_examples=40)
@given(PRODUCTS, st.integers(0, 2048), st.floats(0.3, 1.0), st.floats(0.3, 1.0))
def test_more_rows_a_lower_clock_or_less_bandwidth_never_help(
    p: Product, rows: int, clock: float, bandwidth: float
) -> None:
    base = apart(1e-6)
    more = grouped(p.batch, p.m + rows, p.n, p.k, p.bits)
    assert seconds(p, base) <= seconds(more, base) * (1 + 1e-12)
    rated = load_chip("h100").rated_hz
    slow, fast = (replace(base, clock_hz=rated * share) for share in (clock, 1.0))
    assert seconds(p, fast) <= seconds(p, slow) * (1 + 1e-12)
    narrow = replace(base, hbm_share=base.hbm_share * bandwidth)
    assert seconds(p, base) <= seconds(p, narrow) * (1 + 1e-12)


@pytest.mark.parametrize("start_s", [None, 0.0, 2e-6])
@pytest.mark.parametrize("bits", [8, 16])
def test_the_checker_runs_the_same_products_as_often(start_s: float | None, bits: int) -> None:
    p = grouped(6, 300, 768, 2048, bits)
    constants = replace(apart(0.0, 0.9), expert_start_s=start_s)
    ours = products_run(Work("tensor", (p,)), constants)
    checked = CheckedConstants(
        1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, rates=RATES, grouped=0.9, expert=start_s
    )
    a, b, c = ((size, np.inf) for size in (p.a_bytes, p.b_bytes, p.c_bytes))
    theirs = CheckedProduct(6, 300, 768, 2048, bits // 8, a, b, c, bits, True)
    times, one = checked.run(theirs)
    assert times == len(ours) == (6 if start_s is not None else 1)
    assert (one.batch, one.m, one.n, one.k, one.e) == (
        ours[0].batch, ours[0].m, ours[0].n, ours[0].k, ours[0].element_bytes
    )  # fmt: skip
    assert (one.a[0], one.b[0], one.c[0]) == (ours[0].a_bytes, ours[0].b_bytes, ours[0].c_bytes)
    assert checked.started(theirs) == expert_starts((p,)) * (start_s or 0.0)


def test_casts_of_few_bits_start_for_every_expert() -> None:
    wide, narrow = grouped(8, 64, 64, 64), grouped(8, 64, 64, 64, bits=8)
    assert (expert_starts((wide,)), expert_starts((narrow,))) == (8, 16)
    assert expert_starts((replace(wide, grouped=False),)) == 0
