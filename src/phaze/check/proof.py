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
from .operators import Constants, Costs, constants_of
from .placements import Cuts, cuts_of, least_batch
from .reading import cover, listed, only, require, whole
from .schedules import Multiplier, least, makespan, multiplier_of, order_of, series, shortest_path
from .space import AXES, Chips, Space
from .stages import Training, plan_seconds, training_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NEAR = 1e-9
STEPS = ("floors", "rooflines", "mappings", "ideals")
Entries = dict[tuple[int, int], tuple[Multiplier, ...]]
Watch = Callable[[str], None]


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
            if step == "ideals":
                counts = [{kind: float(values[chip]) for kind, values in cores.items()} for chip in range(len(chips))]
                paths = [shortest_path(order, part, one[:, i], spread[:, i], own) for i, own in enumerate(counts)]
                credits = np.maximum(credits, np.array(paths))
            found[which, layer] += credits
    return found[0], found[1]


@dataclass(slots=True)
class Counted:
    """How many chips each step closed, and the seconds that none is shown to undercut."""

    chips: int
    combinations: int
    least_s: float = 0.0
    closed: dict[str, int] = field(default_factory=dict)
    first_open: str = ""


def _bounds(
    model: Model, cuts: Sequence[Cuts], chips: Chips, goal: Floats, step: str, only_ways: NDArray[np.bool_]
) -> Floats:
    """Bounds on the batch time of every configuration, [ways, chips]; infinite where ``only_ways`` says closed."""
    found = np.full(only_ways.shape, np.inf)
    for at in range(len(model.graphs)):
        ways = [w for w, (graph, _) in enumerate(model.ways) if graph == at]
        index = np.flatnonzero(only_ways[ways].any(axis=0)) if ways else np.zeros(0, np.int64)
        if not len(index):
            continue
        some = chips if len(index) == len(chips) else chips.taken(index)
        costs = Costs(some, model.constants, model.level, step in ("mappings", "ideals"))
        forward, backward = _layer_bounds(model, at, some, step, costs)
        for way in ways:
            mine = np.flatnonzero(only_ways[way][index])
            if len(mine):
                own = least_batch(cuts[way], forward[:, mine], backward[:, mine], goal[index[mine]], step == "floors")
                found[way, index[mine]] = own
    return found


def prove(
    model: Model, space: Space, hbm_bytes: float, goal_s: float, needed_s: float, watch: Watch, quick: bool = False
) -> Counted:
    """Every chip and configuration against ``goal_s``; refuses where the chip that looks best is not shown to take
    ``needed_s``. ``quick`` stops before mappings."""
    chips, goal = space.chips, goal_s * (1 - NEAR)
    cuts = [cuts_of(model.graphs[graph], model.training, again, hbm_bytes) for graph, again in model.ways]
    is_open = np.ones((len(model.ways), len(chips)), bool)
    counted = Counted(len(chips), space.combinations, goal_s)
    bounds, left = np.zeros(is_open.shape), np.arange(len(chips))
    for step in STEPS[:2] if quick else STEPS:
        if len(left):
            watch(f"{step}: {len(left):,} chips")
        before, own = len(left), is_open[:, left]
        bounds[:, left] = np.maximum(
            bounds[:, left], _bounds(model, cuts, chips.taken(left), np.full(before, goal), step, own)
        )
        is_open &= bounds < goal
        if step == "floors" and is_open.any():
            _most_promising(model, cuts, chips, needed_s * (1 - NEAR), int(np.argmin(bounds.min(axis=0))))
        left = np.flatnonzero(is_open.any(axis=0))
        counted.closed[step] = before - len(left)
    if len(left):
        worst = left[int(np.argmin(bounds[:, left].min(axis=0)))]
        counted.least_s, counted.first_open = float(bounds[:, worst].min()), chips.words(int(worst))
    return counted


def _most_promising(model: Model, cuts: Sequence[Cuts], chips: Chips, goal: float, at: int) -> None:
    """All steps on one chip."""
    some, is_open = chips.taken(np.array([at])), np.ones((len(model.ways), 1), bool)
    for step in STEPS[1:]:
        is_open &= _bounds(model, cuts, some, np.full(1, goal), step, is_open) < goal
        if not is_open.any():
            return
    require(False, f"nothing shows that {chips.words(at)} takes {goal!r} s or more")
