"""Area and energy tables: the paper's figures exactly, ours from the published rows they claim, and
monotone."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze import documents
from phaze.errors import InputError
from phaze.hardware.area import areas_of
from phaze.hardware.bundled import preset_names
from phaze.hardware.clocked import full_rate_power
from phaze.hardware.columns import columns_of
from phaze.hardware.dies import compare_areas, compare_powers
from phaze.hardware.library import load_chip
from phaze.hardware.technology import load_technology
from phaze.hardware.technology_tables import Curve, EnergyCurve
from phaze.values import replace
from tests.hardware.chips import areas_in

PRESETS = Path(__file__).parents[2] / "src" / "phaze" / "hardware" / "presets"
MIB, GB = 2**20, 1e9

# Published rows that n7 and n5 are fitted on. Die photos: PrincetonUniversity/LLMCompass ae/figure6
# die_area.csv.
GA100 = {
    "cores": 476.25,
    "network": 76.44,
    "l2": 119.31,
    "memory": 58.0 + 31.77,
    "links": 20.95,
    "other": 40.0,
}
GA100_DIE_MM2, GA100_TRANSISTORS, GH100_DIE_MM2, GH100_TRANSISTORS = 826.0, 54.2e9, 814.0, 80e9
FP64_TRANSISTORS = 685_300  # LLMCompass cost_model.py; FP32 is (23/52)^2 of it
NVLINK3_PHY_MM2, NVLINK4_PHY_MM2 = 1.888, 0.965  # LLMCompass cost_model.py
TPU_V4I_DIE_MM2, CMEM_SHARE, MXU_SHARE = 400.0, 0.28, 0.11  # transcription of Jouppi, ISCA 2021
TPU_V4_IDLE_W, TPU_V4_DIE_MM2 = 90.0, 600.0  # transcription of Jouppi, ISCA 2023


def test_the_papers_baseline_has_the_papers_area() -> None:
    chip = load_chip("tpu-v4-paper")
    assert areas_in(load_technology("paper-22nm"), chip).total == pytest.approx(
        278.82667631, abs=5e-9
    )


def test_the_papers_area_is_cores_buffers_and_global_buffer_alone() -> None:
    areas = areas_in(load_technology("paper-22nm"), load_chip("tpu-v4-paper")).by_component()
    assert areas["tensor_arrays"] == pytest.approx(8 * 128 * 128 * 760.041386e-6, rel=1e-12)
    assert areas["core_buffers"] == pytest.approx(8 * 0.446565 + 2 * 0.00824843, rel=1e-12)
    assert areas["global_buffer"] == 175.423
    assert (
        areas["network"] == areas["hbm_interface"] == areas["link_interface"] == areas["other"] == 0
    )


def test_n7_densities_follow_from_the_published_rows() -> None:
    area = load_technology("n7").area
    assert area.mac_mm2 == pytest.approx(MXU_SHARE * TPU_V4I_DIE_MM2 / (4 * 128 * 128), rel=1e-4)
    density = GA100_TRANSISTORS / GA100_DIE_MM2
    assert area.lane_mm2 == pytest.approx(FP64_TRANSISTORS * (23 / 52) ** 2 / density, rel=1e-4)
    assert float(area.scratchpad.at(128 * MIB)) == pytest.approx(
        CMEM_SHARE * TPU_V4I_DIE_MM2, rel=1e-9
    )
    assert float(area.cache.at(48 * MIB)) == pytest.approx(GA100["l2"], rel=1e-9)
    assert area.network_mm2_per_byte_per_cycle == pytest.approx(GA100["network"] / 5120, rel=1e-4)
    assert area.hbm_mm2_per_byte_per_s == pytest.approx(
        GA100["memory"] / (2039 * GB * 6 / 5), rel=1e-4
    )
    assert area.link_mm2_per_byte_per_s == pytest.approx(GA100["links"] / (300 * GB), rel=1e-4)
    assert area.other_share == pytest.approx(
        GA100["other"] / (sum(GA100.values()) - GA100["other"]), rel=1e-4
    )
    sm = GA100["cores"] / 128
    known = 1024 * area.mac_mm2 + 64 * area.lane_mm2
    buffers = 4 * float(area.core_buffer.at(48 * 1024)) + float(area.core_buffer.at(256 * 1024))
    assert area.control_cluster_mm2 == pytest.approx(sm - known - buffers, rel=1e-4)


def test_n5_is_n7_scaled_by_transistor_density_and_link_phy() -> None:
    seven, five = load_technology("n7").area, load_technology("n5").area
    on_die = (GA100_TRANSISTORS / GA100_DIE_MM2) / (GH100_TRANSISTORS / GH100_DIE_MM2)
    interface = NVLINK4_PHY_MM2 / NVLINK3_PHY_MM2
    for name in ("mac_mm2", "lane_mm2", "control_cluster_mm2", "network_mm2_per_byte_per_cycle"):
        assert getattr(five, name) / getattr(seven, name) == pytest.approx(on_die, rel=2e-4)
    for name in ("scratchpad", "cache", "core_buffer"):
        assert float(getattr(five, name).at(MIB) / getattr(seven, name).at(MIB)) == pytest.approx(
            on_die, rel=2e-4
        )
    for name in ("hbm_mm2_per_byte_per_s", "link_mm2_per_byte_per_s"):
        assert getattr(five, name) / getattr(seven, name) == pytest.approx(interface, rel=2e-4)


def test_static_power_follows_from_an_idle_chip() -> None:
    assert load_technology("n7").energy.static_w_per_mm2 == pytest.approx(
        TPU_V4_IDLE_W / TPU_V4_DIE_MM2
    )


def test_n7_buffer_energy_meets_the_three_published_sizes() -> None:
    energy = load_technology("n7").energy.buffer
    # 64-bit accesses at 7 nm, recalled from Jouppi, ISCA 2021, Table 2
    for kib, picojoule in ((8, 7.5), (32, 8.5), (1024, 14.0)):
        assert float(energy.at(kib * 1024)) * 8 == pytest.approx(picojoule * 1e-12, rel=0.06)


def test_predicted_dies_are_within_a_quarter_and_bounds_are_respected() -> None:
    rows = {row.subject: row for row in compare_areas() if row.component == "total"}
    assert abs(rows["ga100"].error) < 0.01
    for die in ("aldebaran", "gh100", "mi250x"):
        assert rows[die].basis == "predicted"
        assert abs(rows[die].error) < 0.25
    bounds = [row for row in compare_areas() if row.upper_bound]
    assert {row.subject for row in bounds} == {"tpu-v4", "tpu-v4i"}
    assert all(row.predicted <= row.published * (1 + 1e-9) for row in bounds)


def test_every_component_of_a_die_photo_is_compared() -> None:
    shown = {(row.subject, row.component) for row in compare_areas()}
    for die in ("ga100", "aldebaran"):
        for part in (
            "cores",
            "network",
            "global_buffer",
            "hbm_interface",
            "link_interface",
            "other",
            "total",
        ):
            assert (die, part) in shown


def test_only_the_a100_is_fitted_for_power() -> None:
    rows = compare_powers()
    assert [row.subject for row in rows if row.basis == "fitted"] == ["a100-80gb"]
    assert abs(next(row.error for row in rows if row.basis == "fitted")) < 0.01
    assert len(rows) >= 8


def test_every_number_of_a_technology_and_of_ownership_has_a_source() -> None:
    for kind in ("technologies", "ownership"):
        for path in sorted((PRESETS / kind).glob("*.toml")):
            raw = documents.parse(path.read_text(), "toml", path.name)
            numbers = set(_numbers(raw, "")) - {"schema"}
            missing = {
                n
                for n in numbers
                if not any(n == s or n.startswith(s + ".") for s in raw["sources"])
            }
            assert not missing, f"{path.name}: {missing}"


def _numbers(table: dict[str, object], prefix: str) -> list[str]:
    found: list[str] = []
    for key, value in table.items():
        if key in ("sources", "name", "title", "notes", "sizes"):
            continue
        path = f"{prefix}{key}"
        found += _numbers(value, path + ".") if isinstance(value, dict) else [path]
    return found


def test_a_curve_must_rise() -> None:
    with pytest.raises(InputError, match="in rising order"):
        documents.check(Curve, {"sizes": [1, 2], "values": [3.0, 2.0]}, "curve")


sizes = st.floats(1, 2**40)


@given(sizes, sizes, st.sampled_from(["n7", "n5", "paper-22nm"]))
def test_a_larger_memory_never_takes_less_area_or_energy(
    one: float, other: float, name: str
) -> None:
    small, large = sorted((one, other))
    technology = load_technology(name)
    area, energy = technology.area, technology.energy
    for curve in (area.core_buffer, area.scratchpad, area.cache, energy.buffer):
        assert float(curve.at(small)) <= float(curve.at(large)) * (1 + 1e-12)


FIELDS = ("built", "rows", "vectors_built", "lanes", "global_built_bytes", "hbm_built_bytes_per_s")


@given(st.sampled_from(["n7", "n5", "paper-22nm"]), st.sampled_from(FIELDS), st.floats(1, 64))
def test_more_of_any_part_never_shrinks_a_chip(name: str, field: str, factor: float) -> None:
    technology, chips = load_technology(name), columns_of([load_chip("tpu-v4", form="cores")])
    larger: Any = replace(chips, **{field: getattr(chips, field) * factor})
    before, after = areas_of(chips, technology).total, areas_of(larger, technology).total
    assert after[0] >= before[0] * (1 - 1e-12)


def test_a_chip_among_others_has_the_area_that_it_has_alone() -> None:
    technology = load_technology("n7")
    chips = [
        replace(load_chip(name, form="cores"), process=technology) for name in preset_names("chips")
    ]
    assert len({chip.global_buffer.cache for chip in chips}) == 2
    together = areas_of(columns_of(chips), technology).total
    assert together.tolist() == [areas_in(technology, chip).total for chip in chips]


def test_power_is_the_sum_of_its_formula() -> None:
    chip, technology = load_chip("tpu-v4"), load_technology("n7")
    power = full_rate_power(replace(chip, process=technology))
    assert power.tensor_arrays == pytest.approx(131072 * 1.05e9 * 0.59e-12)
    assert power.hbm == pytest.approx(1.2e12 * 31.2e-12)
    memory = power.global_buffer + power.hbm + power.links
    side = max(
        power.tensor_arrays + power.tensor_buffers, power.vector_units + power.vector_buffers
    )
    assert power.design_w == pytest.approx(
        power.static + (technology.energy.design_activity or 0) * (side + memory)
    )


def test_a_curve_goes_on_beyond_its_last_point_as_between_its_last_two() -> None:
    curve = documents.check(Curve, {"sizes": [10, 20, 40], "values": [1.0, 3.0, 4.0]}, "curve")
    assert curve.at([5.0, 10.0, 15.0, 30.0, 40.0, 60.0]).tolist() == pytest.approx(
        [0.5, 1.0, 2.0, 3.5, 4.0, 5.0]
    )
    flat = documents.check(EnergyCurve, {"sizes": [10, 20], "values": [1.0, 3.0]}, "curve")
    assert flat.at([5.0, 25.0]).tolist() == pytest.approx([1.0e-12, 4.0e-12], rel=1e-9, abs=0.0)
