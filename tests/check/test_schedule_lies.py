"""For every rule of the checker a lie that breaks this rule and no other: each is refused, by that
rule."""

from dataclasses import replace

import pytest

from phaze.schedule.problem import Core, Effort, Schedule, ScheduledOperator, ScheduleProblem, Slot
from phaze.schedule.rules import Rules
from tests.check.documents import faults

Said = tuple[str, bool, float, float, int | None, int | None]


def _problem(
    rules: Rules,
    operators: list[ScheduledOperator],
    edges: tuple[tuple[int, int], ...] = (),
    **more: object,
) -> ScheduleProblem:
    return ScheduleProblem(rules, 2, 2, tuple(operators), edges, **more)  # type: ignore[arg-type]


def _schedule(
    rules: Rules, slots: list[Said], makespan_s: float | None = None, bound_s: float = 0.5
) -> Schedule:
    last = max(slot[3] for slot in slots)
    made = tuple(Slot(*slot) for slot in slots)
    return Schedule(
        rules, last if makespan_s is None else makespan_s, bound_s, made, Effort("list")
    )


def _tensor(
    name: str, one: float = 2.0, spread: float = 1.0, hbm_s: float = 0.0, network: bool = False
) -> ScheduledOperator:
    return ScheduledOperator(name, "tensor", one, spread, network, hbm_s)


def _spread(name: str, start: float, length: float = 1.0) -> Said:
    return (name, True, start, start + length, None, None)


def _single(name: str, start: float, core: int, kind: Core = "tensor", length: float = 2.0) -> Said:
    tensor, vector = (core if kind in (own, "both") else None for own in ("tensor", "vector"))
    return (name, False, start, start + length, tensor, vector)


TWO = [_tensor("a"), _tensor("b")]
BESIDE = [_single("a", 0.0, 0), _single("b", 0.0, 1)]
SENT = ScheduledOperator("n", "none", 1.0, 1.0)
ALSO = ScheduledOperator("m", "none", 1.0, 1.0)
MOVES = [
    _tensor("a", 1.0, 1.0, hbm_s=1.0),
    _tensor("b", 1.0, 1.0, hbm_s=1.0),
    _tensor("c", 1.0, 1.0, hbm_s=1.0),
]

LIES: dict[str, tuple[ScheduleProblem, Schedule, str]] = {
    "a collective beside an operator that holds the network": (
        _problem("links", [_tensor("a", 1.0, 1.0, network=True), SENT]),
        _schedule("links", [_spread("a", 0.0), _spread("n", 0.0)]),
        "use the network at the same time",
    ),
    "an operator is missing": (
        _problem("icml24", TWO),
        _schedule("icml24", BESIDE[:1]),
        "not the operators",
    ),
    "operators change places": (
        _problem("icml24", TWO),
        _schedule("icml24", BESIDE[::-1]),
        "not the operators",
    ),
    "a negative start": (
        _problem("icml24", TWO),
        _schedule("icml24", [_single("a", -1.0, 0), BESIDE[1]]),
        "negative",
    ),
    "a bound that is not a number": (
        _problem("icml24", TWO),
        _schedule("icml24", BESIDE, bound_s=float("nan")),
        "not a number",
    ),
    "a makespan before the last end": (
        _problem("icml24", TWO),
        _schedule("icml24", BESIDE, 1.9),
        "the last end",
    ),
    "a makespan after the last end": (
        _problem("icml24", TWO),
        _schedule("icml24", BESIDE, 2.1),
        "the last end",
    ),
    "a bound above the makespan": (
        _problem("icml24", TWO),
        _schedule("icml24", BESIDE, bound_s=2.1),
        "above the makespan",
    ),
    "other rules": (
        _problem("links", [_tensor("a"), _tensor("b", 1.0, 1.0)], ((0, 1),)),
        _schedule("overlap", [_spread("a", 0.0), _spread("b", 1.0)]),
        "under the rules overlap",
    ),
    "too short on one core": (
        _problem("icml24", TWO),
        _schedule("icml24", [_single("a", 0.0, 0, length=1.0), BESIDE[1]]),
        "lasts",
    ),
    "too long spread": (
        _problem("icml24", TWO),
        _schedule("icml24", [_spread("a", 0, 2.0), _spread("b", 2.0)]),
        "lasts",
    ),
    "a free operator that lasts": (
        _problem("icml24", [_tensor("a", 0.0, 0.0), _tensor("b")]),
        _schedule("icml24", [_single("a", 0.0, 0, length=1.0), _single("b", 0.0, 1)]),
        "lasts",
    ),
    "a free operator that lasts while spread": (
        _problem("icml24", [_tensor("a", 0.0, 1.0)]),
        _schedule("icml24", [_spread("a", 0.0)]),
        "lasts",
    ),
    "a collective beside another in one queue": (
        _problem("serial", [SENT, _tensor("b", 1.0, 1.0)]),
        _schedule("serial", [_spread("n", 0.0), _spread("b", 0.0)]),
        "run at the same time",
    ),
    "bytes of a component that stands later in the file": (
        _problem("overlap", [_tensor("c", 1.0, 1.0), *MOVES[:2]], ((1, 0), (2, 0))),
        _schedule(
            "overlap",
            [
                _single("c", 1, 0, length=1.0),
                _single("a", 0, 0, length=1.0),
                _single("b", 0, 1, length=1.0),
            ],
        ),
        "moved the bytes",
    ),
    "precedence, with room on other cores": (
        _problem("icml24", TWO, ((0, 1),)),
        _schedule("icml24", BESIDE),
        "starts before",
    ),
    "precedence, one after another": (
        _problem("serial", TWO, ((0, 1),)),
        _schedule("serial", [_spread("a", 1.0), _spread("b", 0.0)]),
        "starts before",
    ),
    "a core that does not exist": (
        _problem("icml24", TWO),
        _schedule("icml24", [_single("a", 0.0, 2), BESIDE[1]]),
        "does not exist",
    ),
    "no core": (
        _problem("icml24", TWO),
        _schedule("icml24", [("a", False, 0.0, 2.0, None, None), BESIDE[1]]),
        "does not exist",
    ),
    "a core of a kind it does not use": (
        _problem("icml24", TWO),
        _schedule("icml24", [("a", False, 0.0, 2.0, 0, 0), BESIDE[1]]),
        "does not run on one",
    ),
    "a core while spread": (
        _problem("icml24", TWO),
        _schedule("icml24", [("a", True, 0.0, 1.0, 0, None), _spread("b", 1.0)]),
        "does not run on one",
    ),
    "one core under rules that always spread": (
        _problem("serial", [_tensor("a", 1.0, 1.0)]),
        _schedule("serial", [_single("a", 0.0, 0, length=1.0)]),
        "must be spread",
    ),
    "a collective that is not spread": (
        _problem("icml24", [SENT]),
        _schedule("icml24", [("n", False, 0.0, 1.0, None, None)]),
        "must be spread",
    ),
    "an operator with the network on one core": (
        _problem("overlap", [_tensor("a", 1.0, 1.0, network=True)]),
        _schedule("overlap", [_single("a", 0.0, 0, length=1.0)]),
        "must be spread",
    ),
    "two at once in one queue": (
        _problem("serial", TWO),
        _schedule("serial", [_spread("a", 0.0), _spread("b", 0.0)]),
        "run at the same time",
    ),
    "beside a spread one that runs alone": (
        _problem("icml24", TWO),
        _schedule("icml24", [_spread("a", 0.0), _single("b", 0.0, 0)]),
        "runs alone",
    ),
    "beside a collective that runs alone": (
        _problem("icml24", [SENT, _tensor("b")]),
        _schedule("icml24", [_spread("n", 0.0), _single("b", 0.0, 0)]),
        "runs alone",
    ),
    "two on the network": (
        _problem("overlap", [SENT, ALSO]),
        _schedule("overlap", [_spread("n", 0.0), _spread("m", 0.0)]),
        "use the network",
    ),
    "a collective beside what it does not name": (
        _problem("companions", [SENT, _tensor("b", 1.0, 1.0)]),
        _schedule("companions", [_spread("n", 0.0), _spread("b", 0.0)]),
        "neither names the other",
    ),
    "two kinds at once where one has all cores": (
        _problem("links", [_tensor("a"), ScheduledOperator("b", "vector", 2.0, 1.0)]),
        _schedule("links", [_spread("a", 0.0), _spread("b", 0.0)]),
        "has the cores to itself",
    ),
    "the same kind at once, one spread": (
        _problem("overlap", TWO),
        _schedule("overlap", [_spread("a", 0.0), _single("b", 0.0, 0)]),
        "has the cores to itself",
    ),
    "the same tensor core": (
        _problem("icml24", TWO),
        _schedule("icml24", [BESIDE[0], _single("b", 1.0, 0)]),
        "same tensor core",
    ),
    "the same vector core": (
        _problem(
            "icml24",
            [ScheduledOperator("a", "both", 2.0, 1.0), ScheduledOperator("b", "vector", 2.0, 1.0)],
        ),
        _schedule("icml24", [("a", False, 0.0, 2.0, 0, 1), _single("b", 0.0, 1, "vector")]),
        "same vector core",
    ),
    "bytes of a component that is over too soon": (
        _problem("overlap", [*MOVES[:2], _tensor("c", 1.0, 1.0)], ((0, 2), (1, 2))),
        _schedule(
            "overlap",
            [
                _single("a", 0, 0, length=1.0),
                _single("b", 0, 1, length=1.0),
                _single("c", 1, 0, length=1.0),
            ],
        ),
        "moved the bytes",
    ),
    "a last component that moves on": (
        _problem("overlap", MOVES),
        _schedule(
            "overlap",
            [
                _single("a", 0, 0, length=1.0),
                _single("b", 0, 1, length=1.0),
                _single("c", 1, 0, length=1.0),
            ],
        ),
        "the last end",
    ),
}


@pytest.mark.parametrize("name", LIES)
def test_a_lie_about_one_rule_is_refused_by_that_rule_alone(name: str) -> None:
    problem, schedule, said = LIES[name]
    found = faults(problem, schedule)
    assert len(found) == 1, found
    assert said in found[0]


def test_the_same_schedules_without_the_lie_hold() -> None:
    assert faults(_problem("icml24", TWO), _schedule("icml24", BESIDE)) == []
    named = replace(_problem("companions", [SENT, _tensor("b", 1.0, 1.0)]), beside=((0, 1),))
    assert faults(named, _schedule("companions", [_spread("n", 0.0), _spread("b", 0.0)])) == []
    apart = [
        _single("a", 0, 0, length=1.0),
        _single("b", 0, 1, length=1.0),
        _single("c", 2, 0, length=1.0),
    ]
    assert faults(_problem("overlap", MOVES, ((0, 2), (1, 2))), _schedule("overlap", apart)) == []
    within = _problem("overlap", [_tensor("a"), ScheduledOperator("b", "vector", 2.0, 1.0)])
    assert faults(within, _schedule("overlap", [_spread("a", 0.0), _spread("b", 0.0)])) == []
    free = _problem("icml24", [_tensor("a"), _tensor("b", 0.0, 0.0), _tensor("c", 0.0, 0.0)])
    running = [_spread("a", 0.0), ("b", False, 0.5, 0.5, 0, None), ("c", False, 0.5, 0.5, 0, None)]
    assert faults(free, _schedule("icml24", running)) == [], "what takes no time disturbs nobody"
    close = 2.0 - 1e-10
    assert (
        faults(
            _problem("icml24", TWO, ((0, 1),)),
            _schedule("icml24", [BESIDE[0], _single("b", close, 0)]),
        )
        == []
    )
