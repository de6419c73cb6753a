"""A chip opened: exact schedules and exact placements, as far as its bounds leave a chance.

For each memory size, best bound first, and for each model its configurations, best bound first: the layers' exact
schedules, then the fastest plan, then its value (:mod:`phaze.search.objective`). A configuration is left out when its
bound is no better than the best value of the model so far, or when with it the chip's score could not beat the cut-off.
Where layers need schedules, duals come first: a configuration that these already show to be too slow is not scheduled
exactly. What was left out keeps its bound, so that

    lower  =  least over memories of score( over models: least over configurations of the proved value or the bound )

is a lower bound on the chip's score whether or not it was evaluated to the end. Schedules that are not proved count
with their makespan for ``score``, and for ``lower`` with their bound and the least energy of any schedule.
"""

from collections.abc import MutableMapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.layer_table import LayerTable, layer_table, layer_works
from phaze.evaluate.layers import column_costs
from phaze.evaluate.ruled_pass import RuledPass, Times, WorkTimes
from phaze.hardware.calibration import Constants
from phaze.hardware.technology import Technology
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.solve import fastest_at
from phaze.schedule.problem import ROUNDING, Schedule
from phaze.schedule.solve import Known, Scheduler
from phaze.schedule.solved import SolvedSchedules
from phaze.search.bounds.model_bounds import DUAL, layer_bounds
from phaze.search.deadline import OutOfTime
from phaze.search.energy import LayerJoules, layer_joules, plan_joules, spread_of
from phaze.search.evaluated import Evaluated, ModelRun
from phaze.search.objective import Rates, Scale
from phaze.search.problem import problem_of
from phaze.search.rank_graph import RankGraph
from phaze.search.schedule_limits import limits_of
from phaze.search.task import ModelTask, SearchJob

Floats = NDArray[np.float64]
Found = tuple[float, float, bytes, Schedule | None]
# How far above the last useful batch time plans are still looked at.
BARELY = 1e-6


@dataclass(slots=True)
class ScheduleMemo:
    """Schedules solved so far, by all that they depend on: makespan, bound, what is spread, and where it is at hand the
    schedule itself; and counts of the work.

    ``frozen``: the time is up, and what is not there raises :class:`OutOfTime` instead of being solved. ``kept``: every
    schedule that was solved, in order, where it is wanted. ``parts``: answers of components, where others share them.
    ``solved``: whole schedules, where the same passes are looked at again when the search is over.
    ``works``: what works take by model, graph and chip, of the chips of a round; ``duals``: what no schedules undercut.
    ``listed``: list schedules, which are kept for first designs alone.
    """

    schedules: MutableMapping[bytes, Found] = field(default_factory=dict)
    asked: int = 0
    placements: int = 0
    scheduler: Scheduler = "exact"
    frozen: bool = False
    kept: list[Schedule] | None = None
    parts: Known | None = None
    solved: SolvedSchedules | None = None
    works: dict[tuple[int, int, int], WorkTimes] = field(default_factory=dict)
    duals: dict[tuple[int, int, int], LayerTable] = field(default_factory=dict)
    listed: MutableMapping[bytes, Found] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The work done, for people."""
        if not self.asked:
            return f"It took {self.placements:,} placements."
        schedules = f"{len(self.schedules):,} distinct exact schedules ({self.asked:,} requested)"
        return f"It took {schedules} and {self.placements:,} placements."


def _schedule(one: RuledPass, name: bytes, times: Times, known: ScheduleMemo) -> Found:
    """Makespan and bound of a pass on one chip, and what it spreads; cores beyond the number of operators make no
    difference."""
    exact = one.exact(times)
    if exact is not None:
        return float(exact[0]), float(exact[0]), b"", None
    known.asked += 1
    cores = (min(int(times.tensor_cores[0]), len(one.units)), min(int(times.vector_cores[0]), len(one.units)))
    key = b"%s %d %d " % (name, *cores) + b"".join(
        own.tobytes() for own in (times.one_core_s, times.spread_s, times.hbm_s)
    )
    if key not in known.schedules:
        if known.frozen:
            raise OutOfTime
        limits, scheduler = limits_of(known.scheduler), known.scheduler
        found = one.schedule(times, 0, limits, known.parts, scheduler, known.solved)
        known.schedules[key] = (found.makespan_s, found.lower_bound_s, spread_of(found), found)
        if known.kept is not None:
            known.kept.append(found)
    return known.schedules[key]


@dataclass(frozen=True, slots=True)
class ExactLayers:
    """The distinct layers of one graph on one chip: their seconds by schedules, and by what is proved of these (the
    same where all are optimal); what each pass spreads over all cores, and its schedule where it is at hand."""

    times: LayerTable
    proved: LayerTable
    spreads: tuple[bytes, ...]
    schedules: tuple[Schedule | None, ...] = ()


def exact_layers(
    graph: RankGraph,
    name: bytes,
    chip: ChipSet,
    constants: Constants,
    known: ScheduleMemo,
    costs: WorkTimes | None = None,
) -> ExactLayers:
    """All distinct layers of one graph on one chip, every pass scheduled; ``name`` tells graphs apart, ``costs`` as in
    :func:`phaze.evaluate.layer_table.layer_table`."""
    layers: list[Found] = []

    def scheduled(one: RuledPass, times: Times) -> Floats:
        layers.append(_schedule(one, b"%s %d" % (name, len(layers)), times, known))
        return np.array([layers[-1][0]])

    times = layer_table(graph.layers, chip, constants, scheduled, costs)
    least, proved = iter(layers), times
    if any(lower_s < makespan_s for makespan_s, lower_s, *_ in layers):
        proved = layer_table(graph.layers, chip, constants, lambda one, own: np.array([next(least)[1]]), costs)
    return ExactLayers(times, proved, tuple(one[2] for one in layers), tuple(one[3] for one in layers))


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
    """One chip being evaluated: its layers by (model, graph), found when they are asked for; ``rates`` are its own."""

    job: SearchJob
    scale: Scale
    rates: Rates
    chip: int
    arrays: ChipSet
    tasks: tuple[ModelTask, ...]
    network: int
    known: ScheduleMemo
    energy: Technology | None = None
    layers: dict[tuple[int, int], ExactLayers] = field(default_factory=dict)
    bounded: dict[tuple[int, int], LayerTable] = field(default_factory=dict)
    joules: dict[tuple[int, int], tuple[LayerJoules, ...]] = field(default_factory=dict)
    works: dict[tuple[int, int], WorkTimes] = field(default_factory=dict)

    def _costs(self, model: int, graph: int) -> WorkTimes:
        """What the works of a graph take on the chip."""
        task, known = self.tasks[model], self.known.works.get((model, graph, self.chip))
        if known is not None:
            return known
        if (model, graph) not in self.works:
            layers, constants = task.graphs[graph].layers, task.training.constants
            self.works[model, graph] = layer_works(layers, self.arrays, constants)
        return self.works[model, graph]

    def exact(self, model: int, graph: int) -> ExactLayers:
        """The layers of a graph on the chip."""
        key, task = (model, graph), self.tasks[model]
        if key not in self.layers:
            name = b"%d %d %d" % (self.network, *key)
            costs, constants = self._costs(model, graph), task.training.constants
            self.layers[key] = exact_layers(task.graphs[graph], name, self.arrays, constants, self.known, costs)
        return self.layers[key]

    def _proved_quickly(self, model: int, graph: int) -> LayerTable | None:
        """What duals prove of the layers of a graph; None where that is no quicker than the exact schedules."""
        key, own = (model, graph), self.tasks[model].graphs[graph]
        if key in self.layers or own.has_formula or self.known.scheduler != "exact":
            return None
        found = self.known.duals.get((model, graph, self.chip), self.bounded.get(key))
        if found is None:
            costs = self._costs(model, graph)
            found = self.bounded[key] = layer_bounds(self.tasks[model], own, self.arrays, DUAL, costs=costs)
        return found

    def too_slow(self, model: int, configuration: int, hbm: int, below_s: float) -> bool:
        """Whether no plan takes less than ``below_s``, as far as that shows before any schedule is exact."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        proved = self._proved_quickly(model, chosen.graph) if below_s < float("inf") else None
        if proved is None:
            return False
        self.known.placements += 1
        return fastest_at(self.problem(model, configuration, hbm, proved), chosen.zeros, task.prices, below_s) is None

    def problem(self, model: int, configuration: int, hbm: int, times: LayerTable) -> PlacementProblem:
        """The placement problem of a configuration with a memory (its position in the job's list)."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        costs, rate = column_costs(times), float(times.hbm_bytes_per_s[0])
        return problem_of(task, chosen, costs, self.job.hbm_bytes[hbm], rate)

    def plan(
        self, model: int, configuration: int, hbm: int, below_s: float = float("inf")
    ) -> tuple[PlacementProblem, Plan] | None:
        """The fastest plan of a configuration that takes less than ``below_s``, and its problem at its ZeRO stage."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        problem = self.problem(model, configuration, hbm, self.exact(model, chosen.graph).times)
        self.known.placements += 1
        return fastest_at(problem, chosen.zeros, task.prices, below_s)

    def price(self, model: int, configuration: int, hbm: int, below_s: float = float("inf")) -> PricedConfiguration:
        """A batch of a configuration with that memory, or that no plan takes less than ``below_s``.

        Where energy counts there is no limit: which of equally fast plans is found must not depend on it.
        """
        task = self.tasks[model]
        layers = self.exact(model, task.configurations[configuration].graph)
        limit = below_s if self.energy is None else float("inf")
        found = self.plan(model, configuration, hbm, limit)
        lower_s = limit if found is None else found[1].batch_s
        if layers.proved is not layers.times:
            # Some schedule is not proved: no plan with the bounds of all schedules is faster than this.
            proved = fastest_at(
                self.problem(model, configuration, hbm, layers.proved),
                task.configurations[configuration].zeros,
                task.prices,
                limit,
            )
            lower_s = limit if proved is None else proved[1].batch_s
        if found is None:
            return replace(NOTHING, lower_s=lower_s)
        joules = 0.0 if self.energy is None else self.plan_joules(model, configuration, *found, self.energy)
        return PricedConfiguration(found[1].batch_s, joules, lower_s)

    def plan_joules(
        self, model: int, configuration: int, problem: PlacementProblem, plan: Plan, energy: Technology
    ) -> float:
        """Joules of a batch beyond static power."""
        task, chosen = self.tasks[model], self.tasks[model].configurations[configuration]
        key = (model, chosen.graph)
        if key not in self.joules:
            spreads, constants = self.exact(*key).spreads, task.training.constants
            self.joules[key] = layer_joules(task.graphs[chosen.graph], self.arrays, constants, energy, spreads)
        return float(plan_joules(task, chosen, problem, plan, self.joules[key], energy).sum())

    def model(
        self, model: int, hbm: int, bounds: Floats, floors: Floats, lowers: Floats, cut: float
    ) -> ModelRun | None:
        """The best configuration of one model; ``lowers[model]`` is raised to what was proved. None: the chip cannot
        win.

        ``bounds`` are on the value of each configuration, ``floors`` on the joules of each graph.
        """
        best: ModelRun | None = None
        lower, rates = float("inf"), self.rates.at(hbm, 0)
        for configuration in np.argsort(bounds, kind="stable").tolist():
            bound = float(bounds[configuration])
            if bound >= (float("inf") if best is None else best.value):
                break
            lowers[model] = min(lower, bound)
            if float(self.scale.score(lowers)) > cut:
                return best
            floor_j = float(floors[self.tasks[model].configurations[configuration].graph])
            last = cut if len(lowers) == 1 else float(self.scale.last(lowers, model, np.asarray(cut))) * (1 + BARELY)
            useful = min(float("inf") if best is None else best.value, last)
            below_s = float(rates.last_s(useful, floor_j)) * (1 + BARELY) if useful < float("inf") else useful
            if self.too_slow(model, configuration, hbm, below_s):
                found = replace(NOTHING, lower_s=below_s)
            else:
                found = self.price(model, configuration, hbm, below_s)
            value = float(rates.value(np.asarray(found.batch_s), found.dynamic_j))
            joules = floor_j if found.lower_s < found.batch_s * (1 - ROUNDING) else found.dynamic_j
            proved = float(rates.value(np.asarray(found.lower_s), joules))
            lower = min(lower, max(proved, bound))
            if value < (float("inf") if best is None else best.value):
                best = ModelRun(configuration, found.batch_s, found.dynamic_j, value, lower)
        lowers[model] = lower
        return None if best is None else ModelRun(best.configuration, best.batch_s, best.dynamic_j, best.value, lower)


def evaluate(
    opened: ChipEvaluation, bounds: list[Floats], floors: list[Floats], memories: list[int], cut: float
) -> Evaluated:
    """The chip of ``opened``; ``bounds`` on values by model are [configurations, memories], ``floors`` on joules
    [graphs]."""
    best = Evaluated(opened.chip, memories[-1], float("inf"), float("inf"), ())
    lower = float("inf")
    starts = [np.array([b[:, at].min() for b in bounds]) for at in range(len(memories))]
    scores = [float(opened.scale.score(start)) for start in starts]
    for at in sorted(range(len(memories)), key=lambda i: (scores[i], i)):
        bar, lowers, ran = min(cut, best.score), starts[at].copy(), []
        for model in range(len(bounds)):
            if float(opened.scale.score(lowers)) > bar:
                break
            found = opened.model(model, memories[at], bounds[model][:, at], floors[model], lowers, bar)
            if found is None:
                break
            ran.append(found)
        lower = min(lower, float(opened.scale.score(lowers)))
        if len(ran) == len(bounds):
            score = float(opened.scale.score(np.array([r.value for r in ran])))
            if score < best.score:
                best = Evaluated(opened.chip, memories[at], score, lower, tuple(ran))
    return Evaluated(best.chip, best.hbm, best.score, min(lower, best.score), best.ran)
