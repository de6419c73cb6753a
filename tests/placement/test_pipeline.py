"""What a given plan costs: the formulas by hand, the event simulation, and plans that are no plans."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.errors import InputError
from phaze.placement.event_kernels import events
from phaze.placement.pipeline import Cut, fits, price
from phaze.placement.problem import Layer, Problem, layer_graph
from phaze.placement.simulate import timeline
from phaze.placement.solve import fastest_plan
from tests.placement.placement_cases import every_plan, published, random_problem

SECONDS = st.floats(0.0, 10.0)


def _problem(recompute: str = "none", optimizer: str = "sgd") -> Problem:
    layers = [
        Layer(0, 1.0, 2.0, 10.0, 3.0, False),
        Layer(1, 4.0, 5.0, 20.0, 7.0, True),
        Layer(2, 2.0, 1.0, 30.0, 4.0, True),
    ]
    graph = layer_graph(2, layers, [(0, 1, 6.0), (1, 2, 2.0), (0, 2, 40.0)])
    return Problem(12, 1000.0, 2.0, 7, optimizer, recompute, (graph,))  # type: ignore[arg-type]


def test_a_stage_waits_for_what_enters_and_leaves_it() -> None:
    plan = price(_problem(), 2, 2, [Cut((0,), False), Cut((1, 2), False)])
    first, second = plan.stages
    # Layer 0 ends its backward after the 20 s of the edge to layer 2; layer 2 starts after them.
    assert (first.forward_s, first.backward_s, first.devices) == (1.0, 22.0, 1)
    assert (second.forward_s, second.backward_s, second.devices) == (22.0, 6.0, 2)
    assert plan.batch_s == 28.0 * (4 + 1) + 4 * 0.5 * 10.0 / 2.0


def test_a_stage_that_recomputes_runs_its_forward_pass_again_while_it_waits() -> None:
    plan = price(_problem("full"), 2, 1, [Cut((0, 1), True), Cut((2,), False)])
    # Again 5 s, during which the 20 s edge to layer 0 and the 1 s edge to layer 1 travel.
    assert plan.stages[0].backward_s == max(5.0 + 7.0, 20.0 + 2.0, 1.0 + 7.0)
    assert plan.stages[0].memory.in_flight == 0.0
    assert plan.stages[0].recompute == "full"


@pytest.mark.parametrize(("optimizer", "state"), [("sgd", 2), ("adam", 3)])
def test_memory_holds_state_and_what_is_in_flight(optimizer: str, state: int) -> None:
    cuts = [Cut((0,), False), Cut((1,), False), Cut((2,), False)]
    plan = price(_problem(optimizer=optimizer), 2, 1, cuts)
    assert [stage.memory.total_bytes for stage in plan.stages] == [
        state * 10 + 3 + 2 * 3,
        state * 20 + 7 + 7,
        state * 30 + 4,
    ]


def test_a_recomputing_stage_keeps_what_enters_it() -> None:
    plan = price(_problem("full"), 2, 1, [Cut((0,), True), Cut((1,), True), Cut((2,), False)])
    assert [stage.memory.in_flight for stage in plan.stages] == [0.0, 6.0, 0.0]


def test_a_plan_that_does_not_fit_is_priced() -> None:
    problem = replace(_problem(), hbm_bytes=5.0)
    plan = price(problem, 2, 1, [Cut((0, 1, 2), False)])
    assert plan.batch_s == 15.0 * 7
    assert not fits(problem, plan)


@pytest.mark.parametrize(
    ("tensor", "data", "cuts", "said"),
    [
        (4, 1, [((0, 1, 2), False)], "width 4 is missing"),
        (2, 0, [((0, 1, 2), False)], "0 copies are out of range"),
        (2, 8, [((0, 1, 2), False)], "8 copies are out of range"),
        (2, 7, [((0, 1, 2), False)], "7 copies of 2 devices are more than 12"),
        (2, 1, [], "there is no stage"),
        (2, 1, [((0, 1), False)], "layer 2 is lost"),
        (2, 1, [((0, 1, 2), False), ((2,), False)], "stands twice"),
        (2, 1, [((0, 1, 2), False), ((), False)], "stage is empty"),
        (2, 1, [((1, 2), False), ((0,), False)], "runs backwards"),
        (2, 1, [((0, 1, 2), True)], "the last stage recomputes"),
    ],
)
def test_what_is_no_plan_is_refused(
    tensor: int, data: int, cuts: list[tuple[tuple[int, ...], bool]], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        price(_problem(), tensor, data, [Cut(*cut) for cut in cuts])


@pytest.mark.parametrize("case", published()[::5], ids=lambda case: case.name)
def test_the_breakdown_sums_to_the_batch_time(case: object) -> None:
    problem = case.problem  # type: ignore[attr-defined]
    plan = fastest_plan(problem)
    if plan is not None:
        terms = plan.breakdown
        total = terms.forward_s + terms.backward_s + terms.recompute_s + terms.transfer_s + terms.bubble_s
        assert total + terms.synchronisation_s == pytest.approx(plan.batch_s, rel=1e-12)


@given(st.integers(0, 10**6), st.booleans())
def test_the_simulation_never_takes_longer_than_the_formula(seed: int, chain: bool) -> None:
    for plan in islice(every_plan(random_problem(seed, chain, 4)), 60):
        assert plan.simulated_s <= plan.batch_s
        terms = plan.breakdown
        assert all(value >= 0 for value in (terms.transfer_s, terms.bubble_s, terms.synchronisation_s))


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=9), st.integers(1, 40))
def test_events_end_within_the_formula_for_any_durations(stages: list[tuple[float, float]], rounds: int) -> None:
    forward, backward = (np.array(side) for side in zip(*stages, strict=True))
    end = events(forward, backward, rounds, np.empty((2, 0, 0)))
    longest = float((forward + backward).max())
    assert end <= longest * (rounds + len(stages) - 1) * (1 + 1e-12)
    assert end >= longest * rounds * (1 - 1e-12)


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=9), st.floats(0.1, 10.0), st.integers(1, 40))
def test_events_meet_the_formula_when_stages_take_equal_time(shares: list[float], time_s: float, rounds: int) -> None:
    forward = np.array(shares) * time_s
    end = events(forward, time_s - forward, rounds, np.empty((2, 0, 0)))
    assert end == pytest.approx(time_s * (rounds + len(shares) - 1), rel=1e-12)


def test_a_timeline_runs_every_event_once_and_in_order() -> None:
    problem = replace(published()[9].problem, microbatches=640)
    plan = fastest_plan(problem)
    assert plan is not None
    rounds = -(-problem.microbatches // plan.data)
    line = timeline(plan, rounds)
    assert line.forward_s.shape == line.backward_s.shape == (len(plan.stages), rounds)
    ahead = np.array([stage.forward_s for stage in plan.stages])[:, None]
    behind = np.array([stage.backward_s for stage in plan.stages])[:, None]
    assert (line.forward_s[1:] >= (line.forward_s + ahead)[:-1] - 1e-9).all()
    assert (line.backward_s[:-1] >= (line.backward_s + behind)[1:] - 1e-9).all()
    for i in range(len(plan.stages)):
        starts = np.concatenate([line.forward_s[i], line.backward_s[i]])
        ends = np.concatenate([line.forward_s[i] + ahead[i], line.backward_s[i] + behind[i]])
        order = np.argsort(starts, kind="stable")
        assert (starts[order][1:] >= ends[order][:-1] - 1e-9).all()
    assert line.end_s == pytest.approx((line.backward_s + behind).max())


def test_very_many_microbatches_are_continued_at_the_steady_pace() -> None:
    problem = replace(published()[9].problem, microbatches=10**9)
    plan = fastest_plan(problem)
    assert plan is not None
    assert 0.99 * plan.batch_s < plan.simulated_s <= plan.batch_s
