"""A run checked again by the plain path: one chip at a time, the general placement solver, no structures, no arrays.

    files     study and copies of its files give problem, graphs and the digest that the result names, byte for byte
    answer    ``result.json`` is written anew from the chip, memory and configurations that it names, by scheduling and
              placing, and compared byte for byte (:mod:`phaze.search.verify_answer`); its plan by the placement
              checker; no other configuration and no smaller memory is better
    list      every chip of the space is in it once; its reason, all counts, the global bound and the gap are derived
              (:mod:`phaze.search.verify_rows`)
    proof     for a sample of the chips that were not opened (or all) the bound anew, schedule bounds of
              :func:`phaze.schedule.bounds.lower_bound` in the placement solver: it must be above the cut-off, and what
              was recorded not above it; opened chips exactly. The most promising chips are in every sample.

What is found wrong is a sentence each; a good run has none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import chip_set
from phaze.evaluate.ruled_pass import RuledPass, Times
from phaze.hardware.chip import Chip
from phaze.hardware.figures import making_of
from phaze.hardware.ownership import load_terms
from phaze.hardware.silicon.design import EnergyModel
from phaze.placement.solve import fastest_at
from phaze.schedule.bounds import lower_bound
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.search.energy import layer_floors
from phaze.search.evaluated import Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.objective import Rates, Scale
from phaze.search.problem import has_plan, problem_of, table_decides
from phaze.search.rank_graph import GraphTimes, RankGraph, graph_times
from phaze.search.rates import chip_rates
from phaze.search.reference import layers_on, value_of
from phaze.search.spaces import EnumeratedSpace
from phaze.search.state import TIE
from phaze.search.task import Configuration, ModelTask, Networks, SearchJob, networks_of, on_all_devices

Floats = NDArray[np.float64]
# Ten times what bounds are lowered by for rounding: the reference path adds in another order.
NEAR = 1e-8


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain path of a job."""

    job: SearchJob
    scale: Scale
    opened: EnumeratedSpace
    networks: Networks

    def rates(self, chip: int, hbm: int) -> Rates:
        """The rates of a chip and memory, by the formulas for one chip; infinite where it may not have it."""
        value, most = self.opened.chip(chip, self.job.hbm_bytes[hbm]), self.job.space.limits["usd"]
        rates = chip_rates(self.job.objective, value, self.job.models[0].training.devices)
        made = None if most is None else making_of(value, load_terms())
        dear = most is not None and (made is None or made.usd > most * (1 + 1e-12))
        # A chip of clusters has the memory of its stacks and no other.
        other = value.hbm.size_bytes != self.job.hbm_bytes[hbm]
        return replace(rates, rate=np.asarray(np.inf)) if dear or other else rates

    @property
    def energy(self) -> EnergyModel | None:
        """The energies of the space's chips, where they count."""
        return self.opened.energy if self.job.objective.needs_energy else None

    def values(self, chip: int, memories: Sequence[int], cut: float = float("inf")) -> list[list[float]]:
        """The models' values on a chip with each of some memories: every pass scheduled, every configuration placed;
        above ``cut`` that at least, for one model where time alone counts."""
        tasks, value = self.networks.tasks_of(chip), self.opened.chip(chip, self.job.hbm_bytes[-1])
        layers = [[layers_on(task, at, value, self.energy) for at in range(len(task.graphs))] for task in tasks]
        every = []
        for hbm in memories:
            rates, size = self.rates(chip, hbm), self.job.hbm_bytes[hbm]
            if not float(rates.rate) < np.inf:
                every.append([float("inf")] * len(tasks))
                continue
            last_s = float(rates.last_s(cut, 0.0)) if cut < np.inf and len(tasks) == 1 else np.inf
            own = [
                value_of(task, mine, size, rates, self.energy, last_s) for task, mine in zip(tasks, layers, strict=True)
            ]
            every.append(own)
        return every

    def exact(self, chip: int, memories: Sequence[int], cut: float = float("inf")) -> list[float]:
        """The score of a chip with each of some memories, or ``cut`` where that is less and there is one model."""
        found = [float(self.scale.score(np.array(values))) for values in self.values(chip, memories, cut)]
        return [min(score, cut) for score in found] if len(self.job.models) == 1 else found

    def bound(
        self, chip: int, times: Sequence[Sequence[GraphTimes]], floors: Sequence[Sequence[float]], cut: float
    ) -> float:
        """A bound on a chip's score from layer times and joules by model and graph; above ``cut`` it may be lower."""
        tasks, best = self.networks.tasks_of(chip), float("inf")
        for hbm in self.memories:
            rates, values = self.rates(chip, hbm), []
            for task, time, joules in zip(tasks, times, floors, strict=True):
                found = [float("inf")]
                for configuration in task.configurations if float(rates.rate) < np.inf else ():
                    last_s = (
                        float(rates.last_s(min(cut, *found), joules[configuration.graph]))
                        if len(tasks) == 1
                        else np.inf
                    )
                    batch_s = self.batch(
                        task, configuration, time[configuration.graph], self.job.hbm_bytes[hbm], last_s
                    )
                    found.append(float(rates.value(np.asarray(batch_s), joules[configuration.graph])))
                values.append(min(found))
            best = min(best, float(self.scale.score(np.array(values))))
        return best

    def batch(
        self, task: ModelTask, configuration: Configuration, times: GraphTimes, hbm_bytes: int, cut_s: float
    ) -> float:
        """The least batch time of a configuration by the placement solver; where it is above ``cut_s``, that."""
        costs, rate = times.costs(task.graphs[configuration.graph]), float(times.hbm_bytes_per_s[0])
        cut_s *= 1 + NEAR
        problem = problem_of(task, configuration, costs, hbm_bytes, rate)
        found = fastest_at(problem, configuration.zeros, task.prices, cut_s)
        return cut_s if found is None else found[1].batch_s

    def fits(self, task: ModelTask, configuration: Configuration, hbm_bytes: int) -> bool:
        """Whether a configuration of a model fits into a memory, whatever its layers take."""
        return has_plan(task, configuration, hbm_bytes)

    @property
    def memories(self) -> list[int]:
        """The memories that count: the most is enough where they are free."""
        return self.job.memories(self.job.objective.needs_energy)


def plain_of(job: SearchJob, scale: Scale, opened: EnumeratedSpace) -> Plain:
    """The plain path, with the models on every link of the space."""
    return Plain(job, scale, opened, networks_of(job.models, job.space, opened.link_bytes_per_s))


def _least_s(one: RuledPass, times: Times) -> Floats:
    """What no schedule of a pass undercuts, chip by chip and component by component, or its formula."""
    exact = one.exact(times)
    if exact is not None:
        return exact
    found = []
    for chip in range(times.spread_s.shape[1]):
        problem = one.problem(times, chip)
        parts = [part_of(problem, order) for order in series(contract(problem))]
        found.append(sum(part.seconds_below(lower_bound(part)) for part in parts))
    return np.array(found)


def bounded_layers(task: ModelTask, graph: RankGraph, chips: Sequence[Chip]) -> GraphTimes:
    """Bounds on the layers of a graph, on each chip."""
    return graph_times(graph, chip_set(chips), task.training.constants, _least_s)


@dataclass(frozen=True, slots=True)
class Bounded:
    """One chip's bounds by model and graph: seconds of its layers, and joules of a batch."""

    times: list[list[GraphTimes]]
    joules: list[list[float]]


def bounded(plain: Plain, numbers: Sequence[int], chips: Sequence[Chip], energy: EnergyModel | None) -> list[Bounded]:
    """For each chip its bounds; joules are zero without ``energy``."""
    models = len(plain.job.models)
    found = [Bounded([[] for _ in range(models)], [[] for _ in range(models)]) for _ in chips]
    for own, tasks in plain.networks.groups(np.array(numbers, np.int64)):
        some = [chips[at] for at in own.tolist()]
        for model, task in enumerate(tasks):
            for graph in task.graphs:
                times, joules = bounded_layers(task, graph, some), np.zeros(len(some))
                if energy is not None:
                    layers = layer_floors(graph, chip_set(some), task.training.constants, energy)
                    joules = on_all_devices(task, graph, layers)
                for place, at in enumerate(own.tolist()):
                    found[at].times[model].append(times.taken(np.array([place])))
                    found[at].joules[model].append(float(joules[place]))
    return found


Below = Callable[[int], list[list[tuple[float, float]]]]


def ways_below(plain: Plain, numbers: Sequence[int]) -> list[Below | None]:
    """For each of some chips what no plan undercuts with a memory, by model: seconds and joules of every configuration
    that fits. None where chips are proved by placing them exactly: bounds on layers may be weaker than a search's."""
    if not table_decides(plain.job):
        return [None] * len(numbers)
    chips = [plain.opened.chip(number, plain.job.hbm_bytes[-1]) for number in numbers]
    layers = bounded(plain, numbers, chips, plain.opened.energy)

    def of(number: int, own: Bounded) -> Below:
        def with_memory(hbm_bytes: int) -> list[list[tuple[float, float]]]:
            below = []
            for task, times, joules in zip(plain.networks.tasks_of(number), own.times, own.joules, strict=True):
                rows = [
                    (
                        plain.batch(task, configuration, times[configuration.graph], hbm_bytes, np.inf),
                        joules[configuration.graph],
                    )
                    for configuration in task.configurations
                ]
                below.append([row for row in rows if row[0] < np.inf])
            return below

        return with_memory

    return [of(number, own) for number, own in zip(numbers, layers, strict=True)]


def check_bounds(plain: Plain, rows: Sequence[PrunedChip], best: float) -> list[str]:
    """What is wrong with recorded bounds: each one anew. A chip that a bound closed must be above the cut-off.

    Where bounds on schedules do not show it, the schedules themselves do.
    """
    cut = best * (1 - plain.job.gap if plain.job.gap > 0 else 1 + TIE)
    chips = [plain.opened.chip(row.chip, plain.job.hbm_bytes[-1]) for row in rows]
    layers = bounded(plain, [row.chip for row in rows], chips, plain.energy)
    wrong = []
    for index, row in enumerate(rows):
        said = (cut if row.bound is None else max(cut, row.bound)) * (1 + NEAR)
        bound = plain.bound(row.chip, layers[index].times, layers[index].joules, said)
        if _objection(row, bound, cut):
            bound = min(plain.exact(row.chip, plain.memories, said))
        wrong += _objection(row, bound, cut)
    return wrong


def _objection(one: PrunedChip, bound: float, cut: float) -> list[str]:
    """What is wrong with a row whose chip scores no less than ``bound``."""
    if one.reason == "bound" and bound <= cut * (1 - TIE):
        return [f"chip {one.chip} may have a score of {bound!r}, which is below the cut-off {cut!r}"]
    if one.bound is not None and one.bound > bound * (1 + NEAR):
        return [f"chip {one.chip} is said to have a bound of {one.bound!r}, and it is {bound!r}"]
    return []


def check_evaluated(
    plain: Plain, rows: Sequence[PrunedChip], evaluated: Mapping[int, Evaluated], best: float
) -> list[str]:
    """What is wrong with opened chips: recorded bounds above their true score, or a score better than the best."""
    wrong = []
    for row in rows:
        score = min(plain.exact(row.chip, plain.memories))
        if score < best * (1 - TIE):
            wrong.append(f"chip {row.chip} has a score of {score!r}, better than the answer's {best!r}")
        if row.bound is None or row.bound > score * (1 + NEAR):
            wrong.append(f"chip {row.chip} is said to score at least {row.bound!r}, and it scores {score!r}")
        if evaluated[row.chip].score < score * (1 - NEAR):
            wrong.append(f"chip {row.chip} is said to score {evaluated[row.chip].score!r}, and it scores {score!r}")
    return wrong
