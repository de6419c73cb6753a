"""A chip evaluated: exact schedules and exact placements, as far as its bounds leave a chance.

For each memory size, best bound first, and for each model its configurations, best bound first: the
layers' exact schedules, then the fastest plan, then its value (:mod:`phaze.search.objective`). A
configuration is left out when its bound is no better than the best value of the model so far, or
when with it the chip's score could not beat the cut-off. Where layers need schedules, duals come
first: a configuration that these already show to be too slow is not scheduled exactly. What was
left out keeps its bound, so that

    lower  =  least over memories of score( over models: least over configurations of the proved
           value or the bound )

is a lower bound on the chip's score whether or not it was evaluated to the end. Schedules that are
not proved count with their makespan for ``score``, and for ``lower`` with their bound and the least
energy of any schedule.
"""

from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.best_first import BoundedCandidate, best_first
from phaze.evaluate.layer_table import LayerTable, layer_works
from phaze.evaluate.lowered_pass import WorkTimes
from phaze.hardware.technology import Technology
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import fastest_at
from phaze.schedule.problem import ROUNDING
from phaze.search.bounds.model_bounds import DUAL, layer_bounds
from phaze.search.energy import LayerJoules, layer_joules, plan_joules
from phaze.search.evaluated import Evaluated, ModelRun
from phaze.search.exact_layers import ExactLayers, ScheduleMemo, exact_layers
from phaze.search.objective import Rates, Scale
from phaze.search.problem import problem_of
from phaze.search.task import ModelTask, SearchJob

Floats = NDArray[np.float64]
# How far above the last useful batch time plans are still considered.
BARELY = 1e-6


@dataclass(frozen=True, slots=True)
class PricedConfiguration:
    """What a batch takes under the fastest plan, and seconds that no plan can undercut."""

    batch_s: float
    dynamic_j: float
    lower_s: float


# No plan: infinitely slow, and so no bound above it.
NOTHING = PricedConfiguration(float("inf"), 0.0, float("inf"))


@dataclass(slots=True)
class ChipEvaluation:
    """One chip being evaluated: its layers by (model, graph), found when they are requested;
    ``rates`` are its own."""

    job: SearchJob
    scale: Scale
    rates: Rates
    chip: int
    arrays: ChipSet
    tasks: tuple[ModelTask, ...]
    network: int
    memo: ScheduleMemo
    energy: Technology | None = None
    layers: dict[tuple[int, int], ExactLayers] = field(default_factory=dict)
    bounded: dict[tuple[int, int], LayerTable] = field(default_factory=dict)
    joules: dict[tuple[int, int], tuple[LayerJoules, ...]] = field(default_factory=dict)
    works: dict[tuple[int, int], WorkTimes] = field(default_factory=dict)

    def _costs(self, model: int, graph: int) -> WorkTimes:
        """What the works of a graph take on the chip."""
        task, works = self.tasks[model], self.memo.works.get((model, graph, self.chip))
        if works is not None:
            return works
        if (model, graph) not in self.works:
            layers, constants = task.graphs[graph].layers, task.constants
            self.works[model, graph] = layer_works(layers, self.arrays, constants)
        return self.works[model, graph]

    def exact(self, model: int, graph: int) -> ExactLayers:
        """The layers of a graph on the chip."""
        key, task = (model, graph), self.tasks[model]
        if key not in self.layers:
            name = b"%d %d %d" % (self.network, *key)
            costs, constants = self._costs(model, graph), task.constants
            self.layers[key] = exact_layers(
                task.graphs[graph], name, self.arrays, constants, self.memo, costs
            )
        return self.layers[key]

    def _proved_quickly(self, model: int, graph: int) -> LayerTable | None:
        """What duals prove of the layers of a graph; None where that is no quicker than the exact
        schedules."""
        key, rank_graph = (model, graph), self.tasks[model].graphs[graph]
        if key in self.layers or rank_graph.has_formula or self.memo.scheduler != "exact":
            return None
        table = self.memo.duals.get((model, graph, self.chip), self.bounded.get(key))
        if table is None:
            costs = self._costs(model, graph)
            table = self.bounded[key] = layer_bounds(
                self.tasks[model], rank_graph, self.arrays, DUAL, costs=costs
            )
        return table

    def too_slow(self, model: int, configuration: int, hbm: int, below_s: float) -> bool:
        """Whether no plan takes less than ``below_s``, as far as that shows before any schedule is
        exact."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        proved = self._proved_quickly(model, chosen.graph) if below_s < float("inf") else None
        if proved is None:
            return False
        self.memo.placements += 1
        return (
            fastest_at(
                self.problem(model, configuration, hbm, proved), chosen.zeros, task.prices, below_s
            )
            is None
        )

    def problem(
        self, model: int, configuration: int, hbm: int, times: LayerTable
    ) -> PlacementProblem:
        """The placement problem of a configuration with a memory (its position in the job's
        list)."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        return problem_of(task, chosen, times, self.job.hbm_bytes[hbm])

    def plan(
        self, model: int, configuration: int, hbm: int, below_s: float = float("inf")
    ) -> tuple[PlacementProblem, Plan] | None:
        """The fastest plan of a configuration that takes less than ``below_s``, and its problem at
        its ZeRO stage."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        problem = self.problem(model, configuration, hbm, self.exact(model, chosen.graph).times)
        self.memo.placements += 1
        return fastest_at(problem, chosen.zeros, task.prices, below_s)

    def price(
        self, model: int, configuration: int, hbm: int, below_s: float = float("inf")
    ) -> PricedConfiguration:
        """A batch of a configuration with that memory, or that no plan takes less than ``below_s``.

        Where energy counts there is no limit: which of equally fast plans is found must not depend
        on it.
        """
        task = self.tasks[model]
        layers = self.exact(model, task.configurations[configuration].graph)
        limit = below_s if self.energy is None else float("inf")
        fastest = self.plan(model, configuration, hbm, limit)
        lower_s = limit if fastest is None else fastest[1].batch_s
        if layers.proved is not layers.times:
            # Some schedule is not proved: no plan with the bounds of all schedules is faster than
            # this.
            proved = fastest_at(
                self.problem(model, configuration, hbm, layers.proved),
                task.configurations[configuration].zeros,
                task.prices,
                limit,
            )
            lower_s = limit if proved is None else proved[1].batch_s
        if fastest is None:
            return replace(NOTHING, lower_s=lower_s)
        joules = (
            0.0
            if self.energy is None
            else self.plan_joules(model, configuration, *fastest, self.energy)
        )
        return PricedConfiguration(fastest[1].batch_s, joules, lower_s)

    def plan_joules(
        self,
        model: int,
        configuration: int,
        problem: PlacementProblem,
        plan: Plan,
        energy: Technology,
    ) -> float:
        """Joules of a batch beyond static power."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        key = (model, chosen.graph)
        if key not in self.joules:
            spreads, constants = self.exact(*key).spreads, task.constants
            self.joules[key] = layer_joules(
                task.graphs[chosen.graph], self.arrays, constants, energy, spreads
            )
        return float(plan_joules(task, chosen, problem, plan, self.joules[key], energy).sum())

    def model(
        self, model: int, hbm: int, bounds: Floats, floors: Floats, lowers: Floats, cut: float
    ) -> ModelRun | None:
        """The best configuration of one model; ``lowers[model]`` is raised to what was proved.
        None: the chip cannot win.

        ``bounds`` are on the value of each configuration, ``floors`` on the joules of each graph.
        """
        best: ModelRun | None = None
        lower = float("inf")
        rates = self.rates.at(hbm, 0)

        def best_value() -> float:
            return float("inf") if best is None else best.value

        def stop(bound: float) -> bool:
            if bound >= best_value():
                return True
            lowers[model] = min(lower, bound)
            return float(self.scale.score(lowers)) > cut

        def examine(configuration: int, bound: float) -> tuple[()]:
            nonlocal best, lower
            floor_j = float(floors[self.tasks[model].configurations[configuration].graph])
            last = (
                cut
                if len(lowers) == 1
                else float(self.scale.last(lowers, model, np.asarray(cut))) * (1 + BARELY)
            )
            useful = min(best_value(), last)
            below_s = (
                float(rates.last_s(useful, floor_j)) * (1 + BARELY)
                if useful < float("inf")
                else useful
            )
            if self.too_slow(model, configuration, hbm, below_s):
                priced = replace(NOTHING, lower_s=below_s)
            else:
                priced = self.price(model, configuration, hbm, below_s)
            value = float(rates.value(np.asarray(priced.batch_s), priced.dynamic_j))
            joules = (
                floor_j if priced.lower_s < priced.batch_s * (1 - ROUNDING) else priced.dynamic_j
            )
            proved = float(rates.value(np.asarray(priced.lower_s), joules))
            lower = min(lower, max(proved, bound))
            if value < best_value():
                best = ModelRun(configuration, priced.batch_s, priced.dynamic_j, value, lower)
            return ()

        candidates = [
            BoundedCandidate(float(bound), (number,), partial(examine, number))
            for number, bound in enumerate(bounds)
        ]
        least_left = best_first(candidates, stop)
        lowers[model] = min(lower, least_left)
        return None if best is None else replace(best, lower=float(lowers[model]))


def evaluate(
    evaluation: ChipEvaluation,
    bounds: list[Floats],
    floors: list[Floats],
    memories: list[int],
    cut: float,
) -> Evaluated:
    """The chip of ``evaluation``; ``bounds`` on values by model are [configurations, memories],
    ``floors`` on joules [graphs]."""
    best = Evaluated(evaluation.chip, memories[-1], float("inf"), float("inf"), ())
    lower = float("inf")
    starts = [np.array([b[:, memory].min() for b in bounds]) for memory in range(len(memories))]
    scores = [float(evaluation.scale.score(start)) for start in starts]
    for memory in sorted(range(len(memories)), key=lambda i: (scores[i], i)):
        bar, lowers, ran = min(cut, best.score), starts[memory].copy(), []
        for model in range(len(bounds)):
            if float(evaluation.scale.score(lowers)) > bar:
                break
            run = evaluation.model(
                model, memories[memory], bounds[model][:, memory], floors[model], lowers, bar
            )
            if run is None:
                break
            ran.append(run)
        lower = min(lower, float(evaluation.scale.score(lowers)))
        if len(ran) == len(bounds):
            score = float(evaluation.scale.score(np.array([r.value for r in ran])))
            if score < best.score:
                best = Evaluated(evaluation.chip, memories[memory], score, lower, tuple(ran))
    return Evaluated(best.chip, best.hbm, best.score, min(lower, best.score), best.ran)
