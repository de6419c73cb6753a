"""The checker's rules cluster agree with phaze to 1e-9, and no bound of it is above the best
plan."""

import json
from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
import pytest

from phaze.check import mappings, network, products, recompute, traced
from phaze.check.certified import checked_plan, plan_batch
from phaze.check.exact_cuts import ExactRows
from phaze.check.plan_bounds import row_bound
from phaze.check.plan_classes import GraphParts, PlanSpace
from phaze.check.reading import NotCoveredError
from phaze.cost import mapping
from phaze.cost.collective import collective
from phaze.cost.network_prices import NetworkPrices
from phaze.cost.products import TensorParts, part_rows, parts_from, sweep_products
from phaze.documents import plain_value
from phaze.evaluate.lowered_layer import keeping_of
from phaze.graph import store
from phaze.graph.rewrites.accumulation import added_inside
from phaze.graph.saved import modes
from phaze.graph.saved.buffers import gradient_elements
from phaze.graph.sources import ModelRequest, load
from phaze.graph.supply.point import Rank
from phaze.hardware import chip_parts
from phaze.hardware.calibration import Basis
from phaze.hardware.library import load_cluster, load_stack
from phaze.placement.solve import fastest_plan
from tests.check.bounds import least_seconds, on_one_chip
from tests.check.cluster_cases import MODES, Case, case_of
from tests.check.test_agreement import _product

MANY = pytest.param(10_000, marks=pytest.mark.slow)


def _sides(rng: np.random.Generator, count: int) -> np.ndarray:
    """Rows of what the cycles of a product depend on."""
    return np.array(
        [
            [int(rng.choice([1, 2, 3, 12, 48, 132])), arrays := int(rng.choice([1, 2, 3, 4, 8])),
             2 ** int(rng.integers(3, 8)), 2 ** int(rng.integers(4, 9)),
             float(arrays * 2 ** int(rng.integers(13, 18))),
             float(2 ** int(rng.integers(14, 22))), 2.0 ** int(rng.integers(4, 11)),
             int(rng.choice([1, 4, 16])),
             2.0 ** int(rng.integers(20, 27)), 5120.0, float(rng.choice([500.0, 2600.0]))]
            for _ in range(count)
        ]
    )  # fmt: skip


def _parts(rows: np.ndarray) -> TensorParts:
    """The rows as parts of phaze: registers for sums, a port, and no clock but HBM's bytes a
    cycle."""
    names = ("cores", "arrays", "rows", "columns", "buffer_bytes", "sum_bytes", "port_bytes_per_s",
    "fan_out",
             "global_bytes", "global_bytes_per_s", "hbm_bytes_per_s")  # fmt: skip
    columns = dict(zip(names, rows.T, strict=True))
    feed = 2.0 * columns["rows"] + 6.0 * columns["columns"]
    fixed = {
        "clock_hz": 1.0,
        "sustained_share": chip_parts.SUSTAINED_SHARE,
        "latency_cycles": chip_parts.LATENCY_CYCLES,
    }
    return parts_from(
        part_rows(**columns, **fixed, buffer_bytes_per_s=feed, multicast=columns["fan_out"])
    )


@pytest.mark.parametrize("count", [100, MANY])
def test_products_on_clusters_take_what_phaze_says_and_no_less_than_their_bound(count: int) -> None:
    rng, each = np.random.default_rng(5), 10
    for _ in range(count // each):
        p, rows = _product(rng), _sides(rng, each)
        same = mapping.Product(
            p.batch, p.m, p.n, p.k, p.e, p.a[0], p.b[0], p.c[0], p.a[1], p.b[1], p.c[1]
        )
        clusters, arrays, r, c, operands, sums, port, fan_out, buffer, width, hbm_rate = rows.T
        parts = products.tensor_parts(
            clusters, r, c, operands, buffer, width, hbm_rate, arrays=arrays, sums=sums, port=port,
            fan_out=fan_out,
            array_rate=products.SUSTAINED, latency=products.LATENCY, multicast=np.inf,
        )  # fmt: skip
        found = sweep_products([same], _parts(rows))
        mine = mappings.exact(p, parts)
        assert np.allclose(mine, found.time_s[0], rtol=1e-12, atol=0), p
        assert (products.least(p, parts) <= mine * (1 + 1e-12)).all(), p
        bytes_ = (
            found.time_s,
            found.hbm_bytes,
            found.global_bytes,
            found.core_bytes,
            found.port_bytes,
        )
        there = np.isfinite(mine)
        for low, own, other in zip(
            products.least_bytes(p, parts), mappings.exact_bytes(p, parts), bytes_, strict=True
        ):
            assert np.allclose(own[there], other[0][there], rtol=1e-12, atol=0), p
            assert (low[there] <= own[there] * (1 + 1e-9)).all(), p


@pytest.mark.parametrize("count", [20, pytest.param(2_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["selene", "dgx-h100", "paper-flat", "tpu-v5p-pod", "tpu-v5e-pod"])
def test_collectives_take_what_phaze_says(name: str, count: int) -> None:
    rng, cluster = np.random.default_rng(6), load_cluster(name)
    table = json.loads(json.dumps(plain_value(cluster)))
    for basis in BASES:
        own, prices = network.network_of(table, basis), NetworkPrices(cluster, basis)
        for _ in range(count):
            sizes = 10.0 ** rng.uniform(2, 10, 5)
            members = tuple(int(rng.integers(1, level.size + 1)) for level in cluster.levels)
            pairs = [
                (
                    network.collective(own, "all_reduce", members, sizes),
                    prices.all_reduce_s(members, sizes),
                ),
                (
                    network.collective(own, "all_gather", members, sizes),
                    prices.gather_s(members, sizes),
                ),
            ]
            level, ranks = int(rng.integers(len(cluster.levels))), int(rng.integers(1, 33))
            pairs.append((network.transfer(own, level, sizes), prices.transfer_s(level, sizes)))
            mine = network.collective(
                own, "reduce_scatter", network.neighbours(own, ranks), sizes, ranks
            )
            single = [
                collective("reduce_scatter", float(s), ranks, cluster, basis).time_s for s in sizes
            ]
            pairs.append((mine, np.array(single)))
            assert all(np.allclose(a, b, rtol=1e-12, atol=0) for a, b in pairs)


BASES: tuple[Basis, ...] = ("ideal", "datasheet", "calibrated")
STACKS = (
    "megatron-core",
    "torchtitan",
    "torchtitan-eager",
    "maxtext",
    "megatron-2021",
    "nanotron",
    "ideal",
)
SOME = ("llama3-8b", "bert-large")


@pytest.mark.parametrize("names", [SOME, pytest.param((), marks=pytest.mark.slow)])
def test_a_layer_keeps_and_recomputes_what_phaze_says(names: tuple[str, ...]) -> None:
    """Every mode of every stack: bytes kept, bytes live, operators that run again, gradient
    buffers."""
    from phaze.graph.zoo import ZOO

    seen = 0
    for name in names or ZOO:
        for tensor, spread, eager in ((1, False, False), (2, False, True), (2, True, False)):
            attention: Literal["eager", "fused"] = "eager" if eager else "fused"
            rank = Rank(tensor=tensor, microbatch=1, sequence_parallel=spread, attention=attention)
            request = ModelRequest(model=name, rank=rank)
            try:
                model = load(request)
            except Exception:
                continue
            raw = json.loads(json.dumps(store.plain(model)))["layers"]
            for stack in map(load_stack, STACKS):
                keeping = keeping_of(stack)
                mine = recompute.Keeping(
                    keeping.saves,
                    keeping.logit_bytes,
                    keeping.selective,
                    keeping.modules,
                    keeping.named,
                )
                layers = [added_inside(layer, stack.accumulation_inside) for layer in model.layers]
                own = [
                    traced.with_sums(traced.traced_layer(table), stack.accumulation_inside)
                    for table in raw
                ]
                counts = [model.count(at) for at in range(len(own))]
                try:
                    found = recompute.offered(list(zip(own, counts, strict=True)), mine)
                    every = [recompute.Modes(layer, mine) for layer in own]
                except NotCoveredError:
                    continue
                assert found == modes.modes_to_try(list(zip(layers, counts, strict=True)), keeping)
                for layer, theirs, ours in zip(layers, own, every, strict=True):
                    known = modes.Modes(layer, keeping)
                    assert gradient_elements(layer) == recompute.gradient_elements(theirs)
                    for mode in ("none", "selective", *found, "full"):
                        a, b = known.of(mode), ours.of(mode)
                        assert (a.saved_bytes, a.live_bytes - known.logit_bytes) == (
                            b.kept,
                            b.live,
                        ), (name, mode)
                        assert mode in ("full", "alternate") or [
                            op.id for op in a.rerun.operators
                        ] == [one.number for one in b.again.operators]
                        seen += 1
    assert seen > 100


def _plan(case: Case, found: object) -> dict[str, object]:
    plan = found
    stages = [[list(stage.layers), stage.recompute] for stage in plan.stages]  # type: ignore[attr-defined]
    return {
        "graph": 0, "recompute": case.problem.recompute, "zero": case.problem.zero,
        "data": plan.data,  # type: ignore[attr-defined]
        "order": plan.order, "family": plan.family, "chunks": plan.chunks, "stages": stages,  # type: ignore[attr-defined]
        "shard": case.problem.sharing.shard,
    }  # fmt: skip


@pytest.mark.parametrize("count", [150, MANY])
@pytest.mark.parametrize("mixed", [False, True])
def test_plans_take_what_phaze_says_and_no_bound_is_above_the_best(count: int, mixed: bool) -> None:
    """Chains of equal blocks and others, every ZeRO, hybrid sharding, chunks, ties, levels, memory
    that binds; the published rules one by one among the others, unsplit stages."""
    rng = np.random.default_rng(7)
    fitting = exact = chains = 0
    for at in range(count):
        case = case_of(rng, at % 4 > 0, mixed)
        found = fastest_plan(case.problem, case.prices)
        again, zero, names = case.problem.recompute, case.problem.zero, case.graph.names
        chosen = tuple(range(len(names))) if again == "best" else (names.index(again),)
        space = PlanSpace(
            GraphParts(case.graph, case.job),
            chosen,
            (zero,),
            case.hbm[0],
            case.problem.sharing.shard,
        )
        chip = on_one_chip(case.times, case.hbm[1])
        if found is None:
            continue
        fitting += 1
        batch_s = found.batch_s
        plan = checked_plan(case.graph, case.job, _plan(case, found), (again, (zero,)))
        seconds = plan_batch(case.graph, case.job, plan, case.hbm, case.times)
        assert abs(seconds - batch_s) <= 1e-9 * batch_s, case
        for goal in (1e12, batch_s * (1 + 1e-6), batch_s * float(rng.uniform(0.9, 1.3))):
            for sharp in (False, True):
                bound = least_seconds([space], chip, goal, sharp)
                assert bound <= batch_s * (1 + 1e-9) or goal <= batch_s, (case, sharp)
        least = least_seconds([space], chip, 2 * batch_s, True, ExactRows)
        assert least <= batch_s * (1 + 1e-9), case
        exact += space.parts.simple
        if space.parts.simple or space.parts.cut:
            assert least >= batch_s * (1 - 1e-9), case
        if space.parts.cut:  # equal blocks as any other graph
            chains += 1
            space.parts.simple = False
            least = least_seconds([space], chip, 2 * batch_s, True, ExactRows)
            assert abs(least - batch_s) <= 1e-9 * batch_s, case
    assert fitting > count / 3 and exact > fitting / 3 and chains > fitting / 2


@pytest.mark.parametrize("count", [120, pytest.param(2_000, marks=pytest.mark.slow)])
def test_no_bound_of_a_row_is_above_its_best_plan_however_slow_the_level_it_crosses(
    count: int,
) -> None:
    """Every row and every shape of one, not that of the best plan alone."""
    rng, far = np.random.default_rng(11), np.full(1, 1e12)
    near = sending = shapes = 0
    for _ in range(count):
        case = case_of(rng, True)
        again, zero = case.problem.recompute, case.problem.zero
        chosen = tuple(range(len(MODES))) if again == "best" else (MODES.index(again),)
        space = PlanSpace(
            GraphParts(case.graph, case.job),
            chosen,
            (zero,),
            case.hbm[0],
            case.problem.sharing.shard,
        )
        chips = on_one_chip(case.times, case.hbm[1])
        work = sum(
            float((case.times.forward + case.times.backward)[kind, 0]) for kind in case.graph.calls
        )
        for row in space.rows(0.0, 0.0, 1e12):
            best = 1e12
            for data, order in product(range(row.fewest, row.most + 1), row.orders):
                alone = replace(row, fewest=data, most=data, orders=(order,))
                # Below a goal that every plan beats no bound keeps one from being solved.
                least = float(ExactRows(space, chips).least(alone, far)[0])
                if least < 1e12:
                    bound, best = (
                        float(row_bound(space, alone, chips, far, True)[0]),
                        min(best, least),
                    )
                    assert bound <= least * (1 + 1e-9), (case, alone)
                    shapes, near = shapes + 1, near + (bound > 0.9 * least)
                    sending += bound > 5 * row.rounds * work
            goals = 1e12, best * (1 + 1e-6), best * float(rng.uniform(0.8, 1.2))
            for goal in goals if best < 1e12 else ():
                bound = float(row_bound(space, row, chips, np.full(1, goal), True)[0])
                assert bound < goal or goal <= best * (1 + 1e-9), (case, row)
    assert near > shapes / 2 and sending > shapes / 200
