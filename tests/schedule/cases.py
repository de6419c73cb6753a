"""Problems for the tests of this room: published ones, random ones, and a brute force that shares no code with phaze.

The brute force places operators one by one in order of start, in each way to run, at the earliest moment that the rules
allow given those placed before, for every order: only the rules themselves are used, no bound and no dominance.
"""

import json
import random
from pathlib import Path
from typing import Any

from phaze.schedule.files import OperatorsFile
from phaze.schedule.problem import Core, Operator, Problem, Rules

OPTIMA: tuple[dict[str, Any], ...] = tuple(json.loads((Path(__file__).parent / "optima.json").read_text()))
SHAPES = ((1, 1), (2, 1), (2, 2), (3, 2), (1, 3), (8, 2), (16, 64))


def problem_of(document: dict[str, Any]) -> Problem:
    """A ``phaze.operators/1`` document as a problem."""
    return OperatorsFile.model_validate(document).value()


def random_problem(seed: int, count: int, rules: Rules = "icml24", edge_share: float = 0.3) -> Problem:
    """Some operators with few different times (so that twins and ties occur), some free, some collectives."""
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
        operators.append(Operator(f"o{i}", core, one, spread))
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count) if dice.random() < edge_share]
    names = list(range(count))
    dice.shuffle(names)
    shuffled = [operators[names.index(at)] for at in range(count)]
    return Problem(rules, tensor, vector, tuple(shuffled), tuple((names[i], names[j]) for i, j in pairs))


Placed = tuple[Operator, bool, float, float]


def _together(problem: Problem, a: Placed, b: Placed) -> bool:
    """Whether the rules let two operators run at the same time, cores aside."""
    kinds = {"tensor": {"t"}, "vector": {"v"}, "both": {"t", "v"}, "none": {"n"}}
    if problem.rules == "icml24":
        return not (a[1] or b[1] or "none" in (a[0].core, b[0].core))
    shared = kinds[a[0].core] & kinds[b[0].core]
    return not shared or not (a[1] or b[1] or "n" in shared)


def _allowed(problem: Problem, placed: list[Placed], new: Placed, now: float) -> bool:
    running = [other for other in placed if other[2] <= now + 1e-12 and other[3] > now + 1e-12]
    if not all(_together(problem, other, new) for other in running):
        return False
    for kinds, cores in ((("tensor", "both"), problem.tensor_cores), (("vector", "both"), problem.vector_cores)):
        single = [one for one in (*running, new) if one[0].core in kinds and not one[1]]
        if len(single) > cores:
            return False
    return True


def brute_force(problem: Problem) -> float:
    """The least makespan by trying everything."""
    operators = problem.operators
    before = [{i for i, j in problem.edges if j == at} for at in range(len(operators))]
    best = sum(min(o.one_core_s, o.all_cores_s) for o in operators if o.one_core_s and o.all_cores_s)

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
            for spread, length in ways[1:] if operator.core == "none" else ways:
                for start in sorted({ready, *(end for *_, end in placed if end > ready)}):
                    if _allowed(problem, placed, (operator, spread, start, start + length), start):
                        break
                if start + length < best:
                    new = (operator, spread, start, start + length)
                    extend([*placed, new], {**ends, j: start + length}, start)

    extend([], {}, 0.0)
    return best
