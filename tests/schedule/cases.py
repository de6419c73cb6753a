"""Problems for the tests of this room: published ones, random ones, and a brute force that shares
no code with phaze.

The brute force places operators one by one in order of start, in each way to run, at the earliest
moment that the rules allow given those placed before, for every order: only the rules themselves
are used, no bound and no dominance.
"""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

from phaze.errors import InputError
from phaze.schedule.files import OperatorsFile
from phaze.schedule.problem import Core, ScheduledOperator, ScheduleProblem
from phaze.schedule.rules import Rules

OPTIMA: tuple[dict[str, Any], ...] = tuple(
    json.loads((Path(__file__).parent / "optima.json").read_text())
)
SHAPES = ((1, 1), (2, 1), (2, 2), (3, 2), (1, 3), (8, 2), (16, 64))


def problem_of(document: dict[str, Any]) -> ScheduleProblem:
    """A ``phaze.operators/1`` document as a problem."""
    return OperatorsFile.model_validate(document).value()


def random_problem(
    seed: int, count: int, rules: Rules = "icml24", edge_share: float = 0.3
) -> ScheduleProblem:
    """Some operators with few different times (so that twins and ties occur), some free, some
    collectives."""
    dice = random.Random(f"{seed} {count} {rules}")
    tensor, vector = dice.choice(SHAPES)
    cores: tuple[Core, ...] = ("tensor", "tensor", "tensor", "vector", "vector", "both", "none")
    grain = dice.choice((1.0, 1e-6, 0.1, 1 / 3))
    operators = []
    for i in range(count):
        core = dice.choice(cores)
        one = dice.randint(1, 9) * grain
        spread = one * dice.choice((0.25, 0.5, 0.5, 0.8, 1.0, 1.2))
        if core == "none":
            one = spread = dice.choice((0.0, one))
        elif dice.random() < 0.04:
            one = spread = 0.0
        operators.append(ScheduledOperator(f"o{i}", core, one, spread))
    pairs = [
        (i, j) for i in range(count) for j in range(i + 1, count) if dice.random() < edge_share
    ]
    names = list(range(count))
    dice.shuffle(names)
    shuffled = [operators[names.index(at)] for at in range(count)]
    return ScheduleProblem(
        rules, tensor, vector, tuple(shuffled), tuple((names[i], names[j]) for i, j in pairs)
    )


def ruled_problem(seed: int, count: int, rules: Rules, edge_share: float = 0.3) -> ScheduleProblem:
    """A random problem with what the rules may count: HBM times, operators with the network, named
    companions."""
    plain = random_problem(seed, count, rules, edge_share)
    dice = random.Random(f"more {seed} {count}")
    operators = []
    for operator in plain.operators:
        network = operator.core != "none" and dice.random() < 0.15
        hbm = dice.choice((0.0, 0.5, 1.0)) * min(operator.one_core_s, operator.all_cores_s)
        operators.append(
            replace(operator, network=network, hbm_s=0.0 if operator.core == "none" else hbm)
        )
    found = replace(plain, operators=tuple(operators))
    open_ = [
        i
        for i, operator in enumerate(operators)
        if operator.core != "none" and not operator.network
    ]
    for i, operator in enumerate(operators):
        for j in [j for j in open_ if dice.random() < 0.4] if operator.core == "none" else []:
            try:
                found = replace(found, beside=(*found.beside, (i, j)))
                open_.remove(j)
            except InputError:
                continue
    return found


Placed = tuple[ScheduledOperator, bool, float, float]


def _together(problem: ScheduleProblem, a: Placed, b: Placed) -> bool:
    """Whether the rules let two operators run at the same time, cores aside."""
    kinds = {"tensor": {"t"}, "vector": {"v"}, "both": {"t", "v"}, "none": {"n"}}
    if problem.rules == "serial":
        return False
    if problem.rules == "icml24":
        return not (a[1] or b[1] or "none" in (a[0].core, b[0].core))
    one, two = (kinds[x[0].core] | ({"n"} if x[0].network else set()) for x in (a, b))
    if problem.rules in ("links", "companions"):
        if (a[0].core == "none") == (b[0].core == "none") or (one & two):
            return False
        pairs = {
            frozenset((problem.operators[i].id, problem.operators[j].id)) for i, j in problem.beside
        }
        return problem.rules == "links" or frozenset((a[0].id, b[0].id)) in pairs
    shared = one & two
    return not shared or not (a[1] or b[1] or "n" in shared)


def _allowed(problem: ScheduleProblem, placed: list[Placed], new: Placed, now: float) -> bool:
    lasting = [other for other in placed if other[3] > now + 1e-12 and other[2] < new[3] - 1e-12]
    if not all(_together(problem, other, new) for other in lasting):
        return False
    running = [other for other in lasting if other[2] <= now + 1e-12]
    for kinds, cores in (
        (("tensor", "both"), problem.tensor_cores),
        (("vector", "both"), problem.vector_cores),
    ):
        single = [one for one in (*running, new) if one[0].core in kinds and not one[1]]
        if len(single) > cores:
            return False
    return True


def brute_force(problem: ScheduleProblem) -> float:
    """The least makespan by trying everything; HBM aside."""
    operators = problem.operators
    before = [{i for i, j in problem.edges if j == at} for at in range(len(operators))]
    queue = problem.rules in ("serial", "companions", "links")
    best = sum(
        o.all_cores_s
        if queue or o.network or o.core == "none"
        else min(o.one_core_s, o.all_cores_s)
        for o in operators
        if o.one_core_s and o.all_cores_s
    )

    def extend(placed: list[Placed], ends: dict[int, float], now: float) -> None:
        nonlocal best
        if len(ends) == len(operators):
            best = min(best, max(ends.values(), default=0.0))
            return
        for j, operator in enumerate(operators):
            if j in ends or not before[j] <= ends.keys():
                continue
            ready = max([now, *(ends[i] for i in before[j])])
            if not operator.one_core_s or not operator.all_cores_s:
                extend(placed, {**ends, j: max((ends[i] for i in before[j]), default=0.0)}, now)
                return
            ways = ((False, operator.one_core_s), (True, operator.all_cores_s))
            only = operator.core == "none" or operator.network or queue
            for spread, length in ways[1:] if only else ways:
                for start in sorted({ready, *(end for *_, end in placed if end > ready)}):
                    if _allowed(problem, placed, (operator, spread, start, start + length), start):
                        break
                if start + length < best:
                    new = (operator, spread, start, start + length)
                    extend([*placed, new], {**ends, j: start + length}, start)

    extend([], {}, 0.0)
    return best


def parts_in_series(problem: ScheduleProblem) -> list[list[int]]:
    """The operators that cost something, joined where no path leads from one to the other: by plain
    search."""
    reach = {i: {i} for i in range(len(problem.operators))}
    for _ in reach:
        for i, j in problem.edges:
            for seen in reach.values():
                if i in seen:
                    seen.add(j)
    left = [i for i, operator in enumerate(problem.operators) if not operator.free]
    found: list[list[int]] = []
    while left:
        own = [left[0]]
        for i in own:
            own += [j for j in left if j not in own and j not in reach[i] and i not in reach[j]]
        found.append(own)
        left = [i for i in left if i not in own]
    return found


def brute_force_with_memory(problem: ScheduleProblem) -> float:
    """The least length by trying everything, each series component no shorter than the HBM time of
    its operators."""
    total = 0.0
    for own in parts_in_series(problem):
        number = {i: at for at, i in enumerate(sorted(own))}
        closed = {(i, j) for i in own for j in own if i != j and _leads(problem, i, j)}
        edges = tuple((number[i], number[j]) for i, j in sorted(closed))
        operators = tuple(problem.operators[i] for i in sorted(own))
        alone = replace(problem, operators=operators, edges=edges, beside=())
        total += max(brute_force(alone), sum(operator.hbm_s for operator in operators))
    return total


def _leads(problem: ScheduleProblem, i: int, j: int) -> bool:
    seen, stack = {i}, [i]
    while stack:
        at = stack.pop()
        new = [then for first, then in problem.edges if first == at and then not in seen]
        seen.update(new)
        stack += new
    return j in seen
