"""Area, power and held clock of clusters: published dies, fits that can be made again, arrays equal
to the definition, and what more of anything does."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.documents import check
from phaze.hardware.area import Areas, areas_of, most_stacks, register_mm2
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import power_limit
from phaze.hardware.clocked import ClockedChip, at_held_clock, chip_areas, clocked, refusal
from phaze.hardware.columns import columns_of
from phaze.hardware.library import cluster_chip_names, load_chip, with_nodes
from phaze.hardware.manufacturing import Manufacturing, links_usd, manufacturing_of
from phaze.hardware.ownership import Terms, load_terms
from phaze.hardware.power import accepted, clock_power, held_clocks, power_at
from phaze.hardware.technology import Technology, load_node, node_names
from phaze.values import replace
from tests.hardware.chips import stated_chip

KIB, MIB = 2**10, 2**20
NODES = {name: load_node(name) for name in ("n22", "n12", "n7", "n5", "n3")}


def area_of(chip: Chip, node: Technology) -> Areas[float]:
    areas = chip_areas(replace(chip, process=node))
    assert areas is not None
    return areas


def bundled_area(name: str) -> Areas[float]:
    areas = chip_areas(load_chip(name))
    assert areas is not None
    return areas


def clocked_in(chip: Chip, node: Technology) -> ClockedChip:
    held = clocked(replace(chip, process=node))
    assert held is not None
    return held


def held_of(chip: Chip, node: Technology) -> float:
    return clocked_in(chip, node).held_hz


def new_chip(**tables: Any) -> Chip:
    """A chip of 7 nm that stands in no file."""
    return check(
        Chip,
        {"schema": "phaze.chip/2", "name": "new", "title": "new", "technology": "n7", **tables},
        "new",
    )


@st.composite
def random_chips(draw: st.DrawFn) -> Chip:
    count, spare = draw(st.integers(1, 300)), draw(st.integers(0, 20))
    shared, stacks = draw(st.integers(1024, 300 * MIB)), draw(st.integers(1, 8))
    lane, watts = (
        draw(st.sampled_from([None, 1.25e10])),
        draw(st.sampled_from([None, 90.0, 400.0, 1e3])),
    )
    clusters = {
        "count": count,
        "arrays": draw(st.integers(1, 12)),
        "rows": draw(st.integers(1, 256)),
        "columns": draw(st.integers(1, 256)),
        "lanes": draw(st.integers(1, 4096)),
        "operand_buffer": draw(st.integers(512, 4 * MIB)),
        "registers": draw(st.integers(1024, 40 * MIB)),
        "port": draw(st.sampled_from([1.0, 48.0, 64.0, 512.0])),
        "broadcast": draw(st.booleans()),
    }
    buffer = {
        "size": shared,
        "width": 5120.0,
        "kind": draw(st.sampled_from(["scratchpad", "cache"])),
    }
    built = {"clusters": [count + spare, count], "hbm": [stacks + spare % 2, stacks]}
    chip = new_chip(
        clock=draw(st.floats(5e8, 3e9)),
        clusters=clusters,
        global_buffer={**buffer, "fan_out": draw(st.integers(1, 64))},
        hbm={"stacks": stacks, "generation": "hbm3"},
        links={"bandwidth": draw(st.floats(1e9, 2e12)), "lane": lane},
        silicon=built,
        power=None if watts is None else {"sustained": watts},
    )
    return replace(chip, built=replace(chip.built, global_buffer=(shared + spare * MIB, shared)))


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
    found = bundled_area("a100-80gb")
    assert found.clusters == pytest.approx(476.25, rel=2e-3)
    assert found.network == pytest.approx(76.44, rel=2e-3)
    assert found.global_buffer == pytest.approx(119.31, rel=1e-4)
    assert found.hbm == pytest.approx(89.77, rel=1e-4)
    assert found.links == pytest.approx(20.95, rel=1e-3)
    assert found.total == pytest.approx(826, rel=0.01)


def test_the_fitted_constants_follow_from_what_they_were_fitted_on() -> None:
    area = NODES["n7"].area
    assert bundled_area("tpu-v4i").total == pytest.approx(380, rel=1e-4)
    multiprocessor = 476.25 / 128 - 1024 * (area.mac_mm2 + area.support_mm2) - 64 * area.lane_mm2
    left = (
        multiprocessor
        - float(area.core_buffer.at(192 * KIB))
        - float(register_mm2(area, 256 * KIB))
    )
    parts = (64 * area.control_lane_mm2, area.control_cluster_mm2, 4 * area.control_array_mm2)
    assert parts == pytest.approx((0.6 * left, 0.3 * left, 0.1 * left), rel=1e-3)
    a100 = load_chip("a100-80gb")
    assert a100.clock_hz / a100.rated_clock_hz == pytest.approx(257 / 295, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "published", "within"), [("h100", 814, 0.06), ("b200", 1600, 0.06)]
)
def test_predicted_dies_of_nvidia_are_within_6_percent(
    name: str, published: float, within: float
) -> None:
    assert bundled_area(name).total == pytest.approx(published, rel=within)


def test_tpu_v4_lies_below_its_published_bound_and_not_far() -> None:
    assert 540 <= bundled_area("tpu-v4").total <= 600


def test_tpu_v4_draws_what_was_measured() -> None:
    chip, node = load_chip("tpu-v4"), NODES["n7"]
    assert 150 <= power_at(clocked_in(chip, node).power, node, chip.rated_clock_hz) <= 192


@pytest.mark.parametrize("name", [n for n in cluster_chip_names() if stated_chip(n).technology])
def test_every_chip_is_accepted_by_its_own_power_limit(name: str) -> None:
    chip = with_nodes(stated_chip(name))
    held = clocked(chip)
    assert held is not None and held.held_hz == at_held_clock(chip).clock_hz
    assert refusal(chip) is None
    assert held.held_w <= (chip.sustained_w or np.inf)


def test_die_edge_gives_the_sites_of_real_dies() -> None:
    assert [most_stacks(area) for area in (826, 814, 724, 571, 400)] == [6, 6, 4, 4, 4]


def test_the_papers_winner_is_a_reticle_in_7_nm_and_no_die_at_all_in_22_nm() -> None:
    winner = new_chip(
        clock=0.94e9,
        clusters={"count": 64, "arrays": 1, "rows": 16, "columns": 256, "lanes": 256,
        "operand_buffer": 64 * KIB,
                  "registers": 64 * KIB, "port": 64.0},
        global_buffer={"size": 32 * MIB, "width": 4096.0, "fan_out": 16},
        hbm={"stacks": 4, "generation": "hbm2", "size": 2**35, "bandwidth": 1.2e12},
        links={"bandwidth": 1e11},
    )  # fmt: skip
    assert 700 < area_of(winner, NODES["n7"]).total < 900
    assert area_of(winner, NODES["n22"]).total > 3000


@settings(max_examples=50, deadline=None)
@given(st.lists(chips, min_size=1, max_size=5), st.sampled_from(sorted(NODES)))
def test_a_chip_among_others_has_the_figures_that_it_has_alone(some: list[Chip], name: str) -> None:
    node = NODES[name]
    some = [replace(chip, process=node) for chip in some]
    columns = columns_of(some)
    areas = areas_of(columns, node)
    power = clock_power(columns, node, areas)
    held = held_clocks(power, node, columns.clock_hz, columns.limit_w)
    watts, runs = power_at(power, node, held), accepted(columns, power, held)
    for index, chip in enumerate(some):
        alone = clocked_in(chip, node)
        assert alone.areas.by_part() == {
            part: values[index] for part, values in areas.by_part().items()
        }
        assert (alone.held_hz, alone.held_w) == (held[index], watts[index])
        assert (refusal(chip) is None) == runs[index]


def larger(chip: Chip, field: str, factor: int) -> Chip:
    clusters, vectors, shared = chip.clusters, chip.vectors, chip.global_buffer
    if field == "stacks":
        return replace(chip, hbm=replace(chip.hbm, stacks=chip.hbm.stacks * factor))
    if field == "global":
        return replace(chip, global_buffer=replace(shared, size_bytes=shared.size_bytes * factor))
    if field == "links":
        return replace(
            chip,
            links=replace(
                chip.links, bandwidth_bytes_per_s=chip.links.bandwidth_bytes_per_s * factor
            ),
        )
    if field in ("lanes", "register_bytes"):
        grown: dict[str, Any] = {field: getattr(vectors, field) * factor}
        return replace(chip, vectors=replace(vectors, **grown))
    if field == "count":
        chip = replace(chip, vectors=replace(vectors, count=vectors.count * factor))
    changed: dict[str, Any] = {field: getattr(clusters, field) * factor}
    return replace(chip, clusters=replace(clusters, **changed))


GROWN = (
    "count", "arrays", "rows", "columns", "lanes", "operand_bytes", "register_bytes",
    "port_bytes_per_cycle", "global",
    "stacks", "links",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(chips, st.sampled_from(GROWN), st.sampled_from([2, 3]), st.sampled_from(sorted(NODES)))
def test_more_of_anything_is_never_smaller(chip: Chip, field: str, factor: int, name: str) -> None:
    node = NODES[name]
    assert area_of(larger(chip, field, factor), node).total >= area_of(chip, node).total


@settings(max_examples=60, deadline=None)
@given(chips, st.sampled_from(GROWN), st.sampled_from([2, 3]), st.sampled_from(sorted(NODES)))
def test_more_of_anything_but_registers_never_raises_the_held_clock(
    chip: Chip, field: str, factor: int, name: str
) -> None:
    """More registers make larger tiles, which need fewer bytes."""
    if field != "register_bytes":
        assert held_of(larger(chip, field, factor), NODES[name]) <= held_of(chip, NODES[name])


@settings(max_examples=60, deadline=None)
@given(chips, st.floats(50, 1500), st.floats(1, 2), st.sampled_from(sorted(NODES)))
def test_a_higher_limit_never_lowers_the_held_clock_and_is_met(
    chip: Chip, limit: float, factor: float, name: str
) -> None:
    node = NODES[name]
    low, high = (
        clocked_in(replace(chip, power=power_limit(watts)), node)
        for watts in (limit, limit * factor)
    )
    top = min(chip.clock_hz, node.voltage.most_hz)
    assert low.held_hz <= high.held_hz <= top
    if low.held_hz:
        assert low.held_w <= limit
        assert power_at(low.power, node, low.held_hz * (1 + 1e-9)) > limit or low.held_hz == top


def test_a_chip_is_refused_only_for_fixed_power_or_half_its_clock() -> None:
    said = [
        refusal(replace(load_chip("h100"), power=power_limit(limit)))
        for limit in (100.0, 300.0, 700.0)
    ]
    assert said[0] is not None and "HBM and links alone" in said[0]
    assert said[1] is not None and "below half" in said[1]
    assert said[2] is None


def test_vector_work_can_set_the_clock() -> None:
    chip, node = load_chip("h100"), NODES["n5"]
    arrays, lanes = replace(chip.clusters, rows=4, columns=4), replace(chip.vectors, lanes=4096)
    wide = columns_of([replace(chip, clusters=arrays, vectors=lanes)])
    power = clock_power(wide, node, areas_of(wide, node))
    assert power.vector_j > power.product_j
    limit = np.array([700.0])
    idle = replace(power, vector_j=np.zeros(1))
    assert held_clocks(power, node, wide.clock_hz, limit) < held_clocks(
        idle, node, wide.clock_hz, limit
    )


def _cost(chip: Chip, terms: Terms) -> Manufacturing:
    cost = manufacturing_of(chip, terms)
    assert cost is not None
    return cost


def test_faster_links_cost_their_share_of_switches_and_cables() -> None:
    chip, terms = load_chip("h100"), load_terms()
    fast = replace(
        chip, links=replace(chip.links, bandwidth_bytes_per_s=2 * chip.links.bandwidth_bytes_per_s)
    )
    plain, joined = _cost(chip, terms), _cost(fast, terms)
    assert joined.links_usd - plain.links_usd == pytest.approx(links_usd(450e9))
    assert joined.die_usd > plain.die_usd
    assert plain.hbm_usd == 5 * 198


def test_a_chip_of_base_dies_is_cheaper_than_one_of_a_single_process() -> None:
    cost = _cost(load_chip("mi300x"), load_terms())
    assert 0 < cost.die_usd < 1500
