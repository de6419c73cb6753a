"""The answer of a certificate, exactly, and every chip of its space: nothing scores below the bound.

The answer's batch time is derived from its chip, its schedules and its stages, and must be the score that is claimed.
Every other chip is bounded, by ever sharper and dearer steps until its bound is reached:

    rooflines   no product beats them, schedules by credits, placement by floors and then by its table
    mappings    every product by its best mapping
    ideals      schedules by the shortest path over what can have been done

The chip that looks best after the first floors goes through all steps before any other: a false claim falls there.
No list of chips, reason or count is read; what is proved is counted here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graphs import Graph, Pass, graph_of
from .means import Mean
from .operators import Constants, Costs, constants_of
from .placements import Cuts, cuts_of, least_batch, stages_of
from .reading import cover, listed, only, require, whole
from .schedules import Multiplier, ideals_of, least, makespan, multiplier_of, order_of, series, shortest_path
from .space import AXES, Chips, Space
from .stages import Training, plan_seconds, training_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NEAR = 1e-9
STEPS = ("floors", "rooflines", "mappings", "ideals")
Entries = dict[tuple[int, int], tuple[Multiplier, ...]]
Watch = Callable[[str], None]
Solver = Callable[[int], Sequence[float]]
"""The batch times of all models on a chip, by a solver of the caller's own: what he trusts it with is his affair."""
LENT = "the caller's own solver"


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the problem with its graphs, configurations and, by graph, the multipliers of its passes."""

    name: str
    training: Training
    constants: Constants
    level: Mapping[str, Any]
    graphs: tuple[Graph, ...]
    ways: tuple[tuple[int, str], ...]
    entries: tuple[Entries, ...]


def _entries(graph: Graph, table: Any, where: str) -> Entries:
    """The multipliers of a graph: rows [layer, pass, entry]."""
    found: dict[tuple[int, int], list[Multiplier]] = {}
    for row in listed(table, where):
        layer, which, entry = listed(row, where, 3)
        at = (whole(layer, where, 0, len(graph.layers) - 1), whole(which, where, 0, 1))
        own = graph.layers[at[0]]
        order = order_of((own.forward, own.backward)[at[1]])
        found.setdefault(at, []).append(multiplier_of(order, entry, where))
    return {at: tuple(own) for at, own in found.items()}


def model_of(table: Mapping[str, Any], graphs: Any, fusion: Any, multipliers: Any, residency: bool) -> Model:
    """A model of the problem, its graphs fused and its multipliers as the certificate says."""
    training, machine = training_of(table["training"]), table["training"]["machine"]
    require(machine["residency"] is residency, "problem.json: it says two things of residency")
    own = listed(graphs, "graphs.json", len(table["graphs"]))
    fused = [
        graph_of(graph, groups, residency)
        for graph, groups in zip(own, listed(fusion, "fusion", len(own)), strict=True)
    ]
    ways = []
    for way in listed(table["ways"], "ways"):
        cover(way["recompute"] in ("none", "full", "best"), f"recompute {way['recompute']}")
        cover(list(way["zeros"]) == [0], "stages of ZeRO")
        ways.append((whole(way["graph"], "ways", 0, len(own) - 1), str(way["recompute"])))
    entries = [
        _entries(graph, rows, "multipliers")
        for graph, rows in zip(fused, listed(multipliers, "multipliers", len(own)), strict=True)
    ]
    require(bool(ways), "problem.json: a model has no configuration")
    return Model(
        str(table["name"]), training, constants_of(table["training"]["constants"]), machine["cluster"]["levels"][0],
        tuple(fused), tuple(ways), tuple(entries),
    )  # fmt: skip


# ---- the answer ----


def chip_at(space: Space, said: Any) -> Integers:
    """The place of the chip that the answer names by the values of its axes."""
    named = only(said, "answer.chip", AXES)
    same = np.ones(len(space.chips), bool)
    for name, value in named.items():
        same &= getattr(space.chips, name) == value
    require(bool(same.any()), "answer.chip: the space has no such chip")
    return np.flatnonzero(same)[:1]


def _passes(graph: Graph) -> list[tuple[int, int, Pass]]:
    return [(at, w, own) for at, la in enumerate(graph.layers) for w, own in enumerate((la.forward, la.backward))]


def answer_seconds(model: Model, said: Any, chip: Chips, hbm_bytes: float) -> float:
    """The batch time of a model as the answer runs it, every schedule and stage checked."""
    plan = only(said, "answer.models", ("graph", "recompute", "data", "stages", "schedules"))
    at = whole(plan["graph"], "answer.graph", 0, len(model.graphs) - 1)
    require((at, plan["recompute"]) in model.ways, "answer: the problem has no such configuration")
    graph, costs = model.graphs[at], Costs(chip, model.constants, model.level, True)
    cores = {"tensor": int(chip.tensor_cores[0]), "vector": int(chip.vector_cores[0])}
    times = np.zeros((2, len(graph.layers), 1))
    schedules = listed(plan["schedules"], "answer.schedules", len(graph.layers))
    for layer, which, own in _passes(graph):
        one, spread = (found[:, 0] for found in costs.both(own.works))
        slots, where = listed(schedules[layer], "answer.schedules", 2)[which], f"schedules[{layer}][{which}]"
        times[which, layer] = makespan(own, slots, one, spread, cores, where)
    return plan_seconds(graph, model.training, plan, plan["recompute"], hbm_bytes, (times[0], times[1]))


# ---- every chip ----


def _layer_bounds(model: Model, at: int, chips: Chips, step: str, costs: Costs) -> tuple[Floats, Floats]:
    """What no schedule of the layers of a graph undercuts, [layers, chips], both passes."""
    graph, found = model.graphs[at], np.zeros((2, len(model.graphs[at].layers), len(chips)))
    cores = {"tensor": chips.tensor_cores, "vector": chips.vector_cores}
    for layer, which, own in _passes(graph):
        one, spread = costs.both(own.works)
        order, entries = order_of(own), model.entries[at].get((layer, which), ())
        for part in series(order):
            credits = least(order, [part], one, spread, cores, entries)
            ideals = ideals_of(order, part) if step == "ideals" and len(part) > 1 else None
            if ideals is not None:
                counts = [{kind: float(values[chip]) for kind, values in cores.items()} for chip in range(len(chips))]
                paths = [
                    shortest_path(order, part, ideals, one[:, i], spread[:, i], own) for i, own in enumerate(counts)
                ]
                credits = np.maximum(credits, np.array(paths))
            found[which, layer] += credits
    return found[0], found[1]


@dataclass(slots=True)
class Counted:
    """How many chips each step closed, and the score that none is shown to undercut."""

    chips: int
    combinations: int
    least: float = 0.0
    closed: dict[str, int] = field(default_factory=dict)
    first_open: str = ""


Cutting = list[list[dict[int, Cuts]]]


@dataclass(slots=True)
class _Open:
    """Chips on their way through the steps: bounds on the batch time of every model's configurations."""

    models: Sequence[Model]
    mean: Mean
    cuts: Cutting
    chips: Chips
    memory: Integers
    goal: float
    bounds: list[Floats]

    def lows(self) -> Floats:
        """What no configuration undercuts, [models, chips]."""
        return np.stack([own.min(axis=0) for own in self.bounds])

    def left(self) -> Integers:
        """Chips that are not shown to be above the goal."""
        return np.flatnonzero(self.mean.score(self.lows()) < self.goal)

    def run(self, step: str) -> None:
        """One step over the chips that are left."""
        for at, model in enumerate(self.models):
            index = self.left()
            if not len(index):
                return
            goals = self.mean.threshold(self.lows()[:, index], at, self.goal)
            # Room for rounding: what reaches the threshold must bring the score to its goal.
            goals = goals * (1 + NEAR * (len(self.models) > 1))
            own, some, memory = self.bounds[at][:, index], self.chips.taken(index), self.memory[index]
            self.bounds[at][:, index] = np.maximum(own, _bounds(model, self.cuts[at], some, memory, goals, step, own))


def _bounds(
    model: Model, cuts: Sequence[Mapping[int, Cuts]], chips: Chips, memory: Integers, goal: Floats, step: str,
    known: Floats,
) -> Floats:  # fmt: skip
    """Bounds on the batch time of every configuration, [ways, chips]; 0 where ``known`` reaches the goal already."""
    found = np.zeros(known.shape)
    for at in range(len(model.graphs)):
        ways = [w for w, (graph, _) in enumerate(model.ways) if graph == at]
        index = np.flatnonzero((known[ways] < goal).any(axis=0)) if ways else np.zeros(0, np.int64)
        if not len(index):
            continue
        some = chips if len(index) == len(chips) else chips.taken(index)
        costs = Costs(some, model.constants, model.level, step in ("mappings", "ideals"))
        forward, backward = _layer_bounds(model, at, some, step, costs)
        for way in ways:
            for place, own in cuts[way].items():
                mine = np.flatnonzero((known[way, index] < goal[index]) & (memory[index] == place))
                if len(mine):
                    times = forward[:, mine], backward[:, mine]
                    found[way, index[mine]] = least_batch(own, *times, goal[index[mine]], step == "floors")
    return found


def _start(models: Sequence[Model], mean: Mean, space: Space, memories: Sequence[int], goal: float) -> _Open:
    there = space.memory >= 0
    require(bool(there.any()), "no chip may have a memory of the problem")
    kept = [int(place) for place in np.unique(space.memory[there])]
    stages = [[stages_of(graph) for graph in m.graphs] for m in models]
    cuts = [
        [{p: cuts_of(own[graph], m.training, again, float(memories[p])) for p in kept} for graph, again in m.ways]
        for m, own in zip(models, stages, strict=True)
    ]
    bounds = [np.where(there, 0.0, np.inf) * np.ones((len(m.ways), 1)) for m in models]
    return _Open(models, mean, cuts, space.chips, space.memory, goal, bounds)


def prove(
    models: Sequence[Model], mean: Mean, space: Space, memories: Sequence[int], goals: tuple[float, float],
    watch: Watch, quick: bool = False, solver: Solver | None = None,
) -> Counted:  # fmt: skip
    """Every chip and configuration against the first of ``goals``; refuses where the chip that looks best is not shown
    to reach the second. ``quick`` stops before mappings; chips that no step closes are given to ``solver``, if any."""
    state = _start(models, mean, space, memories, goals[0] * (1 - NEAR))
    counted = Counted(len(space.chips), space.combinations, goals[0])
    for step in STEPS[:2] if quick else STEPS:
        before = state.left()
        if len(before):
            watch(f"{step}: {len(before):,} chips")
            state.run(step)
        left = state.left()
        counted.closed[step] = len(before) - len(left)
        if step == "floors":
            counted.closed[step] += len(space.chips) - len(before)
            if len(left):
                lent = _most_promising(state, int(np.argmin(mean.score(state.lows()))), goals[1], solver)
                counted.closed[LENT] = int(lent and len(state.left()) < len(left))
    if solver is not None and not quick and len(left):
        watch(f"{LENT}: {len(left):,} chips")
        for at in left.tolist():
            _solved(state, at, goals[1], solver)
        still = state.left()
        counted.closed[LENT], left = counted.closed.get(LENT, 0) + len(left) - len(still), still
    if len(left):
        scores = mean.score(state.lows()[:, left])
        worst = int(np.argmin(scores))
        counted.least, counted.first_open = float(scores[worst]), space.chips.words(int(left[worst]))
    return counted


def _solved(state: _Open, at: int, goal: float, solver: Solver) -> None:
    """One chip by a solver of the caller's own."""
    values = solver(at)
    score = float(state.mean.score(np.array(values)[:, None])[0])
    require(score >= goal * (1 - NEAR), f"{state.chips.words(at)} scores {score!r}, which is below {goal!r}")
    for own, value in zip(state.bounds, values, strict=True):
        own[:, at] = np.maximum(own[:, at], value)


def _most_promising(state: _Open, at: int, goal: float, solver: Solver | None) -> bool:
    """All steps on one chip; whether it took the caller's solver."""
    one = np.array([at])
    alone = _Open(
        state.models, state.mean, state.cuts, state.chips.taken(one), state.memory[one], goal * (1 - NEAR),
        [own[:, one] for own in state.bounds],
    )  # fmt: skip
    for step in STEPS[1:]:
        alone.run(step)
        if not len(alone.left()):
            return False
    require(solver is not None, f"nothing shows that {state.chips.words(at)} scores {goal!r} or more")
    if solver is not None:
        _solved(state, at, goal, solver)
    return True
