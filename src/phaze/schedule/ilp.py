"""The published integer program of rules icml24 (and its like for overlap), through OR-Tools
MathOpt with HiGHS.

Variables: starts ``s_i >= 0``, spread flags ``y_i``, order flags ``x_ij`` (i ends before j starts)
for i != j, core flags ``z_ic``, and the makespan C; T is the horizon, the sum of ``min(L_i, P_i)``;
d_i stands for ``L_i + (P_i - L_i) y_i``.

    minimise C
    C   >= s_i + d_i                                       for all i               (:func:`_base`)
    s_j >= s_i + d_i - T (1 - x_ij)                        for all i != j          (:func:`_orders`)
    x_ij + x_ji <= 1                                       for all i < j
    x_ij = 1, x_ji = 0                                     for i before j in the graph
    x_ik >= x_ij + x_jk - 1                                for distinct i, j, k
    x_ij + x_ji >= y_i                                     when a spread i excludes j
                                                           (:func:`_exclusions`)
    x_ij + x_ji = 1                                        when i and j never run together
    sum_c z_ic >= 1 - y_i                                  for i of a kind         (:func:`_cores`)
    z_ic + z_jc <= 1 + x_ij + x_ji                         for i < j of the kind, each core c

The lines of :func:`_cores` are added for a core kind only after a solution without them uses more
cores of that kind than there are, and the program is then solved again. Under icml24 a spread i
excludes every j and a collective runs with no other; under overlap a spread i excludes those that
use one of its kinds, and two collectives exclude each other. Times are scaled so that T is 1000:
the solver's tolerances are absolute. HiGHS's detection of symmetry is switched off: with it and
random seed 1, HiGHS 1.12 calls 14.75 s optimal for a problem of five operators that has a schedule
of 14.25 s. Instead the k-th operator of a kind may only use the first k cores: cores are alike.
"""

import math
import time
from dataclasses import dataclass
from datetime import timedelta
from itertools import combinations, permutations
from typing import Any

from ortools.math_opt.python import mathopt
from ortools.math_opt.solvers import highs_pb2

from phaze.schedule.list_schedule import Decisions
from phaze.schedule.part import Component

# Seconds are scaled so that the sum of all times is this: solvers' tolerances of 1e-6 are then
# small beside it.
SCALE = 1000.0
# Below what the sum of rounded times can differ by: an optimum is the optimum.
GAP = 1e-9


@dataclass(frozen=True, slots=True)
class _Program:
    part: Component
    unit: float
    model: Any
    start: list[Any]
    spread: list[Any]
    order: dict[tuple[int, int], Any]

    def length(self, i: int) -> Any:
        alone, all_ = self.part.times[i]
        return self.unit * ((alone or all_) + ((all_ or alone) - (alone or all_)) * self.spread[i])


@dataclass(frozen=True, slots=True)
class Solved:
    """The program's best decisions, and the solver's bound in units."""

    best: Decisions | None
    bound: int


def _base(part: Component) -> _Program:
    count = len(part)
    unit = SCALE / sum(part.least(i) for i in range(count))
    model = mathopt.Model(name="layer schedule")
    start = [model.add_variable(lb=0.0, ub=SCALE, name=f"s{i}") for i in range(count)]
    spread = [model.add_binary_variable(name=f"y{i}") for i in range(count)]
    order = {
        (i, j): model.add_binary_variable(name=f"x{i}_{j}")
        for i, j in permutations(range(count), 2)
    }
    makespan = model.add_variable(lb=0.0, ub=SCALE, name="C")
    program = _Program(part, unit, model, start, spread, order)
    for i in range(count):
        model.add_linear_constraint(makespan >= start[i] + program.length(i))
        if part.times[i][1] == 0:
            spread[i].upper_bound = 0.0
        if part.times[i][0] == 0:
            spread[i].lower_bound = 1.0
    model.minimize(makespan)
    return program


def _orders(program: _Program) -> None:
    part, model, order = program.part, program.model, program.order
    for (i, j), before in order.items():
        model.add_linear_constraint(
            program.start[j] >= program.start[i] + program.length(i) - SCALE * (1 - before)
        )
        if part.order.below[j] >> i & 1:
            before.lower_bound = 1.0
            order[j, i].upper_bound = 0.0
    for i, j in combinations(range(len(part)), 2):
        model.add_linear_constraint(order[i, j] + order[j, i] <= 1)
    for i, j, k in permutations(range(len(part)), 3):
        model.add_linear_constraint(order[i, k] >= order[i, j] + order[j, k] - 1)


def _excludes(part: Component, i: int, j: int) -> bool:
    """Whether i, when spread, shares something that it holds all of with j in any of j's ways to
    run."""
    return any(
        mine == 2 and theirs > 0
        for mode in range(2)
        if part.times[j][mode]
        for mine, theirs in zip(part.holds[i][1], part.holds[j][mode], strict=True)
    )


def _exclusions(program: _Program) -> None:
    part = program.part
    for i, j in permutations(range(len(part)), 2):
        if part.times[i][1] and _excludes(part, i, j):
            program.model.add_linear_constraint(
                program.order[i, j] + program.order[j, i] >= program.spread[i]
            )


def _cores(program: _Program, kind: int) -> None:
    part, model = program.part, program.model
    users = [i for i in range(len(part)) if part.times[i][0] and part.holds[i][0][kind]]
    cores = range(min(part.cores[kind], len(users)))
    flags = {
        (i, c): model.add_binary_variable(name=f"z{kind}_{i}_{c}") for i in users for c in cores
    }
    for index, i in enumerate(users):
        for c in cores[index + 1 :]:
            flags[i, c].upper_bound = 0.0
    for i in users:
        model.add_linear_constraint(sum(flags[i, c] for c in cores) >= 1 - program.spread[i])
    for i, j in combinations(users, 2):
        for c in cores:
            model.add_linear_constraint(
                flags[i, c] + flags[j, c] <= 1 + program.order[i, j] + program.order[j, i]
            )


def _overused(
    part: Component, steps: list[tuple[int, int, float]], kind: int, slack: float
) -> bool:
    """Whether more cores of ``kind`` are used at some start than there are."""
    for _, _, now in steps:
        used = sum(
            1
            for i, mode, start in steps
            if mode == 0
            and part.holds[i][0][kind]
            and start <= now + slack < start + part.times[i][0] - slack
        )
        if used > part.cores[kind]:
            return True
    return False


def solve_ilp(part: Component, limit_s: float = 3600.0, gap: float = GAP) -> Solved:
    """Solve the program, with core flags where they are needed; the answer is the solver's within
    ``gap``."""
    program = _base(part)
    _orders(program)
    _exclusions(program)
    added: set[int] = set()
    end_s = time.monotonic() + limit_s
    while True:
        parameters = mathopt.SolveParameters(
            relative_gap_tolerance=gap,
            absolute_gap_tolerance=0.0,
            time_limit=timedelta(seconds=max(0.1, end_s - time.monotonic())),
            highs=highs_pb2.HighsOptionsProto(bool_options={"mip_detect_symmetry": False}),
        )
        result = mathopt.solve(program.model, mathopt.SolverType.HIGHS, params=parameters)
        if not result.has_primal_feasible_solution():
            return Solved(None, 0)
        values = result.variable_values()
        steps = [
            (i, round(values[program.spread[i]]), values[program.start[i]] / program.unit)
            for i in range(len(part))
        ]
        horizon = SCALE / program.unit
        over = [k for k in range(2) if k not in added and _overused(part, steps, k, 1e-6 * horizon)]
        if not over:
            break
        for kind in over:
            _cores(program, kind)
            added.add(kind)
    steps.sort(key=lambda step: (step[2], step[0]))
    makespan = round(result.objective_value() / program.unit)
    # Makespans in units are whole, so the bound may be rounded up.
    bound = min(makespan, math.ceil(result.best_objective_bound() / program.unit * (1 - GAP)))
    return Solved(Decisions(tuple((i, mode) for i, mode, _ in steps), makespan), bound)
