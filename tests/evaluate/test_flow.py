"""The whole flow on one chip: BERT-large on the paper's chip, from graph to proved plan."""

from dataclasses import replace

import pytest

from phaze.cost.parts import chip_arrays
from phaze.evaluate.flow import (
    Prepared,
    Training,
    graph_of,
    layer_schedules,
    placement_of,
    plan_on,
    prepare,
    seconds_of,
)
from phaze.evaluate.passes import table_of, times_on
from phaze.graph.zoo import load_model
from phaze.hardware.library import load_chip
from phaze.placement.answer import document_of
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.one.check import objections
from phaze.schedule.problem import Schedule

LINK = 2.0**32
PAPER = Training(1024, 4096, LINK)


@pytest.fixture(scope="module")
def bert() -> Prepared:
    return prepare(load_model("bert-large"), LINK)


@pytest.fixture(scope="module")
def schedules(bert: Prepared) -> tuple[Schedule, ...]:
    return layer_schedules(bert, load_chip("tpu-v4-paper"))


def test_every_layer_of_bert_has_a_proved_schedule(bert: Prepared, schedules: tuple[Schedule, ...]) -> None:
    assert [len(layer.forward.works) for layer in bert.layers][1] > 8
    assert len(schedules) == 2 * len(bert.layers)
    assert all(schedule.optimal for schedule in schedules)


def test_a_schedule_lies_between_its_longest_path_and_all_operators_in_turn(
    bert: Prepared, schedules: tuple[Schedule, ...]
) -> None:
    table, first = table_of(bert.passes, chip_arrays([load_chip("tpu-v4-paper")])), 0
    for one, schedule in zip(bert.passes, schedules, strict=True):
        singles, spreads = times_on(one, table, first)
        first += len(one.works)
        assert max(min(pair) for pair in zip(singles[:, 0], spreads[:, 0], strict=True)) <= schedule.makespan_s
        assert schedule.makespan_s <= spreads[:, 0].sum() * (1 + 1e-12)


def test_the_plan_of_bert_holds_and_uses_the_devices(bert: Prepared, schedules: tuple[Schedule, ...]) -> None:
    chip = load_chip("tpu-v4-paper")
    plan = plan_on([bert], chip, "none", PAPER)
    assert plan is not None
    problem = placement_of([graph_of(bert, seconds_of(schedules))], 1, "none", chip.hbm.size_bytes, PAPER)
    assert not objections(problem, document_of(plan), RingPrices(problem.cluster))
    assert len(plan.stages) * plan.data <= 1024
    assert plan.batch_s == plan.lower_bound_s
    # 6 parameters x tokens of arithmetic at the chip's peak, all devices busy: no plan is faster.
    least = 6 * 300e6 * 512 * 4096 / (1024 * chip.peak_flops)
    assert least < plan.batch_s < 30 * least


def test_a_batch_and_a_half_takes_more_microbatches() -> None:
    assert Training(8, 12, LINK).microbatches(8) == 2


def test_a_collective_runs_alone_for_its_ring_seconds() -> None:
    split = prepare(load_model("bert-large", 8), LINK)
    block = split.layers[1].forward
    waits = [wait for wait, core in zip(block.network_s, block.cores, strict=True) if core == "none"]
    activations = 512 * 1024 * 2
    assert waits == pytest.approx([2 * 7 / 8 * activations / LINK] * 2)


def test_more_memory_never_slows_a_plan(bert: Prepared, schedules: tuple[Schedule, ...]) -> None:
    graph = graph_of(bert, seconds_of(schedules))
    times = []
    for size in (2, 4, 8, 32):
        from phaze.placement.one.solve import fastest_plan

        plan = fastest_plan(placement_of([graph], 1, "none", size * 2**30, PAPER))
        times.append(float("inf") if plan is None else plan.batch_s)
    assert times == sorted(times, reverse=True)


def test_nothing_fits_on_a_tiny_memory(bert: Prepared) -> None:
    chip = load_chip("tpu-v4-paper")
    assert plan_on([bert], replace(chip, hbm=replace(chip.hbm, size_bytes=2**20)), "full", PAPER) is None
