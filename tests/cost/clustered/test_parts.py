"""Chips of a space of clusters as parts of costs, and the energy of products on them."""

from dataclasses import replace

import numpy as np
import pytest

from phaze.cost.chip_set import ClusterSet, chip_set, column_of, table_of
from phaze.cost.clustered.energy import cluster_energies
from phaze.cost.clustered.gemm import best_by_front
from phaze.cost.clustered.mapping import cluster_part
from phaze.cost.clustered.parts import cluster_sides, product_rows, vector_sides
from phaze.cost.clustered.products import map_on_clusters, part_rows, sweep_on_clusters
from phaze.cost.mapping import product
from phaze.cost.sustained import SustainedChip, sustain
from phaze.cost.vector import sweep_vector
from phaze.cost.work import Work
from phaze.hardware.calibration import IDEAL
from phaze.hardware.silicon.design import load_cluster_chip
from phaze.hardware.silicon.files import load_accelerator
from phaze.hardware.silicon.space import ClusterSpace, SpaceColumns, load_cluster_space, space_columns
from phaze.hardware.silicon.space_chip import space_chip
from tests.cost.clustered.product_energy import product_energy
from tests.cost.test_vector import streamed


@pytest.fixture(scope="module")
def opened() -> tuple[ClusterSpace, SpaceColumns]:
    space = load_cluster_space("n5-reticle")
    return space, space_columns(space)


def test_rows_of_a_space_are_the_parts_of_its_chips(opened: tuple[ClusterSpace, SpaceColumns]) -> None:
    space, found = opened
    rows = product_rows(found.chips, found.held_hz)
    for index in np.linspace(0, len(found) - 1, 20).astype(int):
        part = cluster_part(space_chip(space, found, int(index)), float(found.held_hz[index]))
        assert (rows[index] == part_rows([part])[0]).all()


def test_chips_share_cluster_sides_whatever_clock_they_hold(opened: tuple[ClusterSpace, SpaceColumns]) -> None:
    _, found = opened
    rows = product_rows(found.chips, found.held_hz)
    sides, of = cluster_sides(rows)
    assert len(sides) * 15 < len(found)
    assert (sides[of] == rows[:, :8]).all()
    some = np.linspace(0, len(found) - 1, 40).astype(int)
    p = product(1, 1024, 512, 2048)
    swept = sweep_on_clusters([p], rows[some]).cycles[0]
    for at, index in enumerate(some[:8]):
        part = cluster_part(space_chip(opened[0], found, int(index)), float(found.held_hz[index]))
        assert swept[at] == map_on_clusters(p, part).cycles


def test_a_vector_operator_that_streams_takes_its_bytes_over_hbm(opened: tuple[ClusterSpace, SpaceColumns]) -> None:
    _, found = opened
    few = found.chips.taken(np.arange(50))
    parts, of = vector_sides(few, found.held_hz[:50])
    seconds = sweep_vector([streamed(10**9, 28.0)], parts).time_s[0][of]
    assert (seconds >= 28e9 / few.hbm_bytes_per_s * (1 - 1e-12)).all()


def spent_w(held: SustainedChip, m: int, n: int, k: int) -> float:
    p = product(1, m, n, k)
    cost = best_by_front(p, cluster_part(held.chip, held.held_hz))
    assert held.node is not None and held.areas is not None and held.power is not None
    found = product_energy(p, cost, held.chip, held.node, held.areas, held.power, held.held_hz)
    return found.total / (cost.cycles / held.held_hz)


@pytest.mark.parametrize("name", ["a100-80gb", "h100", "mi300x", "tpu-v4"])
def test_a_large_product_draws_about_what_set_its_clock(name: str) -> None:
    """The clock is set by a product whose arrays never wait and whose tiles fill the registers."""
    held = sustain(load_accelerator(name))
    assert held.held_power_w is not None
    assert 0.7 * held.held_power_w <= spent_w(held, 8192, 8192, 8192) <= 1.2 * held.held_power_w


def test_a_product_that_waits_for_hbm_draws_less_than_a_large_one() -> None:
    held = sustain(load_accelerator("h100"))
    assert spent_w(held, 1, 8192, 8192) < spent_w(held, 8192, 8192, 8192)


def test_arrays_that_share_operands_spend_less_at_their_edges() -> None:
    chip = load_accelerator("h100")
    apart = replace(chip, clusters=replace(chip.clusters, broadcast=False))
    assert spent_w(sustain(replace(chip, sustained_w=None)), 8192, 8192, 8192) < spent_w(
        sustain(replace(apart, sustained_w=None)), 8192, 8192, 8192
    )


@pytest.mark.parametrize("name", ["a100-80gb", "mi300x", "tpu-v4"])
def test_energies_of_many_chips_are_those_of_one_product_part_by_part(name: str) -> None:
    chip, p = load_cluster_chip(name), product(2, 1024, 640, 512)
    held = sustain(load_accelerator(name))
    assert held.node is not None and held.areas is not None and held.power is not None
    chips = chip_set([chip, chip])
    assert isinstance(chips, ClusterSet) and chip.clock_hz == held.held_hz
    cost = map_on_clusters(p, cluster_part(held.chip, held.held_hz))
    one = product_energy(p, cost, held.chip, held.node, held.areas, held.power, held.held_hz)
    many = cluster_energies(column_of([Work("tensor", (p,))], chips, IDEAL), 0, chips, held.node)
    assert many.tensor_arrays == pytest.approx([one.arrays] * 2)
    assert many.tensor_buffers == pytest.approx([one.edges + one.delivery] * 2)
    assert many.global_buffer == pytest.approx([one.global_buffer] * 2)
    assert many.hbm == pytest.approx([one.hbm] * 2)


@pytest.mark.parametrize("name", ["h100", "tpu-v4"])
def test_one_cluster_is_never_faster_than_all_and_all_of_them_at_once_ask_for_no_more_than_there_is(name: str) -> None:
    chips = chip_set([load_cluster_chip(name)])
    count = int(chips.tensor_cores[0])
    for batch, m, n, k in ((1, 64, 64, 64), (1, 2048, 2048, 512), (16, 128, 128, 1024)):
        table = table_of([Work("tensor", (product(batch, m, n, k),))], chips, IDEAL)
        one, spread = table.one_core.time_s(0)[0], table.all_cores.time_s(0)[0]
        assert one >= spread * (1 - 1e-12)
        # As many of them as there are clusters do the work of so many products: the whole chip is no slower at that.
        many = column_of([Work("tensor", (product(count * batch, m, n, k),))], chips, IDEAL).time_s(0)[0]
        assert many <= one * (1 + 1e-12)
