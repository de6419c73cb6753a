"""How long schedules take, how many ideals they have, and how far the bounds are; printed, not judged.

:func:`measure` takes any list of named problems: real traced layers on chips of a space go in the same way as the
hand-made blocks here.
"""

import importlib.util
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from phaze.schedule.bounds import chip_bounds, lower_bound
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.schedule.problem import Problem, Rules
from phaze.schedule.solve import solve
from phaze.search.keep import chips_of
from phaze.search.space import load_space


def _blocks() -> ModuleType:
    path = Path(__file__).parents[1] / "schedule" / "blocks.py"
    spec = importlib.util.spec_from_file_location("blocks", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["blocks"] = module
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True, slots=True)
class Row:
    """What one problem took."""

    name: str
    seconds: float
    ideals: int
    labels: int
    optimal: bool
    gap: float
    bound_share: float


def measure(problems: Sequence[tuple[str, Problem]]) -> list[Row]:
    """Solve each problem once, timed in processor seconds."""
    rows = []
    for name, problem in problems:
        start = time.process_time()
        found = solve(problem)
        seconds = time.process_time() - start
        parts = [part_of(problem, order) for order in series(contract(problem))]
        bound = sum(part.seconds_below(lower_bound(part)) for part in parts)
        share = found.makespan_s / bound if bound else 1.0
        rows.append(Row(name, seconds, found.effort.ideals, found.effort.labels, found.optimal, found.gap, share))
    return rows


def show(title: str, rows: Sequence[Row]) -> None:
    """One line: how many were proved, times, ideals, and optimum / bound."""
    times = sorted(row.seconds * 1e3 for row in rows)
    shares = sorted(row.bound_share for row in rows)
    late = times[int(0.95 * (len(times) - 1))]
    proved = sum(row.optimal for row in rows)
    print(
        f"{title:30} {proved:4} of {len(rows):4} proved, worst gap {max(r.gap for r in rows):.0e}"
        f"  median {statistics.median(times):7.1f} ms  95 % {late:8.1f} ms"
        f"  ideals <= {max(row.ideals for row in rows):6}  labels <= {max(row.labels for row in rows):7}"
        f"  optimum / bound {statistics.median(shares):.3f} (most {shares[-1]:.3f})"
    )


def _paper_chips(count: int) -> list[tuple[int, int, int, int]]:
    found = chips_of(load_space("paper"))
    pick = np.linspace(0, len(found) - 1, count).astype(int)
    parts = zip(found.tensor_cores, found.columns, found.vector_cores, found.lanes, strict=True)
    everything = [(int(t), int(c), int(v), int(lanes)) for t, c, v, lanes in parts]
    return [everything[i] for i in pick]


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("width", [1, 4])
def test_a_llama_block_on_chips_of_the_paper(rules: Rules, direction: str, width: int) -> None:
    blocks = _blocks()
    problems = []
    for tensor, rows, vector, lanes in _paper_chips(50):
        machine = replace(
            blocks.Machine(), tensor_cores=tensor, rows=rows, vector_cores=vector, lanes=lanes, width=width
        )
        problems.append((f"{tensor}x{rows} {vector}x{lanes}", getattr(blocks, direction)(machine, rules)))
    measure(problems[:1])
    show(f"llama {direction} t={width} {rules}", measure(problems))


def test_bounds_of_one_layer_on_all_chips_of_the_paper() -> None:
    blocks = _blocks()
    problem = blocks.backward(replace(blocks.Machine(), width=4), "icml24")
    order = contract(problem)
    costly = [problem.operators[i] for i in order.operators]
    found = chips_of(load_space("paper"))
    dice = np.random.default_rng(0)
    one = np.array([[o.one_core_s] for o in costly]) * dice.uniform(0.5, 2.0, (1, len(found)))
    spread = one * dice.uniform(0.1, 1.0, one.shape)
    tensor, vector = np.asarray(found.tensor_cores, np.int64), np.asarray(found.vector_cores, np.int64)
    kinds = [o.core for o in costly]
    chip_bounds("icml24", kinds, order.below, one[:, :2], spread[:, :2], tensor[:2], vector[:2])
    start = time.process_time()
    bounds = chip_bounds("icml24", kinds, order.below, one, spread, tensor, vector)
    seconds = time.process_time() - start
    print(f"bounds {', '.join(bounds)} of {len(costly)} operators on {len(found):,} chips: {seconds:.2f} s")
