"""Chips, clusters and stacks refuse what cannot be, and feed their units as the template says."""

import pytest

from phaze.documents import check
from phaze.errors import InputError
from phaze.hardware.chip_parts import Built, array_feed_bytes_per_cycle
from phaze.hardware.cluster import Cluster, Level
from phaze.hardware.library import changed_keys, chip_keys, load_chip, load_cluster, stated_chip

RACK = {"name": "rack", "kind": "switch", "size": 8, "bandwidth": 1e9, "latency": 0.0}


def test_peak_is_two_operations_a_unit_and_cycle() -> None:
    chip = load_chip("tpu-v4")
    assert chip.peak_flops == 2 * 8 * 128 * 128 * 1.05e9
    assert chip.vector_flops == 2 * 2048 * 1.05e9


def test_a_core_buffer_without_bandwidth_feeds_its_array() -> None:
    chip = load_chip("tpu-v4-paper")
    assert array_feed_bytes_per_cycle(128, 128) == 2 * 128 + 2 * 128 + 4 * 128
    assert chip.clusters.feed_bytes_per_cycle(chip.clock_hz) == 1024


@pytest.mark.parametrize("wrong", [0, -1, 10**30])
@pytest.mark.parametrize(
    ("table", "key"), [("", "clock"), ("hbm", "size"), ("clusters", "rows"), ("links", "lane")]
)
def test_a_value_that_cannot_be_is_refused(table: str, key: str, wrong: int) -> None:
    keys, where = chip_keys("tpu-v4")
    changed = changed_keys(keys, {table: {key: wrong}} if table else {key: wrong})
    with pytest.raises(InputError, match=rf"{key}: .*is out of range"):
        stated_chip(changed, where)


def test_a_die_has_no_fewer_units_than_work() -> None:
    with pytest.raises(InputError, match="at least as many"):
        check(Built, {"clusters": [1, 2]}, "")


def test_a_torus_has_the_shape_of_its_size() -> None:
    with pytest.raises(InputError, match="has 8 members and the level has 9"):
        check(Level, {**RACK, "kind": "torus", "size": 9, "shape": [2, 4]}, "")
    with pytest.raises(InputError, match="a switch has no shape"):
        check(Level, {**RACK, "shape": [2, 4]}, "")


def test_levels_join_exactly_the_devices() -> None:
    head = {"schema": "phaze.cluster/1", "name": "c", "title": "C", "devices": 9}
    with pytest.raises(InputError, match="join 8 devices and the cluster has 9"):
        check(Cluster, {**head, "levels": [RACK]}, "")
    with pytest.raises(InputError, match="list should have at least 1 item"):
        check(Cluster, {**head, "levels": []}, "")


def test_the_papers_cluster_is_one_flat_link() -> None:
    (level,) = load_cluster("paper-flat").levels
    assert (level.size, level.bandwidth_bytes_per_s, level.latency_s) == (1024, 4 * 2**30, 0.0)
