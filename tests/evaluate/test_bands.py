"""Bands: which kind an answer is of, what it falls back to, and the chance that a plan fits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.evaluate.bands import (
    BandKind,
    band_document,
    band_of,
    bits_of,
    bundled_bands,
    chip_kind,
    family_of,
    fits_probability,
    layout_of,
    memory_band_of,
    share_is_assumed,
    trait_of,
    wider_kinds,
)
from phaze.hardware.library import load_chip, load_stack

RATIOS = [0.9, 1.0, 1.1]


def test_a_kind_falls_back_to_wider_ones_and_at_last_to_its_chip() -> None:
    chain = list(wider_kinds(BandKind("measured", "context", "8", "mine")))
    assert chain == [
        BandKind("measured", "context", "8", "mine"),
        BandKind("measured", "context", "8"),
        BandKind("measured", "context"),
        BandKind("measured", bits="8"),
        BandKind("measured"),
    ]
    assert list(wider_kinds(BandKind("unmeasured"))) == [BandKind("unmeasured")]


def test_what_is_hard_to_price_is_kept_longer_than_the_layout() -> None:
    assert (trait_of(32768, 1), trait_of(16384, 64)) == ("long", "long")
    assert (trait_of(8192, 2), trait_of(8192, 3)) == ("few", None)
    chain = list(wider_kinds(BandKind("measured", "data", "4", "mine", "few")))
    assert chain[:4] == [
        BandKind("measured", "data", "4", "mine", "few"),
        BandKind("measured", "data", "4", None, "few"),
        BandKind("measured", None, "4", None, "few"),
        BandKind("measured", trait="few"),
    ]
    assert chain[4:] == list(wider_kinds(BandKind("measured", "data", "4", "mine")))


def test_an_assumed_share_is_none_that_was_measured() -> None:
    stack = load_stack("megatron-core")
    assert not share_is_assumed(stack, load_chip("gb200").generation)
    assert share_is_assumed(stack, load_chip("mi355x").generation)
    assert chip_kind("calibrated", assumed=True) == "unmeasured"


def test_experts_count_before_contexts_and_pipelines_before_tensors() -> None:
    assert layout_of(4096, 8, 4, 2, 8) == "experts"
    assert layout_of(4096, 8, 4, 2) == "context"
    assert layout_of(65536, 8, 4, 2) == "long context"
    assert layout_of(4096, 8, 4) == "pipeline"
    assert layout_of(1 << 20, 8, 1) == "tensor"
    assert layout_of(4096, 1, 1) == "data"


def test_releases_are_of_one_family_and_formats_without_runs_of_no_bits() -> None:
    assert [
        family_of(name) for name in ("megatron-core-24.07", "megatron-2021", "torchtitan-eager")
    ] == [
        "megatron-core",
        "megatron",
        "torchtitan-eager",
    ]
    assert [bits_of(name) for name in ("bf16", "fp8-block", "mxfp8", "nvfp4", "fp32")] == [
        "16",
        "8",
        "8",
        "4",
        None,
    ]


def test_the_band_of_a_stack_that_nobody_measured_is_that_of_its_layout() -> None:
    assert band_of(BandKind("measured", "data", "16", "my-own")) == band_of(
        BandKind("measured", "data", "16")
    )


def test_no_band_of_an_unmeasured_chip_is_narrower_than_that_of_a_measured_one() -> None:
    for entry in bundled_bands().time:
        of = (entry.layout, entry.bits, entry.stack, entry.trait)
        assert band_of(BandKind("unmeasured", *of)).band >= (
            band_of(BandKind("measured", *of)).band if entry.chip == "measured" else entry.band
        )


def test_ideal_times_have_no_band_and_others_say_what_theirs_rests_on() -> None:
    assert band_document("ideal", "ideal", "bf16") == {"band": 0.0}
    said = band_document("fitted", "megatron-core", "bf16", "data")
    assert said["band"] > 0.05
    assert said["band_of"]["kind"].startswith("chip measured, data")
    assert said["band_of"]["sources"] >= 2


@given(st.floats(1.0, 1e3), st.floats(0.01, 1e3), st.floats(0.0, 100.0))
def test_more_memory_never_lowers_the_chance_that_a_plan_fits(
    there: float, needed: float, more: float
) -> None:
    for ratios in (RATIOS, memory_band_of(None).ratios):
        first, second = (
            fits_probability(there, needed, ratios),
            fits_probability(there + more, needed, ratios),
        )
        assert 0.01 - 1e-9 <= first <= second <= 0.99 + 1e-9


def test_the_chance_at_a_quantile_is_the_quantile() -> None:
    assert fits_probability(1.0, 1.0, RATIOS) == pytest.approx(0.5)
    assert fits_probability(1.05, 1.0, RATIOS) == pytest.approx(0.625)
    assert fits_probability(0.5, 1.0, RATIOS) == pytest.approx(0.01)
    assert fits_probability(2.0, 1.0, RATIOS) == pytest.approx(0.99)
