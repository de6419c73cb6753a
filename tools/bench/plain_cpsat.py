"""Plain CP-SAT on a whole layer: what a good textbook model takes without our bounds, components or
start.

Variables: a start s_i and a flag y_i (spread) of every operator that costs something, an optional
interval for each of its two ways to run, the makespan C. An operator on one core holds one of its
cores, a spread one (and a collective) all of both kinds; two cumulative constraints, one for each
kind, and s_j >= e_i for every edge. Minimise C. The solver runs with its own defaults on all cores.
Times are multiples of horizon / 2^30, rounded up.
"""

from dataclasses import dataclass
from typing import Any

from ortools.sat.python import cp_model

from phaze.schedule.order import contract
from phaze.schedule.problem import KINDS, ScheduleProblem

UNITS = 2**30
"""CP-SAT counts in whole numbers: the horizon in so many steps leaves 1e-9 of it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A solver's schedule length and proved bound, and whether it ended before its limit."""

    makespan_s: float
    bound_s: float
    ended: bool


def solve_plain(problem: ScheduleProblem, limit_s: float) -> Outcome:
    """The makespan that CP-SAT finds within ``limit_s``; rules icml24."""
    order = contract(problem)
    operators = [problem.operators[i] for i in order.operators]
    horizon_s = sum(min(o.one_core_s, o.all_cores_s) for o in operators)
    unit_s = horizon_s / UNITS
    model = cp_model.CpModel()
    most = 2 * UNITS
    makespan = model.new_int_var(0, most, "C")
    starts, ends = [], []
    held: dict[str, list[tuple[Any, int]]] = {"tensor": [], "vector": []}
    for i, operator in enumerate(operators):
        start, spread = model.new_int_var(0, most, f"s{i}"), model.new_bool_var(f"y{i}")
        one, all_ = (
            max(1, -int(-s // unit_s)) for s in (operator.one_core_s, operator.all_cores_s)
        )
        if operator.collective:
            model.add(spread == 1)
        alone = model.new_optional_fixed_size_interval_var(start, all_, spread, f"p{i}")
        beside = model.new_optional_fixed_size_interval_var(start, one, ~spread, f"l{i}")
        for kind, users in held.items():
            users.append((alone, problem.cores(kind)))
            if kind in KINDS[operator.core]:
                users.append((beside, 1))
        starts.append(start)
        ends.append(start + one + (all_ - one) * spread)
        model.add(makespan >= ends[-1])
    for j, below in enumerate(order.below):
        for i in range(len(operators)):
            if below >> i & 1:
                model.add(starts[j] >= ends[i])
    for kind, users in held.items():
        model.add_cumulative(
            [interval for interval, _ in users],
            [amount for _, amount in users],
            problem.cores(kind),
        )
    model.minimize(makespan)
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = limit_s
    solver.parameters.catch_sigint_signal = False
    status = solver.solve(model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Outcome(float("inf"), 0.0, False)
    return Outcome(
        solver.objective_value * unit_s,
        solver.best_objective_bound * unit_s,
        status == cp_model.OPTIMAL,
    )
