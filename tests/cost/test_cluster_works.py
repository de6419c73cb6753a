"""Works on chips of clusters: the table of version 1, and a measured layer with no share of the
chip fitted."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from phaze.cost.accuracy import block_works
from phaze.cost.chip_set import ChipSet
from phaze.cost.collective import collective
from phaze.cost.mapping import product
from phaze.cost.table import Column, cost_works
from phaze.cost.work import Work, works_of
from phaze.graph.fuse import fuse_layer
from phaze.graph.zoo import load_model
from phaze.hardware.calibration import DATASHEET, Constants, constants_of
from phaze.hardware.columns import ChipColumns, columns_of
from phaze.hardware.library import load_chip, load_cluster
from phaze.search.chips import enumerate_space
from phaze.search.spaces import load_space
from tests.cost.test_vector import streamed

Floats = NDArray[np.float64]
# One layer of 22B on 8 A100: Korthikanti et al. 2022, Table 4.
LAYER = {"hidden": 6144, "heads": 64, "sequence": 2048, "tensor": 8, "microbatch": 4}
FORWARD_S, BACKWARD_S = 7.7e-3, 11.9e-3


def on_clusters(
    works: Sequence[Work], chips: ChipColumns, clock_hz: Floats, constants: Constants
) -> Column:
    none = np.zeros(len(chips))
    return cost_works(works, ChipSet(chips, clock_hz, none, none), constants)


def test_a_work_of_products_takes_their_cycles_at_the_clock_held() -> None:
    held = load_chip("h100")
    p, q = product(1, 2048, 2048, 2048), product(4, 512, 512, 128)
    works = (Work("tensor", (p, q)), Work("vector", vector=streamed(10**8, 28.0)), Work("none"))
    table = on_clusters(works, columns_of([held]), np.array([held.clock_hz]), DATASHEET)
    clock = np.array([held.clock_hz])
    alone = [
        on_clusters([Work("tensor", (x,))], columns_of([held]), clock, DATASHEET) for x in (p, q)
    ]
    start = DATASHEET.start_up_s
    assert table.time_s(0)[0] - start == pytest.approx(
        sum(float(one.time_s(0)[0]) - start for one in alone)
    )
    assert table.time_s(1)[0] >= 28e8 / held.hbm.bandwidth_bytes_per_s
    assert table.time_s(2)[0] == 0
    halved = on_clusters(
        works, columns_of([held]), np.array([held.clock_hz]), replace(DATASHEET, software_share=0.5)
    )
    assert halved.time_s(0)[0] - start == pytest.approx(2 * (table.time_s(0)[0] - start))


def test_every_chip_of_a_space_is_costed_at_its_own_clock() -> None:
    space = load_space("n5-reticle")
    found = enumerate_space(space)
    some = np.linspace(0, len(found) - 1, 60).astype(int)
    chips, held = found.chips.taken(some), found.held_hz[some]
    work = [Work("tensor", (product(1, 1024, 1024, 1024),))]
    together = on_clusters(work, chips, held, DATASHEET).time_s(0)
    for at in range(0, 60, 7):
        alone = on_clusters(work, chips.taken(np.array([at])), held[at : at + 1], DATASHEET).time_s(
            0
        )
        assert alone[0] == together[at]


def test_a_measured_layer_is_met_within_4_percent_with_no_share_of_the_chip_fitted() -> None:
    held, cluster = load_chip("a100-80gb"), load_cluster("selene")
    constants = constants_of(load_chip("a100-80gb").calibration, "calibrated", "training")
    found = []
    for works, hidden in zip(block_works(LAYER), (False, True), strict=True):
        times = on_clusters(
            works, columns_of([held]), np.array([held.clock_hz]), constants
        ).times_s()[:, 0]
        total = float(times.sum())
        for i, work in enumerate(works):
            if work.collective is not None:
                waited = collective(
                    "all_reduce", work.collective.bytes, work.collective.group, cluster
                ).time_s
                beside = (
                    [float(times[j]) for j in range(i) if works[j].core == "tensor"][-1:]
                    if hidden
                    else []
                )
                total += max(0.0, waited - sum(beside))
        found.append(total)
    assert found == pytest.approx([FORWARD_S, BACKWARD_S], rel=0.04)


@pytest.mark.parametrize(
    ("name", "real", "most_ratio", "densest"),
    [("n7-reticle", "a100-80gb", 2.0, 0.56), ("n5-reticle", "h100", 1.5, 1.41)],
)
def test_the_best_chip_of_a_reticle_could_be_built(
    name: str, real: str, most_ratio: float, densest: float
) -> None:
    """For a layer of llama3-70b alone, without network: Dojo D1 and B200 are the densest that were
    shipped."""
    model = load_model("llama3-70b", tensor=8, microbatch=1)
    block = fuse_layer(
        next(layer for i, layer in enumerate(model.layers) if model.count(i) > 1), "chains"
    )
    works = (*works_of(block.forward), *works_of(block.backward))
    space = load_space(name)
    found, held = enumerate_space(space), load_chip(real)
    seconds = on_clusters(works, found.chips, found.held_hz, DATASHEET).times_s().sum(axis=0)
    shipped = (
        on_clusters(works, columns_of([held]), np.array([held.clock_hz]), DATASHEET).times_s().sum()
    )
    best = int(np.argmin(seconds))
    chip = found.chip(best)
    density = 2e-12 * chip.macs * found.held_hz[best] / found.die_mm2[best]
    assert 1 < shipped / seconds[best] <= most_ratio
    assert density <= 1.5 * densest
    assert chip.clusters.count >= 4
    assert chip.lanes >= 1024
