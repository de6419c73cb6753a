"""Chips of a space of clusters as parts of costs, and the energy of products on them."""

import numpy as np
import pytest
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet, chip_set
from phaze.cost.energy import energies
from phaze.cost.mapping import product
from phaze.cost.parts import tensor_parts, vector_parts
from phaze.cost.products import core_sides, map_product, sweep_products
from phaze.cost.table import cost_table, cost_works
from phaze.cost.vector import sweep_vector
from phaze.cost.work import Work
from phaze.hardware.calibration import IDEAL
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import at_held_clock, clocked
from phaze.hardware.library import load_chip
from phaze.search.chips import SpaceChips, enumerate_space
from phaze.search.space import Space
from phaze.search.spaces import load_space
from phaze.values import replace
from tests.cost.product_energy import product_energy
from tests.cost.test_vector import streamed
from tests.hardware.chips import part_at, stated_chip


@pytest.fixture(scope="module")
def opened() -> tuple[Space, SpaceChips]:
    space = load_space("n5-reticle")
    return space, enumerate_space(space)


def set_of(found: SpaceChips, index: NDArray[np.int64]) -> ChipSet:
    """Chips of a space at the clocks that they hold."""
    return ChipSet(found.chips, found.held_hz, found.area_mm2, found.area_mm2).taken(index)


def spaced(found: SpaceChips, count: int) -> NDArray[np.int64]:
    return np.linspace(0, len(found) - 1, count).astype(np.int64)


def test_parts_of_a_space_are_those_of_its_chips(opened: tuple[Space, SpaceChips]) -> None:
    _, found = opened
    index = spaced(found, 20)
    parts, part_of = tensor_parts(set_of(found, index), IDEAL)
    for place, chip in enumerate(index):
        alone = part_at(found.chip(int(chip)), float(found.held_hz[chip]))
        assert parts.part(int(part_of[place])) == alone


def test_the_part_of_an_accelerator_has_what_its_file_says() -> None:
    chip = stated_chip("h100")
    part, clusters, shared = part_at(chip, 1.5e9, 0.5), chip.clusters, chip.global_buffer
    assert (part.cores, part.arrays) == (clusters.count, clusters.arrays)
    assert (part.rows, part.columns) == (clusters.rows, clusters.columns)
    assert (part.buffer_bytes, part.sum_bytes) == (
        clusters.operand_bytes,
        chip.vectors.register_bytes / 2,
    )
    assert part.port_bytes_per_s == clusters.port_bytes_per_cycle
    assert (part.global_bytes, part.global_bytes_per_s) == (
        shared.size_bytes,
        chip.global_bytes_per_cycle,
    )
    assert (part.fan_out, part.multicast) == (shared.fan_out, shared.fan_out)
    assert part.hbm_bytes_per_s == chip.hbm.bandwidth_bytes_per_s * 0.5 / 1.5e9
    assert part.units_per_s == 1.5e9


def test_chips_share_core_sides_whatever_clock_they_hold(opened: tuple[Space, SpaceChips]) -> None:
    _, found = opened
    parts, _ = tensor_parts(set_of(found, np.arange(len(found))), IDEAL)
    assert len(core_sides(parts)[0]) * 15 < len(found)
    index = spaced(found, 40)
    some, part_of = tensor_parts(set_of(found, index), IDEAL)
    p = product(1, 1024, 512, 2048)
    swept = sweep_products([p], some).time_s[0][part_of]
    for place, chip in enumerate(index[:8]):
        part = part_at(found.chip(int(chip)), float(found.held_hz[chip]))
        assert swept[place] == map_product(p, part).time_s


def test_a_vector_operator_that_streams_takes_its_bytes_over_hbm(
    opened: tuple[Space, SpaceChips],
) -> None:
    _, found = opened
    few = set_of(found, np.arange(50))
    parts, of = vector_parts(few, IDEAL)
    seconds = sweep_vector([streamed(10**9, 28.0)], parts).time_s[0][of]
    assert (seconds >= 28e9 / few.hbm_bytes_per_s * (1 - 1e-12)).all()


def spent_w(chip: Chip, m: int, n: int, k: int) -> float:
    p = product(1, m, n, k)
    cost = map_product(p, part_at(chip, chip.clock_hz))
    return product_energy(p, cost, chip).total / (cost.time_s / chip.clock_hz)


@pytest.mark.parametrize("name", ["a100-80gb", "h100", "mi300x", "tpu-v4"])
def test_a_large_product_draws_about_what_set_its_clock(name: str) -> None:
    """The clock is set by a product whose arrays never wait and whose tiles fill the registers."""
    chip = load_chip(name)
    held = clocked(chip)
    assert held is not None
    assert 0.7 * held.held_w <= spent_w(chip, 8192, 8192, 8192) <= 1.2 * held.held_w


def test_a_product_that_waits_for_hbm_draws_less_than_a_large_one() -> None:
    held = load_chip("h100")
    assert spent_w(held, 1, 8192, 8192) < spent_w(held, 8192, 8192, 8192)


def test_arrays_that_share_operands_spend_less_at_their_edges() -> None:
    chip = replace(load_chip("h100"), power=None)
    apart = replace(chip, clusters=replace(chip.clusters, broadcast=False))
    together_w, apart_w = (spent_w(at_held_clock(some), 8192, 8192, 8192) for some in (chip, apart))
    assert together_w < apart_w


@pytest.mark.parametrize("name", ["a100-80gb", "mi300x", "tpu-v4"])
def test_energies_of_many_chips_are_those_of_one_product_part_by_part(name: str) -> None:
    chip, p = load_chip(name), product(2, 1024, 640, 512)
    chips = chip_set([chip, chip])
    assert chip.process is not None
    one = product_energy(p, map_product(p, part_at(chip, chip.clock_hz)), chip)
    many = energies(cost_works([Work("tensor", (p,))], chips, IDEAL), 0, chips, chip.process)
    assert many.tensor_arrays == pytest.approx([one.arrays] * 2)
    assert many.tensor_buffers == pytest.approx([one.edges + one.delivery] * 2)
    assert many.global_buffer == pytest.approx([one.global_buffer] * 2)
    assert many.hbm == pytest.approx([one.hbm] * 2)


@pytest.mark.parametrize("name", ["h100", "tpu-v4"])
def test_one_cluster_is_never_faster_than_all_and_all_of_them_at_once_ask_for_no_more_than_there_is(
    name: str,
) -> None:
    chips = chip_set([load_chip(name)])
    count = int(chips.tensor_cores[0])
    for batch, m, n, k in ((1, 64, 64, 64), (1, 2048, 2048, 512), (16, 128, 128, 1024)):
        table = cost_table([Work("tensor", (product(batch, m, n, k),))], chips, IDEAL)
        one, spread = table.one_core.time_s(0)[0], table.all_cores.time_s(0)[0]
        assert one >= spread * (1 - 1e-12)
        # As many of them as there are clusters do the work of so many products: the whole chip is
        # no slower at that.
        many = cost_works(
            [Work("tensor", (product(count * batch, m, n, k),))], chips, IDEAL
        ).time_s(0)[0]
        assert many <= one * (1 + 1e-12)
