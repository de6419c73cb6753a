"""What compiles the kernels: small problems that go through every one of them."""

import numpy as np

from phaze.schedule.bounds import chip_bounds
from phaze.schedule.ideals import ideals_of
from phaze.schedule.list_schedule import Decisions
from phaze.schedule.order import contract, series
from phaze.schedule.part import Component, part_of
from phaze.schedule.phases import by_phases
from phaze.schedule.problem import ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules
from phaze.schedule.solve import SchedulingLimits, solve_part

# Two tensor cores for three equal-rank products beside vector work: neither bound meets a list
# schedule.
SMALL = (("a", 3.0, 2.0), ("b", 5.0, 3.0), ("c", 4.0, 4.0), ("d", 7.0, 4.0), ("e", 2.0, 1.5))


def small_problem(rules: Rules) -> ScheduleProblem:
    """Five operators whose schedule needs labels."""
    operators = tuple(
        ScheduledOperator(name, "tensor", alone, spread) for name, alone, spread in SMALL
    )
    return ScheduleProblem(rules, 2, 1, operators, ((0, 3), (1, 4)))


def _warm_phases(part: Component) -> None:
    tables, everything = part.tables(), Decisions((), 2**40)
    ideals = ideals_of(part, tables, 1000)
    assert ideals is not None
    by_phases(part, tables, ideals, everything, 0, 1000)


def warm_all() -> None:
    """Compile and cache every kernel of this room."""
    rules: tuple[Rules, ...] = ("icml24", "overlap")
    for rule in rules:
        problem = small_problem(rule)
        for order in series(contract(problem)):
            part = part_of(problem, order)
            solve_part(part, limits=SchedulingLimits(list_work=1, cpsat=0.0))
            if part.alone:
                _warm_phases(part)
    ones = np.ones((2, 3))
    cores = np.ones(3, np.int64)
    for rule in rules:
        chip_bounds(rule, ["tensor", "vector"], [0, 0], ones, ones, cores, cores)
