"""Thousands of operators: an answer at once, that holds, and that says that it is a list
schedule."""

import json
import random
import time
from importlib import import_module
from typing import Any

import pytest

from phaze.schedule.large import MOST_OPERATORS, solve_large
from phaze.schedule.problem import Core, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules
from phaze.schedule.solve import solve
from tests.check.documents import faults

CORES: tuple[Core, ...] = ("tensor", "vector", "both", "none")


def _made(count: int, seed: int, rules: Rules = "icml24") -> ScheduleProblem:
    drawn = random.Random(seed)
    operators = []
    for i in range(count):
        core = drawn.choice(CORES)
        one = 0.0 if drawn.random() < 0.1 else drawn.uniform(1, 9)
        spread = one if core == "none" else one / drawn.uniform(1.5, 4)
        shared = drawn.uniform(0, spread) if rules == "overlap" else 0.0
        operators.append(ScheduledOperator(f"o{i}", core, one, spread, hbm_s=shared))
    edges = tuple(
        (i, j)
        for i in range(count)
        for j in range(i + 1, min(count, i + 20))
        if drawn.random() < 0.1
    )
    return ScheduleProblem(rules, 4, 3, tuple(operators), edges)


@pytest.mark.parametrize("rules", ["icml24", "links", "overlap"])
def test_a_list_schedule_of_any_problem_holds_and_its_bound_is_one(rules: Rules) -> None:
    for seed in range(6):
        problem = _made(12, seed, rules)
        found, exact = solve_large(problem), solve(problem)
        assert faults(problem, found) == []
        assert exact.optimal
        assert found.lower_bound_s <= exact.makespan_s * (1 + 1e-9)
        assert found.makespan_s >= exact.makespan_s * (1 - 1e-9)


def test_more_than_two_thousand_operators_are_answered_at_once_and_it_is_said(
    tmp_path: Any, phaze: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = _made(MOST_OPERATORS + 1, 1)
    began = time.process_time()
    found = solve(problem)
    assert time.process_time() - began < 10.0
    assert found.status == "list"
    assert found.document()["effort"]["method"] == "large"
    assert 0 < found.lower_bound_s < found.makespan_s
    monkeypatch.setattr(import_module("phaze.schedule.solve"), "MOST_OPERATORS", 3)
    file = tmp_path / "four.json"
    one = {"core": "tensor", "one_core_s": 3, "all_cores_s": 2}
    chip = {"schema": "phaze.operators/1", "rules": "icml24", "tensor_cores": 2, "vector_cores": 1}
    file.write_text(
        json.dumps(
            {**chip, "edges": [["a", "d"]], "operators": [{"id": name, **one} for name in "abcd"]}
        )
    )
    said = phaze("schedule", file, "--json")
    assert said.code == 0
    assert '"method":"large"' in said.out
    assert "4 operators are many: a list schedule and a bound" in said.err
