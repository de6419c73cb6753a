"""Rules as values: exact schedules under each against brute force and CP-SAT, and what is
refused."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.schedule.cpsat import solve_cpsat
from phaze.schedule.files import load_problem
from phaze.schedule.key import canonical
from phaze.schedule.order import contract, series
from phaze.schedule.part import in_turn, part_of
from phaze.schedule.problem import Schedule, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import RULE, Rules
from phaze.schedule.solve import PartMemo, SchedulingLimits, solve, solve_part
from tests.check.documents import faults
from tests.schedule.cases import brute_force, brute_force_with_memory, ruled_problem

FREER: tuple[Rules, ...] = ("serial", "companions", "links", "overlap")


@pytest.mark.parametrize("rules", ["serial", "companions", "links", "icml24"])
@pytest.mark.parametrize("count", [2, 4, 5, 6])
def test_small_problems_under_each_rule_equal_brute_force(rules: Rules, count: int) -> None:
    for seed in range(30):
        problem = ruled_problem(seed, count, rules)
        found = solve(problem)
        assert found.makespan_s == pytest.approx(brute_force(problem), rel=1e-9, abs=1e-15), (
            seed,
            problem,
        )
        assert found.optimal, (seed, problem)


@pytest.mark.parametrize("count", [2, 4, 5, 6])
def test_overlap_with_shared_memory_equals_brute_force_on_each_series_component(count: int) -> None:
    for seed in range(30):
        problem = ruled_problem(seed, count, "overlap")
        found = solve(problem)
        assert found.makespan_s == pytest.approx(
            brute_force_with_memory(problem), rel=1e-9, abs=1e-15
        ), problem
        assert found.optimal, (seed, problem)


@pytest.mark.slow
@pytest.mark.parametrize("rules", ["companions", "links", "overlap"])
@pytest.mark.parametrize("seed", range(200, 240))
def test_many_problems_of_seven_operators_equal_brute_force(rules: Rules, seed: int) -> None:
    problem = ruled_problem(seed, 7, rules, 0.2)
    tried = (
        brute_force_with_memory if rules == "overlap" else brute_force
    )  # companions run beside other components
    assert solve(problem).makespan_s == pytest.approx(tried(problem), rel=1e-9)


def _against_cpsat(problem: ScheduleProblem) -> int:
    """Labels and CP-SAT on each component, with the HBM time of each; how many both proved."""
    both, problem = 0, in_turn(problem)
    for order in series(contract(problem)):
        part = part_of(problem, order)
        if len(part) == 1:
            continue
        exact = solve_part(part, limits=SchedulingLimits(list_work=1, cpsat=0.0))
        oracle = solve_cpsat(part, None, 0, 0.1)
        least = max(exact.best.makespan, part.hbm)
        assert oracle.bound <= least
        if oracle.best is not None and oracle.bound >= oracle.best.makespan * (1 - 1e-7):
            assert least == pytest.approx(max(oracle.best.makespan, part.hbm), rel=1e-7)
            both += 1
    return both


@pytest.mark.parametrize("rules", ["companions", "links", "overlap"])
def test_exact_schedules_equal_cpsat_where_both_prove(rules: Rules) -> None:
    assert (
        sum(_against_cpsat(ruled_problem(seed, 6 + seed, rules, 0.25)) for seed in (2, 3, 4, 6))
        >= 2
    )


def test_a_rule_that_allows_more_is_never_slower() -> None:
    for seed in range(60):
        asked = ruled_problem(seed, 9, "companions")
        times = [solve(replace(asked, rules=rules)).makespan_s for rules in FREER]
        # Queues have no way to run on one core, so a freer rule is compared where spreading is no
        # slower.
        faster = all(operator.all_cores_s <= operator.one_core_s for operator in asked.operators)
        for slow, fast in pairwise(times if faster else times[:3]):
            assert fast <= slow * (1 + 1e-9), (seed, times)


def test_companions_hide_the_least_of_a_collective_and_what_it_names() -> None:
    for seed in range(60):
        problem = ruled_problem(seed, 10, "companions")
        own = [o.all_cores_s if not o.free else 0.0 for o in problem.operators]
        named: dict[int, float] = {}
        for collective, other in problem.beside:
            named[collective] = named.get(collective, 0.0) + own[other]
        hidden = sum(min(own[collective], work) for collective, work in named.items())
        assert solve(problem).makespan_s == pytest.approx(sum(own) - hidden, rel=1e-9, abs=1e-15)


def test_no_schedule_is_shorter_than_its_bytes_over_the_bandwidth() -> None:
    operators = (
        ScheduledOperator("a", "tensor", 3.0, 3.0, hbm_s=2.5),
        ScheduledOperator("b", "vector", 3.0, 3.0, hbm_s=3.0),
    )
    beside = ScheduleProblem("overlap", 1, 1, operators, ())
    assert solve(beside).makespan_s == 5.5
    assert solve(beside).optimal
    after = replace(
        beside,
        operators=(*operators, ScheduledOperator("c", "vector", 1.0, 1.0)),
        edges=((0, 2), (1, 2)),
    )
    found = solve(after)
    assert (found.makespan_s, found.slots[2].start_s) == (6.5, 5.5)
    assert solve(replace(after, rules="links")).makespan_s == 7.0


def test_more_bandwidth_never_slows() -> None:
    for seed in range(40):
        slow = ruled_problem(seed, 9, "overlap")
        fast = replace(slow, operators=tuple(replace(o, hbm_s=o.hbm_s / 2) for o in slow.operators))
        assert solve(fast).makespan_s <= solve(slow).makespan_s * (1 + 1e-9)


def test_components_that_differ_in_memory_alone_have_their_own_keys_and_answers() -> None:
    known: PartMemo = {}
    for memory, length in ((0.0, 3.0), (3.0, 6.0), (2.0, 4.0)):
        operators = tuple(
            ScheduledOperator(c, "tensor" if c == "a" else "vector", 3.0, 3.0, hbm_s=memory)
            for c in "ab"
        )
        problem = ScheduleProblem("overlap", 1, 1, operators, ())
        assert solve(problem, parts=known).makespan_s == length
        assert canonical(part_of(problem, series(contract(problem))[0]))[0] in known
    assert len(known) == 3


def _moved(good: Schedule, at: int, start_s: float) -> Schedule:
    slots = list(good.slots)
    length = slots[at].end_s - slots[at].start_s
    slots[at] = replace(slots[at], start_s=start_s, end_s=start_s + length)
    last = max(slot.end_s for slot in slots)
    return replace(good, slots=tuple(slots), makespan_s=last, lower_bound_s=last)


def test_consistent_lies_under_each_rule_are_found() -> None:
    work = (
        ScheduledOperator("sum", "none", 2.0, 2.0),
        ScheduledOperator("weights", "tensor", 2.0, 2.0),
        ScheduledOperator("other", "tensor", 2.0, 2.0),
        ScheduledOperator("pieces", "tensor", 2.0, 2.0, network=True),
    )
    named = ScheduleProblem("companions", 1, 1, work, (), ((0, 1),))
    good = solve(named)
    assert good.makespan_s == 6.0
    start = good.slots[0].start_s
    assert "neither names the other" in faults(named, _moved(good, 2, start))[0]
    links = replace(named, rules="links")
    free = solve(links)
    assert "the network" in " ".join(faults(links, _moved(free, 3, free.slots[0].start_s)))
    both = next(i for i in (1, 2) if free.slots[i].start_s != free.slots[3].start_s)
    assert "to itself" in " ".join(faults(links, _moved(free, both, free.slots[3].start_s)))
    single = list(free.slots)
    single[1] = replace(single[1], spread=False, tensor_core=0)
    assert "must be spread" in " ".join(faults(links, replace(free, slots=tuple(single))))


def test_a_schedule_that_forgets_the_memory_is_found() -> None:
    operators = (
        ScheduledOperator("a", "tensor", 3.0, 3.0, hbm_s=3.0),
        ScheduledOperator("b", "vector", 3.0, 3.0, hbm_s=3.0),
        ScheduledOperator("c", "vector", 1.0, 1.0),
    )
    problem = ScheduleProblem("overlap", 1, 1, operators, ((0, 2), (1, 2)))
    good = solve(problem)
    assert (good.makespan_s, faults(problem, good)) == (7.0, [])
    # Every slot where it would be with a memory for each kind of core, makespan and bound to match.
    lie = _moved(good, 2, 3.0)
    assert "makespan" in faults(problem, lie)[0]
    assert "HBM" in faults(problem, replace(lie, makespan_s=6.0, lower_bound_s=6.0))[0]
    last = ScheduleProblem("overlap", 1, 1, operators[:2], ())
    found = solve(last)
    assert "makespan" in faults(last, replace(found, makespan_s=3.0, lower_bound_s=3.0))[0]


@pytest.mark.parametrize("rules", list(RULE))
def test_every_answer_under_every_rule_passes_the_checker(rules: Rules) -> None:
    for seed in range(25):
        problem = ruled_problem(seed, 11, rules)
        assert faults(problem, solve(problem)) == []


def _document(**changes: Any) -> dict[str, Any]:
    operators: list[dict[str, Any]] = [
        {"id": "a", "core": "tensor", "one_core_s": 1.0, "all_cores_s": 1.0, "hbm_s": 0.5},
        {"id": "b", "core": "tensor", "one_core_s": 1.0, "all_cores_s": 1.0, "network": True},
        {"id": "c", "core": "none", "one_core_s": 1.0, "all_cores_s": 1.0, "beside": ["a"]},
    ]
    for name, change in changes.items():
        next(one for one in operators if one["id"] == name).update(change)
    return {
        "schema": "phaze.operators/1", "rules": "companions", "tensor_cores": 1, "vector_cores": 0,
        "operators": operators, "edges": [["a", "b"]],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"a": {"hbm_s": 2.0}}, "operators[0].hbm_s: 2.0 s of HBM do not fit"),
        ({"c": {"beside": ["z"]}}, "operators[2].beside: there is no operator 'z'"),
        ({"c": {"beside": ["c"]}}, "'c' uses the network itself"),
        ({"c": {"beside": ["a", "a"]}}, "'a' is named twice"),
        ({"a": {"beside": ["b"]}}, "'a' is not a collective"),
    ],
)
def test_what_no_rule_can_mean_is_refused(
    changes: dict[str, Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "operators.json"
    path.write_text(json.dumps(_document(**changes)))
    with pytest.raises(InputError) as fault:
        load_problem(str(path))
    assert said in str(fault.value)


def test_a_collective_that_waits_for_what_it_names_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "operators.json"
    document = _document(c={"beside": ["a", "b"]}, b={"network": False})
    document["operators"].append(
        {"id": "d", "core": "tensor", "one_core_s": 1.0, "all_cores_s": 1.0}
    )
    document["edges"] = [["a", "d"], ["d", "b"]]
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match="waits for an operator that it should overlap"):
        load_problem(str(path))
