"""Interleaved 1F1B: given plans with any chunks, their check, their timeline, and what cannot be
interleaved."""

import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.pipeline.families import GPIPE, interleaved
from phaze.placement.answer import document_of
from phaze.placement.layout import Shape
from phaze.placement.pipeline import fits, price
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.simulate import timeline
from phaze.placement.structure import StageCut
from tests.check.documents import objections
from tests.check.test_plan_fields import require_every_field_checked
from tests.placement.placement_cases import random_cluster_problem


def random_plan(seed: int) -> tuple[PlacementProblem, Plan]:
    """A plan with chunks of a small chain, fitting or not."""
    rng = random.Random(seed)
    problem = random_cluster_problem(seed, chain=True)
    chunks = rng.randint(2, 5)
    rules = replace(
        problem.rules, families=(interleaved(chunks),), piece_start_s=rng.choice([0.0, 0.3])
    )
    rules = replace(rules, overlapped_transfers=seed % 3 == 1)
    problem = replace(problem, rules=rules, devices=8, microbatches=rng.choice([4, 6, 8, 12]))
    layers = problem.graphs[0].layers
    shapes = [
        (s, d) for s in range(1, len(layers) + 1) for d in (1, 2) if problem.rounds(d) % s == 0
    ]
    shapes = [(s, d) for s, d in shapes if s * d * problem.graphs[0].width <= problem.devices]
    stages, data = rng.choice(shapes)
    ends = sorted(rng.sample(range(1, len(layers)), stages - 1))
    cuts = [
        StageCut(tuple(la.id for la in layers[a:b]), rng.choice(problem.modes()))
        for a, b in zip([0, *ends], [*ends, len(layers)], strict=True)
    ]
    shape = Shape(problem.graphs[0].width, stages, data, rng.choice(problem.rules.orders), chunks)
    return problem, price(problem, shape, cuts, NetworkPrices(problem.cluster))


@given(st.integers(0, 10**6))
def test_the_checker_agrees_with_every_interleaved_plan_and_its_breakdown_sums(seed: int) -> None:
    problem, plan = random_plan(seed)
    document = {**document_of(plan), "feasible": fits(problem, plan)}
    assert objections(problem, document, NetworkPrices(problem.cluster)) == []
    assert sum(getattr(plan.breakdown, name) for name in plan.breakdown.__slots__) == pytest.approx(
        plan.batch_s
    )


@given(st.integers(0, 10**6))
def test_a_batch_takes_no_less_than_its_microbatches_in_the_slowest_stage(seed: int) -> None:
    problem, plan = random_plan(seed)
    rounds = problem.rounds(plan.data)
    assert plan.batch_s >= rounds * max(stage.time_s for stage in plan.stages) * (1 - 1e-12)
    busiest_s = [
        max(s.forward_s + s.backward_s, s.forward_transfer_s, s.backward_transfer_s)
        for s in plan.stages
    ]
    assert plan.simulated_s >= rounds * max(busiest_s) * (1 - 1e-12)


@given(st.integers(0, 10**6))
def test_a_stage_takes_no_less_than_its_work_nor_than_its_transfers_and_no_more_than_both(
    seed: int,
) -> None:
    problem, plan = random_plan(seed)
    for stage in plan.stages:
        work_s, moved_s = (
            stage.forward_s + stage.backward_s,
            stage.forward_transfer_s + stage.backward_transfer_s,
        )
        assert max(work_s, moved_s) * (1 - 1e-12) <= stage.time_s <= stage.blocking_s * (1 + 1e-12)
        assert plan.batch_s >= problem.rounds(plan.data) * moved_s * (1 - 1e-12)


def test_the_checker_objects_to_every_changed_number_of_an_interleaved_plan() -> None:
    problem, plan = next(
        (problem, plan)
        for problem, plan in map(random_plan, range(1000))
        if len(plan.stages) > 2 and fits(problem, plan)
    )
    # Nothing is proved of a plan that is given, and its bound of 0 may be any other below its time.
    require_every_field_checked(problem, dict(document_of(plan)), trusted=("lower_bound_s",))


def test_a_timeline_has_every_piece_once_and_none_before_it_may_start() -> None:
    problem, plan = next(
        (p, q) for p, q in map(random_plan, range(1000)) if len(q.stages) == 3 and q.chunks == 3
    )
    rounds = problem.rounds(plan.data)
    line = timeline(plan, rounds)
    assert line.forward_s.shape == (3, rounds * 3)
    pieces = [stage.forward_s / 3 for stage in plan.stages]
    assert (line.forward_s[1:] >= line.forward_s[:-1] + np.array(pieces[:-1])[:, None] - 1e-9).all()
    assert (line.backward_s >= line.forward_s).all()


def test_microbatches_that_are_no_multiple_of_the_stages_are_refused() -> None:
    problem, plan = next((p, q) for p, q in map(random_plan, range(1000)) if len(q.stages) == 3)
    cuts = [StageCut(stage.layers, "none") for stage in plan.stages]
    shape, prices = (
        Shape(plan.tensor, 3, 1, "pipeline", plan.chunks),
        NetworkPrices(problem.cluster),
    )
    with pytest.raises(InputError, match="multiple of the 3 stages"):
        price(replace(problem, microbatches=7), shape, cuts, prices)
    with pytest.raises(InputError, match=f"{plan.chunks} under gpipe"):
        price(
            replace(problem, rules=replace(problem.rules, families=(GPIPE,))), shape, cuts, prices
        )
