"""The space of chips: the paper's counts, and every rule of it against plain loops."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze import documents
from phaze.errors import InputError
from phaze.hardware.library import load_chip
from phaze.hardware.technology import load_technology
from phaze.search.axes import RangeTable
from phaze.search.chips import enumerate_space
from phaze.search.space import Space
from phaze.search.spaces import space_in
from tests.hardware.chips import areas_in
from tests.search.made import core_space


def test_the_papers_space_has_the_papers_counts() -> None:
    chips = enumerate_space(core_space("paper"))
    assert (len(chips), chips.tensor_parts(), chips.vector_parts()) == (29_360, 4_186, 697)
    without_buffer = {
        "tensor": len(
            {*zip(chips.chips.clusters, chips.chips.rows, chips.chips.columns, strict=True)}
        ),
        "vector": len({*zip(chips.chips.vectors, chips.chips.lanes, strict=True)}),
    }
    assert without_buffer == {"tensor": 620, "vector": 101}


def test_the_papers_baseline_is_the_largest_chip() -> None:
    chips = enumerate_space(core_space("paper"))
    assert chips.area_mm2.max() == pytest.approx(278.82667631, abs=5e-9)
    largest = int(np.argmax(chips.area_mm2))
    assert chips.identity(largest)[:5] == (8, 128, 128, 2, 128)


def _small(**changes: Any) -> Space:
    raw: dict[str, Any] = {
        "schema": "phaze.space/1",
        "name": "small",
        "title": "a few chips",
        "base": "tpu-v4-paper",
        "axes": {
            "tensor_cores": [1, 4],
            "rows": [64, 128],
            "columns": [128],
            "vector_cores": [1, 2],
            "lanes": [64, 256],
            "global_buffer": ["2 MiB", "128 MiB"],
        },
        "core_buffers": {"least": "1 KiB", "bytes_per_unit": 16},
        "keep": {"area_of": "tpu-v4-paper"},
    }
    return space_in(raw | changes, "small")


def test_free_lanes_are_an_axis_of_their_own() -> None:
    chips = enumerate_space(_small())
    assert set(chips.chips.lanes.tolist()) == {64, 256}
    assert len(chips) == 2 * 2 * 1 * 2 * 2 * 2


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 9))
def test_a_range_by_step_is_pythons_range(start: int, more: int, step: int) -> None:
    table = documents.check(RangeTable, {"from": start, "to": start + more, "step": step}, "range")
    assert table.points() == list(range(start, start + more + 1, step))


@pytest.mark.parametrize(
    "raw",
    [
        {"from": 1, "to": 4},
        {"from": 1, "to": 4, "times": 2, "step": 1},
        {"from": 4, "to": 1, "step": 1},
    ],
)
def test_a_range_is_either_by_factor_or_by_step(raw: dict[str, int]) -> None:
    with pytest.raises(InputError, match=r"times or step|at least from|greater than 0"):
        documents.check(RangeTable, raw, "range")


@given(st.floats(0, 1), st.booleans())
@settings(max_examples=20)
def test_kept_chips_are_those_of_the_rule(share: float, single: bool) -> None:
    keep = {"area_of": "tpu-v4-paper", "least_share": share, "smaller_with_one_core": single}
    everything, kept = enumerate_space(_small()), enumerate_space(_small(keep=keep))
    budget = areas_in(load_technology("paper-22nm"), load_chip("tpu-v4-paper")).total
    columns = (everything.area_mm2, everything.chips.clusters, everything.chips.vectors)
    expected = [
        area
        for area, tensor, vector in zip(*columns, strict=True)
        if area >= share * budget or (single and 1 in (tensor, vector))
    ]
    assert kept.area_mm2.tolist() == expected


def test_an_empty_space_counts_nothing() -> None:
    huge = {
        "tensor_cores": [4096],
        "rows": [256],
        "columns": [256],
        "vector_cores": [1],
        "lanes": "columns",
    }
    chips = enumerate_space(_small(axes={**huge, "global_buffer": ["2 MiB"]}))
    assert (len(chips), chips.tensor_parts(), chips.vector_parts()) == (0, 0, 0)


def test_a_space_too_large_to_lay_out_is_refused() -> None:
    wide = {"from": 1, "to": 100_000, "step": 1}
    axes = {
        "tensor_cores": wide,
        "rows": wide,
        "columns": [1],
        "vector_cores": [1],
        "lanes": "columns",
    }
    with pytest.raises(InputError, match="combinations"):
        enumerate_space(_small(axes={**axes, "global_buffer": ["2 MiB"]}))


def test_a_base_without_technology_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="names no technology"):
        enumerate_space(_small(base="tpu-v5e"))


def test_the_papers_space_with_free_lanes_holds_it() -> None:
    tied, free = (enumerate_space(core_space(name)) for name in ("paper", "paper-free-lanes"))
    assert len(free) == 238_057
    square = free.chips.lanes == free.chips.columns
    assert int(square.sum()) == len(tied)
    assert (free.area_mm2[square] == tied.area_mm2).all()


ALL_AXES: dict[str, Any] = {
    "tensor_buffer": {"from": "64 KiB", "to": "256 KiB", "times": 4},
    "vector_buffer": ["1 KiB", "8 KiB"],
    "global_bandwidth": [2e12, 4e12],
    "hbm_bandwidth": {"from": "600 GB/s", "to": "1200 GB/s", "step": "600 GB/s"},
    "links": ["4 GiB/s", "100 GB/s"],
    "clock": {"from": 7e8, "to": 1.05e9, "step": 3.5e8},
}


@pytest.mark.parametrize("name", [*ALL_AXES, "all"])
def test_any_field_is_an_axis_and_a_chip_is_its_row(name: str) -> None:
    from dataclasses import fields

    from phaze.hardware.columns import columns_of

    axes = _small().axes.model_dump(by_alias=True, exclude_none=True)
    given_ones = ALL_AXES if name == "all" else {name: ALL_AXES[name]}
    space = _small(axes=axes | {"global_buffer": ["2 MiB"]} | given_ones)
    opened, technology = enumerate_space(space), load_technology("paper-22nm")
    assert len(space) == len(opened) == 2 ** len(given_ones) * len(enumerate_space(_small())) // 2
    assert len({opened.name(i) for i in range(len(opened))}) == len(opened)
    arrays = opened.chips
    for number in range(0, len(opened), 1 + len(opened) // 7):
        chip = opened.chip(number, 2**35)
        row = columns_of([chip])
        assert all(
            getattr(arrays, f.name)[number] == getattr(row, f.name)[0] for f in fields(arrays)
        )
        assert areas_in(technology, chip).total == pytest.approx(opened.area_mm2[number])
        assert chip.links.bandwidth_bytes_per_s == opened.chips.link_bytes_per_s[number]


def test_with_both_buffers_as_axes_no_rule_is_needed() -> None:
    axes = _small().axes.model_dump(by_alias=True, exclude_none=True)
    buffers = {"tensor_buffer": ["64 KiB", "256 KiB"], "vector_buffer": ["2 KiB"]}
    chips = enumerate_space(_small(axes=axes | buffers, core_buffers=None))
    assert set(chips.chips.operand_bytes.tolist()) == {2**16, 2**18}
    assert set(chips.chips.register_bytes.tolist()) == {2**11}


def test_vector_cores_may_be_tied_to_tensor_cores() -> None:
    axes = _small().axes.model_dump(by_alias=True, exclude_none=True)
    chips = enumerate_space(_small(axes=axes | {"vector_cores": "tensor_cores"}))
    assert len(chips) > 0 and (chips.chips.vectors == chips.chips.clusters).all()


def test_power_and_price_are_constraints_and_every_combination_is_counted() -> None:
    from phaze.hardware.clocked import full_rate_power
    from phaze.hardware.manufacturing import manufacturing_of
    from phaze.hardware.ownership import load_terms

    loose = _small(keep={"most_area": "1000 mm2"})
    opened = enumerate_space(loose)
    chips = [opened.chip(i, 2**30) for i in range(len(opened))]
    watts = [full_rate_power(chip).design_w for chip in chips]
    hbm_usd = 2**30 / 1e9 * load_terms().hbm_usd_per_gb
    usd = [
        cost.usd - hbm_usd
        for chip in chips
        if (cost := manufacturing_of(chip, load_terms())) is not None
    ]
    most_w, most_usd = float(np.median(watts)), float(np.quantile(usd, 0.7))
    tight = _small(keep={"most_area": "200 mm2", "most_power": most_w, "most_usd": most_usd})
    kept = enumerate_space(tight)
    expected = [
        area
        for area, w, price in zip(opened.area_mm2, watts, usd, strict=True)
        if area <= 200 and w <= most_w and price <= most_usd
    ]
    assert kept.area_mm2.tolist() == expected and 0 < len(expected) < len(chips)
    assert len(kept) + sum(kept.rules.values()) == len(tight)
    assert kept.rules["area"] and kept.rules["power"]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"keep": {}}, "either area_of or most_area"),
        ({"keep": {"area_of": "tpu-v4-paper", "most_area": 100}}, "either area_of or most_area"),
        ({"core_buffers": None}, "give core_buffers"),
    ],
)
def test_a_space_without_a_rule_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        _small(**changes)


def test_rates_are_axes_too_and_a_chip_is_its_row() -> None:
    from dataclasses import fields

    from phaze.hardware.clocked import full_rate_power
    from phaze.hardware.columns import columns_of

    axes = _small().axes.model_dump(by_alias=True, exclude_none=True)
    rates = {
        "hbm_bandwidth": ["600 GB/s", "1200 GB/s"],
        "clock": [7e8, 1.05e9],
        "global_bandwidth": [2e12, 4e12],
    }
    space = _small(axes=axes | rates)
    opened = enumerate_space(space)
    assert len(space) == len(opened) == 8 * len(enumerate_space(_small()))
    arrays, technology = opened.chips, load_technology("paper-22nm")
    watts = opened.design_w()
    assert len({opened.name(i) for i in range(len(opened))}) == len(opened)
    for number in range(0, len(opened), 17):
        chip = opened.chip(number, 2**35)
        row = columns_of([chip])
        assert all(
            getattr(arrays, f.name)[number] == getattr(row, f.name)[0] for f in fields(arrays)
        )
        assert areas_in(technology, chip).total == pytest.approx(opened.area_mm2[number])
        assert full_rate_power(chip).design_w == pytest.approx(watts[number])
