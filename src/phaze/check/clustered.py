"""A model under rules cluster: its answer, exactly, and what no plan of it undercuts.

floors      no product beats its roofline; plans by what no stage undercuts
rooflines   and plans of equal blocks by how many of them each stage has time and memory for
mappings    every product by its best mapping
plans       of equal blocks, each exactly
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .certified import PLAN, plan_batch
from .chips import Chips
from .energy import Objective, prices_of
from .job import Job, job_of
from .labels import least_of_row
from .layers import RunGraph, layer_joules, layer_seconds, run_graph, works_of
from .operators import Constants, Costs, constants_of
from .plans import StageBytes, plan_joules
from .reading import cover, listed, only, require, whole
from .rows import Space
from .shapes import Chipwise, Spent, least_batches

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Way:
    """A configuration: its graph, recompute, stages of ZeRO and ranks that share out state, 0: all."""

    graph: int
    recompute: str
    zeros: tuple[int, ...]
    shard: int = 0


@dataclass(slots=True)
class ClusterModel:
    """A model of the problem with its graphs and configurations; ``fan_out`` of chips of clusters, ``objective`` where
    not time alone counts."""

    name: str
    job: Job
    constants: Constants
    graphs: tuple[RunGraph, ...]
    ways: tuple[Way, ...]
    memories: tuple[int, ...]
    fan_out: int
    objective: Objective | None = None
    spaces: dict[tuple[int, int], list[Space]] = field(default_factory=dict)

    @property
    def steps(self) -> tuple[str, ...]:
        return "floors", "rooflines", "mappings", "plans"

    @property
    def configurations(self) -> int:
        return len(self.ways)

    def _links(self, chips: Chips) -> Floats:
        """Of the innermost level; 0: the network's own."""
        return np.zeros(len(chips)) if chips.of_cores else chips.links

    def _seconds(
        self, graph: RunGraph, chips: Chips, mapped: bool, schedules: Any = None
    ) -> list[tuple[Integers, Chipwise]]:
        """The layers of a graph on chips, by groups that share a network; ``schedules`` of an answer's."""
        prices = None
        if self.objective is not None and not chips.of_cores:
            prices = prices_of(chips, self.objective.space)
        costs, works = Costs(chips, self.constants, mapped, "all", self.fan_out, prices), set(works_of(graph))
        spread = {work: costs.seconds(work) for work in works}
        joules = {work: costs.joules(work) for work in works if prices is not None}
        links, rate, found = self._links(chips), chips.hbm_bandwidth * self.constants.vector_hbm_share, []
        for value in np.unique(links).tolist():
            own = np.flatnonzero(links == value)
            some = {work: seconds[own] for work, seconds in spread.items()}
            job = self.job if value == 0 else self.job.at_links(value)
            times = layer_seconds(graph, job, some, rate[own], mapped, schedules)
            spent = None
            if prices is not None and self.objective is not None:
                rates = self.objective.rates(chips.taken(own), prices.taken(own))
                hbm = prices.hbm[own]
                layers = layer_joules(graph, job, {work: spent_j[own] for work, spent_j in joules.items()}, hbm)
                spent = Spent(layers, hbm, rates)
            found.append((own, Chipwise(times, rate[own], value, spent)))
        return found

    def answer(self, said: Any, chip: Chips, hbm_bytes: float) -> float:
        """The batch time of the model as the answer runs it on one chip, or its value, its plan checked."""
        more = (*(("schedules",) if self.job.stack.rule == "links" else ()), *(("shard",) if self.job.shards else ()))
        plan = only(said, "answer.models", (*PLAN, *more))
        at = whole(plan["graph"], "answer.graph", 0, len(self.graphs) - 1)
        ways = [way for way in self.ways if way.graph == at and way.recompute == plan["recompute"]]
        ways = [way for way in ways if way.shard == plan.get("shard", 0)]
        require(bool(ways), "answer: the problem has no such configuration")
        ((_, own),) = self._seconds(self.graphs[at], chip, True, plan.get("schedules"))
        job = self.job if own.links == 0 else self.job.at_links(own.links)
        zeros = [zero for way in ways for zero in way.zeros]
        hbm = hbm_bytes, float(own.rate[0])
        seconds = plan_batch(self.graphs[at], job, plan, (ways[0].recompute, zeros), hbm, own.times)
        if own.spent is None:
            return seconds
        joules = plan_joules(self.graphs[at], job, plan, own.spent.layers, float(own.spent.hbm[0]))
        return float(own.spent.rates.value(np.array([seconds]), np.array([joules]))[0])

    def _spaces(self, ways: Sequence[int], memory: int) -> list[Space]:
        """The configurations of one graph; what its stages hold is computed once for all."""
        spaces, parts = list[Space](), dict[tuple[str, int], StageBytes]()
        for own in (self.ways[way] for way in ways):
            graph = self.graphs[own.graph]
            modes = tuple(range(len(graph.names))) if own.recompute == "best" else (graph.names.index(own.recompute),)
            hbm = float(self.memories[memory])
            spaces.append(Space(graph, self.job, modes, own.zeros, hbm, own.shard, parts=parts))
        return spaces

    def bounds(self, chips: Chips, memory: Integers, goal: Floats, step: str, known: Floats) -> Floats:
        """Bounds on the batch time of every configuration, [configurations, chips]; 0 where ``known`` has the goal."""
        found = np.zeros(known.shape)
        for at, graph in enumerate(self.graphs):
            ways = [w for w, way in enumerate(self.ways) if way.graph == at]
            index = np.flatnonzero((known[ways] < goal).any(axis=0)) if ways else np.zeros(0, np.int64)
            if not len(index):
                continue
            some = chips.taken(index)
            for own, seconds in self._seconds(graph, some, step in ("mappings", "plans")):
                for place in np.unique(memory[index[own]]).tolist():
                    mine = np.flatnonzero(memory[index[own]] == place)
                    if (at, place) not in self.spaces:
                        self.spaces[at, place] = self._spaces(ways, place)
                    here = index[own[mine]]
                    table = np.ix_(np.array(ways), here)
                    found[table] = least_batches(
                        self.spaces[at, place],
                        seconds.taken(mine),
                        goal[here],
                        known[table],
                        step != "floors",
                        least_of_row if step == "plans" else None,
                    )
        return found


def cluster_model(
    table: Mapping[str, Any], graphs: Any, fusion: Any, fan_out: int, residency: bool, memories: Sequence[int],
    constants: Constants | None = None, objective: Objective | None = None,
) -> ClusterModel:  # fmt: skip
    """A model of the problem, its graphs fused as the certificate says; ``constants`` of a chip that is given."""
    stated = constants_of(table["training"]["constants"])
    cover(constants is not None or (stated.clock is None and stated.kernels is None), "measured chips of a space")
    machine = table["training"]["machine"]
    require(machine["residency"] is residency, "problem.json: it says two things of residency")
    job, own = job_of(table["training"]), listed(graphs, "graphs.json", len(table["graphs"]))
    run = [
        run_graph(graph, job, groups, residency)
        for graph, groups in zip(own, listed(fusion, "fusion", len(own)), strict=True)
    ]
    ways = []
    for way in listed(table["configurations"], "configurations"):
        keys = ("graph", "recompute", "zeros", *(("shard",) if job.shards else ()))
        found = only(way, "configurations", keys)
        zeros = tuple(whole(z, "zeros", 0, 3) for z in listed(found["zeros"], "zeros"))
        shard, at = whole(found.get("shard", 0), "shard"), whole(found["graph"], "configurations", 0, len(own) - 1)
        require(shard in (job.shards or (0,)), "configurations: they shard state over other ranks than shards")
        cover(shard == 0 or run[at].group == 1, "state sharded over some ranks with expert parallelism")
        ways.append(Way(at, str(found["recompute"]), zeros, shard))
        known = ways[-1].recompute == "best" or ways[-1].recompute in run[ways[-1].graph].names
        cover(known and bool(zeros), f"recompute {ways[-1].recompute}")
    require(bool(ways), "problem.json: a model has no configuration")
    return ClusterModel(
        str(table["name"]), job, constants or stated, tuple(run), tuple(ways), tuple(memories), fan_out, objective
    )
