"""How long schedules take, how many ideals they have, and how far the bounds are; printed, not
judged.

:func:`measure` takes any list of named problems: real traced layers on chips of a space go in the
same way as the hand-made blocks here. ``pytest tests/bench/test_layer_schedules.py -n 0 -m '' -s -k
traced`` prints the table of the document.
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

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.lowered_pass import LoweredPass, Times, work_times
from phaze.evaluate.pass_builder import lower_pass
from phaze.graph.fuse import fuse_layer
from phaze.graph.zoo import entry_of, load_model
from phaze.hardware.calibration import IDEAL
from phaze.hardware.library import load_cluster, load_stack
from phaze.placement.machine import Machine
from phaze.schedule.bounds import chip_bounds, lower_bound
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.schedule.problem import Core, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import RULE, Rules
from phaze.schedule.solve import solve
from phaze.search.chips import enumerate_space
from tests.bench.test_cost import paper_chips
from tests.search.made import core_space


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


def measure(problems: Sequence[tuple[str, ScheduleProblem]]) -> list[Row]:
    """Solve each problem once, timed in processor seconds."""
    rows = []
    for name, problem in problems:
        start = time.process_time()
        found = solve(problem)
        seconds = time.process_time() - start
        parts = [part_of(problem, order) for order in series(contract(problem))]
        bound = sum(part.seconds_below(lower_bound(part)) for part in parts)
        share = found.makespan_s / bound if bound else 1.0
        rows.append(
            Row(
                name,
                seconds,
                found.effort.ideals,
                found.effort.labels,
                found.optimal,
                found.gap,
                share,
            )
        )
    return rows


def show(title: str, rows: Sequence[Row]) -> None:
    """One line: how many were proved, times, ideals, and median, 95th percentile and most of
    optimum / bound."""
    times = sorted(row.seconds * 1e3 for row in rows)
    shares = sorted(row.bound_share for row in rows)
    late, high = (found[int(0.95 * (len(found) - 1))] for found in (times, shares))
    proved = sum(row.optimal for row in rows)
    print(
        f"{title:45} {proved:4} of {len(rows):4} proved, worst gap {max(r.gap for r in rows):.0e}"
        f"  median {statistics.median(times):6.1f} ms  95 % {late:7.1f}  most {times[-1]:7.1f}"
        f"  ideals <= {max(row.ideals for row in rows):6}  labels <= "
        f"{max(row.labels for row in rows):6}"
        f"  optimum / bound {statistics.median(shares):.3f} {high:.3f} {shares[-1]:.3f}",
        flush=True,
    )


def _paper_chips(count: int) -> list[tuple[int, int, int, int]]:
    found = enumerate_space(core_space("paper")).chips
    pick = np.linspace(0, len(found) - 1, count).astype(int)
    parts = zip(found.clusters, found.columns, found.vectors, found.lanes, strict=True)
    everything = [(int(t), int(c), int(v), int(lanes)) for t, c, v, lanes in parts]
    return [everything[i] for i in pick]


MODELS = (
    "bert-large", "gpt2-xl", "opt-350m", "llama2-7b", "megatron-bert-large", "megatron-gpt2-54",
    "megatron-gpt2-72",
    "gpt3-175b", "llama3-8b", "llama3-70b", "mixtral-8x7b", "t5-large", "vit-large",
)  # fmt: skip
CHIPS = 200


def _drawn_chips(count: int) -> ChipSet:
    """Some chips of the paper's space, drawn with a fixed seed, in the order of the space."""
    everything = paper_chips()
    return everything.taken(
        np.sort(np.random.default_rng(2024).choice(len(everything), count, replace=False))
    )


def traced_passes(name: str, width: int) -> list[tuple[str, LoweredPass]]:
    """Forward and backward of every layer of a model that stands in it more than once."""
    model, machine = (
        load_model(name, width, 1),
        Machine(load_cluster("paper-flat"), load_stack("icml24"), "ideal"),
    )
    found = []
    for at, layer in enumerate(model.layers):
        if model.count(at) > 1:
            fused = fuse_layer(layer, machine.stack.fusion)
            found += [
                (f"{layer.name} forward", lower_pass(fused.forward, machine, RULE["icml24"])),
                (
                    f"{layer.name} backward",
                    lower_pass(fused.backward, machine, RULE["icml24"], backward=True),
                ),
            ]
    return found


def times_on(one: LoweredPass, chips: ChipSet) -> Times:
    """A pass on every chip."""
    return one.times(work_times(one.works, chips, IDEAL, one.rule), 0, chips)


def problems_on(one: LoweredPass, chips: ChipSet) -> list[tuple[str, ScheduleProblem]]:
    """The scheduling problem of a pass on every chip."""
    times = times_on(one, chips)
    return [(str(chip), one.problem(times, chip)) for chip in range(len(chips))]


def test_traced_layers_on_chips_of_the_paper() -> None:
    chips, everything = _drawn_chips(CHIPS), []
    measure(problems_on(traced_passes("t5-large", 1)[-1][1], chips)[:40])
    for name in MODELS:
        for width in (1, 4) if 4 in entry_of(name).shipped else (1,):
            for layer, one in traced_passes(name, width):
                rows = measure(problems_on(one, chips))
                show(f"{name} {width} {layer} ({len(one.works)})", rows)
                everything += rows
    show("all", everything)


def test_bounds_of_traced_layers_on_all_chips_of_the_paper() -> None:
    chips = paper_chips()
    for name in ("llama2-7b", "mixtral-8x7b", "t5-large"):
        layer, one = traced_passes(name, 4)[-1]
        times = times_on(one, chips)
        few = chips.taken(np.arange(2))
        one.bound(times_on(one, few))
        start = time.process_time()
        one.bound(times)
        seconds = time.process_time() - start
        print(
            f"bounds of {name} 4 {layer} ({len(one.units)}) on {len(chips):,} chips: "
            f"{seconds:.2f} s   budget 1"
        )


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("shape", ["chain", "parallel", "layers", "random"])
def test_500_operators(rules: Rules, shape: str) -> None:
    dice = np.random.default_rng(7)
    kinds: tuple[Core, ...] = ("tensor", "vector", "both")
    operators = []
    for i in range(500):
        one = float(dice.integers(1, 10_000)) * 1e-6
        operators.append(
            ScheduledOperator(
                f"o{i}", kinds[int(dice.integers(3))], one, one * float(dice.uniform(0.2, 1.0))
            )
        )
    edges = {
        "chain": [(i, i + 1) for i in range(499)],
        "parallel": [],
        "layers": [
            (i, j)
            for j in range(10, 500)
            for i in range(j - j % 10 - 10, j - j % 10)
            if (i + j) % 3 == 0
        ],
        "random": [(int(dice.integers(j)), j) for j in range(1, 500) for _ in range(2)],
    }[shape]
    problem = ScheduleProblem(rules, 8, 4, tuple(operators), tuple(edges))
    start = time.process_time()
    found = solve(problem)
    print(
        f"500 operators, {shape}, {rules}: gap {found.gap:.1e} in "
        f"{time.process_time() - start:.1f} s of processors"
    )


@pytest.mark.parametrize("rules", ["icml24", "overlap"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
@pytest.mark.parametrize("width", [1, 4])
def test_a_llama_block_on_chips_of_the_paper(rules: Rules, direction: str, width: int) -> None:
    blocks = _blocks()
    problems = []
    for tensor, rows, vector, lanes in _paper_chips(50):
        machine = replace(
            blocks.Machine(),
            tensor_cores=tensor,
            rows=rows,
            vector_cores=vector,
            lanes=lanes,
            width=width,
        )
        problems.append(
            (f"{tensor}x{rows} {vector}x{lanes}", getattr(blocks, direction)(machine, rules))
        )
    measure(problems[:1])
    show(f"llama {direction} t={width} {rules}", measure(problems))


def test_bounds_of_one_layer_on_all_chips_of_the_paper() -> None:
    blocks = _blocks()
    problem = blocks.backward(replace(blocks.Machine(), width=4), "icml24")
    order = contract(problem)
    costly = [problem.operators[i] for i in order.operators]
    found = enumerate_space(core_space("paper")).chips
    dice = np.random.default_rng(0)
    one = np.array([[o.one_core_s] for o in costly]) * dice.uniform(0.5, 2.0, (1, len(found)))
    spread = one * dice.uniform(0.1, 1.0, one.shape)
    tensor, vector = np.asarray(found.clusters, np.int64), np.asarray(found.vectors, np.int64)
    kinds = [o.core for o in costly]
    chip_bounds("icml24", kinds, order.below, one[:, :2], spread[:, :2], tensor[:2], vector[:2])
    start = time.process_time()
    bounds = chip_bounds("icml24", kinds, order.below, one, spread, tensor, vector)
    seconds = time.process_time() - start
    print(
        f"bounds {', '.join(bounds)} of {len(costly)} operators on {len(found):,} chips: "
        f"{seconds:.2f} s"
    )
