"""The checker agrees with every plan and objects to every field that is changed."""

import copy
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phaze.cost.network_prices import NetworkPrices
from phaze.placement.answer import document_of, place
from phaze.placement.layers import PlacedLayer
from phaze.placement.pipeline import fits
from phaze.placement.problem import PlacementProblem
from tests.check.documents import objections
from tests.placement.brute_force import every_family_plan
from tests.placement.placement_cases import (
    exchanging_problem,
    hybrid_problem,
    interleaving_problem,
    mixed_problem,
    published,
    random_icml24_problem,
    shared_experts,
    sharing_problem,
    with_layers,
)
from tests.placement.test_pipeline import levelled

NAMES = (
    "tight-llama2-7b-w8-K256-f0.5-r0",
    "gpt2xl-w4-K1024-h32-r1",
    "bertlarge-w1-K16-h16-mb1000-r1-Adam-p12",
)
PROBLEMS: dict[str, PlacementProblem] = {
    **{case.name: case.problem for case in published() if case.name in NAMES},
    "levels": replace(levelled(), hbm_bytes=560.0, microbatches=40),
    "chunks": interleaving_problem(0),
    "experts": shared_experts(),
}


def objected(problem: PlacementProblem, document: dict[str, Any]) -> list[str]:
    return objections(problem, document, NetworkPrices(problem.cluster))


def good(name: str) -> tuple[PlacementProblem, dict[str, Any]]:
    problem = PROBLEMS[name]
    document = dict(document_of(place(problem)))
    assert document["feasible"]
    return problem, document


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of the fields of a document; of a list its first, its middle and its last."""
    if isinstance(value, dict | list) and value:
        for key in value if isinstance(value, dict) else (0, len(value) // 2, len(value) - 1):
            yield from leaves(value[key], (*path, key))
    else:
        yield path


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _corrupted(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [value + "x", *({"none", "selective", "full"} - {value})]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value + 3]
    return [value * (1 + 1e-6) + 1e-6]


def _says_the_same(
    problem: PlacementProblem, document: dict[str, Any], path: tuple[Any, ...], wrong: Any
) -> bool:
    """Whether a stage is only said to save in the other of two ways that are one for its layers.

    A layer without anything to save selectively saves all: in a stage of such layers alone none and
    selective are the same plan, and every number is true of both.
    """
    if path[-1] != "recompute" or {_at(document, path), wrong} != {"none", "selective"}:
        return False
    stages, (_, at, _) = document["stages"], path
    graph = problem.graph(document["tensor"] * problem.sharing.context)
    plain = {layer.id for layer in graph.layers if layer.selective_bytes is None}
    return wrong in problem.modes(last=at == len(stages) - 1) and plain >= set(stages[at]["layers"])


def require_every_field_checked(
    problem: PlacementProblem, document: dict[str, Any], trusted: tuple[str, ...] = ()
) -> None:
    """The document passes, and no longer when one of its fields, but the trusted, says anything
    else."""
    assert objected(problem, document) == []
    for path in set(leaves(document)):
        for wrong in () if path[-1] in trusted else _corrupted(_at(document, path)):
            changed = copy.deepcopy(document)
            _at(changed, path[:-1])[path[-1]] = wrong
            assert bool(objected(problem, changed)) != _says_the_same(
                problem, document, path, wrong
            ), (path, wrong)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_corrupted_field_is_objected_to(name: str) -> None:
    problem, document = good(name)
    assert len(set(leaves(document))) > 20
    require_every_field_checked(problem, document)


@given(st.integers(0, 10**6), st.booleans())
def test_the_checker_agrees_with_every_plan(seed: int, chain: bool) -> None:
    drawn = (
        mixed_problem(seed, chain, 3),
        sharing_problem(seed, chain, 3),
        hybrid_problem(seed, chain, 3),
        exchanging_problem(seed, chain, 3),
        random_icml24_problem(seed, chain, 4),
    )
    for problem in drawn:
        for plan, family in islice(every_family_plan(problem, simulated=True), 5):
            document = {**document_of(plan), "feasible": fits(problem, plan), "family": family}
            assert objected(problem, document) == []


def _sized(problem: PlacementProblem, times: float) -> PlacementProblem:
    def layer_of(layer: PlacedLayer, _: int) -> PlacedLayer:
        return replace(layer, parameter_bytes=times * layer.parameter_bytes)

    return with_layers(problem, layer_of)


@pytest.mark.parametrize("seed", range(4))
def test_the_checker_agrees_where_chunks_lengthen_the_window_of_a_reduction(seed: int) -> None:
    problem = interleaving_problem(seed)
    rules = replace(problem.rules, reduction_cost=0.0, gather_cost=0.0, bucket=0.0)
    problem = replace(problem, rules=rules, zero=seed % 2, devices=4, microbatches=4)
    for times in (0.1, 0.3, 1.0, 3.0):
        sized = _sized(problem, times)
        every = every_family_plan(sized)
        chunked = [own for own in every if own[0].chunks > 1 and own[0].data > 1][:20]
        assert chunked
        for plan, family in chunked:
            document = {**document_of(plan), "feasible": fits(sized, plan), "family": family}
            stated = [line for line in objected(sized, document) if "simulated" not in line]
            assert stated == []


def _variants(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stages = document["stages"]
    yield {**document, "stages": stages[1:]}
    yield {**document, "stages": [*stages, stages[-1]]}
    yield {**document, "stages": stages[::-1]}
    yield {
        **document,
        "breakdown": {
            key: value for key, value in document["breakdown"].items() if key != "bubble_s"
        },
    }
    yield {
        **document,
        "breakdown": {
            **document["breakdown"],
            "forward_s": document["breakdown"]["forward_s"] + 1e-3,
        },
    }
    yield {**document, "tensor": 5}


@pytest.mark.parametrize("name", [NAMES[0], "levels", "chunks"])
def test_lost_repeated_and_reordered_stages_are_objected_to(name: str) -> None:
    problem, document = good(name)
    assert document["pipeline"] > 1
    for variant in _variants(document):
        assert objected(problem, variant)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (
            NAMES[0],
            [{"hbm_bytes": 1e9}, {"devices": 100}, {"microbatches": 10}, {"recompute": "full"}],
        ),
        (
            "levels",
            [
                {"hbm_bytes": 100.0},
                {"devices": 3},
                {"microbatches": 7},
                {"zero": 1},
                {"recompute": "full"},
            ],
        ),
        ("chunks", [{"hbm_bytes": 10.0}, {"devices": 1}, {"microbatches": 7}, {"headroom": 0.9}]),
    ],
)
def test_a_plan_for_another_machine_is_objected_to(
    name: str, changes: list[dict[str, Any]]
) -> None:
    problem, document = good(name)
    for change in changes:
        assert objected(replace(problem, **change), document), change


def test_an_infeasible_document_is_not_a_plan() -> None:
    for seed in range(100):
        problem = random_icml24_problem(seed, True)
        document = dict(document_of(place(problem)))
        assert bool(objected(problem, document)) != document["feasible"]
