"""The one solver: both old solvers, the published optima, every plan of small problems, chunks, and the checker."""

import copy
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from phaze.cost.memory import State
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster, Level
from phaze.placement import cluster_solve, solve
from phaze.placement.answer import document_of
from phaze.placement.answer import place as old_place
from phaze.placement.cluster_prices import RingPrices
from phaze.placement.cluster_problem import ClusterProblem
from phaze.placement.cluster_profile import any_problem_of
from phaze.placement.event_kernels import events, gpipe_events, interleaved_events
from phaze.placement.one import by_table
from phaze.placement.one.answer import checked_document, place
from phaze.placement.one.check import objections
from phaze.placement.one.check_events import run_events
from phaze.placement.one.layout import Shape, boundary_levels
from phaze.placement.one.pipeline import Cut, fits, price
from phaze.placement.one.problem import Extra, Plan, Problem
from phaze.placement.one.profile import problem_of
from phaze.placement.one.rules import GPIPE, ONE_F_ONE_B, Rules, interleaved
from phaze.placement.one.solve import fastest_plan
from phaze.placement.problem import Layer, layer_graph
from phaze.placement.shortage import Shortage
from tests.placement.cluster_cases import every_cluster_plan, random_cluster_problem
from tests.placement.one_cases import brute_force, every_plan, flat, levelled, mixed
from tests.placement.placement_cases import Published, published, random_problem
from tests.placement.placement_cases import every_plan as every_flat_plan
from tests.placement.profile_cases import random_profile
from tests.placement.test_check import _at, _corrupted, _leaves

SEEDS = st.integers(0, 10**6)


def batch_s(plan: Plan | None) -> float:
    return float("inf") if plan is None else plan.batch_s


def document(problem: Problem, plan: Plan, name: str | None = None) -> dict[str, Any]:
    family = {} if name is None else {"family": name}
    return {**document_of(plan), "rules": problem.rules.name, "feasible": fits(problem, plan), **family}


@pytest.mark.parametrize("case", published(), ids=lambda case: case.name)
def test_the_published_optimum_is_met(case: Published) -> None:
    problem = flat(case.problem)
    plan = fastest_plan(problem)
    assert (plan is None) == (case.batch_s is None)
    if plan is not None:
        assert plan.batch_s == pytest.approx(case.batch_s, rel=1e-9)
        assert plan.lower_bound_s == plan.batch_s
        assert objections(problem, document(problem, plan), RingPrices(problem.cluster)) == []


@given(SEEDS, st.booleans())
def test_rules_icml24_give_the_plan_of_their_own_solver(seed: int, chain: bool) -> None:
    problem = random_problem(seed, chain)
    assert batch_s(fastest_plan(flat(problem))) == pytest.approx(batch_s(solve.fastest_plan(problem)), rel=1e-9)


@given(SEEDS, st.booleans())
def test_rules_cluster_give_the_plan_of_their_own_solver(seed: int, chain: bool) -> None:
    problem = random_cluster_problem(seed, chain, 6)
    old = cluster_solve.fastest_plan(problem, RingPrices(problem.cluster))
    assert batch_s(fastest_plan(levelled(problem))) == pytest.approx(batch_s(old), rel=1e-9)


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(4))
def test_no_plan_of_a_small_problem_of_mixed_rules_is_faster(block: int, chain: bool) -> None:
    for seed in range(8 * block, 8 * block + 8):
        problem = mixed(seed, chain)
        best, found = brute_force(problem), fastest_plan(problem)
        assert batch_s(found) == pytest.approx(float("inf") if best is None else best, rel=1e-9), seed


@pytest.mark.slow
@pytest.mark.parametrize("block", range(20))
def test_no_plan_of_many_small_problems_of_mixed_rules_is_faster(block: int) -> None:
    for seed in range(1000 + 50 * block, 1000 + 50 * block + 50):
        problem = mixed(seed, seed % 2 == 0, 4 if seed % 3 else 5)
        best, found = brute_force(problem), fastest_plan(problem)
        assert batch_s(found) == pytest.approx(float("inf") if best is None else best, rel=1e-9), seed


def blocks_of(seed: int, start_s: float = 0.05) -> Problem:
    """A chain of equal blocks of which two fit on a device, and few microbatches: chunks pay."""
    rows = [Layer(i, 1.0 + seed % 5 / 10, 2.0, 4.0, 1.0 + seed % 3, False) for i in range(4)]
    graph = layer_graph(1, rows, [(i, i + 1, 0.5) for i in range(3)])
    levels = (Level("node", "switch", 2, 8.0, 0.01), Level("net", "switch", 2, 2.0, 0.02))
    return Problem(
        rules=Rules("cluster", (ONE_F_ONE_B, interleaved(2)), piece_start_s=start_s),
        devices=2 + 2 * (seed % 2),
        hbm_bytes=90.0 + 10 * (seed % 3),
        microbatches=2 + 2 * (seed % 2),
        recompute="best",
        state=State(2.0, 4.0, 12.0),
        cluster=Cluster("two", "two levels", 4, levels),
        graphs=(graph,),
        extras=(tuple(Extra(0.5, 0.3, block=True) for _ in rows),),
        zero=seed % 3,
    )


def test_interleaving_is_proved_over_all_chunks() -> None:
    seen = set()
    for seed in range(8):
        problem = blocks_of(seed)
        found = fastest_plan(problem)
        assert batch_s(found) == pytest.approx(brute_force(problem), rel=1e-9), seed
        assert found is not None
        assert found.lower_bound_s == found.batch_s
        assert objections(problem, document(problem, found), RingPrices(problem.cluster)) == [], seed
        seen.add(found.chunks)
    assert len(seen) > 1


def test_a_start_for_every_chunk_ends_the_gain() -> None:
    free, dear = fastest_plan(blocks_of(0, 0.0)), fastest_plan(blocks_of(0, 9.0))
    assert free is not None
    assert dear is not None
    assert free.chunks > dear.chunks == 1
    plain = replace(blocks_of(0), rules=replace(blocks_of(0).rules, families=(ONE_F_ONE_B,)))
    assert dear.batch_s == batch_s(fastest_plan(plain))


@given(SEEDS, st.booleans())
def test_prices_are_those_of_both_old_rule_sets(seed: int, chain: bool) -> None:
    flat_problem, cluster_problem = random_problem(seed, chain, 4), random_cluster_problem(seed, chain, 3)
    old_plans = [*zip(range(8), every_flat_plan(flat_problem), strict=False)]
    for problem, plans in (
        (flat(flat_problem), [plan for _, plan in old_plans]),
        (
            levelled(cluster_problem),
            [plan for _, plan in zip(range(8), every_cluster_plan(cluster_problem), strict=False)],
        ),
    ):
        prices = RingPrices(problem.cluster)
        for plan in plans:
            shape = Shape(plan.tensor, len(plan.stages), plan.data, plan.order)
            new = price(problem, shape, [Cut(stage.layers, stage.recompute) for stage in plan.stages], prices)
            assert new.batch_s == pytest.approx(plan.batch_s, rel=1e-12)
            assert new.simulated_s == pytest.approx(plan.simulated_s, rel=1e-12)
            for one, other in zip(new.stages, plan.stages, strict=True):
                assert one.memory.total_bytes == pytest.approx(other.memory.total_bytes, rel=1e-12)
                assert one.devices == other.devices


@given(SEEDS, st.booleans())
def test_the_checker_agrees_with_every_plan(seed: int, chain: bool) -> None:
    problem = mixed(seed, chain, 3)
    for count, plan in enumerate(every_plan(problem)):
        name = next(f.name for f in problem.rules.families if f.chunks == plan.chunks)
        cuts = [Cut(stage.layers, stage.recompute) for stage in plan.stages]
        shape = Shape(plan.tensor, len(plan.stages), plan.data, plan.order, plan.chunks, name)
        whole = price(problem, shape, cuts, RingPrices(problem.cluster))
        assert objections(problem, document(problem, whole, name), RingPrices(problem.cluster)) == []
        assert sum(getattr(whole.breakdown, n) for n in whole.breakdown.__slots__) == pytest.approx(whole.batch_s)
        if count > 4:
            break


@pytest.mark.parametrize("which", ["flat", "chunks"])
def test_the_checker_objects_to_every_corrupted_field(which: str) -> None:
    problem = blocks_of(0)
    if which == "flat":
        problem = flat(next(case for case in published() if case.name == "tight-llama2-7b-w8-K256-f0.5-r0").problem)
    plan, prices = fastest_plan(problem), RingPrices(problem.cluster)
    assert plan is not None
    good = document(problem, plan)
    assert objections(problem, good, prices) == []
    for path in set(_leaves(good)):
        for wrong in _corrupted(_at(good, path)):
            bad = copy.deepcopy(good)
            _at(bad, path[:-1])[path[-1]] = wrong
            assert objections(problem, bad, prices), (path, wrong)


def test_the_checker_objects_to_a_plan_for_another_machine() -> None:
    problem = blocks_of(0)
    plan, prices = fastest_plan(problem), RingPrices(problem.cluster)
    assert plan is not None
    good = document(problem, plan)
    for change in ({"hbm_bytes": 10.0}, {"devices": 1}, {"microbatches": 7}, {"headroom": 0.9}):
        assert objections(replace(problem, **change), good, prices), change


@given(st.lists(st.tuples(st.floats(0.01, 9.0), st.floats(0.01, 9.0)), min_size=1, max_size=5), st.integers(1, 4))
def test_events_of_the_checker_are_those_of_the_simulation(passes: list[tuple[float, float]], laps: int) -> None:
    ahead, behind = (np.array(column) for column in zip(*passes, strict=True))
    rounds, nothing = laps * len(passes), np.empty((2, 0, 0))
    assert run_events(passes, rounds, 1, False) == pytest.approx(events(ahead, behind, rounds, nothing))
    assert run_events(passes, rounds, 1, True) == pytest.approx(gpipe_events(ahead, behind, rounds, nothing))
    for chunks in (2, 3):
        end_s = interleaved_events(ahead, behind, rounds, chunks, nothing)
        assert run_events(passes, rounds, chunks, False) == pytest.approx(end_s)


def test_headroom_is_memory_that_no_plan_fills() -> None:
    problem = blocks_of(0)
    plan = fastest_plan(replace(problem, hbm_bytes=200.0, headroom=0.5))
    less = fastest_plan(replace(problem, hbm_bytes=100.0))
    assert batch_s(plan) == batch_s(less) > batch_s(fastest_plan(replace(problem, hbm_bytes=200.0)))


def test_levels_may_join_more_devices_than_64_bits_count() -> None:
    levels = tuple(Level(f"l{i}", "switch", 2**40, 8.0, 0.0) for i in range(3))
    problem = replace(blocks_of(0), cluster=Cluster("vast", "vast", 2**120, levels))
    plan = fastest_plan(problem)
    assert plan is not None
    assert boundary_levels(problem.cluster, Shape(1, 3, 2, "pipeline")).tolist() == [0, 0]
    assert objections(problem, document(problem, plan), RingPrices(problem.cluster)) == []


def test_guesses_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [flat(case.problem) for case in published()[::4]]
    problems += [flat(random_problem(seed, chain)) for seed in range(30) for chain in (True, False)]
    plain = [batch_s(fastest_plan(problem)) for problem in problems]
    monkeypatch.setattr(by_table, "FEW_STEPS", 0.0)
    assert [batch_s(fastest_plan(problem)) for problem in problems] == pytest.approx(plain, rel=1e-12)


@given(SEEDS, st.booleans())
def test_only_what_is_faster_than_asked_is_found(seed: int, chain: bool) -> None:
    problem = mixed(seed, chain)
    best = batch_s(fastest_plan(problem))
    assert fastest_plan(problem, below_s=best * (1 - 1e-6)) is None
    assert batch_s(fastest_plan(problem, below_s=best * (1 + 1e-6))) == best


def test_unsplit_stages_need_a_cluster_of_one_level() -> None:
    with pytest.raises(InputError, match="one level"):
        replace(blocks_of(0), rules=replace(blocks_of(0).rules, unsplit_stages=True))


def test_chunks_that_no_family_has_are_refused() -> None:
    problem = replace(blocks_of(0), rules=Rules("cluster", (GPIPE,)))
    cuts = [Cut(tuple(range(4)), "none")]
    with pytest.raises(InputError, match="2 under gpipe"):
        price(problem, Shape(1, 1, 1, "pipeline", 2), cuts, RingPrices(problem.cluster))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.integers(0, 10**9))
def test_every_plan_of_an_extreme_profile_passes_its_check_and_is_that_of_the_old_solvers(seed: int) -> None:
    profile = random_profile(seed)
    try:
        problem, old = problem_of(profile, "profile"), any_problem_of(profile, "profile")
    except InputError:
        return
    plan = fastest_plan(problem)
    if isinstance(old, ClusterProblem):
        before = cluster_solve.fastest_plan(old, RingPrices(old.cluster))
    else:
        before = solve.fastest_plan(old)
    assert batch_s(plan) == pytest.approx(batch_s(before), rel=1e-9)
    if plan is not None:
        checked_document(problem, plan)


def test_a_shortage_names_the_least_memory_the_fewest_devices_and_what_else_helps() -> None:
    seen = 0
    for seed in range(40):
        problem = mixed(seed, seed % 2 == 0, 3)
        found = place(problem)
        if not isinstance(found, Shortage):
            continue
        seen += 1
        needs = (max(stage.memory.total_bytes for stage in plan.stages) for plan in every_plan(problem))
        least = min(needs, default=None)
        wanted = None if least is None else pytest.approx(least / (1 - problem.headroom), rel=1e-9)
        assert found.levers.hbm_bytes == wanted, seed
        more = range(problem.devices + 1, problem.cluster.devices + 1)
        assert found.levers.devices == next((n for n in more if fastest_plan(replace(problem, devices=n))), None), seed
        zeros = range(problem.zero + 1, 4)
        assert found.levers.zero == next((z for z in zeros if fastest_plan(replace(problem, zero=z))), None), seed
        best = problem.recompute != "best" and fastest_plan(replace(problem, recompute="best"))
        assert found.levers.recompute == ("best" if best else None), seed
    assert seen > 5


def test_levers_are_those_of_both_old_rule_sets() -> None:
    for seed in range(30):
        flat_problem, cluster_problem = random_problem(seed, True, 4), random_cluster_problem(seed, False, 4)
        for problem, found in (
            (flat(flat_problem), old_place(flat_problem)),
            (levelled(cluster_problem), old_place(cluster_problem)),
        ):
            if isinstance(found, Shortage):
                new = place(problem)
                assert isinstance(new, Shortage)
                for name, value in asdict(found.levers).items():
                    assert getattr(new.levers, name) == (value if value is None else pytest.approx(value)), (seed, name)
