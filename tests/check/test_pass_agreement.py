"""Passes of layers take what phaze says under every schedule rule with a formula, and no bound of
links is above its best schedule, on random times of operators."""

import json
from typing import Any

import numpy as np
import pytest

from phaze.check import traced
from phaze.check.graphs import pass_of
from phaze.check.network import network_of
from phaze.check.orders import UnitOrder
from phaze.check.pass_units import timed
from phaze.check.passes import Exchanging, TimedPass, WorkSeconds
from phaze.check.queues import Queues
from phaze.check.reading import RefusedError
from phaze.check.softmaxes import with_plain_softmaxes
from phaze.check.stack import Stack as CheckedStack
from phaze.documents import plain_value
from phaze.evaluate.lowered_layer import run_passes
from phaze.evaluate.lowered_pass import LoweredPass, Times
from phaze.evaluate.pass_builder import PassBuilder
from phaze.graph import store
from phaze.graph.sources import ModelRequest, load
from phaze.graph.supply.point import Rank
from phaze.hardware.library import load_cluster, load_stack
from phaze.hardware.stack import Stack
from phaze.placement.machine import Machine
from phaze.schedule.problem import KINDS, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import RULE, Rules
from phaze.schedule.solve import solve
from phaze.values import replace

MANY = pytest.param(10_000, marks=pytest.mark.slow)
REQUESTS = {
    "bert-large": ModelRequest(model="bert-large", rank=Rank(tensor=2, microbatch=1, sequence=128)),
    # Two attention matrices a rank, which Megatron's softmax kernel does not take.
    "bert-large, 2 heads": ModelRequest(
        model="bert-large", rank=Rank(tensor=8, microbatch=1, sequence=128)
    ),
    "llama3-8b": ModelRequest(
        model="llama3-8b", rank=Rank(tensor=4, microbatch=1, sequence=128, sequence_parallel=True)
    ),
}
STACKS = ("megatron-core", "megatron-2021", "maxtext")


def _machine(stack: Stack) -> Machine:
    return Machine(load_cluster("dgx-h100"), stack, "datasheet", True)


def _both(request: ModelRequest, stack: Stack, rule: Rules) -> list[tuple[LoweredPass, TimedPass]]:
    """The two passes of the layer that is called most, as phaze runs them and as the checker
    does."""
    model, machine = (
        load(request),
        _machine(replace(stack, schedule=rule, hides_tensor_collectives=False)),
    )
    at = max(range(len(model.layers)), key=model.count)
    raw = traced.traced_layer(json.loads(json.dumps(store.plain(model)))["layers"][at])
    layer = traced.with_sums(
        with_plain_softmaxes(raw, stack.softmax_matrices), stack.accumulation_inside
    )
    passes = run_passes(model.layers[at], PassBuilder(machine, RULE[rule]))
    exchanging = Exchanging(
        stack.hidden_exchange, stack.overlaps_shared_experts, stack.deduplicated_exchange
    )
    software = CheckedStack(
        rule=rule, pieces=stack.piecewise_collectives, host=stack.host_s, exchanging=exchanging
    )
    found = []
    for trace, own, back in (
        (layer.forward, passes.forward, False),
        (layer.backward, passes.backward, True),
    ):
        fused = pass_of(trace, layer.tensors, [list(group) for group in own.members], True)
        mine = timed(fused, software, back)
        found.append((own, mine))
    return found


def _seconds(
    rng: np.random.Generator, theirs: LoweredPass, mine: TimedPass, chips: int
) -> tuple[Times, WorkSeconds]:
    """What works take on some chips, as phaze has it of units and as the checker has it of
    works."""
    draws = dict[Any, Any]()
    for work in mine.own.works:
        busy = work.core not in ("none", "network")
        one, spread = busy * 10.0 ** rng.uniform(-6, -3, (2, chips))
        draws[work] = one, spread, rng.uniform(0, 1) * np.minimum(one, spread)
    alone = not (theirs.rule.one_core or theirs.rule.hbm_shared)
    arrays = np.array([draws[work] for work in mine.own.works]).transpose(1, 0, 2)
    one, spread, hbm = (arrays[1], arrays[1], 0 * arrays[2]) if alone else arrays
    hbm = hbm * theirs.rule.hbm_shared
    cores = rng.integers(1, 9, (2, chips))
    names = dict(zip(("tensor", "vector"), cores.astype(float), strict=True))
    spread_of, one_of, hbm_of = (
        dict(zip(mine.own.works, rows, strict=True)) for rows in (spread, one, hbm)
    )
    known = WorkSeconds(
        spread_of,
        one_of if theirs.rule.one_core else {},
        hbm_of if theirs.rule.hbm_shared else {},
        names,
        chips,
    )
    return Times(*theirs._joined(one, spread, hbm), *cores), known


@pytest.mark.parametrize("count", [600, MANY])
@pytest.mark.parametrize("rule", ["serial", "companions", "links", "icml24", "overlap"])
def test_passes_take_what_phaze_says(rule: Rules, count: int) -> None:
    rng, seen = np.random.default_rng(11), 0
    network = network_of(json.loads(json.dumps(plain_value(load_cluster("dgx-h100")))), "datasheet")
    each = count // (len(REQUESTS) * len(STACKS) * 2)
    for request in REQUESTS.values():
        for name in STACKS:
            for theirs, mine in _both(request, load_stack(name), rule):
                waits = mine.waits(network)
                assert np.allclose(waits, theirs.waits_s, rtol=1e-12, atol=0)
                times, known = _seconds(rng, theirs, mine, each)
                least, bound = mine.least(known, waits), theirs.with_host(theirs.bound(times))
                if not RULE[rule].one_core:
                    assert np.allclose(least, bound, rtol=1e-9, atol=0), (name, rule)
                else:
                    own = mine._on_cores(known, waits)
                    for seconds, true in (
                        (own.one, times.one_core_s),
                        (own.spread, times.spread_s),
                        (own.hbm, times.hbm_s),
                    ):
                        assert np.allclose(seconds, true, rtol=1e-12, atol=0), (name, rule)
                seen += each
                scheduled = rule not in ("serial", "companions")
                for chip in range(min(3 - 2 * RULE[rule].one_core, each)) if scheduled else ():
                    _scheduled(theirs, mine, times, known, waits, chip)
    assert seen >= 0.9 * count


def _scheduled(
    theirs: LoweredPass, mine: TimedPass, times: Times, known: WorkSeconds, waits: Any, chip: int
) -> None:
    """A schedule that phaze finds is one, and one that starts too early is none."""
    found, one = theirs.schedule(times, chip), known.taken(np.array([chip]))
    rows: list[Any] = [slot.start_s for slot in found.slots]
    if theirs.rule.one_core:
        rows = [[slot.start_s, slot.tensor_core, slot.vector_core] for slot in found.slots]
    taken = float(mine.answered(one, waits, rows, "slots")[0])
    assert abs(taken - float(theirs.with_host(np.array([found.makespan_s]))[0])) <= 1e-9 * taken
    assert float(mine.least(one, waits)[0]) <= taken * (1 + 1e-9)
    early: list[Any] = [0.5 * slot.start_s for slot in found.slots]
    if theirs.rule.one_core:
        early = [[start, *row[1:]] for start, row in zip(early, rows, strict=True)]
    with pytest.raises(RefusedError):
        mine.answered(one, waits, early, "slots")
    with pytest.raises(RefusedError):
        mine.answered(one, waits, rows[:-1], "slots")


def _random(rng: np.random.Generator) -> ScheduleProblem:
    """Operators with cores, with the network, with both, and with neither, in a random order."""
    count, operators = int(rng.integers(2, 9)), []
    for at in range(count):
        core, network = [("tensor", False), ("vector", False), ("both", True), ("none", False)][
            int(rng.choice(4, p=[0.35, 0.2, 0.15, 0.3]))
        ]
        time = 0.0 if core == "none" and rng.random() < 0.2 else float(rng.integers(1, 30))
        operators.append(ScheduledOperator(str(at), core, time, time, network))  # type: ignore[arg-type]
    edges = tuple((a, b) for b in range(count) for a in range(b) if rng.random() < 0.25)
    return ScheduleProblem("links", 1, 1, tuple(operators), edges)


@pytest.mark.parametrize("count", [200, MANY])
def test_queues_accept_schedules_and_no_bound_is_above_the_best_one(count: int) -> None:
    rng, met = np.random.default_rng(12), 0
    for _ in range(count):
        problem = _random(rng)
        found, size = solve(problem), len(problem.operators)
        before = [0] * size
        for a, b in sorted(problem.edges, key=lambda edge: edge[1]):
            before[b] |= before[a] | 1 << a
        kinds = tuple(KINDS[operator.core] for operator in problem.operators)
        network = tuple(
            operator.network or operator.core == "none" for operator in problem.operators
        )
        own = Queues(UnitOrder(kinds, network, tuple(before)))
        seconds = np.array([operator.all_cores_s for operator in problem.operators])
        starts = [slot.start_s for slot in found.slots]
        assert (
            abs(own.makespan(starts, seconds, "slots") - found.makespan_s)
            <= 1e-9 * found.makespan_s
        )
        low = float(own.least(seconds[:, None])[0])
        assert low <= found.makespan_s * (1 + 1e-9), problem
        met += low >= found.makespan_s * (1 - 1e-9)
        early = [max(0.0, start - 1.0) for start in starts]
        if max(a + b for a, b in zip(early, seconds.tolist(), strict=True)) < found.makespan_s:
            with pytest.raises(RefusedError):
                own.makespan(early, seconds, "slots")
    assert met > 0.7 * count
