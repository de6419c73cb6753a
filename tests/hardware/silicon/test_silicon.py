"""Area, power and held clock of clusters: published dies, fits that can be made again, arrays equal to the definition,
and what more of anything does."""

import tomllib
from collections.abc import Iterator
from dataclasses import replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.hardware.ownership import load_terms
from phaze.hardware.silicon.area import SiliconAreas, most_stacks, register_mm2, silicon_areas
from phaze.hardware.silicon.chip import (
    Accelerator,
    Built,
    Clusters,
    GlobalBuffer,
    Hbm,
    SerialLinks,
)
from phaze.hardware.silicon.columns import (
    accepted,
    area_columns,
    columns_of,
    held_clocks,
    power_columns,
    power_over,
    stacks_fit,
)
from phaze.hardware.silicon.files import accelerator_names, load_accelerator
from phaze.hardware.silicon.node import Node, curve_at
from phaze.hardware.silicon.node_files import load_node, node_names
from phaze.hardware.silicon.power import held_clock_hz, power_at, refusal, silicon_power
from phaze.hardware.silicon.price import harvested_yield, links_usd, making_cost

KIB, MIB = 2**10, 2**20
NODES = {name: load_node(name) for name in ("n22", "n12", "n7", "n5", "n3")}


def areas_of(name: str) -> SiliconAreas:
    chip = load_accelerator(name)
    base = chip.built.base_technology
    return silicon_areas(chip, NODES[chip.technology or ""], None if base is None else NODES[base])


def held_of(chip: Accelerator, node: Node) -> float:
    power = silicon_power(chip, node, silicon_areas(chip, node))
    return held_clock_hz(power, node, chip.clock_hz, chip.sustained_w)


@st.composite
def random_chips(draw: st.DrawFn) -> Accelerator:
    count, spare = draw(st.integers(1, 300)), draw(st.integers(0, 20))
    clusters = Clusters(
        count=count,
        arrays=draw(st.integers(1, 12)),
        rows=draw(st.integers(1, 256)),
        columns=draw(st.integers(1, 256)),
        lanes=draw(st.integers(1, 4096)),
        operand_bytes=draw(st.integers(512, 4 * MIB)),
        register_bytes=draw(st.integers(1024, 40 * MIB)),
        port_bytes_per_cycle=draw(st.sampled_from([1.0, 48.0, 64.0, 512.0])),
        broadcast=draw(st.booleans()),
    )
    shared, stacks = draw(st.integers(1024, 300 * MIB)), draw(st.integers(1, 8))
    return Accelerator(
        name="random",
        title="random",
        clock_hz=draw(st.floats(5e8, 3e9)),
        technology="n7",
        clusters=clusters,
        global_buffer=GlobalBuffer(shared, 5120.0, draw(st.integers(1, 64)), draw(st.booleans())),
        hbm=Hbm(stacks, "hbm3", stacks * 16 * 2**30, stacks * 819.2e9),
        links=SerialLinks(draw(st.floats(1e9, 2e12)), draw(st.sampled_from([None, 1.25e10]))),
        built=Built(count + spare, shared + spare * MIB, stacks + spare % 2),
        sustained_w=draw(st.sampled_from([None, 90.0, 400.0, 1e3])),
    )


chips = random_chips()


def test_the_nodes_are_bundled() -> None:
    assert node_names() == ("n12", "n22", "n3", "n5", "n7")


@pytest.mark.parametrize("name", node_names())
def test_every_number_of_a_node_has_a_source(name: str) -> None:
    path = files("phaze.hardware") / "presets" / "silicon" / "technologies" / f"{name}.toml"
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    sources = document.pop("sources")
    paths = set(leaves(document))
    assert paths - {"schema", "name", "title", "base", "notes"} == set(sources)


def leaves(table: dict[str, Any], above: str = "") -> Iterator[str]:
    for key, value in table.items():
        if isinstance(value, dict) and not {"size", "area"} & set(value):
            yield from leaves(value, f"{above}{key}.")
        elif key != "sizes":
            yield f"{above}{key}"


def test_ga100_is_met_part_by_part() -> None:
    found = areas_of("a100-80gb")
    assert found.clusters == pytest.approx(476.25, rel=2e-3)
    assert found.network == pytest.approx(76.44, rel=2e-3)
    assert found.global_buffer == pytest.approx(119.31, rel=1e-4)
    assert found.hbm == pytest.approx(89.77, rel=1e-4)
    assert found.links == pytest.approx(20.95, rel=1e-3)
    assert found.total == pytest.approx(826, rel=0.01)


def test_the_fitted_constants_follow_from_what_they_were_fitted_on() -> None:
    area = NODES["n7"].area
    assert areas_of("tpu-v4i").total == pytest.approx(380, rel=1e-4)
    multiprocessor = 476.25 / 128 - 1024 * (area.mac_mm2 + area.support_mm2) - 64 * area.lane_mm2
    left = multiprocessor - curve_at(area.sram, 192 * KIB) - register_mm2(area, 256 * KIB)
    parts = (64 * area.control_lane_mm2, area.control_cluster_mm2, 4 * area.control_array_mm2)
    assert parts == pytest.approx((0.6 * left, 0.3 * left, 0.1 * left), rel=1e-3)
    a100 = load_accelerator("a100-80gb")
    assert held_of(a100, NODES["n7"]) / a100.clock_hz == pytest.approx(257 / 295, rel=1e-3)


@pytest.mark.parametrize(("name", "published", "within"), [("h100", 814, 0.06), ("b200", 1600, 0.06)])
def test_predicted_dies_of_nvidia_are_within_6_percent(name: str, published: float, within: float) -> None:
    assert areas_of(name).total == pytest.approx(published, rel=within)


def test_tpu_v4_lies_below_its_published_bound_and_not_far() -> None:
    assert 540 <= areas_of("tpu-v4").total <= 600


def test_tpu_v4_draws_what_was_measured() -> None:
    chip, node = load_accelerator("tpu-v4"), NODES["n7"]
    power = silicon_power(chip, node, areas_of("tpu-v4"))
    assert 150 <= power_at(power, node, chip.clock_hz) <= 192


@pytest.mark.parametrize("name", [n for n in accelerator_names() if load_accelerator(n).technology])
def test_every_chip_is_accepted_by_its_own_power_limit(name: str) -> None:
    chip = load_accelerator(name)
    node = NODES[chip.technology or ""]
    power = silicon_power(chip, node, areas_of(name))
    held = held_clock_hz(power, node, chip.clock_hz, chip.sustained_w)
    assert refusal(power, chip, held) is None
    assert power_at(power, node, held) <= (chip.sustained_w or np.inf)


def test_die_edge_gives_the_sites_of_real_dies() -> None:
    assert [most_stacks(area) for area in (826, 814, 724, 571, 400)] == [6, 6, 4, 4, 4]


def test_the_papers_winner_is_a_reticle_in_7_nm_and_no_die_at_all_in_22_nm() -> None:
    winner = Accelerator(
        "winner", "64 of 16 x 256", 0.94e9, "n7", Clusters(64, 1, 16, 256, 256, 64 * KIB, 64 * KIB, 64.0, False),
        GlobalBuffer(32 * MIB, 4096.0, 16, False), Hbm(4, "hbm2", 2**35, 1.2e12), SerialLinks(1e11),
        Built(64, 32 * MIB, 4),
    )  # fmt: skip
    assert 700 < silicon_areas(winner, NODES["n7"]).total < 900
    assert silicon_areas(winner, NODES["n22"]).total > 3000


@settings(max_examples=50, deadline=None)
@given(st.lists(chips, min_size=1, max_size=5), st.sampled_from(sorted(NODES)))
def test_arrays_give_the_bits_of_the_definition(some: list[Accelerator], name: str) -> None:
    node = NODES[name]
    columns = columns_of(some, node)
    areas = area_columns(columns, node)
    power = power_columns(columns, node, areas)
    held = held_clocks(columns, node, power)
    for at, chip in enumerate(some):
        alone = silicon_areas(chip, node)
        assert alone.by_part() == {part: getattr(areas, part)[at] for part in alone.by_part()}
        drawn = silicon_power(chip, node, alone)
        for field in ("product_fixed_w", "product_j", "vector_fixed_w", "vector_j", "idle_w"):
            assert getattr(drawn, field) == getattr(power, field)[at], field
        clock = held_clock_hz(drawn, node, chip.clock_hz, chip.sustained_w)
        assert clock == held[at]
        assert power_at(drawn, node, clock) == power_over(power, node, held)[at]
        assert (refusal(drawn, chip, clock) is None) == accepted(columns, power, held)[at]
        assert (chip.hbm.stacks <= most_stacks(alone.total)) == stacks_fit(columns, areas.total)[at]


def larger(chip: Accelerator, field: str, factor: int) -> Accelerator:
    clusters, built, shared = chip.clusters, chip.built, chip.global_buffer
    if field == "stacks":
        count = chip.hbm.stacks * factor
        hbm = Hbm(count, "hbm3", chip.hbm.size_bytes, chip.hbm.bandwidth_bytes_per_s)
        return replace(chip, hbm=hbm, built=replace(built, hbm_sites=built.hbm_sites * factor))
    if field == "global":
        built = replace(built, global_buffer_bytes=built.global_buffer_bytes * factor)
        return replace(chip, built=built, global_buffer=replace(shared, size_bytes=shared.size_bytes * factor))
    if field == "links":
        return replace(chip, links=replace(chip.links, bandwidth_bytes_per_s=chip.links.bandwidth_bytes_per_s * factor))
    changed: dict[str, Any] = {field: getattr(clusters, field) * factor}
    if field == "count":
        built = replace(built, clusters=built.clusters * factor)
    return replace(chip, built=built, clusters=replace(clusters, **changed))


GROWN = (
    "count", "arrays", "rows", "columns", "lanes", "operand_bytes", "register_bytes", "port_bytes_per_cycle", "global",
    "stacks", "links",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(chips, st.sampled_from(GROWN), st.sampled_from([2, 3]), st.sampled_from(sorted(NODES)))
def test_more_of_anything_is_never_smaller(chip: Accelerator, field: str, factor: int, name: str) -> None:
    node = NODES[name]
    assert silicon_areas(larger(chip, field, factor), node).total >= silicon_areas(chip, node).total


@settings(max_examples=60, deadline=None)
@given(chips, st.sampled_from(GROWN), st.sampled_from([2, 3]), st.sampled_from(sorted(NODES)))
def test_more_of_anything_but_registers_never_raises_the_held_clock(
    chip: Accelerator, field: str, factor: int, name: str
) -> None:
    """More registers make larger tiles, which need fewer bytes."""
    if field != "register_bytes":
        assert held_of(larger(chip, field, factor), NODES[name]) <= held_of(chip, NODES[name])


@settings(max_examples=60, deadline=None)
@given(chips, st.floats(50, 1500), st.floats(1, 2), st.sampled_from(sorted(NODES)))
def test_a_higher_limit_never_lowers_the_held_clock_and_is_met(
    chip: Accelerator, limit: float, factor: float, name: str
) -> None:
    node = NODES[name]
    power = silicon_power(chip, node, silicon_areas(chip, node))
    low = held_clock_hz(power, node, chip.clock_hz, limit)
    assert low <= held_clock_hz(power, node, chip.clock_hz, limit * factor) <= min(chip.clock_hz, node.voltage.most_hz)
    if low:
        assert power_at(power, node, low) <= limit
        assert power_at(power, node, low * (1 + 1e-9)) > limit or low == min(chip.clock_hz, node.voltage.most_hz)


def test_a_chip_is_refused_only_for_fixed_power_or_half_its_clock() -> None:
    chip, node = load_accelerator("h100"), NODES["n5"]
    power = silicon_power(chip, node, areas_of("h100"))
    said = []
    for limit in (100.0, 300.0, 700.0):
        limited = replace(chip, sustained_w=limit)
        said.append(refusal(power, limited, held_clock_hz(power, node, chip.clock_hz, limit)))
    assert said[0] is not None and "HBM and links alone" in said[0]
    assert said[1] is not None and "below half" in said[1]
    assert said[2] is None


def test_vector_work_can_set_the_clock() -> None:
    chip = load_accelerator("h100")
    wide = replace(chip, clusters=replace(chip.clusters, lanes=4096, rows=4, columns=4))
    node = NODES["n5"]
    power = silicon_power(wide, node, silicon_areas(wide, node))
    held = held_clock_hz(power, node, wide.clock_hz, 700.0)
    assert power.vector_j > power.product_j
    assert held < held_clock_hz(replace(power, vector_j=0.0), node, wide.clock_hz, 700.0)


def test_spares_raise_the_yield_and_none_leave_the_plain_one() -> None:
    with_spares = harvested_yield(566, 278, 12, 0.10, 3)
    assert with_spares == pytest.approx(0.88, abs=0.02)
    assert harvested_yield(566, 278, 0, 0.10, 3) < harvested_yield(566, 278, 1, 0.10, 3) < with_spares < 1
    assert harvested_yield(814, 0, 0, 0.09, 3) == pytest.approx((1 + 814 / 100 * 0.09 / 3) ** -3)


def test_faster_links_cost_their_share_of_switches_and_cables() -> None:
    chip, node, terms = load_accelerator("h100"), NODES["n5"], load_terms()
    fast = replace(chip, links=replace(chip.links, bandwidth_bytes_per_s=2 * chip.links.bandwidth_bytes_per_s))
    plain = making_cost(chip, silicon_areas(chip, node), terms, node)
    joined = making_cost(fast, silicon_areas(fast, node), terms, node)
    assert joined.links_usd - plain.links_usd == pytest.approx(links_usd(450e9))
    assert joined.dies_usd > plain.dies_usd
    assert plain.hbm_usd == 5 * 198


def test_a_chip_of_base_dies_is_cheaper_than_one_of_a_single_process() -> None:
    chip, terms = load_accelerator("mi300x"), load_terms()
    cost = making_cost(chip, areas_of("mi300x"), terms, NODES["n5"], NODES["n7"])
    assert 0 < cost.dies_usd < 1500
