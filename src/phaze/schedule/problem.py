"""The question and its answer: operators with two times each, a chip's cores, and the schedule that
was found.

Operator i has a core kind and two times: ``L_i`` on one core of its kind (``one_core_s``) and
``P_i`` spread over all of them (``all_cores_s``). An edge (i, j) says that i ends before j starts.
A schedule gives each operator a start and one of its two ways to run; wanted is the least makespan.
What may run at the same time depends on the rules, which ``rules.py`` states as values.

An operator of core ``none`` that takes time is a collective: it runs on the network. One with cores
and ``network`` holds both. ``hbm_s`` is the time that its bytes take at the full HBM bandwidth;
rules that share HBM count it. ``beside`` pairs a collective with an operator that it may run beside
under rules that ask for it.

An operator with ``L_i = 0`` or ``P_i = 0`` is free: it takes no time and holds nothing, but passes
precedence on. All rules agree on that, and on this: what takes no time disturbs nobody.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from phaze.errors import InputError, unknown_name
from phaze.schedule.rules import RULE, Rule, Rules, groups_in_turn

Core = Literal["tensor", "vector", "both", "none"]
Status = Literal["optimal", "feasible", "list"]

CORES: tuple[str, ...] = get_args(Core)
RULES: tuple[str, ...] = tuple(RULE)
KINDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"tensor": ("tensor",), "vector": ("vector",), "both": ("tensor", "vector"), "none": ()}
)
# An answer within this share of its lower bound is called optimal: times are binary fractions, sums
# of them round.
ROUNDING = 1e-9
# Thirty years: no operator takes longer, and squares of times stay far within 64-bit floats.
MOST_SECONDS = 1e9


@dataclass(frozen=True, slots=True)
class ScheduledOperator:
    """One operator: the cores it uses, and its time on one core and on all of them."""

    id: str
    core: Core
    one_core_s: float
    all_cores_s: float
    network: bool = False
    hbm_s: float = 0.0

    @property
    def free(self) -> bool:
        """It takes no time in one of its ways to run, so it costs nothing."""
        return self.one_core_s == 0 or self.all_cores_s == 0

    @property
    def collective(self) -> bool:
        """It takes time and uses no core: it runs on the network."""
        return self.core == "none" and not self.free

    @property
    def networked(self) -> bool:
        """It holds the network while it runs, with or without cores."""
        return not self.free and (self.network or self.core == "none")


@dataclass(frozen=True, slots=True)
class ScheduleProblem:
    """Operators, the edges between them by position, and the chip's cores; refuses what cannot be
    scheduled."""

    rules: Rules
    tensor_cores: int
    vector_cores: int
    operators: tuple[ScheduledOperator, ...]
    edges: tuple[tuple[int, int], ...]
    beside: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.rules not in RULES:
            raise unknown_name("rules", "rules", str(self.rules), RULES)
        _check_operators(self)
        for index, (first, then) in enumerate(self.edges):
            for end in (first, then):
                if not 0 <= end < len(self.operators):
                    raise InputError(
                        f"edges[{index}]",
                        f"there is no operator number {end}",
                        "name one that exists",
                    )
        cycle = find_cycle(len(self.operators), self.edges)
        if cycle:
            names = " -> ".join(f"'{self.operators[i].id}'" for i in cycle)
            raise InputError(
                "edges",
                f"operators wait for each other in a cycle: {names}",
                "remove one of its edges",
            )
        if self.beside:
            _check_beside(self)

    @property
    def rule(self) -> Rule:
        """What may run at the same time."""
        return RULE[self.rules]

    def cores(self, kind: str) -> int:
        """How many cores of ``kind`` there are."""
        return self.tensor_cores if kind == "tensor" else self.vector_cores


def _check_operators(problem: ScheduleProblem) -> None:
    seen: set[str] = set()
    for index, operator in enumerate(problem.operators):
        where = f"operators[{index}]"
        if operator.id in seen:
            raise InputError(
                f"{where}.id",
                f"the id '{operator.id}' appears twice",
                "give every operator its own",
            )
        seen.add(operator.id)
        if operator.core not in CORES:
            raise unknown_name(f"{where}.core", "core", str(operator.core), CORES)
        for name, time in (
            ("one_core_s", operator.one_core_s),
            ("all_cores_s", operator.all_cores_s),
        ):
            if not (math.isfinite(time) and 0 <= time <= MOST_SECONDS):
                raise InputError(
                    f"{where}.{name}",
                    f"{time!r} is not a time",
                    f"give 0 to {MOST_SECONDS:g} seconds",
                )
        if (
            not 0
            <= operator.hbm_s
            <= min(operator.one_core_s, operator.all_cores_s) * (1 + ROUNDING)
        ):
            raise InputError(
                f"{where}.hbm_s",
                f"{operator.hbm_s!r} s of HBM do not fit into the operator's time",
                "give 0 to the shorter of its times",
            )
        if operator.collective and operator.one_core_s != operator.all_cores_s:
            raise InputError(
                where,
                f"'{operator.id}' uses no core but has two times",
                "give a collective the same time twice",
            )
        for kind in KINDS[operator.core]:
            if problem.cores(kind) < 1:
                raise InputError(
                    f"{kind}_cores",
                    f"operator '{operator.id}' needs a {kind} core and there is none",
                    "give at least 1",
                )


def _check_beside(problem: ScheduleProblem) -> None:
    """A collective names operators with cores, each is named once, and the groups can run one after
    another."""
    named: set[int] = set()
    for collective, other in problem.beside:
        if not (0 <= collective < len(problem.operators) and 0 <= other < len(problem.operators)):
            raise InputError(
                "beside",
                f"there is no operator number {max(collective, other)}",
                "name one that exists",
            )
        who, whom = problem.operators[collective], problem.operators[other]
        where = f"operators[{collective}].beside"
        if who.core != "none":
            raise InputError(
                where,
                f"'{who.id}' is not a collective",
                "only an operator of core none may have this key",
            )
        if whom.core == "none" or whom.network or other in named:
            what = "is named twice" if other in named else "uses the network itself"
            raise InputError(where, f"'{whom.id}' {what}", "name operators with cores, each once")
        named.add(other)
    if groups_in_turn(len(problem.operators), problem.edges, problem.beside) is None:
        raise InputError(
            "beside",
            "a collective waits for an operator that it should overlap",
            "name operators it may overlap",
        )


def find_cycle(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """A closed walk i -> ... -> i along edges, or an empty list; the same edges always give the
    same one."""
    after: list[list[int]] = [[] for _ in range(count)]
    for first, then in edges:
        after[first].append(then)
    path: list[int] = []
    done, place = [False] * count, [-1] * count
    for root in range(count):
        stack = [(root, 0)]
        while stack:
            node, step = stack.pop()
            if done[node]:
                continue
            if step == 0:
                if place[node] >= 0:
                    return [*path[place[node] :], node]
                place[node] = len(path)
                path.append(node)
            if step < len(after[node]):
                stack.append((node, step + 1))
                stack.append((after[node][step], 0))
            else:
                done[node], place[node] = True, -1
                path.pop()
    return []


@dataclass(frozen=True, slots=True)
class Slot:
    """When and how one operator runs; a core number is there when it runs on one core of that
    kind."""

    id: str
    spread: bool
    start_s: float
    end_s: float
    tensor_core: int | None
    vector_core: int | None


@dataclass(frozen=True, slots=True)
class Effort:
    """What an answer took: its method, and how much of the space was considered."""

    method: str
    components: int = 0
    largest: int = 0
    ideals: int = 0
    labels: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """An answer: the schedule, and a lower bound on every schedule's makespan."""

    rules: Rules
    makespan_s: float
    lower_bound_s: float
    slots: tuple[Slot, ...]
    effort: Effort

    @property
    def gap(self) -> float:
        """How far the makespan may be above the least one, as a share of the makespan."""
        if self.makespan_s <= 0:
            return 0.0
        return max(0.0, 1.0 - self.lower_bound_s / self.makespan_s)

    @property
    def optimal(self) -> bool:
        """Proved: the bound meets the makespan up to rounding."""
        return self.gap <= ROUNDING

    @property
    def status(self) -> Status:
        """In one word: ``optimal`` (proved), ``feasible`` (the bound is lower), or ``list``: more
        was not tried."""
        return (
            "optimal" if self.optimal else "list" if self.effort.method == "large" else "feasible"
        )

    def document(self) -> dict[str, Any]:
        """The answer as ``phaze.schedule/1``."""
        effort = self.effort
        return {
            "schema": "phaze.schedule/1",
            "rules": self.rules,
            "makespan_s": self.makespan_s,
            "lower_bound_s": self.lower_bound_s,
            "gap": self.gap,
            "optimal": self.optimal,
            "status": self.status,
            "effort": {
                "method": effort.method,
                "components": effort.components,
                "largest": effort.largest,
                "ideals": effort.ideals,
                "labels": effort.labels,
            },
            "slots": [
                {
                    "id": slot.id,
                    "spread": slot.spread,
                    "start_s": slot.start_s,
                    "end_s": slot.end_s,
                    "tensor_core": slot.tensor_core,
                    "vector_core": slot.vector_core,
                }
                for slot in self.slots
            ],
        }
