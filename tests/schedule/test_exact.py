"""The exact schedules against published optima, brute force, CP-SAT and the published integer
program."""

from typing import Any

import pytest

from phaze.schedule.cpsat import solve_cpsat
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.schedule.problem import ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules
from phaze.schedule.solve import SchedulingLimits, solve, solve_part
from tests.check.documents import faults
from tests.schedule.cases import OPTIMA, brute_force, problem_of, random_problem


@pytest.mark.parametrize("case", OPTIMA, ids=lambda case: str(case["name"]))
def test_a_published_optimum_is_found_and_proved(case: dict[str, Any]) -> None:
    found = solve(problem_of(case["operators"]))
    assert found.makespan_s == pytest.approx(case["makespan_s"], rel=1e-9)
    assert found.optimal
    assert found.lower_bound_s <= found.makespan_s


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6])
def test_small_problems_equal_brute_force(rules: Rules, count: int) -> None:
    for seed in range(40):
        problem = random_problem(seed, count, rules)
        found = solve(problem)
        assert found.makespan_s == pytest.approx(brute_force(problem), rel=1e-9, abs=1e-15), (
            seed,
            problem,
        )
        assert found.optimal, (seed, problem)


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("edge_share", [0.1, 0.5])
def test_seven_operators_equal_brute_force(rules: Rules, edge_share: float) -> None:
    for seed in range(6):
        problem = random_problem(seed, 7, rules, edge_share)
        assert solve(problem).makespan_s == pytest.approx(brute_force(problem), rel=1e-9), (
            seed,
            problem,
        )


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("seed", range(100, 160))
def test_many_problems_of_seven_operators_equal_brute_force(rules: Rules, seed: int) -> None:
    problem = random_problem(seed, 7, rules, 0.2)
    assert solve(problem).makespan_s == pytest.approx(brute_force(problem), rel=1e-9), problem


def _against_cpsat(problem: ScheduleProblem) -> int:
    """Compare labels (no list schedule to lean on) with CP-SAT on each component; how many both
    proved."""
    both = 0
    for order in series(contract(problem)):
        part = part_of(problem, order)
        if len(part) == 1:
            continue
        exact = solve_part(part, limits=SchedulingLimits(list_work=1, cpsat=0.0))
        oracle = solve_cpsat(part, None, 0, 0.1)
        assert oracle.bound <= exact.best.makespan, problem
        assert oracle.best is None or exact.bound <= oracle.best.makespan, problem
        if oracle.best is not None and oracle.bound >= oracle.best.makespan * (1 - 1e-7):
            assert exact.bound == exact.best.makespan
            assert exact.best.makespan == pytest.approx(oracle.best.makespan, rel=1e-7), problem
            both += 1
    return both


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
def test_labels_equal_cpsat_where_both_prove(rules: Rules) -> None:
    assert (
        sum(_against_cpsat(random_problem(seed, 8 + seed, rules, 0.25)) for seed in range(6)) >= 5
    )


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("seed", range(30, 60))
def test_labels_equal_cpsat_on_larger_problems(rules: Rules, seed: int) -> None:
    _against_cpsat(random_problem(seed, 10 + seed % 14, rules, 0.2))


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("count", [4, 6, 8])
def test_the_published_program_agrees(rules: Rules, count: int) -> None:
    for seed in range(2):
        problem = random_problem(seed, count, rules)
        assert solve(problem, "ilp").makespan_s == pytest.approx(
            solve(problem).makespan_s, rel=1e-6
        ), problem


@pytest.mark.slow
@pytest.mark.parametrize("count", [9, 10, 11, 12])
@pytest.mark.parametrize("seed", range(5))
def test_the_published_program_agrees_up_to_twelve_operators(count: int, seed: int) -> None:
    problem = random_problem(seed, count, "icml24")
    assert solve(problem, "ilp").makespan_s == pytest.approx(solve(problem).makespan_s, rel=1e-6), (
        problem
    )


def test_more_freedom_never_lengthens_a_schedule() -> None:
    for seed in range(30):
        times = [
            solve(
                ScheduleProblem(rules, p.tensor_cores, p.vector_cores, p.operators, p.edges)
            ).makespan_s
            for p in [random_problem(seed, 9)]
            for rules in ("overlap", "icml24", "serial")
        ]
        assert times[0] <= times[1] * (1 + 1e-9)
        assert times[1] <= times[2] * (1 + 1e-9)


def test_serial_is_the_sum_of_spread_times() -> None:
    problem = random_problem(3, 12, "serial")
    found = solve(problem)
    assert found.makespan_s == pytest.approx(
        sum(o.all_cores_s for o in problem.operators if not o.free)
    )
    assert found.optimal


def test_an_answer_without_effort_still_has_a_schedule_and_a_bound() -> None:
    case = next(case for case in OPTIMA if case["name"].endswith("093"))
    problem = problem_of(case["operators"])
    for limits in (
        SchedulingLimits(most_ideals=100, list_work=1, cpsat=0.0),
        SchedulingLimits(label_effort=10, most_paired=0, list_work=1, cpsat=0.0),
        SchedulingLimits(most_labels=100, most_paired=0, list_work=1, cpsat=0.0),
    ):
        found = solve(problem, limits=limits)
        assert not faults(problem, found)
        assert not found.optimal
        assert found.status == "feasible"
        assert (
            found.lower_bound_s <= case["makespan_s"] * (1 + 1e-9) <= found.makespan_s * (1 + 2e-9)
        )
        assert 0 < found.gap < 0.5


def test_cpsat_takes_over_where_there_are_too_many_ideals() -> None:
    problem = random_problem(5, 14, "icml24", 0.3)
    limits = SchedulingLimits(most_ideals=2, list_work=1, cpsat=0.5)
    assert solve(problem, limits=limits).makespan_s == pytest.approx(
        solve(problem).makespan_s, rel=1e-9
    )
    assert solve(problem, "cpsat").makespan_s == pytest.approx(solve(problem).makespan_s, rel=1e-9)


def test_components_in_series_add_up() -> None:
    one, two = random_problem(1, 6), random_problem(2, 6)
    both = tuple(
        ScheduledOperator(f"{tag}{o.id}", o.core, o.one_core_s, o.all_cores_s)
        for tag, p in (("a", one), ("b", two))
        for o in p.operators
    )
    edges = [
        *one.edges,
        *((i + 6, j + 6) for i, j in two.edges),
        *((i, j + 6) for i in range(6) for j in range(6)),
    ]
    joined = ScheduleProblem("icml24", 2, 2, both, tuple(edges))
    parts = [ScheduleProblem("icml24", 2, 2, p.operators, p.edges) for p in (one, two)]
    assert solve(joined).makespan_s == pytest.approx(
        sum(solve(part).makespan_s for part in parts), rel=1e-9
    )


def test_the_published_program_proves_what_it_finds_where_times_are_round() -> None:
    operators = (
        ScheduledOperator("a", "tensor", 1.0, 0.6),
        ScheduledOperator("b", "vector", 2.0, 1.5),
        ScheduledOperator("c", "both", 1.0, 0.6),
    )
    found = solve(ScheduleProblem("icml24", 2, 1, operators, ((0, 1),)), "ilp")
    assert found.makespan_s == 2.5 and found.optimal
