"""The chip format of clusters: read, written back, derived from version 1, and faults named by
their path."""

import tomllib
from importlib.resources import files
from math import gcd, isfinite, isinf
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.hardware.bundled import preset_names
from phaze.hardware.chip import CHIP
from phaze.hardware.chip_parts import port_of
from phaze.hardware.core_chip import CORE_CHIP
from phaze.hardware.library import (
    changed_keys,
    chip_keys,
    cluster_chip_names,
    clustered_chip,
    load_chip,
)
from phaze.hardware.write import toml_text
from tests.hardware.chips import part_at, stated_chip

NAMED = {
    "a100-80gb", "h100", "b200", "mi250x", "mi300x", "mi325x", "mi355x", "tpu-v4", "tpu-v4i",
    "tpu-v5e", "tpu-v5p",
    "tpu-v6e", "gaudi2", "gaudi3",
}  # fmt: skip
NO_SOURCE = {
    "schema", "name", "title", "clock_basis", "technology", "die", "cluster", "notes",
    "published.process",
    "published.die_is_upper_bound", "global_buffer.kind", "measured.shape",
}  # fmt: skip


def raw(name: str) -> dict[str, Any]:
    path = files("phaze.hardware") / "presets" / "silicon" / "chips" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def test_the_named_chips_are_bundled() -> None:
    assert set(cluster_chip_names()) >= NAMED


@pytest.mark.parametrize("name", cluster_chip_names())
def test_every_number_of_a_bundled_chip_has_a_source(name: str) -> None:
    document = raw(name)
    sources = document.pop("sources")
    paths = {key for key, value in document.items() if not isinstance(value, dict)}
    paths |= {
        f"{table}.{key}"
        for table, value in document.items()
        if isinstance(value, dict)
        for key in value
    }
    assert paths - NO_SOURCE == set(sources)


@pytest.mark.parametrize("name", cluster_chip_names())
def test_clusters_and_clock_give_the_published_peak(name: str) -> None:
    chip = stated_chip(name)
    if chip.published.peak_flops is not None:
        assert chip.peak_flops == pytest.approx(chip.published.peak_flops, rel=0.01)


def written(name: str, changes: dict[str, Any], path: Path) -> str:
    """The file of a bundled chip with other values, as TOML."""
    path.write_text(toml_text(changed_keys(chip_keys(name)[0], changes)), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("name", cluster_chip_names())
def test_a_chip_written_back_reads_as_the_same_value(name: str, tmp_path: Path) -> None:
    assert stated_chip(written(name, {}, tmp_path / "chip.toml")) == stated_chip(name)


@pytest.mark.parametrize("name", preset_names("chips"))
def test_a_chip_of_version_1_keeps_its_numbers_as_clusters(name: str) -> None:
    chip, found = (
        load_chip(name, form="cores"),
        clustered_chip(*chip_keys(name, folders=("chips",))),
    )
    assert isfinite(found.clusters.port_bytes_per_cycle) and isinf(
        chip.clusters.port_bytes_per_cycle
    )
    assert found.power_sets_clock and not chip.power_sets_clock
    assert found.clusters.count == gcd(chip.tensor_cores, chip.vectors.count)
    assert (found.macs, found.clock_hz, found.lanes) == (chip.macs, chip.clock_hz, chip.lanes)
    assert found.formats == chip.formats and found.host_bytes_per_s == chip.host_bytes_per_s
    operands = found.clusters.count * found.clusters.operand_bytes
    assert operands == chip.tensor_cores * chip.clusters.operand_bytes


@pytest.mark.parametrize(
    ("name", "clusters", "arrays", "lanes"),
    [
        ("trainium1", 2, 1, 111),
        ("trainium2", 8, 1, 157),
        ("tpu-v2", 2, 1, 2048),
        ("tpu-v3", 2, 2, 2048),
    ],
)
def test_chips_of_a_few_large_cores_are_clusters_too(
    name: str, clusters: int, arrays: int, lanes: int
) -> None:
    found = load_chip(name, form="clusters")
    assert (found.clusters.count, found.clusters.arrays, found.vectors.lanes) == (
        clusters,
        arrays,
        lanes,
    )
    assert found.peak_flops == load_chip(name).peak_flops
    part = part_at(found, found.clock_hz)
    assert (part.cores, part.arrays) == (clusters, arrays)


# Peaks and memories as published; Trainium's clocks follow from its peaks.
FEW_ARRAYS = (
    ("tpu-v2", "700 MHz", (2, 1), (2, "hbm2", "16 GiB", "700 GB/s"), 46e12),
    ("tpu-v3", "940 MHz", (2, 2), (4, "hbm2", "32 GiB", "900 GB/s"), 123e12),
    ("trainium1", "2.9 GHz", (2, 1), (2, "hbm2e", "32 GiB", "820 GB/s"), 190e12),
    ("trainium2", "2.54 GHz", (8, 1), (4, "hbm3", "96 GiB", "2.9 TB/s"), 667e12),
)


@pytest.mark.parametrize(("name", "clock", "units", "hbm", "peak"), FEW_ARRAYS)
def test_chips_of_one_large_array_a_core_can_be_stated(
    name: str,
    clock: str,
    units: tuple[int, int],
    hbm: tuple[int, str, str, str],
    peak: float,
    tmp_path: Path,
) -> None:
    memory = dict(zip(("stacks", "generation", "size", "bandwidth"), hbm, strict=True))
    clusters = {"count": units[0], "arrays": units[1], "rows": 128, "columns": 128, "lanes": 1024}
    buffers = {"operand_buffer": "24 MiB", "registers": "4 MiB"}
    path = tmp_path / "chip.toml"
    path.write_text(toml_text({
        "schema": "phaze.chip/2", "name": name, "title": name, "clock": clock,
        "clusters": clusters | buffers,
        "global_buffer": {"size": "32 MiB", "width": 2048}, "hbm": memory,
        "links": {"bandwidth": "100 GB/s"},
    }), encoding="utf-8")  # fmt: skip
    chip = load_chip(str(path))
    assert chip.peak_flops == pytest.approx(peak, rel=0.02)
    assert chip.tensor_cores == units[0] * units[1]


def test_a_file_of_version_1_loads_as_clusters(tmp_path: Path) -> None:
    source = files("phaze.hardware") / "presets" / "chips" / "tpu-v4.toml"
    path = tmp_path / "old.toml"
    path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    assert clustered_chip(*chip_keys(str(path))) == clustered_chip(
        *chip_keys("tpu-v4", folders=("chips",))
    )


@pytest.mark.parametrize(
    ("name", "version_1"), [("h100", "h100"), ("mi250x", "mi250x"), ("tpu-v4", "tpu-v4")]
)
def test_both_versions_of_a_chip_tell_the_same_of_it(name: str, version_1: str) -> None:
    new, old = stated_chip(name), clustered_chip(*chip_keys(version_1, folders=("chips",)))
    assert new.clusters.count == old.clusters.count
    assert (new.macs, new.vectors.lanes, new.hbm.size_bytes) == (
        old.macs,
        old.vectors.lanes,
        old.hbm.size_bytes,
    )
    assert new.global_bytes_per_cycle == pytest.approx(old.global_bytes_per_cycle, rel=1e-3)


@pytest.mark.parametrize(("name", "port"), [("a100-80gb", 64), ("h100", 64), ("mi250x", 64)])
def test_the_rule_for_ports_meets_the_known_ones(name: str, port: float) -> None:
    chip = stated_chip(name)
    assert (
        port_of(chip.global_bytes_per_cycle, chip.clusters.count)
        == port
        == chip.clusters.port_bytes_per_cycle
    )


def faulty(tmp_path: Path, before: str, after: str) -> str:
    path = tmp_path / "chip.toml"
    source = files("phaze.hardware") / "presets" / "silicon" / "chips" / "h100.toml"
    text = source.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("arrays = 4", "arrays = 0", r"clusters\.arrays"),
        ('generation = "hbm3"', 'generation = "hbm9"', r"hbm\.generation"),
        ("clusters = [144, 132]", "clusters = [120, 132]", "at least as many units on the die"),
        ("clusters = [144, 132]", "clusters = [144, 130]", "the clusters in use, 132"),
        ("shape = [2048, 2048, 13312]", "", "rate and shape together"),
        ("broadcast = true", "broadcasts = true", "broadcast"),
        ("stacks = 5", "stacks = 0", "a generation with stacks"),
        ("[power]", "base = 1\n[power]", "silicon: unknown key 'base'"),
    ],
)
def test_a_fault_is_named_by_its_path(tmp_path: Path, before: str, after: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        stated_chip(faulty(tmp_path, before, after))


def test_a_chip_of_either_version_loads_by_its_path_as_by_its_name(tmp_path: Path) -> None:
    found = load_chip(written("gh200", {}, tmp_path / "new.toml"))
    assert found == load_chip("gh200")
    assert found.power_sets_clock
    assert found.rated_hz == 1.83e9 > found.clock_hz
    assert found.peak_flops == pytest.approx(989.4e12, rel=1e-3)


def test_a_chip_whose_limit_holds_no_half_of_its_clock_is_refused_in_a_sentence(
    tmp_path: Path,
) -> None:
    for watts, said in ((300.0, "below half"), (60.0, "leakage, HBM and links alone draw")):
        path = written("h100", {"power": {"sustained": watts}}, tmp_path / "new.toml")
        with pytest.raises(InputError, match=f"h100: power.sustained: .*{said}"):
            load_chip(path)


def test_a_technology_that_no_node_has_is_refused(tmp_path: Path) -> None:
    path = written("h100", {"technology": "n6"}, tmp_path / "new.toml")
    with pytest.raises(InputError, match="n6"):
        load_chip(path)


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match="h100"):
        stated_chip("h10")


def test_the_schema_of_version_2_stands_beside_version_1() -> None:
    assert (CORE_CHIP.name, CHIP.name) == ("phaze.chip/1", "phaze.chip/2")
    described = CHIP.model.model_json_schema(by_alias=True)["properties"]
    assert {"clusters", "global_buffer", "hbm", "links", "silicon", "power", "measured"} <= set(
        described
    )
