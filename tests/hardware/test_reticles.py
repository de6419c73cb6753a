"""Spaces of chips of clusters: what is kept and why, and every chip as the definition has it."""

import tomllib
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from phaze.errors import InputError
from phaze.hardware.area import edge_areas, most_stacks
from phaze.hardware.clocked import clocked, refusal
from phaze.hardware.manufacturing import manufacturing_of
from phaze.hardware.ownership import load_terms
from phaze.search.axes import ClusterAxesTable
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.search.space import Space
from phaze.search.spaces import load_space, space_names

SPACES = ("n3-reticle", "n5-reticle", "n7-reticle")


@pytest.fixture(scope="module")
def opened() -> dict[str, tuple[Space, SpaceChips]]:
    return {name: (space := load_space(name), enumerate_space(space)) for name in SPACES}


def test_the_spaces_are_bundled() -> None:
    assert set(SPACES) < set(space_names())


@pytest.mark.parametrize("name", SPACES)
def test_a_chip_of_a_space_is_what_the_definition_says(
    name: str, opened: dict[str, tuple[Space, SpaceChips]]
) -> None:
    _, found = opened[name]
    for index in np.linspace(0, len(found) - 1, 25).astype(int):
        chip = found.chip(int(index))
        held = clocked(chip)
        assert held is not None
        assert held.areas.total == found.area_mm2[index]
        assert chip.clock_hz == held.held_hz == found.held_hz[index]
        assert held.held_w == found.design_w()[index]
        assert refusal(chip) is None
        assert found.die_mm2[index] == max(held.areas.total, edge_areas(chip.hbm.stacks))
        assert chip.hbm.stacks <= most_stacks(found.die_mm2[index] * (1 + 1e-12))


@pytest.mark.parametrize("name", SPACES)
def test_every_chip_of_a_space_keeps_its_limits(
    name: str, opened: dict[str, tuple[Space, SpaceChips]]
) -> None:
    space, found = opened[name]
    keep = space.keep
    assert found.die_mm2.max() <= found.area_budget()
    assert found.area_mm2.min() >= keep.least_share * found.area_budget()
    assert found.design_w().max() <= keep.sustained_power
    assert (found.design_w() <= keep.most_w_per_mm2 * found.area_mm2).all()
    assert (found.held_hz >= 0.5 * space.base.clock_hz).all()
    assert len(found) + sum(found.left_out.values()) == len(space)
    assert (found.chips.built == found.chips.clusters + np.ceil(found.chips.clusters / 12)).all()


def test_a_reticle_of_5_nm_has_tens_of_thousands_of_chips_and_its_base_is_one(
    opened: dict[str, tuple[Space, SpaceChips]],
) -> None:
    space, found = opened["n5-reticle"]
    assert 50_000 < len(found) < 120_000
    own = space.base
    same = (found.chips.clusters == own.clusters.count) & (
        found.chips.arrays == own.clusters.arrays
    )
    same &= (found.chips.rows == own.clusters.rows) & (found.chips.columns == own.clusters.columns)
    same &= (found.chips.stacks == own.hbm.stacks) & (found.chips.lanes == own.vectors.lanes)
    assert same.any()


def test_every_chip_of_a_space_costs_what_the_definition_says(
    opened: dict[str, tuple[Space, SpaceChips]],
) -> None:
    _, found = opened["n5-reticle"]
    terms = load_terms()
    usd = found.making_usd(0)
    for index in np.linspace(0, len(found) - 1, 25).astype(int):
        cost = manufacturing_of(found.chip(int(index)), terms)
        assert cost is not None and cost.usd == usd[index]


def written(tmp_path: Path, before: str, after: str) -> str:
    source = files("phaze.hardware") / "presets" / "silicon" / "spaces" / "n5-reticle.toml"
    text = source.read_text(encoding="utf-8")
    assert before in text
    path = tmp_path / "space.toml"
    path.write_text(text.replace(before, after), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('most_area = "800 mm2"', 'most_area = "900 mm2"', "at most a reticle, 858 mm2"),
        ("arrays = [1, 2, 4, 8]", "arrays = []", r"axes\.arrays"),
        ('base = "n5-reticle-base"', 'base = "n4"', "unknown chip 'n4'"),
        ('base = "n5-reticle-base"', 'base = "tpu-v5e"', "names no technology"),
        ('sustained_power = "700 W"', "", "sustained_power"),
    ],
)
def test_a_fault_is_named_by_its_path(tmp_path: Path, before: str, after: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        load_space(written(tmp_path, before, after))


def test_a_lower_limit_keeps_no_more_chips_and_no_faster_ones(tmp_path: Path) -> None:
    few = "clusters = [8, 12]\narrays = [4, 8]\nrows = [64]\ncolumns = [64]\nlanes = [512]"
    text = (
        files("phaze.hardware") / "presets" / "silicon" / "spaces" / "n5-reticle.toml"
    ).read_text(encoding="utf-8")
    assert set(tomllib.loads(text)["axes"]) == set(ClusterAxesTable.model_fields)
    start, end = text.index("clusters ="), text.index("operand_buffer")
    small = f"{text[:start]}{few}\n{text[end:]}".replace(
        "most_w_per_mm2 = 1.0", "most_w_per_mm2 = 9"
    )
    found = []
    for limit in ("500 W", "700 W"):
        path = tmp_path / f"{limit[:3]}.toml"
        path.write_text(small.replace('"700 W"', f'"{limit}"'), encoding="utf-8")
        found.append(enumerate_space(load_space(str(path))))
    assert 0 < len(found[0]) <= len(found[1])
    assert found[0].held_hz.mean() < found[1].held_hz.mean()


def test_a_space_may_vary_a_chip_and_a_process_of_files(tmp_path: Path) -> None:
    presets = files("phaze.hardware") / "presets" / "silicon"
    process = (
        (presets / "technologies" / "n5.toml")
        .read_text(encoding="utf-8")
        .replace("wafer_usd = 16988", "wafer_usd = 9000")
    )
    (tmp_path / "process.toml").write_text(
        process.replace("logic = 0.6\n", "logic = 0.5\n"), encoding="utf-8"
    )
    base = (presets / "bases" / "n5-reticle-base.toml").read_text(encoding="utf-8")
    base = base.replace('technology = "n5"', f'technology = "{tmp_path / "process.toml"}"')
    (tmp_path / "base.toml").write_text(base, encoding="utf-8")
    space = (presets / "spaces" / "n5-reticle.toml").read_text(encoding="utf-8")
    own = tmp_path / "space.toml"
    own.write_text(
        space.replace('base = "n5-reticle-base"', f'base = "{tmp_path / "base.toml"}"'),
        encoding="utf-8",
    )
    found, bundled = load_space(str(own)), load_space("n5-reticle")
    assert found.technology.name == "n5" and found.technology.fab.wafer_usd == 9000
    assert found.technology.area.mac_mm2 == pytest.approx(
        bundled.technology.area.mac_mm2 * 0.5 / 0.6
    )
    own.write_text(space.replace('base = "n5-reticle-base"', 'base = "No Chip"'), encoding="utf-8")
    with pytest.raises(InputError, match="'No Chip' cannot be used"):
        load_space(str(own))
