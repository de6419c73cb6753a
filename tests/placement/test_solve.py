"""The solver against the published optima, against every plan of small problems, and against common sense."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.documents import dumps
from phaze.errors import InputError
from phaze.placement import solve
from phaze.placement.answer import document_of, place
from phaze.placement.check import objections
from phaze.placement.problem import Layer, LayerGraph, Plan, Problem, layer_graph
from phaze.placement.profile import problem_of
from phaze.placement.solve import fastest_plan
from tests.placement.placement_cases import Published, brute_force, published, random_problem

CASES = published()
SEEDS = st.integers(0, 10**6)


def batch_s(problem: Problem) -> float:
    plan = fastest_plan(problem)
    return float("inf") if plan is None else plan.batch_s


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_published_optimum_is_met(case: Published) -> None:
    problem = case.problem
    plan = fastest_plan(problem)
    assert (plan is None) == (case.batch_s is None)
    if plan is not None:
        assert plan.batch_s == pytest.approx(case.batch_s, rel=1e-9)
        assert plan.lower_bound_s == plan.batch_s
        assert objections(problem, document_of(plan)) == []


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(8))
def test_no_plan_of_a_small_problem_is_faster(block: int, chain: bool) -> None:
    for seed in range(40 * block, 40 * block + 40):
        problem = random_problem(seed, chain, 5 if seed % 4 else 6)
        best, found = brute_force(problem), fastest_plan(problem)
        assert (found is None) == (best is None), seed
        if found is not None:
            assert found.batch_s == pytest.approx(best, rel=1e-9), seed
            assert objections(problem, document_of(found)) == [], seed


@pytest.mark.slow
@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(20))
def test_no_plan_of_many_small_problems_is_faster(block: int, chain: bool) -> None:
    for seed in range(10_000 + 100 * block, 10_000 + 100 * block + 100):
        problem = random_problem(seed, chain)
        best, found = brute_force(problem), fastest_plan(problem)
        assert (None if found is None else found.batch_s) == (None if best is None else pytest.approx(best)), seed


def test_guesses_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [case.problem for case in CASES[::4]]
    problems += [random_problem(seed, chain) for seed in range(60) for chain in (True, False)]
    plain = [batch_s(problem) for problem in problems]
    monkeypatch.setattr(solve, "FEW_STEPS", 0.0)
    assert [batch_s(problem) for problem in problems] == pytest.approx(plain, rel=1e-12)


@given(SEEDS, st.booleans(), st.floats(1.0, 4.0))
def test_more_memory_never_slows_the_best_plan(seed: int, chain: bool, factor: float) -> None:
    problem = random_problem(seed, chain)
    assert batch_s(replace(problem, hbm_bytes=factor * problem.hbm_bytes)) <= batch_s(problem) * (1 + 1e-12)


@given(SEEDS, st.booleans(), st.floats(1.0, 10.0))
def test_faster_links_never_slow_the_best_plan(seed: int, chain: bool, factor: float) -> None:
    problem = random_problem(seed, chain)
    faster = replace(problem, link_bytes_per_s=factor * problem.link_bytes_per_s)
    assert batch_s(faster) <= batch_s(problem) * (1 + 1e-12)


@given(SEEDS, st.booleans(), st.integers(1, 50))
def test_more_devices_never_slow_the_best_plan(seed: int, chain: bool, more: int) -> None:
    problem = random_problem(seed, chain)
    assert batch_s(replace(problem, devices=problem.devices + more)) <= batch_s(problem) * (1 + 1e-12)


def _slower(graph: LayerGraph, position: int, factor: float) -> LayerGraph:
    layers = list(graph.layers)
    chosen = layers[position % len(layers)]
    layers[position % len(layers)] = replace(chosen, forward_s=factor * chosen.forward_s)
    return replace(graph, layers=tuple(layers))


@given(SEEDS, st.booleans(), st.integers(0, 5), st.floats(1.0, 5.0))
def test_a_slower_layer_never_speeds_the_best_plan(seed: int, chain: bool, position: int, factor: float) -> None:
    problem = random_problem(seed, chain)
    slower = replace(problem, graphs=tuple(_slower(graph, position, factor) for graph in problem.graphs))
    assert batch_s(slower) >= batch_s(problem) * (1 - 1e-12)


@given(SEEDS, st.booleans())
def test_choosing_recompute_stage_by_stage_is_never_slower(seed: int, chain: bool) -> None:
    problem = random_problem(seed, chain)
    best = batch_s(replace(problem, recompute="best"))
    assert best <= batch_s(replace(problem, recompute="none")) * (1 + 1e-12)
    assert best <= batch_s(replace(problem, recompute="full")) * (1 + 1e-12)


def test_two_runs_give_the_same_bytes_whatever_the_order_of_the_file() -> None:
    for case in CASES[::6]:
        widths = {width: {k: rows[::-1] for k, rows in t.items()} for width, t in case.profile["widths"].items()}
        shuffled = {**case.profile, "widths": dict(reversed(widths.items()))}
        first, second = (dumps(document_of(place(problem_of(p, "p")))) for p in (case.profile, shuffled))
        assert first == second


def test_one_layer_on_one_device() -> None:
    graph = layer_graph(1, [Layer(7, 1.0, 2.0, 10.0, 5.0, False)], [])
    plan = place(Problem(1, 25.0, 1.0, 3, "sgd", "best", (graph,)))
    assert isinstance(plan, Plan)
    assert (plan.batch_s, plan.simulated_s, plan.data) == (9.0, 9.0, 1)


def test_memory_that_is_exactly_enough_is_enough() -> None:
    layers = [Layer(i, 1.0, 1.0, 0.1, 0.2, False) for i in range(3)]
    graph = layer_graph(1, layers, [(0, 1, 0.0), (1, 2, 0.0)])
    exact = 2 * (0.1 + 0.1 + 0.1) + (0.2 + 0.2 + 0.2)
    assert fastest_plan(Problem(1, exact, 1.0, 1, "sgd", "none", (graph,))) is not None
    assert fastest_plan(Problem(1, exact * (1 - 1e-9), 1.0, 1, "sgd", "none", (graph,))) is None


def test_layers_that_take_no_time_are_placed() -> None:
    graph = layer_graph(2, [Layer(i, 0.0, 0.0, 1.0, 1.0, True) for i in range(4)], [(0, 1, 1.0), (0, 2, 1.0)])
    plan = fastest_plan(Problem(4, 100.0, 1.0, 4, "adam", "best", (graph,)))
    assert plan is not None
    assert plan.batch_s == 0


def test_a_graph_that_branches_too_widely_is_refused_with_the_count() -> None:
    graph = layer_graph(1, [Layer(i, 1.0, 1.0, 1.0, 1.0, False) for i in range(40)], [])
    with pytest.raises(InputError, match=r"widths\.1\.edges: .*more than 100,000 sets.*merge layers"):
        fastest_plan(Problem(8, 1e9, 1.0, 8, "sgd", "none", (graph,)))


def test_an_antichain_of_fourteen_layers_is_solved() -> None:
    graph = layer_graph(1, [Layer(i, float(i + 1), 1.0, 1.0, 1.0, False) for i in range(14)], [])
    plan = fastest_plan(Problem(7, 1e9, 1.0, 1000, "sgd", "none", (graph,)))
    assert plan is not None
    assert plan.batch_s == pytest.approx(1000 / 7 * 119, rel=0.05)


def test_a_table_that_no_ordinary_computer_holds_is_refused() -> None:
    layers = [Layer(i, 1.0, 1.0, 1.0, 1.0, i % 2 == 0) for i in range(800)]
    graph = layer_graph(8, layers, [(i, i + 1, 1.0) for i in range(799)])
    with pytest.raises(InputError, match=r"widths\.8: 801 places to cut .* GiB; merge layers"):
        fastest_plan(Problem(10_000, 100.0, 1.0, 8, "sgd", "none", (graph,)))
