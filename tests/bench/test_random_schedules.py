"""Schedules of 60 random operators in one component: what is proved, and what stands in the way;
printed, not judged.

pytest -n 0 -m slow -s tests/bench/test_random_schedules.py
"""

import time

import pytest

from phaze.schedule.kernels import enumerate_ideals
from phaze.schedule.order import contract, series
from phaze.schedule.part import Component, in_turn, part_of
from phaze.schedule.problem import ScheduleProblem
from phaze.schedule.solve import SchedulingLimits, solve
from tests.schedule.cases import random_problem

COUNT = 60
# Ideals are counted up to this: half a GB of masks and successors.
MOST_COUNTED = 2**21
# Shares of edges from many ideals to few.
SHARES = (0.04, 0.08, 0.15)


def _component(share: float) -> tuple[ScheduleProblem, Component]:
    """The first random problem of one component."""
    for seed in range(1000):
        problem = in_turn(random_problem(seed, COUNT, edge_share=share))
        parts = [part_of(problem, order) for order in series(contract(problem))]
        if max(map(len, parts)) >= COUNT - 6:
            return problem, max(parts, key=len)
    raise AssertionError("no problem of one component")


def _ideals(part: Component) -> int:
    """How many ideals a component has, as far as they are counted."""
    room = 1024
    while room <= MOST_COUNTED:
        masks, *_ = enumerate_ideals(part.tables(), room)
        if int(masks[-1]) == (1 << len(part)) - 1:
            return len(masks)
        room *= 4
    return MOST_COUNTED


@pytest.mark.slow
def test_random_schedules() -> None:
    print("\nedges  largest       ideals  list / bound  solved / bound  method  seconds")
    for share in SHARES:
        problem, part = _component(share)
        listed = solve(problem, "list")
        start = time.process_time()
        found = solve(problem, "exact", SchedulingLimits(cpsat=0.0))
        seconds = time.process_time() - start
        counted = _ideals(part)
        shown = f"{'> ' if counted == MOST_COUNTED else ''}{counted:,}"
        print(
            f"{share:5.2f}  {len(part):7}  {shown:>11}  "
            f"{listed.makespan_s / listed.lower_bound_s - 1:12.2%}"
            f"  {found.makespan_s / found.lower_bound_s - 1:14.2%}  "
            f"{found.effort.method:>6}  {seconds:7.2f}",
            flush=True,
        )
