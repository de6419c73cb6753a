"""Transfers between stages: what hides them, what they take at least, and that a slower network is
never faster."""

import random
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.check.events import run_events
from phaze.check.families import Family as CheckedFamily
from phaze.cost.memory import ParameterState
from phaze.cost.network_prices import NetworkPrices
from phaze.hardware.bundled import preset_names
from phaze.hardware.cluster import Level, cluster_of, switch_level
from phaze.hardware.library import load_stack
from phaze.pipeline.event_kernels import run_events as compiled_events
from phaze.pipeline.event_lists_kernels import one_f_one_b
from phaze.pipeline.families import (
    DUALPIPE_V,
    GPIPE,
    ONE_F_ONE_B,
    ZB_H1,
    ZB_V,
    interleaved,
    zb_interleaved,
)
from phaze.pipeline.family import Family
from phaze.pipeline.replica import NO_ROOM, StageSeconds, last_event_s
from phaze.placement.answer import document_of
from phaze.placement.layers import PlacedLayer, layer_graph
from phaze.placement.layout import Shape, boundary_levels
from phaze.placement.pipeline import price
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.rules import Rules
from phaze.placement.settings import stack_rules
from phaze.placement.solve import fastest_plan
from phaze.placement.stage_pace import paced_s
from phaze.placement.structure import StageCut
from phaze.values import replace
from tests.check.documents import objections
from tests.placement.brute_force import brute_force

FAMILIES = (
    GPIPE,
    ONE_F_ONE_B,
    interleaved(2),
    interleaved(4),
    ZB_H1,
    zb_interleaved(2),
    ZB_V,
    DUALPIPE_V,
)
STACKS = [name for name in preset_names("stacks") if load_stack(name).pipeline == "1f1b"]
# Transfers of a pass over its work, and backward work over forward work, of equal stages.
SHARES = (0.001, 0.1, 0.5, 0.7, 0.9, 1.0, 1.2, 1.5, 2.0, 3.0, 10.0)
RATIOS = (0.5, 1.0, 2.0, 3.0)


def chain(levels: tuple[Level, ...], seed: int = 0, blocks: int = 8) -> PlacementProblem:
    """Blocks in a row with transfers of 64 bytes between them, on a network of levels, under any
    family."""
    rng = random.Random(seed)
    forward_s, backward_s, weight = (
        rng.choice([0.5, 1.0]),
        rng.choice([0.5, 1.0, 2.0]),
        rng.choice([0.2, 0.5]),
    )
    rows = [
        PlacedLayer(
            i, forward_s, backward_s, 2.0, 1.0, False, weight_s=weight * backward_s, block=True
        )
        for i in range(blocks)
    ]
    devices = int(np.prod([level.size for level in levels]))
    return PlacementProblem(
        rules=Rules("cluster", FAMILIES, piece_start_s=rng.choice([0.0, 0.01])),
        devices=devices,
        hbm_bytes=1e6,
        microbatches=rng.choice([4, 8, 16]),
        recompute="none",
        state=ParameterState(2.0, 4.0, 12.0),
        cluster=cluster_of("made", "made", levels),
        graphs=(layer_graph(1, rows, [(i, i + 1, 64.0) for i in range(blocks - 1)]),),
    )


def levels_of(node: float, rack: float, site: float, latency_s: float = 0.0) -> tuple[Level, ...]:
    """Two devices a node, two nodes a rack, two sites."""
    return tuple(
        switch_level(name, 2, bandwidth, latency_s)
        for name, bandwidth in (("node", node), ("rack", rack), ("site", site))
    )


def equal_cut(
    problem: PlacementProblem, family: Family, stages: int, data: int, order: str = "pipeline"
) -> Plan:
    """The plan of equal stages."""
    per, rows = len(problem.graphs[0].layers) // stages, problem.graphs[0].layers
    cuts = [
        StageCut(tuple(la.id for la in rows[i * per : (i + 1) * per]), "none")
        for i in range(stages)
    ]
    shape = Shape(
        1, stages, data, "data" if order == "data" else "pipeline", family.chunks, family.name
    )
    return price(problem, shape, cuts, NetworkPrices(problem.cluster))


def law_s(
    stages: int, chunks: int, rounds: int, work_s: tuple[float, float], message_s: float
) -> tuple[float, float]:
    """The batch of equal stages, and with every transfer waited for."""
    rho, counts = (chunks - 1) * stages / (rounds * chunks - 1), np.full((2, stages), float(chunks))
    counts[0, 0] = counts[1, -1] = chunks - 1
    waited = [sum(work_s) + message_s * float(counts[:, i].sum()) for i in range(stages)]
    paced = [
        sum(paced_s(work_s[w], message_s * float(counts[w, i]), rho) for w in (0, 1))
        for i in range(stages)
    ]
    fill_s, laps = sum(waited) / chunks, rounds - 1 / chunks
    return laps * max(paced) + fill_s, laps * max(waited) + fill_s


def require_above_events(
    stages: int, chunks: int, rounds: int, work_s: tuple[float, float], share: float
) -> None:
    message_s = share * work_s[0] / chunks
    passes = np.repeat(np.array((*work_s, 0.0))[:, None], stages, axis=1)
    lists = one_f_one_b(stages, rounds, chunks)
    messages_s = np.full((2, stages * chunks), message_s)
    end_s = compiled_events(passes, messages_s, lists, rounds, chunks, NO_ROOM)
    batch_s, waited_s = law_s(stages, chunks, rounds, work_s, message_s)
    assert end_s <= batch_s * (1 + 1e-12), (stages, chunks, rounds, work_s, share)
    assert batch_s <= waited_s * (1 + 1e-12)
    assert batch_s >= rounds * sum(work_s) and batch_s >= rounds * (chunks - 1) * message_s * 2
    assert batch_s <= end_s * (1.1 if share <= 1 else 1.9)


def test_no_event_of_equal_stages_ends_after_the_batch_time_and_waiting_takes_no_less() -> None:
    for stages, chunks, laps, ratio, share in product(
        (2, 3, 4), (2, 3, 8), (1, 2, 4), RATIOS, SHARES
    ):
        require_above_events(stages, chunks, laps * stages, (1.0, ratio), share)


@pytest.mark.slow
def test_no_event_of_equal_stages_ends_after_the_batch_time_up_to_32_stages_chunks_and_microbatches() -> (
    None
):
    for stages, chunks, laps in product(range(2, 33), range(2, 33), range(1, 17)):
        if laps * stages <= 32:
            for ratio, share in product(RATIOS, SHARES):
                require_above_events(stages, chunks, laps * stages, (1.0, ratio), share)


LENGTHS = st.lists(st.tuples(*[st.floats(0.01, 10.0)] * 4), min_size=1, max_size=5)


@given(LENGTHS, st.integers(1, 3), st.integers(2, 4))
def test_messages_of_the_checker_are_those_of_the_simulation(
    rows: list[tuple[float, float, float, float]], laps: int, chunks: int
) -> None:
    passes, sent, rounds = [row[:2] for row in rows], [row[2:] for row in rows], laps * len(rows)
    columns = np.array(rows).T.tolist()
    seconds = StageSeconds(columns[0], columns[1], [0.0] * len(rows), columns[2], columns[3])
    end_s = last_event_s(interleaved(chunks), seconds, rounds)
    own = CheckedFamily("interleaved", chunks)
    thirds = [(forward, backward, 0.0) for forward, backward in passes]
    assert run_events(own, thirds, rounds, sent) == pytest.approx(end_s, rel=1e-12)


@given(
    st.integers(0, 10**6),
    st.sampled_from(FAMILIES),
    st.sampled_from(STACKS),
    st.sampled_from([(2, 4), (4, 2), (4, 1), (2, 2)]),
    st.sampled_from(["pipeline", "data"]),
    st.integers(0, 2),
    st.floats(1.0, 1e4),
)
def test_a_slower_level_is_never_faster_and_counts_once_nothing_hides_it(
    seed: int,
    family: Family,
    stack: str,
    degrees: tuple[int, int],
    order: str,
    level: int,
    slower: float,
) -> None:
    speeds = [640.0, 320.0, 160.0]
    problem = chain(levels_of(*speeds), seed)
    rules = stack_rules(load_stack(stack), problem.cluster, (family,))
    problem = replace(problem, rules=replace(rules, piece_start_s=problem.rules.piece_start_s))
    stages, data = degrees
    if not family.divides(problem.rounds(data), stages):
        return
    speeds[level] /= slower
    slow = replace(problem, cluster=replace(problem.cluster, levels=levels_of(*speeds)))
    before, after = (equal_cut(one, family, stages, data, order) for one in (problem, slow))
    assert after.batch_s >= before.batch_s * (1 - 1e-12)
    shape = Shape(
        1, stages, data, "data" if order == "data" else "pipeline", family.chunks, family.name
    )
    crossing = boundary_levels(problem.cluster, shape).tolist()
    if level in crossing:
        moved_s = family.chunks * 64.0 / speeds[level]
        # A boundary is crossed in both passes of every microbatch, by one stage's forward and
        # another's backward.
        assert after.batch_s >= problem.rounds(data) * moved_s * (1 - 1e-12)
        longest_s = max(max(stage.forward_s, stage.backward_s) for stage in before.stages)
        if slower > 1.01 and (moved_s > longest_s or not rules.overlaps(family)):
            assert after.batch_s > before.batch_s
    assert objections(slow, document_of(after), NetworkPrices(slow.cluster)) == []


@given(st.integers(0, 10**6), st.integers(0, 2), st.floats(1.0, 1e3), st.booleans())
def test_the_best_plan_is_never_faster_on_a_slower_level_with_more_latency_or_larger_messages(
    seed: int, level: int, slower: float, overlapped: bool
) -> None:
    speeds, families = [640.0, 320.0, 160.0], (ONE_F_ONE_B, interleaved(2), interleaved(4))
    problem = chain(levels_of(*speeds), seed)
    rules = replace(problem.rules, families=families, overlapped_transfers=overlapped)
    problem = replace(problem, rules=rules)
    speeds[level] /= slower
    graph = problem.graphs[0]
    edges = [(edge.tail, edge.head, edge.size_bytes * slower) for edge in graph.edges]
    changed = [
        replace(problem, cluster=replace(problem.cluster, levels=levels_of(*speeds))),
        replace(
            problem,
            cluster=replace(problem.cluster, levels=levels_of(640.0, 320.0, 160.0, slower / 100)),
        ),
        replace(problem, graphs=(layer_graph(1, list(graph.layers), edges),)),
    ]
    best = fastest_plan(problem)
    assert best is not None
    for other in changed:
        plan = fastest_plan(other)
        assert plan is not None and plan.batch_s >= best.batch_s * (1 - 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_no_plan_is_faster_where_the_middle_level_is_slow_and_chunks_hide_transfers(
    seed: int,
) -> None:
    rng = random.Random(seed)
    levels = levels_of(
        64.0, rng.choice([0.5, 4.0, 32.0]), rng.choice([8.0, 64.0]), rng.choice([0.0, 0.1])
    )
    problem = chain(levels, seed, blocks=rng.choice([4, 6]))
    families = (interleaved(2), ONE_F_ONE_B) if seed % 2 else (interleaved(2),)
    rules = replace(problem.rules, families=families, overlapped_transfers=True)
    problem = replace(
        problem, rules=rules, devices=rng.choice([2, 4, 6]), microbatches=rng.choice([2, 4, 6])
    )
    plan = fastest_plan(problem)
    assert plan is not None and plan.batch_s == pytest.approx(brute_force(problem), rel=1e-9)
    assert objections(problem, document_of(plan), NetworkPrices(problem.cluster)) == []


def test_a_plan_whose_transfers_were_left_out_is_refused() -> None:
    problem = chain(levels_of(640.0, 320.0, 0.01))
    problem = replace(problem, rules=replace(problem.rules, overlapped_transfers=True))
    free = replace(problem, cluster=replace(problem.cluster, levels=levels_of(1e18, 1e18, 1e18)))
    assert (
        objections(
            problem,
            document_of(equal_cut(problem, interleaved(2), 4, 1)),
            NetworkPrices(problem.cluster),
        )
        == []
    )
    document = dict(document_of(equal_cut(free, interleaved(2), 4, 1)))
    document["stages"] = [
        {k: v for k, v in s.items() if "transfer" not in k} for s in document["stages"]
    ]
    found = objections(problem, document, NetworkPrices(problem.cluster))
    assert any("forward_transfer_s should be" in text for text in found)
    assert any("time_s should be" in text for text in found) and any(
        "batch_s should be" in text for text in found
    )
