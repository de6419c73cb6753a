"""The solver against the published optima, against every plan of small problems, and against common
sense."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.network_prices import NetworkPrices
from phaze.documents import dumps
from phaze.errors import InputError
from phaze.pipeline.families import GPIPE, ONE_F_ONE_B
from phaze.placement import bottleneck_solver
from phaze.placement.answer import document_of, place
from phaze.placement.layers import LayerGraph, PlacedLayer, layer_graph
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.profile import problem_of
from phaze.placement.settings import icml24_problem
from phaze.placement.solve import OpenPlacement, fastest_at, fastest_plan
from phaze.values import replace
from tests.check.documents import objections
from tests.placement.brute_force import brute_force
from tests.placement.placement_cases import (
    Published,
    exchanging_problem,
    hybrid_problem,
    interleaving_problem,
    mixed_problem,
    published,
    random_cluster_problem,
    random_icml24_problem,
    sharing_problem,
)

CASES = published()
SEEDS = st.integers(0, 10**6)
Random = Callable[[int, bool, int], PlacementProblem]
SETTINGS: dict[str, Random] = {"icml24": random_icml24_problem, "cluster": random_cluster_problem}
EVERY: dict[str, Random] = {**SETTINGS, "mixed": mixed_problem}


def batch_s(problem: PlacementProblem, below_s: float = float("inf")) -> float:
    plan = fastest_plan(problem, below_s=below_s)
    return float("inf") if plan is None else plan.batch_s


def plain(
    graph: LayerGraph, devices: int, hbm_bytes: float, microbatches: int = 8
) -> PlacementProblem:
    return icml24_problem(
        (graph,),
        devices=devices,
        hbm_bytes=hbm_bytes,
        link_bytes_per_s=1.0,
        microbatches=microbatches,
        optimizer="sgd",
        recompute="none",
    )


def require_fastest(problem: PlacementProblem) -> Plan | None:
    """The solver's plan takes as long as the fastest of all, is its own bound, and passes its
    check."""
    plan = fastest_plan(problem)
    assert (float("inf") if plan is None else plan.batch_s) == pytest.approx(
        brute_force(problem), rel=1e-9
    )
    if plan is not None and len(problem.rules.families) == 1:
        assert plan.lower_bound_s == plan.batch_s
        assert objections(problem, document_of(plan), NetworkPrices(problem.cluster)) == []
    return plan


@pytest.mark.parametrize("block", range(4))
def test_no_plan_of_a_small_problem_is_faster_where_ranks_share_sequences_and_experts(
    block: int,
) -> None:
    feasible = 0
    for seed in range(40 * block, 40 * block + 40):
        feasible += require_fastest(sharing_problem(seed, seed % 3 > 0)) is not None
    assert feasible > 15


@pytest.mark.parametrize("block", range(2))
def test_no_plan_of_a_small_problem_is_faster_where_experts_are_exchanged_behind_others(
    block: int,
) -> None:
    feasible = 0
    for seed in range(40 * block, 40 * block + 40):
        feasible += require_fastest(exchanging_problem(seed, seed % 3 > 0)) is not None
    assert feasible > 15


@pytest.mark.slow
def test_no_plan_of_many_small_problems_is_faster_where_experts_are_exchanged_behind_others() -> (
    None
):
    for seed in range(1000, 1800):
        require_fastest(exchanging_problem(seed, seed % 3 > 0))


@pytest.mark.parametrize("block", range(2))
def test_no_plan_of_a_small_problem_is_faster_where_some_ranks_share_out_state(block: int) -> None:
    feasible = 0
    for seed in range(40 * block, 40 * block + 40):
        feasible += require_fastest(hybrid_problem(seed, seed % 3 > 0)) is not None
    assert feasible > 15


@pytest.mark.slow
def test_no_plan_of_a_thousand_small_problems_is_faster_where_some_ranks_share_out_state() -> None:
    for seed in range(1000, 2000):
        require_fastest(hybrid_problem(seed, seed % 3 > 0))


@pytest.mark.slow
def test_no_plan_of_two_thousand_small_problems_is_faster_where_ranks_share() -> None:
    for seed in range(1000, 3000):
        require_fastest(sharing_problem(seed, seed % 3 > 0))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_published_optimum_is_met(case: Published) -> None:
    problem = case.problem
    plan = fastest_plan(problem)
    assert (plan is None) == (case.batch_s is None)
    if plan is not None:
        assert plan.batch_s == pytest.approx(case.batch_s, rel=1e-9)
        assert plan.lower_bound_s == plan.batch_s
        assert objections(problem, document_of(plan), NetworkPrices(problem.cluster)) == []


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(8))
def test_no_plan_of_a_small_problem_is_faster_under_icml24(block: int, chain: bool) -> None:
    for seed in range(30 * block, 30 * block + 30):
        require_fastest(random_icml24_problem(seed, chain, 5 if seed % 4 else 6))


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(6))
def test_no_plan_of_a_small_problem_is_faster_on_a_network_of_levels(
    block: int, chain: bool
) -> None:
    for seed in range(20 * block, 20 * block + 20):
        require_fastest(random_cluster_problem(seed, chain, 4))


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(4))
def test_no_plan_of_a_small_problem_of_mixed_rules_is_faster(block: int, chain: bool) -> None:
    for seed in range(8 * block, 8 * block + 8):
        require_fastest(mixed_problem(seed, chain))


@pytest.mark.slow
@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(20))
def test_no_plan_of_many_small_problems_is_faster(block: int, chain: bool) -> None:
    for seed in range(10_000 + 100 * block, 10_000 + 100 * block + 100):
        require_fastest(random_icml24_problem(seed, chain))
    for seed in range(5000 + 8 * block, 5000 + 8 * block + 8):
        require_fastest(random_cluster_problem(seed, chain, 4 if seed % 5 else 6))
    for seed in range(1000 + 25 * block, 1000 + 25 * block + 25):
        require_fastest(mixed_problem(seed, chain, 4 if seed % 3 else 5))


def test_interleaving_is_proved_over_all_chunks() -> None:
    seen = set()
    for seed in range(8):
        problem = interleaving_problem(seed)
        plan = fastest_plan(problem)
        assert plan is not None
        assert plan.batch_s == pytest.approx(brute_force(problem), rel=1e-9), seed
        assert plan.lower_bound_s == plan.batch_s
        assert objections(problem, document_of(plan), NetworkPrices(problem.cluster)) == [], seed
        seen.add(plan.chunks)
    assert len(seen) > 1


def test_a_start_for_every_chunk_ends_the_gain() -> None:
    free, dear = (fastest_plan(interleaving_problem(0, start_s)) for start_s in (0.0, 9.0))
    assert free is not None
    assert dear is not None
    assert free.chunks > dear.chunks == 1
    problem = interleaving_problem(0)
    assert dear.batch_s == batch_s(
        replace(problem, rules=replace(problem.rules, families=(ONE_F_ONE_B,)))
    )


def test_guesses_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [case.problem for case in CASES[::4]]
    problems += [
        random_icml24_problem(seed, chain) for seed in range(60) for chain in (True, False)
    ]
    unguided = [batch_s(problem) for problem in problems]
    monkeypatch.setattr(bottleneck_solver, "FEW_STEPS", 0.0)
    assert [batch_s(problem) for problem in problems] == pytest.approx(unguided, rel=1e-12)


@given(SEEDS, st.booleans())
def test_only_what_is_faster_than_asked_is_found(seed: int, chain: bool) -> None:
    problem = mixed_problem(seed, chain)
    best = batch_s(problem)
    assert batch_s(problem, best * (1 - 1e-6)) == float("inf")
    assert batch_s(problem, best * (1 + 1e-6)) == best


@given(SEEDS, st.booleans(), st.sampled_from(list(EVERY)), st.floats(1.0, 4.0))
def test_more_memory_never_slows_the_best_plan(
    seed: int, chain: bool, kind: str, factor: float
) -> None:
    problem = EVERY[kind](seed, chain, 5)
    assert batch_s(replace(problem, hbm_bytes=factor * problem.hbm_bytes)) <= batch_s(problem) * (
        1 + 1e-12
    )


def test_headroom_is_memory_that_no_plan_fills() -> None:
    problem = interleaving_problem(0)
    half = batch_s(replace(problem, hbm_bytes=200.0, headroom=0.5))
    assert (
        half
        == batch_s(replace(problem, hbm_bytes=100.0))
        > batch_s(replace(problem, hbm_bytes=200.0))
    )


@given(SEEDS, st.booleans(), st.sampled_from(list(SETTINGS)), st.floats(1.0, 10.0))
def test_faster_links_never_slow_the_best_plan(
    seed: int, chain: bool, kind: str, factor: float
) -> None:
    problem = SETTINGS[kind](seed, chain, 5)
    link = problem.rules.link_bytes_per_s
    levels = tuple(
        replace(level, bandwidth_bytes_per_s=factor * level.bandwidth_bytes_per_s)
        for level in problem.cluster.levels
    )
    faster = replace(
        problem,
        rules=replace(problem.rules, link_bytes_per_s=None if link is None else factor * link),
        cluster=replace(problem.cluster, levels=levels),
    )
    assert batch_s(faster) <= batch_s(problem) * (1 + 1e-12)


@given(SEEDS, st.booleans(), st.sampled_from(list(SETTINGS)), st.integers(1, 4))
def test_more_devices_never_slow_the_best_plan(
    seed: int, chain: bool, kind: str, more: int
) -> None:
    problem = SETTINGS[kind](seed, chain, 5)
    cluster, (inner, *outer) = problem.cluster, problem.cluster.levels
    if not outer:
        cluster = replace(
            cluster, devices=inner.size + more, levels=(replace(inner, size=inner.size + more),)
        )
    assert batch_s(replace(problem, devices=problem.devices + more, cluster=cluster)) <= batch_s(
        problem
    ) * (1 + 1e-12)


def _slower(graph: LayerGraph, position: int, factor: float) -> LayerGraph:
    layers = list(graph.layers)
    chosen = layers[position % len(layers)]
    slower = replace(
        chosen, forward_s=factor * chosen.forward_s, backward_s=factor * chosen.backward_s
    )
    layers[position % len(layers)] = slower
    return replace(graph, layers=tuple(layers))


@given(
    SEEDS, st.booleans(), st.sampled_from(list(SETTINGS)), st.integers(0, 5), st.floats(1.0, 5.0)
)
def test_a_slower_layer_never_speeds_the_best_plan(
    seed: int, chain: bool, kind: str, position: int, factor: float
) -> None:
    problem = SETTINGS[kind](seed, chain, 5)
    slower = replace(
        problem, graphs=tuple(_slower(graph, position, factor) for graph in problem.graphs)
    )
    assert batch_s(slower) >= batch_s(problem) * (1 - 1e-12)


@given(SEEDS, st.booleans(), st.sampled_from(list(SETTINGS)))
def test_choosing_recompute_stage_by_stage_is_never_slower(
    seed: int, chain: bool, kind: str
) -> None:
    problem = SETTINGS[kind](seed, chain, 5)
    best = batch_s(replace(problem, recompute="best"))
    for mode in problem.rules.modes:
        assert best <= batch_s(replace(problem, recompute=mode)) * (1 + 1e-12)


@given(SEEDS, st.booleans())
def test_zero_1_never_slows_where_nothing_is_hidden_nor_1f1b_beside_gpipe(
    seed: int, chain: bool
) -> None:
    problem = replace(random_cluster_problem(seed, chain), hbm_bytes_per_s=None)
    waited = replace(problem.rules, reduction_cost=1.0, gather_cost=1.0)
    exposed = replace(problem, rules=waited)
    assert batch_s(replace(exposed, zero=1)) <= batch_s(replace(exposed, zero=0)) * (1 + 1e-12)
    in_turn, all_ahead = (
        replace(problem, rules=replace(problem.rules, families=(f,))) for f in (ONE_F_ONE_B, GPIPE)
    )
    assert batch_s(in_turn) <= batch_s(all_ahead) * (1 + 1e-12)


def test_two_runs_give_the_same_bytes_whatever_the_order_of_the_file() -> None:
    for case in CASES[::6]:
        widths = {
            width: {k: rows[::-1] for k, rows in t.items()}
            for width, t in case.profile["widths"].items()
        }
        shuffled = {**case.profile, "widths": dict(reversed(widths.items()))}
        first, second = (
            dumps(document_of(place(problem_of(p, "p")))) for p in (case.profile, shuffled)
        )
        assert first == second


def test_one_layer_on_one_device() -> None:
    graph = layer_graph(1, [PlacedLayer(7, 1.0, 2.0, 10.0, 5.0, False)], [])
    plan = place(plain(graph, 1, 25.0, 3))
    assert isinstance(plan, Plan)
    assert (plan.batch_s, plan.simulated_s, plan.data) == (9.0, 9.0, 1)


def test_memory_that_is_exactly_enough_is_enough() -> None:
    layers = [PlacedLayer(i, 1.0, 1.0, 0.1, 0.2, False) for i in range(3)]
    graph = layer_graph(1, layers, [(0, 1, 0.0), (1, 2, 0.0)])
    exact = 2 * (0.1 + 0.1 + 0.1) + (0.2 + 0.2 + 0.2)
    assert fastest_plan(plain(graph, 1, exact, 1)) is not None
    assert fastest_plan(plain(graph, 1, exact * (1 - 1e-9), 1)) is None


def test_layers_that_take_no_time_are_placed() -> None:
    graph = layer_graph(
        2, [PlacedLayer(i, 0.0, 0.0, 1.0, 1.0, True) for i in range(4)], [(0, 1, 1.0), (0, 2, 1.0)]
    )
    plan = fastest_plan(plain(graph, 4, 100.0, 4))
    assert plan is not None
    assert plan.batch_s == 0


def test_a_graph_that_branches_too_widely_is_refused_with_the_count() -> None:
    graph = layer_graph(1, [PlacedLayer(i, 1.0, 1.0, 1.0, 1.0, False) for i in range(40)], [])
    with pytest.raises(
        InputError, match=r"widths\.1\.edges: .*more than 100,000 sets.*merge layers"
    ):
        fastest_plan(plain(graph, 8, 1e9))


def test_an_antichain_of_fourteen_layers_is_solved() -> None:
    graph = layer_graph(
        1, [PlacedLayer(i, float(i + 1), 1.0, 1.0, 1.0, False) for i in range(14)], []
    )
    plan = fastest_plan(plain(graph, 7, 1e9, 1000))
    assert plan is not None
    assert plan.batch_s == pytest.approx(1000 / 7 * 119, rel=0.05)


def test_a_table_that_no_ordinary_computer_holds_is_refused() -> None:
    layers = [PlacedLayer(i, 1.0, 1.0, 1.0, 1.0, i % 2 == 0) for i in range(800)]
    graph = layer_graph(8, layers, [(i, i + 1, 1.0) for i in range(799)])
    with pytest.raises(InputError, match=r"widths\.8: 801 places to cut .* GiB; merge layers"):
        fastest_plan(plain(graph, 10_000, 100.0))


@pytest.mark.parametrize("seed", range(30))
def test_an_opened_placement_bounds_its_plan_and_gives_it_again_after_lower_limits(
    seed: int,
) -> None:
    randoms: tuple[Random, ...] = (random_cluster_problem, sharing_problem, hybrid_problem)
    problem = interleaving_problem(seed) if seed % 4 == 3 else randoms[seed % 4](seed, False, 4)
    zeros = (0, 1, 2, 3) if seed % 2 and problem.sharing.shard == 0 else (problem.zero,)
    best = fastest_at(problem, zeros)
    placement = OpenPlacement(problem, zeros)
    if best is None:
        assert placement.fastest() is None
        return
    least_s, plan_s = placement.bound_s, best[1].batch_s
    assert 0 < least_s <= plan_s * (1 + 1e-12)
    for limit_s in (0.9 * least_s, (least_s + plan_s) / 2, plan_s * (1 - 1e-9)):
        assert placement.fastest(limit_s) is None or limit_s >= plan_s * (1 - 1e-12)
    again = placement.fastest(2 * plan_s)
    assert again is not None
    assert again[1].batch_s == pytest.approx(plan_s, rel=1e-12)


@pytest.mark.parametrize("seed", range(60))
def test_no_lower_stage_of_zero_has_a_lower_bound_than_the_highest(seed: int) -> None:
    randoms: tuple[Random, ...] = (random_cluster_problem, sharing_problem)
    problem = interleaving_problem(seed) if seed % 3 == 2 else randoms[seed % 3](seed, False, 5)
    each = [OpenPlacement(problem, (zero,)).bound_s for zero in (1, 2, 3)]
    assert OpenPlacement(problem, (0, 1, 2, 3)).bound_s == min(each)
