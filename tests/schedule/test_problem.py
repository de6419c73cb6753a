"""Problems: what is refused and how it is said, what is contracted, which problems have equal
keys."""

import json
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from phaze.errors import InputError
from phaze.schedule.files import load_problem
from phaze.schedule.key import canonical
from phaze.schedule.order import bits, closure, contract, series, topological
from phaze.schedule.part import MOST_UNITS, Component, part_of
from phaze.schedule.problem import ScheduledOperator, ScheduleProblem, find_cycle
from phaze.schedule.solve import PartMemo, solve
from tests.schedule.cases import OPTIMA, problem_of, random_problem

SMALL: dict[str, Any] = {
    "schema": "phaze.operators/1",
    "rules": "icml24",
    "tensor_cores": 2,
    "vector_cores": 1,
    "operators": [
        {"id": "a", "core": "tensor", "one_core_s": 1.0, "all_cores_s": 0.6},
        {"id": "b", "core": "vector", "one_core_s": 1.0, "all_cores_s": 1.0},
        {"id": "c", "core": "both", "one_core_s": 2.0, "all_cores_s": 2.0},
    ],
    "edges": [["a", "b"], ["b", "c"]],
}


def _changed(change: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(SMALL))
    change(document)
    return document


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["edges"].append(["c", "a"]), "cycle: 'a' -> 'b' -> 'c' -> 'a'"),
        (lambda d: d["edges"].append(["b", "b"]), "cycle: 'b' -> 'b'"),
        (lambda d: d["edges"].append(["a", "z"]), "edges[2]: there is no operator 'z'"),
        (lambda d: d["operators"][1].update(all_cores_s=None), "operators[1].all_cores_s"),
        (lambda d: d["operators"][1].update(all_cores_s=1e300), "1e+300 is out of range"),
        (
            lambda d: d.update(tensor_cores=0),
            "tensor_cores: operator 'a' needs a tensor core and there is none",
        ),
        (lambda d: d.update(vector_cores=0), "vector_cores: operator 'b' needs a vector core"),
        (lambda d: d.update(vector_cores=-1), "vector_cores: -1 is out of range"),
        (
            lambda d: (d["operators"][2].update(id="a"), d["edges"].pop()),
            "the id 'a' appears twice",
        ),
        (lambda d: d["operators"][2].update(core="tensr"), "did you mean 'tensor'?"),
        (
            lambda d: d["operators"][2].update(core="none", one_core_s=1.0),
            "give a collective the same time twice",
        ),
        (lambda d: d.update(rules="icml25"), "did you mean 'icml24'?"),
        (lambda d: d.update(schema="phaze.operator/1"), "schema"),
        (lambda d: d["edges"].append(["a"]), "edges[2]"),
        (lambda d: d.pop("operators"), "operators: this key is missing"),
    ],
)
def test_a_bad_problem_is_one_sentence(
    change: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(_changed(change)))
    with pytest.raises(InputError) as fault:
        load_problem(str(path))
    assert said in str(fault.value)
    assert str(fault.value).startswith(str(path))
    assert str(fault.value).count("\n") == 0


def test_not_a_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "nan.json"
    path.write_text(json.dumps(SMALL).replace("0.6", "NaN"))
    with pytest.raises(InputError, match="NaN is not a number"):
        load_problem(str(path))


def test_zero_times_parallel_edges_and_unused_kinds_are_fine() -> None:
    document = _changed(
        lambda d: (d["operators"][1].update(one_core_s=0.0), d["edges"].append(["a", "b"]))
    )
    found = solve(problem_of(document))
    assert found.makespan_s == pytest.approx(2.6)
    assert found.optimal
    nothing = ScheduleProblem("icml24", 0, 0, (), ())
    assert solve(nothing).makespan_s == 0
    assert solve(nothing).optimal
    free = ScheduleProblem(
        "icml24",
        1,
        0,
        (ScheduledOperator("a", "tensor", 0.0, 0.0), ScheduledOperator("b", "none", 0.0, 0.0)),
        ((0, 1),),
    )
    assert solve(free).makespan_s == 0
    network = ScheduleProblem(
        "icml24",
        0,
        0,
        (ScheduledOperator("a", "none", 2.0, 2.0), ScheduledOperator("b", "none", 1.0, 1.0)),
        (),
    )
    assert solve(network).makespan_s == 3


def test_a_cycle_is_found_wherever_it_is() -> None:
    for seed in range(50):
        dice = random.Random(seed)
        names = list(range(12))
        dice.shuffle(names)
        edges = [
            (names[i], names[j]) for i in range(12) for j in range(i + 1, 12) if dice.random() < 0.2
        ]
        assert find_cycle(12, edges) == []
        length = dice.randint(2, 6)
        ring = [(names[i], names[(i + 1) % length]) for i in range(length)]
        cycle = find_cycle(12, [*edges, *ring])
        assert cycle[0] == cycle[-1]
        assert set(pairwise(cycle)) <= {*edges, *ring}


def test_contraction_keeps_precedence_through_free_operators() -> None:
    problem = ScheduleProblem(
        "icml24",
        1,
        1,
        (
            ScheduledOperator("c", "tensor", 1, 1),
            ScheduledOperator("free", "none", 0, 0),
            ScheduledOperator("a", "tensor", 1, 1),
        ),
        ((2, 1), (1, 0)),
    )
    order = contract(problem)
    assert order.operators == (2, 0)
    assert order.below == (0, 1)


def test_series_parts_are_the_components_of_incomparability() -> None:
    for seed in range(40):
        problem = random_problem(seed, 9, edge_share=0.5)
        order = contract(problem)
        masks, sets = closure(problem), [set(part.operators) for part in series(order)]
        assert [i for part in series(order) for i in part.operators] == list(order.operators)
        left = set(order.operators)
        while left:
            grown = {left.pop()}
            while more := {
                j for j in left if any(not (masks[i] >> j & 1 or masks[j] >> i & 1) for i in grown)
            }:
                grown |= more
                left -= more
            assert grown in sets


def test_topological_order_is_stable() -> None:
    assert topological(4, [(3, 0), (2, 0)]) == [1, 2, 3, 0]
    assert bits(0b1010) == [1, 3]


def _parts(problem: ScheduleProblem) -> list[Component]:
    return [part_of(problem, order) for order in series(contract(problem))]


def _renamed(problem: ScheduleProblem, seed: int, scale: float) -> ScheduleProblem:
    dice = random.Random(seed)
    at = list(range(len(problem.operators)))
    dice.shuffle(at)
    moved = [problem.operators[at.index(k)] for k in range(len(at))]
    operators = tuple(
        ScheduledOperator(f"n{k}", o.core, o.one_core_s * scale, o.all_cores_s * scale)
        for k, o in enumerate(moved)
    )
    return replace(
        problem, operators=operators, edges=tuple((at[i], at[j]) for i, j in problem.edges)
    )


def test_keys_do_not_depend_on_numbering_or_scale() -> None:
    for seed in range(40):
        problem = random_problem(seed, 10)
        keys = sorted(canonical(part)[0] for part in _parts(problem))
        for scale in (1.0, 2.0, 3.7e-5):
            again = sorted(
                canonical(part)[0] for part in _parts(_renamed(problem, seed + 1, scale))
            )
            assert keys == again


def test_keys_tell_different_problems_apart() -> None:
    problem = next(
        p for p in (random_problem(s, 10, edge_share=0.1) for s in range(9)) if len(_parts(p)) == 1
    )
    (part,) = _parts(problem)
    changed = replace(
        part, times_s=((part.times_s[0][0] * 1.001, part.times_s[0][1] * 1.002), *part.times_s[1:])
    )
    fewer = (
        replace(part, cores=(1, 1, 1))
        if part.cores != (1, 1, 1)
        else replace(part, cores=(2, 2, 1))
    )
    assert (
        len({canonical(one)[0] for one in (part, changed, fewer, replace(part, alone=False))}) == 4
    )


def test_a_known_answer_is_found_again() -> None:
    known: PartMemo = {}
    for seed in range(25):
        problem = random_problem(seed, 9)
        first = solve(problem, parts=known)
        size = len(known)
        for scale in (1.0, 0.37):
            other = _renamed(problem, seed, scale)
            again = solve(other, parts=known)
            assert len(known) == size
            assert again.makespan_s == pytest.approx(first.makespan_s * scale, rel=1e-9)
            assert again.optimal == first.optimal


def test_times_become_whole_numbers_of_at_most_two_to_the_forty() -> None:
    for case in OPTIMA:
        for part in _parts(problem_of(case["operators"])):
            assert part.unit_s == pytest.approx(1e-6) or part.unit_s > 1e-6
            assert part.excess < 1e-6
    odd = ScheduleProblem(
        "icml24",
        2,
        1,
        tuple(ScheduledOperator(f"o{i}", "tensor", 0.1 + i / 7, 0.09 + i / 13) for i in range(6)),
        (),
    )
    (part,) = _parts(odd)
    assert MOST_UNITS * 0.99 < sum(part.least(i) for i in range(len(part))) <= MOST_UNITS + 6
    for i, (one, spread) in enumerate(part.times):
        assert one * part.unit_s == pytest.approx(0.1 + i / 7, rel=1e-10)
        assert one * part.unit_s >= (0.1 + i / 7) * (1 - 1e-15)
        assert spread * part.unit_s == pytest.approx(0.09 + i / 13, rel=1e-10)
