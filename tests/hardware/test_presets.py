"""The bundled presets: all there, every number with a source, and facts that must hold between
them."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, get_args

import pytest

from phaze import units
from phaze.errors import InputError
from phaze.hardware.bundled import preset_names
from phaze.hardware.library import chip_names, load_chip, load_cluster, load_stack

CHIPS = (
    "tpu-v2",
    "tpu-v3",
    "tpu-v4",
    "tpu-v4-paper",
    "tpu-v5e",
    "tpu-v5p",
    "tpu-v6e",
    "a100-40gb",
    "a100-80gb",
    "h100",
    "h200",
    "b200",
    "mi250x",
    "mi300x",
    "trainium1",
    "trainium2",
    "gaudi2",
    "gaudi3",
)
NEWER = (
    "v100-16gb",
    "v100-32gb",
    "b300",
    "gb200",
    "gb300",
    "gh200",
    "h800",
    "mi325x",
    "mi355x",
    "tpu7x",
    "wormhole",
)
CLUSTERS = (
    "paper-flat",
    "selene",
    "vtrain-a100",
    "dgx-b200",
    "dgx-h100",
    "dgx-h200",
    "dgx-v100",
    "mi300x-node",
    "nvl72",
    "tpu-v4-pod",
    "tpu-v6e-pod",
    "tpu7x-pod",
    "tpu-v5e-pod",
    "tpu-v5p-pod",
)
STACKS = (
    "megatron-2021",
    "megatron-2022",
    "megatron-deepspeed",
    "llm-foundry",
    "megatron-core",
    "megatron-core-2024",
    "megatron-core-24.03",
    "megatron-core-24.07",
    "megatron-core-24.11",
    "megatron-core-25.02",
    "megatron-core-25.04",
    "megatron-core-25.09",
    "megatron-core-26.02",
    "torchtitan",
    "torchtitan-24.12",
    "torchtitan-25.06",
    "torchtitan-async",
    "torchtitan-eager",
    "maxtext",
    "maxtext-24.11",
    "maxtext-25.02",
    "paxml",
    "nanotron",
    "icml24",
    "ideal",
)
TECHNOLOGIES = ("n7", "n5", "paper-22nm")
PRESETS = (
    *(("chips", name) for name in CHIPS),
    *(("clusters", name) for name in CLUSTERS),
    *(("stacks", name) for name in STACKS),
)


def raw(kind: str, name: str) -> dict[str, Any]:
    """The preset's TOML as it stands."""
    return tomllib.loads(
        (files("phaze.hardware") / "presets" / kind / f"{name}.toml").read_text(encoding="utf-8")
    )


def is_quantity(value: object) -> bool:
    """Whether ``value`` is a number, alone or with a unit."""
    if isinstance(value, str):
        return any(_reads(value, unit) for unit in get_args(units.Unit))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _reads(text: str, unit: units.Unit) -> bool:
    try:
        units.parse(text, unit)
    except ValueError:
        return False
    return True


def numbers(value: object, path: str = "") -> Iterator[str]:
    """The path of every number below ``value``; a list of plain numbers is one of them."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from numbers(below, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and not all(is_quantity(item) for item in value):
        for place, below in enumerate(value):
            yield from numbers(below, f"{path}[{place}]")
    elif isinstance(value, list) or is_quantity(value):
        yield path


def peak_error(name: str) -> float:
    """How far the peak from cores and clock lies from the published one, as a share of it."""
    chip = load_chip(name)
    assert chip.published.peak_flops is not None, name
    return abs(chip.peak_flops / chip.published.peak_flops - 1)


def clocked(basis: str) -> list[str]:
    """The chips whose clock has this basis and whose peak is published."""
    chips = [load_chip(name) for name in CHIPS]
    return [
        chip.name
        for chip in chips
        if chip.clock_basis == basis and chip.published.peak_flops is not None
    ]


def test_the_presets_are_those_that_were_promised() -> None:
    assert set(preset_names("chips")) == set(CHIPS)
    assert set(chip_names()) >= {*CHIPS, *NEWER}
    assert set(preset_names("clusters")) == set(CLUSTERS)
    assert set(preset_names("stacks")) == set(STACKS)


@pytest.mark.parametrize("name", CHIPS)
def test_a_chip_loads_under_its_name(name: str) -> None:
    assert load_chip(name).name == name


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_loads_under_its_name(name: str) -> None:
    assert load_cluster(name).name == name


@pytest.mark.parametrize("name", STACKS)
def test_a_stack_loads_under_its_name(name: str) -> None:
    assert load_stack(name).name == name


@pytest.mark.parametrize(("kind", "name"), PRESETS)
def test_every_number_has_a_source_and_every_source_a_number(kind: str, name: str) -> None:
    document = raw(kind, name)
    sources = document.pop("sources", {})
    document.pop("notes", None)
    found = set(numbers(document))
    assert found or "base" in document, "the walk saw no number"
    assert found - set(sources) == set(), "numbers without a source"
    assert set(sources) - found == set(), "sources of nothing"


def test_the_walk_sees_numbers_in_every_form() -> None:
    document = {
        "a": 1,
        "b": {"c": "2 GHz", "d": True, "e": "7nm"},
        "f": [{"g": 0.5, "h": [4, 4]}],
        "i": "text",
    }
    assert set(numbers(document)) == {"a", "b.c", "f[0].g", "f[0].h"}


def test_a_sourced_clock_gives_the_published_peak_within_2_percent() -> None:
    sourced = clocked("sourced")
    assert len(sourced) >= 5
    assert {name: peak_error(name) for name in sourced if peak_error(name) > 0.02} == {}


def test_a_derived_clock_repeats_the_peak_it_was_derived_from() -> None:
    assert {name: peak_error(name) for name in clocked("derived") if peak_error(name) > 0.005} == {}


@pytest.mark.parametrize("name", CHIPS)
def test_the_clock_basis_is_what_the_source_says(name: str) -> None:
    basis = load_chip(name).clock_basis
    source = raw("chips", name)["sources"]["clock"]
    assert source.startswith(("derived:", "recalled:")) == (basis != "sourced")
    assert basis == "sourced" or source.startswith(f"{basis}:")


@pytest.mark.parametrize("name", CHIPS)
def test_a_chip_names_a_technology_and_a_cluster_that_exist(name: str) -> None:
    chip = load_chip(name)
    assert chip.technology is None or chip.technology in TECHNOLOGIES
    assert chip.cluster is None or chip.cluster in CLUSTERS


@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_names_a_chip_and_a_stack_that_exist(name: str) -> None:
    cluster = load_cluster(name)
    assert cluster.chip in (*CHIPS, *NEWER)
    assert cluster.stack in STACKS


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_level_is_faster_than_what_it_is_made_of(name: str) -> None:
    cluster = load_cluster(name)
    assert cluster.chip is not None
    speeds = [load_chip(cluster.chip).links.bandwidth_bytes_per_s]
    speeds += [level.bandwidth_bytes_per_s for level in cluster.levels]
    assert speeds == sorted(speeds, reverse=True)


@pytest.mark.parametrize("name", CHIPS)
def test_memory_is_faster_the_nearer_it_is(name: str) -> None:
    chip = load_chip(name)
    assert (
        chip.links.bandwidth_bytes_per_s
        < chip.hbm.bandwidth_bytes_per_s
        < chip.global_buffer.bandwidth_bytes_per_s
    )
    assert chip.global_buffer.size_bytes < chip.hbm.size_bytes


def test_the_papers_tpu_v4_stands_beside_the_real_one() -> None:
    real, paper = load_chip("tpu-v4"), load_chip("tpu-v4-paper")
    assert real.tensor_cores == paper.tensor_cores
    assert (real.clusters.rows, real.clusters.columns) == (
        paper.clusters.rows,
        paper.clusters.columns,
    )
    assert real.clusters.operand_bytes == real.clusters.arrays * paper.clusters.operand_bytes
    assert real.peak_flops == paper.peak_flops
    assert (real.lanes, paper.lanes) == (4096, 256)
    assert real.links.bandwidth_bytes_per_s > 60 * paper.links.bandwidth_bytes_per_s
    assert (real.technology, paper.technology) == ("n7", "paper-22nm")


def test_generations_stand_in_their_known_order() -> None:
    def hbm(name: str) -> float:
        return load_chip(name).hbm.bandwidth_bytes_per_s

    assert hbm("a100-40gb") == 1555e9
    assert load_chip("a100-40gb").hbm.size_bytes == 40 * 2**30
    assert hbm("a100-40gb") < hbm("a100-80gb") < hbm("h100") < hbm("h200") < hbm("b200")
    assert hbm("tpu-v2") < hbm("tpu-v3") < hbm("tpu-v4") < hbm("tpu-v5p")
    assert (
        load_chip("h100").peak_flops == load_chip("h200").peak_flops < load_chip("b200").peak_flops
    )


def test_the_flat_network_of_the_paper() -> None:
    cluster = load_cluster("paper-flat")
    assert (cluster.devices, cluster.chip, cluster.stack) == (1024, "tpu-v4-paper", "ideal")
    (level,) = cluster.levels
    assert (level.kind, level.bandwidth_bytes_per_s, level.latency_s) == ("switch", 2.0**32, 0.0)


def test_the_ideal_stack_costs_nothing() -> None:
    ideal = load_stack("ideal")
    spent = (ideal.host_s, ideal.optimizer_traffic_bytes, ideal.state_bytes, ideal.reserve_bytes)
    assert spent == (0, 0, 0, 0)
    assert (ideal.schedule, ideal.optimizer, ideal.fusion) == ("serial", "sgd", "full")


def test_what_changed_in_megatron_from_2021_to_2022() -> None:
    before, after = load_stack("megatron-2021"), load_stack("megatron-2022")
    assert not before.hides_tensor_collectives
    assert after.hides_tensor_collectives
    assert load_stack("megatron-core").host_s < before.host_s


def test_a_release_without_a_file_is_the_newest_before_it() -> None:
    assert (
        load_stack("megatron-core-24.11.1").name
        == load_stack("megatron-core-25.01").name
        == "megatron-core-24.11"
    )
    assert load_stack("megatron-core-26.04.01").name == "megatron-core-26.02"
    assert load_stack("megatron-core").share_on("h100", "n5") > load_stack(
        "megatron-core-25.09"
    ).share_on("h100", "n5")
    for unknown in (
        "megatron-core-23.01",
        "torchtitan-23.02",
        "megatron-core-2",
        "megatron-core-25.02.1.1",
    ):
        with pytest.raises(InputError, match="stack"):
            load_stack(unknown)


def test_newer_releases_leave_more_of_the_rate_of_products() -> None:
    dated = [name for name in STACKS if name.startswith("megatron-core-2") and "." in name]
    shares = [load_stack(name).share_on("h100", "n5") for name in sorted(dated)]
    assert shares == sorted(shares) and len(shares) >= 6
