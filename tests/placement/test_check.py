"""The checker objects to every lie."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from phaze.placement.answer import document_of, place
from phaze.placement.check import objections
from phaze.placement.problem import Problem
from tests.placement.placement_cases import published, random_problem

NAMES = ("tight-llama2-7b-w8-K256-f0.5-r0", "gpt2xl-w4-K1024-h32-r1", "bertlarge-w1-K16-h16-mb1000-r1-Adam-p12")
GOOD = {case.name: (case.problem, dict(document_of(place(case.problem)))) for case in published() if case.name in NAMES}


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict | list) and value:
        for key in value if isinstance(value, dict) else (0, len(value) // 2, len(value) - 1):
            yield from _leaves(value[key], (*path, key))
    else:
        yield path


def _corrupted(value: Any) -> list[Any]:
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, str):
        return [value + "x", "full" if value == "none" else "none"]
    if isinstance(value, int):
        return [value + 1, value - 1, 2 * value + 3]
    return [value * (1 + 1e-6) + 1e-6]


@pytest.mark.parametrize("name", NAMES)
def test_a_good_plan_passes(name: str) -> None:
    assert objections(*GOOD[name]) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_corrupted_field_is_objected_to(name: str) -> None:
    problem, good = GOOD[name]
    seen = 0
    for path in set(_leaves(good)):
        if path == ("rules",):
            continue
        for wrong in _corrupted(_at(good, path)):
            document = copy.deepcopy(good)
            _at(document, path[:-1])[path[-1]] = wrong
            assert objections(problem, document), (path, wrong)
            seen += 1
    assert seen > 20


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def _variants(good: dict[str, Any]) -> Iterator[dict[str, Any]]:
    stages = good["stages"]
    yield {**good, "stages": stages[1:]}
    yield {**good, "stages": [*stages, stages[-1]]}
    yield {**good, "stages": stages[::-1]}
    yield {**good, "breakdown": {key: value for key, value in good["breakdown"].items() if key != "bubble_s"}}
    yield {**good, "breakdown": {**good["breakdown"], "forward_s": good["breakdown"]["forward_s"] + 1e-3}}
    yield {**good, "tensor": 3}


def test_lost_repeated_and_reordered_stages_are_objected_to() -> None:
    problem, good = GOOD[NAMES[0]]
    for document in _variants(good):
        assert objections(problem, document)


def test_a_plan_for_another_machine_is_objected_to() -> None:
    problem, good = GOOD[NAMES[0]]
    for change in ({"hbm_bytes": 1e9}, {"devices": 100}, {"microbatches": 10}, {"link_bytes_per_s": 1.0}):
        numbers = {name: getattr(problem, name) for name in Problem.__slots__}
        assert objections(Problem(**{**numbers, **change}), good)


def test_an_infeasible_document_is_not_a_plan() -> None:
    for seed in range(100):
        problem = random_problem(seed, True)
        document = document_of(place(problem))
        assert bool(objections(problem, document)) != document["feasible"]
