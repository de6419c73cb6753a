"""A third implementation of cost, schedule and placement: it agrees with phaze's to 1e-9, and no
bound is above it."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from phaze.check import mappings, products, slots, vectors, works
from phaze.check.certified import checked_plan, plan_batch
from phaze.check.exact_cuts import ExactRows
from phaze.check.families import PUBLISHED
from phaze.check.formats import Held
from phaze.check.job import Job
from phaze.check.network import Level, Network
from phaze.check.orders import UnitOrder
from phaze.check.plan_classes import GraphParts, PlanSpace
from phaze.check.plan_graph import LayerBytes, LayerSeconds, PlanGraph, StatedMode
from phaze.check.reading import RefusedError
from phaze.check.schedules import CoreSchedules, CoreSeconds, core_schedules
from phaze.check.stack import Stack
from phaze.cost import mapping, vector
from phaze.cost.products import part_rows, parts_from, sweep_products
from phaze.placement.layers import PlacedLayer, layer_graph
from phaze.placement.settings import icml24_problem
from phaze.placement.solve import fastest_plan
from phaze.schedule.problem import KINDS, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import RULE, Rules
from phaze.schedule.solve import solve
from tests.check.bounds import least_seconds, on_one_chip
from tests.check.digests import tables

NEVER = float("inf")
MANY = pytest.param(10_000, marks=pytest.mark.slow)


def _power(rng: np.random.Generator, most: int) -> int:
    return int(2 ** rng.integers(0, most + 1))


def _extent(rng: np.random.Generator) -> int:
    """Powers of two, their neighbours, and anything."""
    base = _power(rng, 13)
    return max(1, [base, base + 1, base - 1, int(rng.integers(1, 9000))][rng.integers(4)])


def _moved(rng: np.random.Generator, size: float) -> works.Moved:
    need = [NEVER, size, 2.0**24, 2.0**27][rng.integers(4)]
    return (0.0 if rng.random() < 0.1 else size), need


def _product(rng: np.random.Generator) -> works.Product:
    batch, m, n, k = int(rng.choice([1, 2, 16])), _extent(rng), _extent(rng), _extent(rng)
    e = int(rng.choice([1, 2, 4]))
    sizes = [float(e * batch * x) for x in (m * k, k * n, m * n)]
    a, b, c = (_moved(rng, size) for size in sizes)
    return works.Product(batch, m, n, k, e, a, b, c)


def _parts(rng: np.random.Generator, count: int) -> np.ndarray:
    """Rows of cores, rows, columns, buffer and its rate, clock, global buffer and rate, HBM rate,
    lost cycles."""
    found = []
    for _ in range(count):
        r, c, cores = _power(rng, 8), _power(rng, 8), _power(rng, 10)
        clock, least = 1e9 * float(rng.choice([0.5, 1.05])), 4 * (r + c)
        buffer = float(max(least, 1024, 16 * r * c) // float(rng.choice([1, 4])))
        share = float(rng.choice([1, cores]))
        found.append(
            [cores, r, c, max(buffer, least), clock * (2 * r + 6 * c), clock,
            2.0 ** rng.integers(19, 28) / share,
             4e12 / share, float(rng.choice([2e11, 1.2e12])) / share, float(rng.choice([0, 7]))]
        )  # fmt: skip
    return np.array(found, dtype=np.float64)


FIELDS = (
    "cores", "rows", "columns", "buffer_bytes", "buffer_bytes_per_s", "clock_hz", "global_bytes",
    "global_bytes_per_s",
    "hbm_bytes_per_s", "block_cycles",
)  # fmt: skip


@pytest.mark.parametrize("count", [200, MANY])
def test_products_take_what_phaze_says_and_no_less_than_their_roofline(count: int) -> None:
    rng, each = np.random.default_rng(1), 10
    for _ in range(count // each):
        p, rows = _product(rng), _parts(rng, each)
        cores, r, c, buffer, _, clock, shared, shared_rate, hbm_rate, lost = rows.T
        own = products.tensor_parts(
            cores, r, c, buffer, shared, shared_rate / clock, hbm_rate / clock, lost=lost
        )
        same = mapping.Product(
            p.batch, p.m, p.n, p.k, p.e, p.a[0], p.b[0], p.c[0], p.a[1], p.b[1], p.c[1]
        )
        theirs = sweep_products(
            [same], parts_from(part_rows(**dict(zip(FIELDS, rows.T, strict=True))))
        ).time_s[0]
        mine = mappings.exact(p, own)
        assert np.allclose(mine / clock, theirs, rtol=1e-12, atol=0), p
        assert (products.least(p, own) <= mine * (1 + 1e-12)).all(), p


@pytest.mark.parametrize("count", [300, MANY])
def test_vector_work_takes_what_phaze_says(count: int) -> None:
    rng, each = np.random.default_rng(2), 20
    for _ in range(count // each):
        rows = int(rng.choice([0, _extent(rng)]))
        elements = _extent(rng) * max(rows, 1) + int(rng.integers(0, 3))
        moved = [
            tuple(_moved(rng, float(_extent(rng))) for _ in range(rng.integers(0, 4)))
            for _ in range(2)
        ]
        operations, passes = float(rng.integers(0, 20)), int(rng.integers(1, 3))
        mine = works.Lanes(moved[0], moved[1], elements, operations, rows, passes == 2)
        sides = [tuple(vector.Moved(*one) for one in side) for side in moved]
        theirs = vector.VectorWork(elements, rows, operations, passes, sides[0], sides[1])
        columns = np.array(
            [[_power(rng, 12), _power(rng, 8), 1e12, 2.0 ** rng.integers(9, 16), 1e9,
            2.0 ** rng.integers(20, 28), 4e12,
              1e12, np.inf] for _ in range(each)]
        )  # fmt: skip
        found = vectors.vector_seconds(mine, vectors.VectorParts(*columns.T))
        known = vector.sweep_vector([theirs], vector.vector_parts_from(columns[:, :8])).time_s[0]
        assert np.allclose(found, known, rtol=1e-12, atol=0), mine


CORES = (
    ("tensor", False), ("vector", False), ("both", False), ("none", True), ("both", True),
)  # fmt: skip


def _schedule_problem(rng: np.random.Generator, rule: Rules) -> ScheduleProblem:
    """Operators on cores, on the network and on both, some of which take no time."""
    count = int(rng.integers(2, 9))
    operators = []
    for at in range(count):
        core, sent = CORES[rng.choice(5, p=[0.35, 0.3, 0.15, 0.12, 0.08])]
        one = float(rng.integers(1, 30)) * (rng.random() > 0.05)
        spread = one if sent else one / float(rng.uniform(0.8, 6))
        hbm = min(one, spread) * float(rng.choice([0.0, rng.uniform(0, 1)]))
        operators.append(
            ScheduledOperator(str(at), core, one, spread, sent and core != "none", hbm)  # type: ignore[arg-type]
        )
    edges = tuple((a, b) for b in range(count) for a in range(b) if rng.random() < 0.25)
    tensor, vector = rng.integers(1, 5, 2).tolist()
    return ScheduleProblem(rule, tensor, vector, tuple(operators), edges)


def _placed(problem: ScheduleProblem) -> tuple[CoreSchedules, CoreSeconds]:
    """The same question as the checker has it."""
    before = [0] * len(problem.operators)
    for a, b in sorted(problem.edges, key=lambda edge: edge[1]):
        before[b] |= before[a] | 1 << a
    order = UnitOrder(
        tuple(KINDS[operator.core] for operator in problem.operators),
        tuple(operator.network or operator.core == "none" for operator in problem.operators),
        tuple(before),
    )
    shared = RULE[problem.rules].hbm_shared
    rows = [
        (operator.one_core_s, operator.all_cores_s, operator.hbm_s * shared)
        for operator in problem.operators
    ]
    one, spread, hbm = np.array(rows).T[:, :, None]
    cores = {"tensor": problem.tensor_cores, "vector": problem.vector_cores}
    counts = {kind: np.array([float(count)]) for kind, count in cores.items()}
    schedules = core_schedules(order, slots.RULES[problem.rules], ())
    return schedules, CoreSeconds(one, spread, hbm, counts)


@pytest.mark.parametrize("count", [150, MANY])
@pytest.mark.parametrize("rule", ["icml24", "overlap"])
def test_schedules_are_accepted_and_no_bound_is_above_the_best_one(rule: Rules, count: int) -> None:
    rng, met = np.random.default_rng(3), [0, 0, 0]
    for _ in range(count):
        problem = _schedule_problem(rng, rule)
        best, (own, times) = solve(problem), _placed(problem)
        rows: list[Any] = [
            [slot.start_s, slot.tensor_core, slot.vector_core] for slot in best.slots
        ]
        near = 1e-9 * best.makespan_s
        assert abs(own.makespan(rows, times, "slots") - best.makespan_s) <= near
        for effort in range(3):
            least = float(own.least(times, effort)[0])
            assert least <= best.makespan_s + near, (problem, effort)
            met[effort] += least >= best.makespan_s - near
        early = [[0.9 * start, *cores] for start, *cores in rows]
        if early != rows:
            with pytest.raises(RefusedError):
                own.makespan(early, times, "slots")
    assert met[2] == count, "every schedule is proved when all that can start next is looked at"
    assert 0.4 * count < met[0] <= met[1]


def _layers(rng: np.random.Generator, chain: bool) -> tuple[PlanGraph, np.ndarray, np.ndarray]:
    count = int(rng.integers(2, 7))
    kinds = int(rng.integers(1, 4))
    width = int(rng.choice([1, 2, 4]))
    layers = tuple(
        LayerBytes(
            parameters=int(rng.integers(0, 50)),
            modes=(StatedMode(int(rng.integers(0, 80))), StatedMode(0)),
            sharded=bool(rng.random() < 0.7),
        )
        for _ in range(kinds)
    )
    calls = tuple(int(rng.integers(0, kinds)) for _ in range(count))
    pairs = {(a, a + 1) for a in range(count - 1)} if chain else set[tuple[int, int]]()
    pairs |= {(a, b) for b in range(count) for a in range(b) if rng.random() < 0.3}
    edges = tuple((a, b, float(rng.integers(0, 40))) for a, b in sorted(pairs))
    times = [np.array([[float(rng.integers(1, 30))] for _ in range(kinds)]) for _ in range(2)]
    blocks, equal = (True,) * count, len(set(calls)) == 1
    graph = PlanGraph(
        width, 1, ("none", "full"), layers, calls, blocks, equal, edges, every_mode=True
    )
    return graph, times[0], times[1]


def published(link: float) -> Stack:
    """The rules of the ICML 2024 paper, all devices on one link."""
    return Stack(
        rule="icml24",
        inside=2.0,
        families=(PUBLISHED,),
        arriving=True,
        link=link,
        first_end=True,
        unsplit=True,
        last_recomputes=False,
        all_recompute=True,
        ties=False,
    )


def _job(devices: int, batch: int, link: float) -> Job:
    """Under the rules icml24, with plain gradient descent."""
    level = Level(devices, link, 0.0, 1.0, 0.0, NEVER, 0.0, 0.0, 0.0, 0.0, 0.0)
    state = Held(4.0, 0.0, 0.0, 0.0, 2.0, 1.0, 1.0)
    return Job(devices, batch, published(link), Network((level,)), state, 0.0, None)


@pytest.mark.parametrize("count", [150, MANY])
def test_placements_take_what_phaze_says(count: int) -> None:
    """Chains and branching graphs, unsplit stages, memory that binds, all three choices of
    recompute."""
    rng = np.random.default_rng(4)
    for at in range(count):
        _agrees(rng, *_layers(rng, at % 3 > 0))


def _agrees(
    rng: np.random.Generator, graph: PlanGraph, forward: np.ndarray, backward: np.ndarray
) -> None:
    """The least batch time of a graph is that of phaze's plan, and no bound is above it."""
    recompute = ["none", "full", "best"][rng.integers(3)]
    devices, batch, hbm = (
        int(rng.integers(1, 17)),
        int(rng.integers(1, 20)),
        float(rng.choice([200, 600, 1e9])),
    )
    placed = [
        PlacedLayer(i, forward[k, 0], backward[k, 0], 2.0 * graph.layers[k].parameters,
                    graph.layers[k].modes[0].kept, graph.layers[k].sharded)
        for i, k in enumerate(graph.calls)
    ]  # fmt: skip
    problem = icml24_problem(
        [layer_graph(graph.width, placed, graph.edges)], devices=devices, microbatches=batch,
        hbm_bytes=hbm,
        link_bytes_per_s=3.0, optimizer="sgd", recompute=recompute,
    )  # fmt: skip
    found = fastest_plan(problem)
    job = _job(devices, batch, 3.0)
    modes = {"none": (0,), "full": (1,), "best": (0, 1)}[recompute]
    space = PlanSpace(GraphParts(graph, job), modes, (0,), hbm)
    nothing = np.zeros_like(forward)
    times = LayerSeconds(forward, backward, np.stack([nothing, forward]), nothing, True)
    chip = on_one_chip(times)
    bound = least_seconds([space], chip, 1e12, True, ExactRows)
    if found is None:
        assert bound >= 1e12
        return
    batch_s = found.batch_s
    assert abs(bound - batch_s) <= 1e-9 * batch_s, (graph, recompute)
    stages = [[list(stage.layers), stage.recompute] for stage in found.stages]
    plan = {"data": found.data, "stages": stages}
    checked = checked_plan(graph, job, plan, (recompute, (0,)))
    seconds = plan_batch(graph, job, checked, (hbm, np.inf), times)
    assert abs(seconds - batch_s) <= 1e-9 * batch_s
    goal = batch_s * float(rng.uniform(0.8, 1.2))
    for sharp, near in product((False, True), (goal, batch_s * (1 + 1e-6))):
        assert least_seconds([space], chip, near, sharp) <= batch_s * (1 + 1e-9)
    below = least_seconds([space], chip, goal, True, ExactRows)
    assert (below < goal) == (batch_s < goal) or abs(batch_s - goal) <= 1e-9 * batch_s


@pytest.mark.parametrize("count", [300, MANY])
def test_equal_blocks_and_several_first_layers_are_bounded_as_published(count: int) -> None:
    """Chains of equal blocks whose transfers take as long as their layers, and graphs of several
    sources."""
    rng = np.random.default_rng(9)
    for at in range(count):
        calls, size = int(rng.integers(3, 9)), float(rng.integers(20, 90))
        most = 200 if at % 2 else 15
        rows = [(int(rng.integers(0, most)), int(rng.integers(20, 90))) for _ in range(2)]
        layers = tuple(
            LayerBytes(parameters=w, modes=(StatedMode(kept), StatedMode(0))) for w, kept in rows
        )
        kinds, blocks = (0, *(1,) * (calls - 1)), (False, *(True,) * (calls - 1))
        edges = tuple((call, call + 1, size) for call in range(calls - 1))
        if at % 2:
            edges = tuple((call, calls - 1, size) for call in range(calls - 1))
        graph = PlanGraph(
            1, 1, ("none", "full"), layers, kinds, blocks, at % 2 == 0, edges, every_mode=True
        )  # fmt: skip
        forward, backward = (rng.integers(1, 30, (2, 1)).astype(float) for _ in range(2))
        _agrees(rng, graph, forward, backward)


def test_the_best_number_of_replicas_is_found_however_long_they_synchronise() -> None:
    """One stage of T seconds and W of synchronisation: the least of T ceil(M/d) + W (1 - 1/d) over
    all d."""
    rng, between = np.random.default_rng(8), 0
    for _ in range(200):
        devices, batch, seconds = (
            int(rng.integers(2, 40)),
            int(rng.integers(2, 60)),
            float(rng.integers(1, 9)),
        )
        job = _job(devices, batch, 8.0)
        size = float(rng.integers(1, 2 * batch)) * seconds
        layers = (LayerBytes(parameters=size, modes=(StatedMode(0.0), StatedMode(0.0))),)
        graph = PlanGraph(1, 1, ("none", "full"), layers, (0,), (True,), True, (), every_mode=True)
        batches = []
        for data in range(1, min(devices, batch) + 1):
            batches.append(seconds * -(-batch // data) + 4.0 * 2.0 * size / 8.0 * (1 - 1 / data))
        half, nothing = np.full((1, 1), seconds / 2), np.zeros((1, 1))
        times = LayerSeconds(half, half, np.stack([nothing, half]), nothing, True)
        space = PlanSpace(GraphParts(graph, job), (0,), (0,), 1e9)
        least = least_seconds([space], on_one_chip(times), 2 * min(batches), True, ExactRows)
        assert abs(least - min(batches)) <= 1e-9 * least
        between += 1 < int(np.argmin(batches)) + 1 < len(batches)
    assert between > 10


def test_the_cost_model_that_certificates_name_is_the_checker_s() -> None:
    from phaze.search.witness import cost_model

    assert cost_model() == works.COST_MODEL


def test_what_is_called_bundled_is() -> None:
    """Space, networks and one model; all models in the slow test."""
    from phaze.check import bundled

    found = tables(["bert-large"])
    assert found["SPACES"] == dict(bundled.SPACES) and found["NETWORKS"] == dict(bundled.NETWORKS)
    assert set(found["GRAPHS"].items()) <= set(bundled.GRAPHS.items()) and found["CHIPS"] == dict(
        bundled.CHIPS
    )
    assert found["STACKS"] == dict(bundled.STACKS) and found["TERMS"] == dict(bundled.TERMS)


@pytest.mark.slow
def test_every_model_that_is_called_bundled_is() -> None:
    from phaze.check import bundled
    from phaze.graph.zoo import ZOO

    assert tables(ZOO)["GRAPHS"] == dict(bundled.GRAPHS)
