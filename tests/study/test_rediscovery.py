"""Would a search have built the chips that exist? The marks were set before the searches were
run."""

import json
from collections.abc import Callable

import pytest

from phaze.hardware.library import load_chip
from phaze.search.chips import enumerate_space
from phaze.study.rediscovery import CHIPS, MODELS, rediscovered, space_within
from tests.conftest import Ran

# Least and most ratio; the densest shipped in TFLOP/s a mm2 (Dojo D1 at n7, B200 at n5).
MARKS = {"a100-80gb": (0.9, 2.0, 0.56), "h100": (0.9, 1.5, 1.41), "tpu-v4": (0.9, 1.1, 0.56)}


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("chip", CHIPS)
def test_a_search_within_the_budget_of_a_real_chip_stays_near_it(chip: str, model: str) -> None:
    row, (least, most, densest) = rediscovered(chip, model), MARKS[chip]
    assert least <= row.ratio <= most
    assert row.densest_shipped == pytest.approx(densest, abs=0.005)
    assert row.tflops_per_mm2 <= 1.5 * densest
    assert row.clusters >= 4
    assert row.accepted_at_tdp
    assert row.gap <= 1e-3


@pytest.mark.slow
def test_the_table_is_printed(phaze: Callable[..., Ran]) -> None:
    done = phaze("validate", "--rediscovery", "--json")
    assert [(row["chip"], row["model"]) for row in json.loads(done.out)["rows"]] == [
        (chip, model) for chip in CHIPS for model in MODELS
    ]


@pytest.mark.parametrize("name", CHIPS)
def test_chips_within_a_real_ones_budget_have_its_memory_and_links_and_no_more_area(
    name: str,
) -> None:
    chip = load_chip(name)
    opened = enumerate_space(space_within(chip))
    assert opened.space.memories == (chip.hbm.size_bytes,)
    assert (opened.link_bytes_per_s == chip.links.bandwidth_bytes_per_s).all()
    found = opened.chip(len(opened) // 2)
    assert found.hbm.bandwidth_bytes_per_s == pytest.approx(chip.hbm.bandwidth_bytes_per_s)
    assert opened.area_mm2.max() <= opened.area_budget()
    assert opened.design_w().max() <= (chip.published.tdp_w or 0.0) * (1 + 1e-9)


def test_rediscovery_and_another_question_at_once_are_refused(phaze: Callable[..., Ran]) -> None:
    assert phaze("validate", "--rediscovery", "--silicon").code == 2
