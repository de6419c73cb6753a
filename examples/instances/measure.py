"""What solvers reach on the instances: ``python -m examples.instances.measure [--seconds 60]``
prints the table.

ours      phaze: schedules by bounds, labels and ideals, placements by the bottleneck table; joint
          ones by phaze.check
CP-SAT    a textbook model of the whole pass (:mod:`tools.bench.plain_cpsat`), OR-Tools' defaults
HiGHS     the published integer program (:mod:`phaze.schedule.ilp`), component by component, the
          time shared by size
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.bench.plain_cpsat import solve_plain

from phaze.check.verdict import check
from phaze.placement.profile import problem_of
from phaze.placement.solve import fastest_plan
from phaze.schedule.files import load_problem
from phaze.schedule.ilp import solve_ilp
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.schedule.problem import ScheduleProblem
from phaze.schedule.solve import solve

HERE = Path(__file__).parent
Reached = tuple[float, float]
"""Length of the schedule found, and the bound proved, in seconds."""


def instances(kind: str) -> list[dict[str, Any]]:
    """Those of a kind, small ones first."""
    names = [f"{kind}-{size}.json" for size in ("small", "middle", "large")]
    return [json.loads((HERE / name).read_text()) for name in names]


def problem_in(instance: dict[str, Any], folder: Path) -> ScheduleProblem:
    """The schedule problem of an instance."""
    path = folder / "operators.json"
    path.write_text(json.dumps(instance["problem"]))
    return load_problem(str(path))


def highs(problem: ScheduleProblem, seconds: float) -> Reached:
    """The integer program of every component, each with its share of the time."""
    parts = [part_of(problem, order) for order in series(contract(problem))]
    total, best, bound = sum(len(part) ** 2 for part in parts), 0.0, 0.0
    for part in parts:
        if len(part) == 1:
            best, bound = best + part.least(0) * part.unit_s, bound + part.least(0) * part.unit_s
            continue
        found = solve_ilp(part, seconds * len(part) ** 2 / total)
        best += (float("inf") if found.best is None else found.best.makespan) * part.unit_s
        bound += found.bound * part.unit_s
    return best, bound


def plain(problem: ScheduleProblem, seconds: float) -> Reached:
    """CP-SAT on the whole."""
    found = solve_plain(problem, seconds)
    return found.makespan_s, found.bound_s


def exact(problem: ScheduleProblem) -> Reached:
    """phaze's own."""
    found = solve(problem)
    return found.makespan_s, found.lower_bound_s


def _timed(run: Callable[[], Reached]) -> tuple[Reached, float, float]:
    wall, cpu = time.monotonic(), time.process_time()
    found = run()
    return found, time.monotonic() - wall, time.process_time() - cpu


def _row(name: str, solver: str, optimum: float, run: Callable[[], Reached]) -> None:
    (best, bound), wall, cpu = _timed(run)
    above, below = best / optimum - 1, 1 - bound / optimum
    sys.stdout.write(
        f"| {name} | {solver} | {above:.2%} | {max(0.0, below):.2%} | {wall:.2f} | {cpu:.2f} |\n"
    )
    sys.stdout.flush()


def main() -> None:
    """Print the table."""
    import tempfile

    parser = argparse.ArgumentParser(description="What solvers reach on the instances.")
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="of wall time, for each other solver and instance",
    )
    limit = parser.parse_args().seconds
    sys.stdout.write(
        "| instance | solver | above the optimum | bound below it | wall s | CPU s "
        "|\n|---|---|---|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        for one in instances("schedule"):
            problem, optimum = problem_in(one, Path(folder)), one["optimum_s"]
            _row(one["name"], "ours", optimum, lambda p=problem: exact(p))  # type: ignore[misc]
            _row(one["name"], "CP-SAT", optimum, lambda p=problem: plain(p, limit))  # type: ignore[misc]
            _row(one["name"], "HiGHS", optimum, lambda p=problem: highs(p, limit))  # type: ignore[misc]
    for one in instances("placement"):
        placed = problem_of(one["problem"], one["name"])

        def run(p: Any = placed) -> Reached:
            plan = fastest_plan(p)
            return (float("inf"), 0.0) if plan is None else (plan.batch_s, plan.batch_s)

        _row(one["name"], "ours", one["optimum_s"], run)
    for name in ("joint-small", "joint-middle"):
        best = json.loads((HERE / name / "certificate.json").read_text())["best"]

        def verified(folder: Path = HERE / name, score: float = best) -> Reached:
            return score, score * (1 - check(folder).proved_gap)

        _row(name, "the checker alone", best, verified)


if __name__ == "__main__":
    main()
