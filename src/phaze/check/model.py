"""A model of a problem: its answer, exactly, and what no plan of it undercuts.

floors      no product beats its roofline, schedules by credits; plans by what no stage undercuts
rooflines   and plans by how many layers each stage has time and memory for
mappings    every product by its best mapping
ideals      schedules that place operators on cores: by the shortest path over what can have been
            done
schedules   the same by all that can start next, where no solver of the caller's own is lent
plans       where schedules are formulas: plans of equal blocks or of a chain, each exactly
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .certified import checked_plan, plan_batch, plan_keys
from .chips import Boxes, Chips
from .energy import Goals, Objectives, Rates, Shown
from .exact_cuts import ExactRows
from .job import Job, job_of
from .layer_costs import WorkJoules, layer_joules, layer_seconds, works_of
from .layers import RunGraph, run_graph
from .operators import Constants, Costs, constants_of
from .passes import WorkSeconds
from .plan_bounds import least_batches
from .plan_classes import GraphParts, PlanSpace
from .plan_energy import BatchPrices, Spent, plan_joules
from .reading import cover, listed, only, require, whole
from .row_costs import Chipwise
from .silicon import Prices, prices_of
from .slots import RULES
from .technology import technology_of
from .works import Work

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class ModelConfiguration:
    """A graph, its recompute, stages of ZeRO and ranks that share out state, 0: all."""

    graph: int
    recompute: str
    zeros: tuple[int, ...]
    shard: int = 0


class ChipCosts:
    """Works on some chips: seconds spread over all cores and, where schedules place operators, on
    one core; joules."""

    def __init__(self, model: "Model", chips: Chips, mapped: bool) -> None:
        self.chips, self.constants = chips, model.constants
        self.rule = RULES[model.job.stack.rule]
        shares_hbm = self.rule.hbm and not isinstance(chips, Boxes)
        self.prices: Prices | None = None
        objectives = model.objectives
        if objectives is not None and objectives.of_energy:
            self.prices = prices_of(chips, technology_of(objectives.space["base"]))
        fixed = model.constants, mapped
        self._spread = Costs(
            chips, *fixed, "all", model.fan_out, self.prices, with_bytes=shares_hbm
        )
        if self.rule.paired:
            self._paired = Costs(chips, *fixed, "paired", model.fan_out, self.prices)
        if self.rule.one_core:
            self._one = Costs(
                chips, *fixed, "one core", model.fan_out, self.prices, with_bytes=shares_hbm
            )
        self._shares_hbm = shares_hbm

    def _costs(self, work: Work) -> Costs:
        """Of a work on all cores; of an operator of both kinds, where a rule says so, on as many of
        each."""
        return self._paired if self.rule.paired and work.core == "both" else self._spread

    def hbm(self, work: Work, shorter: Floats) -> Floats:
        """Seconds of its bytes at the whole bandwidth, the least of both ways to run, and no more
        than the shorter of these."""
        either = self._spread.hbm_seconds(work), self._one.hbm_seconds(work)
        products, lanes = (np.minimum(*each) for each in zip(*either, strict=True))
        return np.asarray(np.minimum(shorter, products + lanes))

    def seconds(self, works: Sequence[Work], effort: int) -> WorkSeconds:
        """Of all works on all chips; ``effort``: what is searched of schedules."""
        spread, one, hbm = dict[Work, Floats](), dict[Work, Floats](), dict[Work, Floats]()
        for work in works:
            if work in spread:
                continue
            spread[work] = self._costs(work).seconds(work)
            if self.rule.one_core:
                one[work] = self._one.seconds(work)
            if self._shares_hbm:
                hbm[work] = self.hbm(work, np.minimum(one[work], spread[work]))
        cores = {"tensor": self.chips.clusters, "vector": self.chips.vector_units}
        return WorkSeconds(spread, one, hbm, cores, len(self.chips), effort)

    def joules(self, works: Sequence[Work]) -> WorkJoules | None:
        """Of all works on all chips; none where nothing counts them."""
        if self.prices is None:
            return None
        spread = {work: self._costs(work).joules(work) for work in set(works)}
        one = {work: self._one.joules(work) for work in spread} if self.rule.one_core else {}
        return WorkJoules(spread, one, self.prices.sent, self.prices.hbm)


@dataclass(slots=True)
class Model:
    """A model of the problem with its graphs and configurations; ``fan_out`` of chips of clusters,
    ``objectives``: what counts, time alone where nothing else is stated; ``own_links``: those of a
    chip are the innermost level of the network; ``parts`` by graph, ``spaces`` by graph and
    memory."""

    name: str
    job: Job
    constants: Constants
    graphs: tuple[RunGraph, ...]
    ways: tuple[ModelConfiguration, ...]
    memories: tuple[int, ...]
    fan_out: int
    objectives: Objectives | None = None
    own_links: bool = False
    parts: list[GraphParts] = field(init=False)
    spaces: dict[tuple[int, int], list[PlanSpace]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.parts = [GraphParts(graph, self.job) for graph in self.graphs]

    @property
    def placed(self) -> bool:
        """Whether its schedules place operators on cores."""
        return self.job.stack.on_cores

    @property
    def steps(self) -> tuple[str, ...]:
        last = ("ideals", "schedules") if self.placed else ("plans",)
        return "floors", "rooflines", "mappings", *last

    @property
    def kinds(self) -> tuple[str, ...]:
        """What counts."""
        return ("throughput",) if self.objectives is None else self.objectives.kinds

    def counting(self, kind: str) -> "Model":
        """The model where that alone counts."""
        if self.objectives is None:
            return self
        return replace(self, objectives=replace(self.objectives, kinds=(kind,)))

    @property
    def configurations(self) -> int:
        return len(self.ways)

    def _links(self, chips: Chips) -> Floats:
        """Of the innermost level; 0: the network's own."""
        return chips.links if self.own_links else np.zeros(len(chips))

    def _rates(self, chips: Chips, hbm_bytes: Floats) -> tuple[Rates, ...]:
        """Rates of what counts, of chips with these memories."""
        if self.objectives is None:
            return (Rates(np.ones(len(chips)), 0.0, 0),)
        return self.objectives.rates(chips, hbm_bytes)

    def _layers(
        self,
        graph: RunGraph,
        costs: ChipCosts,
        rates: tuple[Rates, ...],
        exact: bool,
        effort: int,
        schedules: Any = None,
    ) -> Iterator[tuple[Integers, Chipwise]]:
        """The layers of a graph on chips, by groups that share a network; ``schedules`` of an
        answer's."""
        works, chips = works_of(graph), costs.chips
        times, joules = costs.seconds(works, effort), costs.joules(works)
        links, rate = self._links(chips), chips.hbm_bandwidth * self.constants.vector_hbm_share
        for value in np.unique(links).tolist():
            index = np.flatnonzero(links == value)
            job = self.job if value == 0 else self.job.at_links(value)
            seconds = layer_seconds(graph, job, times.taken(index), rate[index], exact, schedules)
            spent = None
            if joules is not None:
                prices = BatchPrices(joules.sent[index], joules.hbm[index])
                spent = Spent(layer_joules(graph, job, joules.taken(index), schedules), prices)
            of_group = tuple(kind.taken(index) for kind in rates)
            yield index, Chipwise(seconds, rate[index], value, of_group, spent)

    def answer(self, stated: Any, chip: Chips, hbm_bytes: float) -> tuple[float, ...]:
        """What the model takes as the answer runs it on one chip, of everything that counts, its
        plan checked."""
        keys = plan_keys(self.job, [zero for way in self.ways for zero in way.zeros])
        table = only(stated, "answer.models", keys)
        number = whole(table["graph"], "answer.graph", 0, len(self.graphs) - 1)
        wanted = number, table["recompute"], table.get("shard", 0)
        ways = [way for way in self.ways if (way.graph, way.recompute, way.shard) == wanted]
        require(bool(ways), "answer: the problem has no such configuration")
        graph, costs = self.graphs[number], ChipCosts(self, chip, True)
        rates = self._rates(chip, np.array([hbm_bytes]))
        schedules = table.get("schedules")
        ((_, layers),) = self._layers(graph, costs, rates, True, 0, schedules)
        job = self.job if layers.links == 0 else self.job.at_links(layers.links)
        zeros = [zero for way in ways for zero in way.zeros]
        hbm = hbm_bytes, float(layers.rate[0])
        plan = checked_plan(graph, job, table, (ways[0].recompute, zeros))
        seconds, joules = plan_batch(graph, job, plan, hbm, layers.times), 0.0
        if layers.spent is not None:
            spent = layers.spent
            joules = plan_joules(graph, job, plan.shape, plan.stages, spent.layers, spent.prices)
        pair = np.array([seconds]), np.array([joules])
        return tuple(float(rate.value(*pair)[0]) for rate in layers.rates)

    def spaces_of(self, graph: int, memory: int) -> list[PlanSpace]:
        """The configurations of one graph with a memory."""
        if (graph, memory) not in self.spaces:
            names, hbm_bytes = self.graphs[graph].names, float(self.memories[memory])
            spaces = []
            for way in (way for way in self.ways if way.graph == graph):
                modes = (
                    tuple(range(len(names)))
                    if way.recompute == "best"
                    else (names.index(way.recompute),)
                )
                spaces.append(PlanSpace(self.parts[graph], modes, way.zeros, hbm_bytes, way.shard))
            self.spaces[graph, memory] = spaces
        return self.spaces[graph, memory]

    def bounds(
        self, chips: Chips, memory: Integers, goals: Goals, step: str, known: Shown
    ) -> Shown:
        """What is shown of every configuration on some chips beyond what is known; nothing where
        that has the goals."""
        shown = Shown(np.zeros(known.values.shape), known.corners.copy())
        exact, last = step not in self.steps[:2], step in self.steps[3:]
        sharp, effort = step != self.steps[0], max(0, self.steps.index(step) - 2)
        whole_costs = ChipCosts(self, chips, exact)
        sizes = np.array(self.memories, np.float64)[memory]
        for number, graph in enumerate(self.graphs):
            ways = np.array(
                [place for place, way in enumerate(self.ways) if way.graph == number], np.int64
            )
            missing = goals.open[None] & ~known.corners[ways]
            index = np.flatnonzero(missing.any(axis=(0, 1)))
            if not len(index):
                continue
            costs = whole_costs
            if len(index) < len(chips):
                costs = ChipCosts(self, chips.taken(index), exact)
            rates = self._rates(costs.chips, sizes[index])
            for group, layers in self._layers(graph, costs, rates, exact, effort):
                for place in np.unique(memory[index[group]]).tolist():
                    mine = np.flatnonzero(memory[index[group]] == place)
                    here = index[group[mine]]
                    spaces = self.spaces_of(number, place)
                    # Where one table serves all rows it is no dearer than what bounds them.
                    one_table = sharp and all(space.ends_alone for space in spaces)
                    more = least_batches(
                        spaces,
                        layers.taken(mine),
                        goals.taken(here),
                        Shown(known.values[ways], known.corners[ways]).taken(here),
                        sharp,
                        ExactRows if last or one_table else None,
                    )
                    shown.sharpen(ways, here, more)
        return shown


def _configurations(table: Any, job: Job, graphs: Sequence[RunGraph]) -> list[ModelConfiguration]:
    """The configurations that a problem lists."""
    ways = []
    for row in listed(table, "configurations"):
        keys = ("graph", "recompute", "zeros", *(("shard",) if job.shards else ()))
        stated = only(row, "configurations", keys)
        zeros = tuple(whole(zero, "zeros", 0, 3) for zero in listed(stated["zeros"], "zeros"))
        number = whole(stated["graph"], "configurations", 0, len(graphs) - 1)
        shard = whole(stated.get("shard", 0), "shard")
        recompute, graph = str(stated["recompute"]), graphs[number]
        require(
            shard in (job.shards or (0,)),
            "configurations: they shard state over other ranks than shards",
        )
        require(
            shard == 0 or graph.group == 1,
            "configurations: they shard state over some ranks beside shared experts",
        )
        cover(bool(zeros) and recompute in ("best", *graph.names), f"recompute {recompute}")
        ways.append(ModelConfiguration(number, recompute, zeros, shard))
    require(bool(ways), "problem.json: a model has no configuration")
    return ways


def model_of(
    table: Mapping[str, Any], graphs: Any, fusion: Any, multipliers: Any, residency: bool,
    memories: Sequence[int],
    fan_out: int = 0, constants: Constants | None = None, objectives: Objectives | None = None,
    own_links: bool = False,
) -> Model:  # fmt: skip
    """A model of the problem, its graphs fused as the certificate says, or not at all;
    ``constants`` of a chip that is given."""
    stated = constants_of(table["training"]["constants"])
    clocked = constants is None and stated.clock is not None
    require(not clocked, "constants.clock_hz: no chip of a space was measured")
    machine = table["training"]["machine"]
    require(machine["residency"] is residency, "problem.json: it says two things of residency")
    job, tables = job_of(table["training"]), listed(graphs, "graphs.json", len(table["graphs"]))
    groups: Sequence[Any] = [None] * len(tables)
    entries: Sequence[Any] = [[]] * len(tables)
    if fusion is not None:
        groups = listed(fusion, "fusion", len(tables))
        entries = listed(multipliers, "multipliers", len(tables))
    run = []
    for graph, group, entry in zip(tables, groups, entries, strict=True):
        run.append(run_graph(graph, job, group, entry, residency))
    ways = _configurations(table["configurations"], job, run)
    return Model(
        str(table["name"]), job, constants or stated, tuple(run), tuple(ways), tuple(memories),
        fan_out, objectives,
        own_links,
    )  # fmt: skip
