"""A model under the rules icml24: its answer, exactly, and what no schedule and placement of it undercuts.

floors      no product beats its roofline, schedules by credits, placement by floors
rooflines   and placement by its table
mappings    every product by its best mapping
ideals      schedules by the shortest path over what can have been done
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .certified import PUBLISHED_PLAN, plan_batch
from .chips import Chips
from .graphs import Graph, Pass, graph_of
from .job import Job
from .network import Network, collective, neighbours, network_of
from .operators import Constants, Costs, constants_of
from .placements import Cuts, cuts_of, least_batch, stages_of
from .plan_graph import LayerSeconds
from .reading import cover, listed, only, require, whole
from .schedules import Multiplier, ideals_of, least, makespan, multiplier_of, order_of, series, shortest_path
from .stages import published_job
from .works import Work

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Entries = dict[tuple[int, int], tuple[Multiplier, ...]]


class Ways:
    """Works on chips of cores: seconds on one core, and spread over all; a fused one over as many of either kind."""

    def __init__(self, chips: Chips, constants: Constants, network: Network, mapped: bool) -> None:
        self.chips, self.network = chips, network
        self.one = Costs(chips, constants, mapped, "one core")
        self.spread, self.paired = Costs(chips, constants, mapped), Costs(chips, constants, mapped, "paired")

    def both(self, works: Sequence[Work]) -> tuple[Floats, Floats]:
        """Seconds on one core and spread, [works, chips]."""
        one, spread = np.zeros((len(works), len(self.chips))), np.zeros((len(works), len(self.chips)))
        for at, work in enumerate(works):
            if work.collective is not None:
                kind, size, group, *_ = work.collective
                members = neighbours(self.network, group)
                one[at] = spread[at] = collective(self.network, kind, members, np.array([float(size)]), group)
            else:
                one[at] = self.one.seconds(work)
                spread[at] = (self.paired if work.core == "both" else self.spread).seconds(work)
        return one, spread


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the problem with its graphs, configurations and, by graph, the multipliers of its passes; ``cuts`` by
    configuration and memory."""

    name: str
    job: Job
    constants: Constants
    network: Network
    graphs: tuple[Graph, ...]
    ways: tuple[tuple[int, str], ...]
    entries: tuple[Entries, ...]
    cuts: tuple[tuple[Cuts, ...], ...]

    @property
    def steps(self) -> tuple[str, ...]:
        return "floors", "rooflines", "mappings", "ideals"

    @property
    def configurations(self) -> int:
        return len(self.ways)

    def answer(self, said: Any, chip: Chips, hbm_bytes: float) -> float:
        """The batch time of the model as the answer runs it, every schedule and stage checked."""
        plan = only(said, "answer.models", (*PUBLISHED_PLAN, "schedules"))
        at = whole(plan["graph"], "answer.graph", 0, len(self.graphs) - 1)
        require((at, plan["recompute"]) in self.ways, "answer: the problem has no such configuration")
        graph, costs = self.graphs[at], Ways(chip, self.constants, self.network, True)
        cores = {"tensor": int(chip.clusters[0]), "vector": int(chip.vector_units[0])}
        times = np.zeros((2, len(graph.layers), 1))
        nothing = np.zeros_like(times[0])
        schedules = listed(plan["schedules"], "answer.schedules", len(graph.layers))
        for layer, which, own in _passes(graph):
            one, spread = (found[:, 0] for found in costs.both(own.works))
            slots, where = listed(schedules[layer], "answer.schedules", 2)[which], f"schedules[{layer}][{which}]"
            times[which, layer] = makespan(own, slots, one, spread, cores, where)
        again = np.stack([nothing, times[0]])
        seconds = LayerSeconds(times[0], times[1], again, nothing, True)
        return plan_batch(graph, self.job, plan, (plan["recompute"], [0]), (hbm_bytes, np.inf), seconds)

    def bounds(self, chips: Chips, memory: Integers, goal: Floats, step: str, known: Floats) -> Floats:
        """Bounds on the batch time of every configuration, [ways, chips]; 0 where ``known`` reaches the goal."""
        found, mapped = np.zeros(known.shape), step in ("mappings", "ideals")
        whole = Ways(chips, self.constants, self.network, mapped)
        for at in range(len(self.graphs)):
            ways = [w for w, (graph, _) in enumerate(self.ways) if graph == at]
            index = np.flatnonzero((known[ways] < goal).any(axis=0)) if ways else np.zeros(0, np.int64)
            if not len(index):
                continue
            some, costs = chips, whole
            if len(index) < len(chips):
                some = chips.taken(index)
                costs = Ways(some, self.constants, self.network, mapped)
            forward, backward = self.layer_bounds(at, some, step, costs)
            for way in ways:
                for place in np.unique(memory[index]).tolist():
                    mine = np.flatnonzero((known[way, index] < goal[index]) & (memory[index] == place))
                    if len(mine):
                        times, goals = (forward[:, mine], backward[:, mine]), goal[index[mine]]
                        found[way, index[mine]] = least_batch(self.cuts[way][place], *times, goals, step == "floors")
        return found

    def layer_bounds(self, at: int, chips: Chips, step: str, costs: Ways) -> tuple[Floats, Floats]:
        """What no schedule of the layers of a graph undercuts, [layers, chips], both passes."""
        graph, found = self.graphs[at], np.zeros((2, len(self.graphs[at].layers), len(chips)))
        cores = {"tensor": chips.clusters, "vector": chips.vector_units}
        for layer, which, own in _passes(graph):
            one, spread = costs.both(own.works)
            order, entries = order_of(own), self.entries[at].get((layer, which), ())
            for part in series(order):
                credits = least(order, [part], one, spread, cores, entries)
                ideals = ideals_of(order, part) if step == "ideals" and len(part) > 1 else None
                if ideals is not None:
                    counts = [{kind: float(values[i]) for kind, values in cores.items()} for i in range(len(chips))]
                    paths = [
                        shortest_path(order, part, ideals, one[:, i], spread[:, i], each)
                        for i, each in enumerate(counts)
                    ]
                    credits = np.maximum(credits, np.array(paths))
                found[which, layer] += credits
        return found[0], found[1]


def _passes(graph: Graph) -> list[tuple[int, int, Pass]]:
    return [(at, w, own) for at, la in enumerate(graph.layers) for w, own in enumerate((la.forward, la.backward))]


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


def model_of(
    table: Mapping[str, Any], graphs: Any, fusion: Any, multipliers: Any, residency: bool, memories: Sequence[int]
) -> Model:
    """A model of the problem, its graphs fused and its multipliers as the certificate says."""
    job, machine = published_job(table["training"]), table["training"]["machine"]
    constants = constants_of(table["training"]["constants"])
    cover(constants.clock is None and constants.kernels is None, "measured chips of a space")
    require(machine["residency"] is residency, "problem.json: it says two things of residency")
    own = listed(graphs, "graphs.json", len(table["graphs"]))
    fused = [
        graph_of(graph, groups, residency)
        for graph, groups in zip(own, listed(fusion, "fusion", len(own)), strict=True)
    ]
    ways = []
    for way in listed(table["configurations"], "configurations"):
        cover(way["recompute"] in ("none", "full", "best"), f"recompute {way['recompute']}")
        cover(list(way["zeros"]) == [0], "stages of ZeRO")
        ways.append((whole(way["graph"], "configurations", 0, len(own) - 1), str(way["recompute"])))
    entries = [
        _entries(graph, rows, "multipliers")
        for graph, rows in zip(fused, listed(multipliers, "multipliers", len(own)), strict=True)
    ]
    require(bool(ways), "problem.json: a model has no configuration")
    stages = [stages_of(graph, job) for graph in fused]
    cuts = [tuple(cuts_of(stages[graph], job, again, float(size)) for size in memories) for graph, again in ways]
    return Model(
        str(table["name"]), job, constants, network_of(machine["cluster"], "ideal"),
        tuple(fused), tuple(ways), tuple(entries), tuple(cuts),
    )  # fmt: skip
