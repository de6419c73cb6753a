"""Zero bubble, its V and DualPipe V: solver against every plan, events against laws, the checker
against both."""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.check.events import run_events
from phaze.check.families import Family as CheckedFamily
from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.pipeline.event_kernels import run_events as compiled_events
from phaze.pipeline.families import (
    DUALPIPE_V,
    ONE_F_ONE_B,
    SPLIT_FAMILIES,
    ZB_H1,
    ZB_V,
    interleaved,
    zb_interleaved,
)
from phaze.pipeline.family import Family
from phaze.pipeline.replica import NO_ROOM
from phaze.placement.answer import document_of
from phaze.placement.layers import PlacedLayer
from phaze.placement.layout import Shape
from phaze.placement.pipeline import price
from phaze.placement.problem import PlacementProblem
from phaze.placement.simulate import timeline
from phaze.placement.solve import fastest_plan
from phaze.placement.structure import StageCut
from phaze.report.plan_trace import _events
from phaze.report.view_model import pipeline_of
from tests.check.documents import objections
from tests.placement.brute_force import brute_force, every_family_plan
from tests.placement.placement_cases import SPLITS, split_problem

SECONDS = st.floats(0.01, 10.0)
FAMILIES = st.sampled_from(SPLITS)


def fewest(family: Family, stages: int, more: int) -> int:
    """A number of microbatches that the family can run, growing with ``more``."""
    least = max(1, family.min_microbatches_per_stage) * stages
    return least + more * (stages if family.whole_rounds else 1)


def ended_s(family: Family, passes: list[tuple[float, float, float]], rounds: int) -> float:
    lists = family.event_lists(len(passes), rounds, family.chunks)
    nothing = np.zeros((2, len(passes) * family.chunks))
    return float(
        compiled_events(np.array(passes).T.copy(), nothing, lists, rounds, family.chunks, NO_ROOM)
    )


def require_fastest(problem: PlacementProblem) -> str | None:
    plan = fastest_plan(problem)
    assert (float("inf") if plan is None else plan.batch_s) == pytest.approx(
        brute_force(problem), rel=1e-9
    )
    if plan is None:
        return None
    assert plan.lower_bound_s == plan.batch_s
    assert objections(problem, document_of(plan), NetworkPrices(problem.cluster)) == []
    return plan.family


def fill_s(family: Family, passes: list[tuple[float, float, float]]) -> float:
    """What the checker counts for filling and emptying a pipeline."""
    own, (forward, inputs, weight) = CheckedFamily(family.name, family.chunks), np.array(passes).T
    count = len(passes)
    return own.share(count) * float(own.filled(forward, inputs + weight, weight, count).sum())


@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
def test_no_plan_of_a_small_problem_is_faster(chain: bool) -> None:
    found = [require_fastest(split_problem(seed, chain)) for seed in range(36)]
    assert {*found} & {*SPLIT_FAMILIES}
    assert sum(name is not None for name in found) > 12


@pytest.mark.slow
@pytest.mark.parametrize("chain", [True, False], ids=["chain", "branching"])
@pytest.mark.parametrize("block", range(10))
def test_no_plan_of_many_small_problems_is_faster(block: int, chain: bool) -> None:
    for seed in range(1000 + 50 * block, 1050 + 50 * block):
        require_fastest(split_problem(seed, chain, 4 if seed % 3 else 5))


@given(FAMILIES, st.integers(1, 8), st.integers(0, 5), st.tuples(SECONDS, SECONDS, SECONDS))
def test_events_of_equal_stages_end_when_the_formula_says(
    family: Family, stages: int, more: int, passes: tuple[float, float, float]
) -> None:
    rounds = fewest(family, stages, more)
    counted_s = float((family.coefficients(stages) @ np.array(passes)).max())
    law_s = family.alpha(rounds, stages) * sum(passes) + family.beta(stages) * stages * counted_s
    assert ended_s(family, [passes] * stages, rounds) == pytest.approx(law_s, rel=1e-9)
    assert law_s == pytest.approx(
        rounds * sum(passes) + fill_s(family, [passes] * stages), rel=1e-12
    )


@pytest.mark.parametrize("family", SPLITS, ids=lambda family: f"{family.name} {family.chunks}")
def test_events_of_unequal_stages_end_near_the_formula(family: Family) -> None:
    rng, found = random.Random(5), []
    for _ in range(150):
        stages = rng.choice((2, 4, 8))
        rounds, (f, b, w) = (
            stages * rng.choice((2, 3, 4, 8)),
            (1.0, rng.uniform(1, 1.5), rng.uniform(0.7, 1)),
        )
        sizes = [rng.uniform(0.7, 1.3) for _ in range(stages)]
        passes = [
            (f * x, b * x * rng.uniform(0.9, 1.1), w * x * rng.uniform(0.9, 1.1)) for x in sizes
        ]
        law_s = rounds * max(map(sum, passes)) + fill_s(family, passes)
        found.append(ended_s(family, passes, rounds) / law_s - 1)
    assert max(found) < 0.005
    assert min(found) > -0.15
    assert -0.04 < sorted(found)[75] < 0


@given(
    FAMILIES,
    st.lists(st.tuples(SECONDS, SECONDS, SECONDS), min_size=1, max_size=6),
    st.integers(0, 3),
)
def test_events_of_the_checker_are_those_of_the_simulation(
    family: Family, passes: list[tuple[float, float, float]], more: int
) -> None:
    rounds = fewest(family, len(passes), more)
    end_s = run_events(CheckedFamily(family.name, family.chunks), passes, rounds)
    assert end_s == pytest.approx(ended_s(family, passes, rounds), rel=1e-12)
    times = [sum(own) for own in passes]
    assert rounds * max(times) * (1 - 1e-12) <= end_s <= rounds * sum(times) * (1 + 1e-12)


@given(FAMILIES, st.integers(2, 6), st.integers(0, 3), st.integers(0, 5), st.floats(1.0, 2.0))
def test_the_formula_never_falls_when_a_pass_of_every_stage_takes_longer(
    family: Family, stages: int, more: int, which: int, factor: float
) -> None:
    rounds, passes = fewest(family, stages, more), np.array([1.0, 1.3, 0.8])
    longer = passes.copy()
    longer[which % 3] *= factor

    def law_s(own: np.ndarray) -> float:
        return float(
            family.alpha(rounds, stages) * own.sum()
            + (stages - 1) * (family.coefficients(stages) @ own).max()
        )

    assert law_s(longer) >= law_s(passes) * (1 - 1e-12)


def test_zero_bubble_saves_a_part_of_the_bubble_of_1f1b_and_v_more() -> None:
    """F = B = W = 1, S stages: 3 (S - 1), S - 1 and (S - 1) / 2."""
    passes = np.ones(3)
    bubbles = [
        (family.coefficients(8) @ passes).max()
        for family in (ZB_H1, zb_interleaved(2), ZB_V, DUALPIPE_V)
    ]
    assert bubbles == pytest.approx([1.0, 0.5, 0.5, 1.0])


def chain_of(family: Family, blocks: int = 4) -> PlacementProblem:
    problem = split_problem(3, True, 4)
    first = problem.graphs[0].layers[0]
    layers = tuple(
        PlacedLayer(
            i, 1.0, 2.0, 1.0, 1.0, False, weight_s=0.9,
            selective_bytes=first.selective_bytes, selective_s=first.selective_s,
            full_s=first.full_s, block=True,
            live_bytes=first.live_bytes, buffer_bytes=first.buffer_bytes, kind=first.kind,
            frozen=first.frozen,
        )
        for i in range(blocks)
    )  # fmt: skip
    graph = replace(problem.graphs[0], width=1, layers=layers, edges=())
    rules = replace(
        problem.rules,
        families=(family,),
        stage="layers",
        orders=("pipeline",),
        unsplit_stages=False,
    )
    small = replace(problem, rules=rules, graphs=(graph,), zero=0, recompute="none")
    return replace(small, hbm_bytes=1e6, devices=2, microbatches=8)


@pytest.mark.parametrize("family", SPLITS, ids=lambda family: f"{family.name} {family.chunks}")
def test_a_timeline_has_every_pass_of_every_microbatch_once_and_none_beside_another(
    family: Family,
) -> None:
    problem = chain_of(family, 2 * family.chunks)
    cuts = [
        StageCut(tuple(range(i * family.chunks, (i + 1) * family.chunks)), "none") for i in range(2)
    ]
    plan = price(
        problem,
        Shape(1, 2, 1, "pipeline", family.chunks, family.name),
        cuts,
        NetworkPrices(problem.cluster),
    )
    line = timeline(plan, 4)
    assert line.weight_s is not None
    for i, stage in enumerate(plan.stages):
        lengths = (
            np.array([stage.forward_s, stage.backward_s - stage.weight_s, stage.weight_s])
            / family.chunks
        )
        rows = (line.forward_s[i], line.backward_s[i], line.weight_s[i])
        spans = sorted(
            (s, s + length) for row, length in zip(rows, lengths, strict=True) for s in row.tolist()
        )
        assert len(spans) == 3 * 4 * family.chunks
        assert all(end <= start + 1e-9 for (_, end), (start, _) in pairwise(spans))
        assert spans[-1][1] <= line.end_s * (1 + 1e-12)


def test_a_split_family_holds_as_many_microbatches_on_every_stage_and_recomputes_nothing() -> None:
    problem = chain_of(ZB_H1)
    cuts = [StageCut((0, 1), "none"), StageCut((2, 3), "none")]
    prices = NetworkPrices(problem.cluster)
    plan = price(problem, Shape(1, 2, 1, "pipeline", 1, "zb-h1"), cuts, prices)
    assert [stage.memory.in_flight for stage in plan.stages] == [2.0, 2.0]
    assert [stage.weight_s for stage in plan.stages] == [1.8, 1.8]
    with pytest.raises(InputError, match="recompute: full under zb-h1, which keeps activations"):
        price(
            problem,
            Shape(1, 2, 1, "pipeline", 1, "zb-h1"),
            [replace(cut, mode="full") for cut in cuts],
            prices,
        )
    few = replace(problem, microbatches=1)
    with pytest.raises(
        InputError, match="family: zb-h1 needs 2 microbatches of a replica, and there are 1"
    ):
        price(few, Shape(1, 2, 1, "pipeline", 1, "zb-h1"), cuts, prices)
    with pytest.raises(InputError, match="layer 0: weight_s: it is missing and zb-h1 needs it"):
        replace(
            problem,
            graphs=(
                replace(
                    problem.graphs[0],
                    layers=tuple(
                        replace(layer, weight_s=None) for layer in problem.graphs[0].layers
                    ),
                ),
            ),
        )


def test_the_checker_agrees_with_the_price_of_every_plan() -> None:
    seen, plans = set(), 0
    for seed in range(60, 76):
        problem = split_problem(seed, seed % 2 == 0, 3)
        for plan, name in every_family_plan(problem, simulated=True):
            fit = all(problem.fits(stage.memory.total_bytes) for stage in plan.stages)
            document = {**document_of(plan), "feasible": fit}
            assert objections(problem, document, NetworkPrices(problem.cluster)) == [], (seed, name)
            seen.add(name)
            plans += 1
    assert {*SPLIT_FAMILIES} <= seen
    assert plans > 150


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "another family": ({"family": "zb-interleaved"}, "data or family"),
    "no family": ({"family": None}, "data or family"),
    "weight gradients that take longer": ({"weight_s": 1e-3}, "stages[0]: weight_s should be"),
    "fewer microbatches in flight": ({"in_flight": -0.5}, "stages[0]: memory.in_flight"),
    "another fill": ({"batch_s": 0.3}, "batch_s should be"),
    "other events": ({"simulated_s": -1e-3}, "simulated_s should be"),
    "recompute": ({"recompute": "selective"}, "may not have the mode"),
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("family", [ZB_H1, ZB_V, DUALPIPE_V], ids=lambda family: family.name)
def test_a_consistent_lie_about_a_split_family_is_refused(family: Family, lie: str) -> None:
    problem = replace(chain_of(family), recompute="best")
    cuts = [StageCut((0, 1), "none"), StageCut((2, 3), "none")]
    prices = NetworkPrices(problem.cluster)
    shape = Shape(1, 2, 1, "pipeline", family.chunks, family.name)
    document = dict(document_of(price(problem, shape, cuts, prices)))
    assert objections(problem, document, prices) == []
    changes, sentence = LIES[lie]
    stage = dict(document["stages"][0])
    for key, change in changes.items():
        if key in ("family", "recompute"):
            (document if key == "family" else stage)[key] = change
        elif key == "in_flight":
            stage["memory"] = {**stage["memory"], key: stage["memory"][key] + change}
        else:
            (stage if key == "weight_s" else document)[key] += change
    document["stages"] = [stage, *document["stages"][1:]]
    assert any(sentence in said for said in objections(problem, document, prices)), objections(
        problem, document, prices
    )


def test_too_few_microbatches_are_objected_to() -> None:
    problem = chain_of(ZB_V)
    cuts = [StageCut((0, 1), "none"), StageCut((2, 3), "none")]
    prices = NetworkPrices(problem.cluster)
    document = document_of(price(problem, Shape(1, 2, 1, "pipeline", 2, "zb-v"), cuts, prices))
    found = objections(replace(problem, microbatches=3), document, prices)
    assert found == ["zb-v cannot run so many microbatches in so many stages"]


def test_what_was_proved_stays_as_fast_when_families_are_added() -> None:
    for seed in range(200, 230):
        problem = split_problem(seed, True)
        few = replace(problem, rules=replace(problem.rules, families=(ONE_F_ONE_B, interleaved(2))))
        more = replace(
            problem, rules=replace(problem.rules, families=(ONE_F_ONE_B, interleaved(2), *SPLITS))
        )
        plain, best = fastest_plan(few), fastest_plan(more)
        if plain is not None:
            assert best is not None
            assert best.batch_s <= plain.batch_s * (1 + 1e-12)


def test_a_replica_is_drawn_with_its_weight_gradients_apart() -> None:
    problem = chain_of(ZB_V)
    cuts = [StageCut((0, 1), "none"), StageCut((2, 3), "none")]
    plan = price(
        problem, Shape(1, 2, 1, "pipeline", 2, "zb-v"), cuts, NetworkPrices(problem.cluster)
    )
    drawn = list(_events(1, "made", problem, plan))
    names = [event["cat"] for event in drawn if event["ph"] == "X"]
    assert {name: names.count(name) for name in ("forward", "backward", "weight")} == dict.fromkeys(
        ("forward", "backward", "weight"), 2 * 8 * 2
    )
    flow = pipeline_of(document_of(plan), 8)
    assert flow is not None
    line = timeline(plan, 8)
    assert [name for name, _, _ in flow.passes] == ["forward", "backward", "weight"]
    assert flow.weight_s is not None
    assert line.weight_s is not None
    assert flow.weight_s.tolist() == line.weight_s.tolist()
    assert flow.end_s == line.end_s


@pytest.mark.parametrize(
    "change", [{"chunks": 1}, {"chunks": 3}, {"family": "1f1b"}, {"rounds": 3}]
)
def test_a_document_that_no_family_has_is_not_drawn(change: dict[str, Any]) -> None:
    problem = chain_of(ZB_V)
    cuts = [StageCut((0, 1), "none"), StageCut((2, 3), "none")]
    plan = price(
        problem, Shape(1, 2, 1, "pipeline", 2, "zb-v"), cuts, NetworkPrices(problem.cluster)
    )
    with pytest.raises(InputError, match=r"plan\.family"):
        pipeline_of({**document_of(plan), **change}, change.get("rounds", 8))
