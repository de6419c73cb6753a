"""CP-SAT on a component: the fallback where there are too many ideals, and an oracle in tests.

Variables: a start s_i and for each way to run m a presence literal b_im, exactly one of them true,
with an optional interval of length d_im. Constraints, by the function that adds them:

    sum_m b_im = 1,  e_i = s_i + sum_m d_im b_im,  e_i <= C
                     (:func:`_operators`)
    e_i <= s_j  for every i directly below j
                (:func:`_precedence`)
    per resource, the intervals of the steps that hold some of it, each with what it holds, never
    hold more
    than there is                                                               (:func:`_resources`)
    C cores >= sum over steps of (what it holds) d_im b_im                 (:func:`_loads`, implied)
    C >= q_i + sum over spread of P_k b_k, q_i = longest path of L_i (1 - b_i) from i on, where a
    spread operator
    runs alone: spread and single work take turns                          (:func:`_turns`, implied)

and the lower bound known so far as ``C >= bound``, where HBM is shared also ``C >= H``, the
component's HBM time. The solver runs with a fixed seed, its sub-solvers interleaved, and a limit in
its own deterministic time: the same input gives the same answer on any machine.

Times here are at most 2^30 in sum: CP-SAT of OR-Tools 9.15 has called makespans optimal that were
1.8 % too long when times were near 2^36 and above (never in trials at 2^32). So a component with
finer units is coarsened by 2^k, times rounded up (:func:`_coarse`). A schedule gains at most one
coarse unit an operator along its last chain, so

    C* >= (C*_coarse - n) 2^k

is the bound, and the decisions are played again in fine units for the schedule
(:func:`solve_cpsat`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ortools.sat.python import cp_model

from phaze.schedule.list_schedule import Decisions
from phaze.schedule.order import bits
from phaze.schedule.part import ALL, Component
from phaze.schedule.replay import makespan_of

# Any fixed seed makes answers repeatable.
SEED = 20240721
# CP-SAT adds and multiplies times; sums of 30 bits leave its 64-bit numbers room.
MOST_BITS = 30
# Sub-solvers that interleave: one proves much less, and their number must not depend on the
# machine.
WORKERS = 8


@dataclass(frozen=True, slots=True)
class CpSatAnswer:
    """CP-SAT's best decisions (None when it found nothing better) and its proven bound in units."""

    best: Decisions | None
    bound: int


@dataclass(frozen=True, slots=True)
class _Step:
    operator: int
    mode: int
    chosen: Any
    interval: Any


def _operators(
    model: Any, part: Component, horizon: int
) -> tuple[list[Any], list[Any], list[_Step]]:
    starts, ends, steps = [], [], []
    for i, times in enumerate(part.times):
        start = model.new_int_var(0, horizon, f"s{i}")
        modes = [mode for mode in range(2) if times[mode] > 0]
        chosen = {mode: model.new_bool_var(f"b{i}_{mode}") for mode in modes}
        model.add_exactly_one(chosen.values())
        for mode in modes:
            interval = model.new_optional_fixed_size_interval_var(
                start, times[mode], chosen[mode], f"x{i}_{mode}"
            )
            steps.append(_Step(i, mode, chosen[mode], interval))
        starts.append(start)
        ends.append(start + sum(times[mode] * chosen[mode] for mode in modes))
    return starts, ends, steps


def _precedence(model: Any, part: Component, starts: Sequence[Any], ends: Sequence[Any]) -> None:
    for j, mask in enumerate(part.order.below):
        implied = 0
        for i in bits(mask):
            implied |= part.order.below[i]
        for i in bits(mask & ~implied):
            model.add(starts[j] >= ends[i])


def _resources(model: Any, part: Component, steps: Sequence[_Step]) -> None:
    for resource, count in enumerate(part.cores):
        cores = min(count, len(part))
        held_cores = [(step, part.holds[step.operator][step.mode][resource]) for step in steps]
        users = [(step, cores if code == ALL else code) for step, code in held_cores if code]
        if cores and users:
            model.add_cumulative(
                [step.interval for step, _ in users], [amount for _, amount in users], cores
            )


def _loads(model: Any, part: Component, steps: Sequence[_Step], makespan: Any) -> None:
    for resource, count in enumerate(part.cores):
        cores = min(count, len(part))
        held_cores = [(step, part.holds[step.operator][step.mode][resource]) for step in steps]
        work = [
            part.times[step.operator][step.mode] * (cores if code == ALL else code) * step.chosen
            for step, code in held_cores
            if code
        ]
        if cores and work:
            model.add(makespan * cores >= sum(work))


def _turns(
    model: Any, part: Component, steps: Sequence[_Step], makespan: Any, horizon: int
) -> None:
    if not part.alone:
        return
    spread = sum(part.times[step.operator][1] * step.chosen for step in steps if step.mode == 1)
    single = {
        step.operator: part.times[step.operator][0] * step.chosen
        for step in steps
        if step.mode == 0
    }
    paths: dict[int, Any] = {}
    for i in reversed(range(len(part))):
        paths[i] = model.new_int_var(0, horizon, f"q{i}")
        later = part.above[i]
        implied = 0
        for j in bits(later):
            implied |= part.above[j]
        model.add(paths[i] >= single.get(i, 0))
        for j in bits(later & ~implied):
            model.add(paths[i] >= single.get(i, 0) + paths[j])
        model.add(makespan >= spread + paths[i])


def _coarse(part: Component) -> tuple[Component, int]:
    """The component with times of at most 2^30 in sum, and k."""
    total = sum(part.least(i) for i in range(len(part)))
    shift = max(0, total.bit_length() - MOST_BITS)
    times = tuple((-(-alone >> shift), -(-spread >> shift)) for alone, spread in part.times)
    return replace(part, times=times, unit_s=part.unit_s * 2**shift), shift


def solve_cpsat(part: Component, hint: Decisions | None, bound: int, work: float) -> CpSatAnswer:
    """The best schedule within the limit, its search begun at ``hint``, and the proven bound."""
    coarse, shift = _coarse(part)
    steps = hint.steps if hint else None
    steps_found, proven = _solve(coarse, steps, bound >> shift, work)
    best = Decisions(steps_found, makespan_of(part, steps_found)) if steps_found else None
    fine = proven if shift == 0 else (proven - len(part)) << shift
    return CpSatAnswer(best, max(bound, min(fine, best.makespan) if best else fine))


def _solve(
    part: Component, hint: Sequence[tuple[int, int]] | None, bound: int, work: float
) -> tuple[tuple[tuple[int, int], ...] | None, int]:
    horizon = makespan_of(part, hint) if hint else sum(part.least(i) for i in range(len(part)))
    model = cp_model.CpModel()
    starts, ends, steps = _operators(model, part, horizon)
    _precedence(model, part, starts, ends)
    _resources(model, part, steps)
    makespan = model.new_int_var(max(part.hbm, min(bound, horizon)), max(part.hbm, horizon), "C")
    for end in ends:
        model.add(makespan >= end)
    _loads(model, part, steps, makespan)
    _turns(model, part, steps, makespan, horizon)
    model.minimize(makespan)
    for step in steps:
        if hint:
            model.add_hint(step.chosen, dict(hint)[step.operator] == step.mode)
    solver = cp_model.CpSolver()
    solver.parameters.random_seed = SEED
    solver.parameters.num_workers = WORKERS
    solver.parameters.interleave_search = True
    solver.parameters.max_deterministic_time = work
    solver.parameters.catch_sigint_signal = (
        False  # it would take an interrupt for the end of its time
    )
    status = solver.solve(model)
    proven = max(bound, int(solver.best_objective_bound)) if status != cp_model.UNKNOWN else bound
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None, min(proven, horizon)
    chosen = {step.operator: step.mode for step in steps if solver.boolean_value(step.chosen)}
    order = sorted(range(len(part)), key=lambda i: (solver.value(starts[i]), i))
    return tuple((i, chosen[i]) for i in order), proven
