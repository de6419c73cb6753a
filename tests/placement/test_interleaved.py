"""Interleaved 1F1B: its events against its formula, the checker, and the floor of all plans."""

import copy
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.errors import InputError
from phaze.placement.answer import document_of
from phaze.placement.check import run_pieces
from phaze.placement.cluster_check import objections
from phaze.placement.cluster_layout import Shape
from phaze.placement.cluster_pipeline import ModeCut, fits, price
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.cluster_problem import ORDERS, ClusterProblem
from phaze.placement.cluster_solve import least_seconds
from phaze.placement.event_kernels import interleaved_events
from phaze.placement.problem import Plan
from phaze.placement.simulate import timeline
from tests.placement.cluster_cases import random_cluster_problem
from tests.placement.test_check import _at, _corrupted, _leaves

NOTHING = np.empty((2, 0, 0))
SECONDS = st.floats(0.01, 10.0)


def random_plan(seed: int) -> tuple[ClusterProblem, Plan]:
    """A plan with chunks of a small chain, fitting or not."""
    rng = random.Random(seed)
    problem = random_cluster_problem(seed, chain=True)
    problem = replace(problem, schedule="1f1b", devices=8, microbatches=rng.choice([4, 6, 8, 12]))
    layers = problem.graphs[0].layers
    shapes = [(s, d) for s in range(1, len(layers) + 1) for d in (1, 2) if problem.rounds(d) % s == 0]
    shapes = [(s, d) for s, d in shapes if s * d * problem.graphs[0].width <= problem.devices]
    stages, data = rng.choice(shapes)
    ends = sorted(rng.sample(range(1, len(layers)), stages - 1))
    cuts = [
        ModeCut(tuple(la.id for la in layers[a:b]), rng.choice(problem.modes))
        for a, b in zip([0, *ends], [*ends, len(layers)], strict=True)
    ]
    shape = Shape(problem.graphs[0].width, stages, data, rng.choice(ORDERS))
    return problem, price(problem, shape, cuts, RingPrices(problem.cluster), rng.randint(2, 5))


@given(st.integers(1, 8), st.integers(1, 6), st.integers(1, 5), SECONDS, SECONDS)
def test_events_of_equal_stages_end_when_the_formula_says(
    stages: int, chunks: int, laps: int, forward_s: float, backward_s: float
) -> None:
    rounds, both = laps * stages, forward_s + backward_s
    end_s = interleaved_events(np.full(stages, forward_s), np.full(stages, backward_s), rounds, chunks, NOTHING)
    assert end_s == pytest.approx(rounds * both + (stages - 1) * both / chunks, rel=1e-9)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=6), st.integers(1, 4), st.integers(1, 4))
def test_events_are_those_of_the_plain_run_and_never_beat_the_slowest_stage(
    stages: list[tuple[float, float]], chunks: int, laps: int
) -> None:
    ahead, behind = (np.array(column) for column in zip(*stages, strict=True))
    rounds = laps * len(stages)
    end_s = interleaved_events(ahead, behind, rounds, chunks, NOTHING)
    assert end_s == pytest.approx(run_pieces(stages, rounds, chunks), rel=1e-12)
    assert end_s >= rounds * (ahead + behind).max() * (1 - 1e-12)


@given(st.integers(0, 10**6))
def test_the_checker_agrees_with_every_interleaved_plan_and_its_breakdown_sums(seed: int) -> None:
    problem, plan = random_plan(seed)
    document = {**document_of(plan), "feasible": fits(problem, plan)}
    assert objections(problem, document, RingPrices(problem.cluster)) == []
    assert sum(getattr(plan.breakdown, name) for name in plan.breakdown.__slots__) == pytest.approx(plan.batch_s)


@given(st.integers(0, 10**6))
def test_no_plan_with_chunks_is_below_the_floor_of_all_plans(seed: int) -> None:
    problem, plan = random_plan(seed)
    if fits(problem, plan):
        assert least_seconds(problem, RingPrices(problem.cluster)) <= plan.batch_s * (1 + 1e-9)


def test_the_checker_objects_to_every_changed_number_of_an_interleaved_plan() -> None:
    problem, plan = next(
        (problem, plan)
        for problem, plan in map(random_plan, range(1000))
        if len(plan.stages) > 2 and fits(problem, plan)
    )
    good = {**document_of(plan), "feasible": True}
    prices = RingPrices(problem.cluster)
    assert objections(problem, good, prices) == []
    for path in _leaves(good):
        if path[-1] == "lower_bound_s":
            continue
        for value in _corrupted(_at(good, path)):
            bad = copy.deepcopy(good)
            _at(bad, path[:-1])[path[-1]] = value
            assert objections(problem, bad, prices) != [], (path, value)


def test_a_timeline_has_every_piece_once_and_none_before_it_may_start() -> None:
    problem, plan = next((p, q) for p, q in map(random_plan, range(1000)) if len(q.stages) == 3 and q.chunks == 3)
    rounds = problem.rounds(plan.data)
    line = timeline(plan, rounds)
    assert line.forward_s.shape == (3, rounds * 3)
    pieces = [stage.forward_s / 3 for stage in plan.stages]
    assert (line.forward_s[1:] >= line.forward_s[:-1] + np.array(pieces[:-1])[:, None] - 1e-9).all()
    assert (line.backward_s >= line.forward_s).all()


def test_microbatches_that_are_no_multiple_of_the_stages_are_refused() -> None:
    problem, plan = next((p, q) for p, q in map(random_plan, range(1000)) if len(q.stages) == 3)
    cuts = [ModeCut(stage.layers, "none") for stage in plan.stages]
    shape = Shape(plan.tensor, 3, 1, "pipeline")
    with pytest.raises(InputError, match="multiple of the 3 stages"):
        price(replace(problem, microbatches=7), shape, cuts, RingPrices(problem.cluster), 2)
    with pytest.raises(InputError, match="2 under gpipe"):
        price(replace(problem, schedule="gpipe"), shape, cuts, RingPrices(problem.cluster), 2)
