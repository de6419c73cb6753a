"""What docs/schedule.md states of makespans and bounds holds of the solver, on random problems."""

from dataclasses import replace

import numpy as np
import pytest

from phaze.evaluate.schedule_operators import in_pieces
from phaze.schedule.bounds import cheap_bounds
from phaze.schedule.order import contract, series
from phaze.schedule.part import Component, part_of
from phaze.schedule.problem import ScheduleProblem
from phaze.schedule.solve import solve
from tests.formulas.stated import between, evaluate
from tests.schedule.cases import random_problem, ruled_problem


def test_a_collective_in_pieces_takes_what_the_page_says() -> None:
    text = between(
        "schedule.md", "overlapped with products of p seconds takes ", ". No schedule of"
    )
    for c, p, n in ((3.0, 5.0, 4), (5.0, 3.0, 4), (2.0, 2.0, 8), (0.0, 1.0, 2)):
        stated = evaluate(text, {"c": c, "p": p, "n": n})
        assert stated == pytest.approx(float(in_pieces(np.array([c]), np.array([p]), n)[0]))


def _spread_s(problem: ScheduleProblem) -> float:
    """The sum of P, operators that are free left out."""
    return sum(
        op.all_cores_s for op in problem.operators if op.one_core_s > 0 and op.all_cores_s > 0
    )


def test_serial_is_the_sum_of_spread_times_and_companions_less_what_they_hide() -> None:
    assert (
        between("schedule.md", "is how eager stacks run: its makespan is ", ".") == "the sum of P"
    )
    less = 0
    for seed in range(40):
        problem = ruled_problem(seed, 7, "serial")
        assert solve(problem).makespan_s == pytest.approx(_spread_s(problem), rel=1e-9)
        named = ruled_problem(seed, 7, "companions")
        hidden = 0.0
        beside: dict[int, list[int]] = {}
        for one, other in named.beside:
            beside.setdefault(one, []).append(other)
        for place, others in beside.items():
            shorter = between(
                "schedule.md", "for each collective, ", ". links is one"
            ).removeprefix("the shorter of ")
            assert shorter == "its time and of what it names"
            own, theirs = (
                named.operators[place].all_cores_s,
                sum(named.operators[i].all_cores_s for i in others),
            )
            hidden += min(own, theirs)
        less += hidden > 0
        assert solve(named).makespan_s == pytest.approx(_spread_s(named) - hidden, rel=1e-9)
    assert less > 5


def test_optima_only_fall_from_rule_to_rule() -> None:
    fallen = 0
    for seed in range(30):
        serial, links = (solve(_under(seed, rules)).makespan_s for rules in ("serial", "links"))
        assert links <= serial * (1 + 1e-9)
        icml24, overlap = (solve(_under(seed, rules)).makespan_s for rules in ("icml24", "overlap"))
        assert overlap <= icml24 * (1 + 1e-9)
        fallen += overlap < icml24 * (1 - 1e-6) or links < serial * (1 - 1e-6)
    assert fallen > 3


def _under(seed: int, rules: str) -> ScheduleProblem:
    """The same operators under other rules."""
    plain = ruled_problem(seed, 6, "icml24")
    operators = tuple(replace(op, network=False, hbm_s=0.0) for op in plain.operators)
    return replace(plain, rules=rules, operators=operators)  # type: ignore[arg-type]


def test_load_and_critical_path_are_the_credits_of_the_page() -> None:
    load = between("schedule.md", "load**: u_i = ", " for all operators of a kind")
    path = between("schedule.md", "critical path**: u_i = ", " on one chain")
    seen = 0
    for seed in range(40):
        problem = random_problem(seed, 8)
        for part in (part_of(problem, order) for order in series(contract(problem))):
            found, unit = cheap_bounds(part).by_name, part.unit_s
            times = [(one * unit, (spread or one) * unit) for one, spread in part.times]
            least = [evaluate(path, {"L_i": one or spread, "P_i": spread}) for one, spread in times]
            longest = [0.0] * len(part)
            for i in _topological(part):
                before = [longest[j] for j in range(len(part)) if part.above[i] >> j & 1]
                longest[i] = least[i] + max(before, default=0.0)
            assert found["critical_path"] * unit == pytest.approx(max(longest), rel=1e-6)
            sums = []
            for kind in range(2):
                own = [i for i in range(len(part)) if part.holds[i][0][kind]]
                if all(part.times[i][0] and part.times[i][1] for i in own):
                    names = [
                        {"L_i": times[i][0], "P_i": times[i][1], "cores": part.cores[kind]}
                        for i in own
                    ]
                    sums.append(sum(evaluate(load, one) for one in names))
            assert found["load"] * unit >= max(sums, default=0.0) * (1 - 1e-6)
            seen += len(part) > 2
    assert seen > 10


def _topological(part: Component) -> list[int]:
    """Operators after all above them: a longest path is as long from either end."""
    done: list[int] = []
    while len(done) < len(part):
        held = sum(1 << i for i in done)
        done += [i for i in range(len(part)) if i not in done and part.above[i] & ~held == 0]
    return done
