"""A model on one chip by the reference path: every pass scheduled anew, the placement solver, no
bound and no memo.

What a search found is checked against it, a baseline chip is priced by it, and answers are written
from it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import chip_set
from phaze.cost.network_prices import NetworkPrices
from phaze.errors import InputError
from phaze.evaluate.best_first import BoundedCandidate, best_first, in_steps
from phaze.evaluate.lowered_pass import WorkTimes
from phaze.hardware.calibration import Constants
from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.technology import Technology
from phaze.placement.answer import document_of, require_true
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.shortage import Shortage, shortage_of
from phaze.placement.solve import OpenPlacement, fastest_at
from phaze.schedule.solve import PartMemo, Scheduler
from phaze.search.energy import COMPONENTS, LayerJoules, OperatorJoules, layer_joules, plan_joules
from phaze.search.evaluation import BARELY
from phaze.search.exact_layers import ExactLayers, ScheduleMemo, exact_layers
from phaze.search.objective import Objective, Rates
from phaze.search.problem import has_plan, pattern_of, problem_of
from phaze.search.rank_graph import DEGREES, RankGraph
from phaze.search.rates import chip_rates
from phaze.search.task import Configuration, ModelTask, on_all_devices

Floats = NDArray[np.float64]
Choose = Callable[[PlacementProblem, NetworkPrices], Plan | None]


@dataclass(frozen=True, slots=True)
class ReferenceLayers:
    """The layers of one graph on one chip; joules if asked."""

    exact: ExactLayers
    constants: Constants
    joules: tuple[LayerJoules, ...]


@dataclass(frozen=True, slots=True)
class PlacedConfiguration:
    """One configuration of a model on a chip: the problem at the plan's stage of ZeRO, the plan,
    and joules of a batch by component."""

    problem: PlacementProblem
    plan: Plan | None
    joules: Floats

    @property
    def dynamic_j(self) -> float:
        """Joules of a batch without static ones."""
        return float(self.joules.sum())

    @property
    def batch_s(self) -> float:
        """Seconds of a batch; infinite without a plan."""
        return float("inf") if self.plan is None else self.plan.batch_s


def energy_table(chip: Chip) -> Technology:
    """The energies of a chip's technology."""
    figures = estimates_of(chip)
    if figures is None:
        raise InputError("chip", f"{chip.name} names no technology", "choose a chip that does")
    return figures.technology


def layers_on(
    task: ModelTask,
    graph: int,
    chip: Chip,
    table: Technology | None,
    remembered: tuple[ScheduleMemo, bytes] | None = None,
    scheduler: Scheduler = "exact",
    costs: WorkTimes | None = None,
    operators: OperatorJoules | None = None,
) -> ReferenceLayers:
    """The layers of one graph on a chip; ``remembered`` are schedules and the graph's name in them,
    where there is no time to find them anew, ``costs`` what its works take and ``operators`` their
    joules, where that is known."""
    rank_graph, constants = task.graphs[graph], task.setting(chip).constants
    memo, name = (ScheduleMemo(scheduler=scheduler), b"") if remembered is None else remembered
    arrays = chip_set([chip])
    exact = exact_layers(rank_graph, name, arrays, constants, memo, costs)
    joules = (
        ()
        if table is None
        else layer_joules(rank_graph, arrays, constants, table, exact.spreads, operators)
    )
    return ReferenceLayers(exact, constants, joules)


def placed_on(
    task: ModelTask,
    configuration: Configuration,
    layers: ReferenceLayers,
    hbm_bytes: float,
    table: Technology | None,
    below_s: float = np.inf,
    choose: Choose | None = None,
) -> PlacedConfiguration:
    """The plan that is chosen for one configuration at each stage of ZeRO, the fastest of any kind
    if nothing else is said; without one where nothing fits or nothing takes less than
    ``below_s``."""
    problem = problem_of(task, configuration, layers.exact.times, hbm_bytes)
    fastest = (
        fastest_at(problem, configuration.zeros, task.prices, below_s)
        if choose is None
        else _chosen(task, configuration, problem, choose)
    )
    joules = np.zeros(len(COMPONENTS))
    if fastest is None:
        return PlacedConfiguration(problem, None, joules)
    if table is not None:
        joules = plan_joules(task, configuration, *fastest, layers.joules, table)
    return PlacedConfiguration(*fastest, joules)


def _chosen(
    task: ModelTask, configuration: Configuration, problem: PlacementProblem, choose: Choose
) -> tuple[PlacementProblem, Plan] | None:
    """The fastest of the plans that are chosen at each stage of ZeRO, of equals at the least."""
    at_zeros = [problem.at_zero(zero) for zero in configuration.zeros]
    plans = [
        (problem_at_zero, choose(problem_at_zero, task.prices)) for problem_at_zero in at_zeros
    ]
    plans_there = [(problem_at_zero, plan) for problem_at_zero, plan in plans if plan is not None]
    return min(plans_there, key=lambda choice: choice[1].batch_s, default=None)


def _device_floor(task: ModelTask, graph: RankGraph, layers: ReferenceLayers) -> float:
    """What a batch of a graph takes at the least where no device ever waits."""
    times = layers.exact.times
    return (
        float(on_all_devices(task, graph, times.forward_s + times.backward_s)[0])
        / task.training.devices
    )


def value_on(
    task: ModelTask, chip: Chip, objective: Objective, costs: Sequence[WorkTimes] | None = None
) -> float:
    """The least value of a model on a chip with its own memory, over all its configurations;
    infinite if none fits. ``costs``: what the works of each graph take there, where that is
    known."""
    layers = OpenLayers(
        task, chip, energy_table(chip) if objective.needs_energy else None, costs=costs
    )
    offer = best_offer(
        layers, chip_rates(objective, chip, task.training.devices), chip.hbm.size_bytes
    )
    return float("inf") if offer is None else offer.value


@dataclass(frozen=True, slots=True)
class Offer:
    """A plan of a model on a chip, the configuration that it runs, its stage of ZeRO, and its value
    under the objective."""

    configuration: Configuration
    plan: Plan
    zero: int
    value: float


class OpenLayers:
    """The layers of the graphs of a model on one chip, each computed when it is requested; joules
    where a ``table`` of energies is given; ``parts`` keeps the answers of schedules, ``costs`` are
    what the works of each graph take, where that is known."""

    def __init__(
        self,
        task: ModelTask,
        chip: Chip,
        table: Technology | None,
        parts: PartMemo | None = None,
        costs: Sequence[WorkTimes] | None = None,
    ) -> None:
        self.task, self.chip, self.table, self.parts = task, chip, table, parts
        self.costs: Sequence[WorkTimes | None] = (
            [None] * len(task.graphs) if costs is None else costs
        )
        self._exact: dict[int, ReferenceLayers] = {}
        self._proved: dict[int, ReferenceLayers] = {}

    def exact(self, graph: int) -> ReferenceLayers:
        """Every pass of a graph scheduled."""
        if graph not in self._exact:
            memo = ScheduleMemo(parts=self.parts), b""
            self._exact[graph] = layers_on(
                self.task, graph, self.chip, self.table, memo, costs=self.costs[graph]
            )
        return self._exact[graph]

    def proved(self, graph: int) -> ReferenceLayers | None:
        """What lists and duals prove of a graph at once; None where a formula gives it, or where
        energies, which depend on the schedules, are wanted."""
        if self.table is not None or graph in self._exact or self.task.graphs[graph].has_formula:
            return None
        if graph not in self._proved:
            listed = layers_on(
                self.task, graph, self.chip, None, scheduler="list", costs=self.costs[graph]
            )
            least = replace(listed.exact, times=listed.exact.proved)
            self._proved[graph] = replace(listed, exact=least)
        return self._proved[graph]

    def least_s(
        self, configuration: Configuration, hbm_bytes: float, choose: Choose | None
    ) -> float:
        """What no batch of a configuration undercuts, as far as that shows before schedules are
        solved; infinite where nothing fits. Batch times never fall with those of layers."""
        graph, least = configuration.graph, self.proved(configuration.graph)
        if least is not None:
            return placed_on(
                self.task, configuration, least, hbm_bytes, None, np.inf, choose
            ).batch_s
        if self.table is not None:
            return 0.0
        return _device_floor(self.task, self.task.graphs[graph], self.exact(graph)) * (1 - BARELY)


def _every_configuration(_: Configuration) -> bool:
    return True


def best_offer(
    layers: OpenLayers,
    rates: Rates,
    hbm_bytes: float,
    choice: Callable[[Configuration], Choose | bool] = _every_configuration,
    floor_s: Callable[[int], float] = lambda _: 0.0,
    last_s: float = np.inf,
) -> Offer | None:
    """The plan of a model with the least value on a chip with a memory; ``choice`` says whether a
    configuration is placed, and how if not by the fastest plan. None where nothing fits, or nothing
    within ``last_s``, which counts where energy does not.

    Configurations are examined best bound first: by ``floor_s``, what no batch of a graph
    undercuts, then by lists and duals (:meth:`OpenLayers.least_s`), then by their placement problem
    in the memory that there is; schedules are solved only where one may still be the best."""
    task = layers.task
    offers = list[tuple[float, int, Offer, PlacementProblem]]()

    def below_s() -> float:
        if layers.table is not None:
            return np.inf
        useful_s = float(rates.last_s(min(row[0] for row in offers), 0.0)) if offers else np.inf
        return min(last_s, useful_s) * (1 + BARELY)

    def offer(number: int, placed: PlacedConfiguration) -> None:
        if placed.plan is not None:
            value = float(rates.value(np.asarray(placed.batch_s), placed.dynamic_j))
            chosen = Offer(task.configurations[number], placed.plan, placed.problem.zero, value)
            offers.append((value, number, chosen, placed.problem))

    def limits() -> tuple[float, float]:
        return min((row[2].plan.batch_s for row in offers), default=np.inf), below_s()

    def place(number: int, choose: Choose | None, least_s: float) -> Iterator[BoundedCandidate]:
        configuration = task.configurations[number]
        exact = layers.exact(configuration.graph)
        if choose is not None or layers.table is not None:
            hbm = hbm_bytes, layers.table, below_s(), choose
            offer(number, placed_on(task, configuration, exact, *hbm))
            return
        problem = problem_of(task, configuration, exact.exact.times, hbm_bytes)
        placement = OpenPlacement(problem, configuration.zeros, task.prices)

        def solve(limit_s: float) -> bool:
            fastest = placement.fastest(limit_s)
            if fastest is not None:
                offer(number, PlacedConfiguration(*fastest, np.zeros(len(COMPONENTS))))
            return fastest is not None

        yield in_steps(max(least_s, placement.bound_s), (number, 2), limits, solve)

    def bound(number: int, choose: Choose | None, least_s: float) -> list[BoundedCandidate]:
        sharper_s = max(least_s, layers.least_s(task.configurations[number], hbm_bytes, choose))
        return [BoundedCandidate(sharper_s, (number, 1), partial(place, number, choose))]

    floors_s: dict[int, float] = {}
    candidates = []
    for number, configuration in enumerate(task.configurations):
        chosen = choice(configuration)
        if chosen is False:
            continue
        if configuration.graph not in floors_s:
            floors_s[configuration.graph] = floor_s(configuration.graph)
        choose = None if isinstance(chosen, bool) else chosen
        candidates.append(
            BoundedCandidate(
                floors_s[configuration.graph], (number, 0), partial(bound, number, choose)
            )
        )
    # What fits into no memory has an infinite bound.
    best_first(candidates, lambda least_s: least_s > below_s() or least_s == np.inf)
    if not offers:
        return None
    _, _, best, problem = min(offers, key=lambda row: row[:2])
    require_true(problem, document_of(best.plan), task.prices)
    return best


def way_of(task: ModelTask, row: Mapping[str, object]) -> Configuration | None:
    """The configuration that a model's table in a result names."""
    wanted = (row["microbatch"], row["tensor"], row["recompute"])
    for configuration in task.configurations:
        graph = task.graphs[configuration.graph]
        if (graph.microbatch, graph.width, configuration.recompute) != wanted or row[
            "zero"
        ] not in configuration.zeros:
            continue
        spread, attention = graph.model.sequence_parallel, graph.attention
        degrees = [
            row.get(key, usual) == getattr(graph.model, key) for key, usual in DEGREES.items()
        ]
        if not all(degrees) or row.get("shard", 0) != configuration.shard:
            continue
        if spread == row.get("sequence_parallel", spread) and attention == row.get(
            "attention", attention
        ):
            return configuration
    return None


def least_shortage(task: ModelTask, hbm_bytes: float) -> tuple[float, Shortage] | None:
    """What the most frugal configuration of a model lacks in a memory; None if one fits."""
    shortages: list[tuple[float, Shortage]] = []
    for configuration in task.configurations:
        if has_plan(task, configuration, hbm_bytes):
            return None
        shortage = shortage_of(pattern_of(task, configuration, hbm_bytes), task.prices)
        stage = shortage.tightest
        shortages.append((float("inf") if stage is None else stage.memory.total_bytes, shortage))
    return min(shortages, key=lambda entry: entry[0])
