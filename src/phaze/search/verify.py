"""A run checked again by the plain path: one chip at a time, the general placement solver, no structures, no arrays.

    files     study and copies of its files give problem, graphs and the digest that the result names, byte for byte
    answer    ``result.json`` is written anew from the chip, memory and ways that it names, by scheduling and placing,
              and compared byte for byte (:mod:`phaze.search.verify_answer`); its plan by the placement checker; no
              other way of running it and no smaller memory is better
    list      every chip of the space is in it once; its reason, all counts, the global bound and the gap are derived
              (:mod:`phaze.search.verify_rows`)
    proof     for a sample of the chips that were not opened (or all) the bound anew, schedule bounds of
              :func:`phaze.schedule.bounds.lower_bound` in the general solver: it must be above the cut-off, and what
              was recorded not above it; opened chips exactly. The most promising chips are in every sample.

What is found wrong is a sentence each; a good run has none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from phaze.cost.parts import ChipArrays, chip_arrays
from phaze.evaluate.flow import LayerSeconds, Prepared
from phaze.evaluate.passes import problem_on, table_of, times_on
from phaze.hardware.chip import Chip
from phaze.hardware.ownership import load_terms, ownership_of
from phaze.schedule.bounds import lower_bound
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.search.chips import SpaceChips
from phaze.search.cluster_plain import cluster_value, placed_on
from phaze.search.cluster_task import ClusterTask
from phaze.search.energy import Electricity, dynamic_floors, pass_floors
from phaze.search.evaluation import Evaluated, plan_of
from phaze.search.journal import Closed
from phaze.search.objective import Rates, Scale
from phaze.search.plain import layers_on, planned
from phaze.search.rates import chip_rates
from phaze.search.state import TIE
from phaze.search.task import Job, ModelTask, Networks, Way, networks_of

Seconds = tuple[LayerSeconds, ...]
NEAR = 1e-8


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain path of a job."""

    job: Job
    scale: Scale
    opened: SpaceChips
    networks: Networks

    def rates(self, chip: int, hbm: int) -> Rates:
        """The rates of a chip and memory, by the formulas for one chip; infinite where the memory is too dear."""
        value, most = self.opened.chip(chip, self.job.hbm_bytes[hbm]), self.job.space.keep.most_usd
        rates = chip_rates(self.job.objective, value, self.job.models[0].training.devices)
        if most is None or ownership_of(value, self.opened.technology, load_terms()).making_usd <= most * (1 + 1e-12):
            return rates
        return replace(rates, rate=np.asarray(np.inf))

    def electricity(self, chip: int) -> Electricity | None:
        """What energies depend on, where they count."""
        if not self.job.objective.needs_energy:
            return None
        task = self.networks.tasks_of(chip)[0]
        return Electricity(self.opened.technology.energy, task.training.link_bytes_per_s)

    def values(self, chip: int, memories: Sequence[int]) -> list[list[float]]:
        """The models' values on a chip with each of some memories: every pass scheduled, every way placed."""
        tasks, electricity = self.networks.tasks_of(chip), self.electricity(chip)
        if self.job.rules == "cluster":
            return [self.placed(chip, hbm) for hbm in memories]
        value = self.opened.chip(chip, self.job.hbm_bytes[-1])
        layers = [[layers_on(graph, value, electricity) for graph in task.graphs] for task in tasks]
        every = []
        for hbm in memories:
            rates, values = self.rates(chip, hbm), []
            for task, own in zip(tasks, layers, strict=True):
                found = [planned(task, way, own[way.graph], self.job.hbm_bytes[hbm], electricity) for way in task.ways]
                prices = [float(rates.value(np.asarray(p.plan.batch_s), p.dynamic_j)) for p in found if p is not None]
                values.append(min(prices, default=float("inf")))
            every.append(values)
        return every

    def placed(self, chip: int, hbm: int, cut: float = float("inf")) -> list[float]:
        """The models' values on a chip with a memory under rules cluster, all ways placed; above ``cut`` that at least,
        for one model where time alone counts."""
        rates, value = self.rates(chip, hbm), self.opened.chip(chip, self.job.hbm_bytes[hbm])
        table = self.opened.technology.energy if self.job.objective.needs_energy else None
        if not float(rates.rate) < np.inf:
            return [float("inf")] * len(self.job.models)
        last_s = rates.last_s(cut, 0.0) if cut < np.inf and len(self.job.models) == 1 else np.inf
        tasks = [task for task in self.job.models if isinstance(task, ClusterTask)]
        return [cluster_value(task, value, rates, table, last_s) for task in tasks]

    def reached(self, chip: int, cut: float) -> float:
        """The score of a chip with its best memory under rules cluster, or ``cut`` where that is less."""
        scores = [float(self.scale.score(np.array(self.placed(chip, hbm, cut)))) for hbm in self.memories]
        return min(scores) if len(self.job.models) > 1 else min(*scores, cut)

    def exact(self, chip: int, memories: Sequence[int]) -> list[float]:
        """The score of a chip with each of some memories."""
        return [float(self.scale.score(np.array(values))) for values in self.values(chip, memories)]

    def bound(
        self, chip: int, seconds: Sequence[Sequence[Seconds]], floors: Sequence[Sequence[float]], cut: float
    ) -> float:
        """A bound on a chip's score from layer times and joules by model and graph; above ``cut`` it may be lower."""
        tasks, best = self.networks.tasks_of(chip), float("inf")
        for hbm in self.memories:
            rates, values = self.rates(chip, hbm), []
            for task, own, joules in zip(tasks, seconds, floors, strict=True):
                found = [float("inf")]
                for way in task.ways if float(rates.rate) < np.inf else ():
                    last_s = rates.last_s(min(cut, *found), joules[way.graph]) if len(tasks) == 1 else np.inf
                    batch_s = self.batch(task, way, own[way.graph], self.job.hbm_bytes[hbm], last_s)
                    found.append(float(rates.value(np.asarray(batch_s), joules[way.graph])))
                values.append(min(found))
            best = min(best, float(self.scale.score(np.array(values))))
        return best

    def batch(self, task: ModelTask, way: Way, seconds: Seconds, hbm_bytes: int, cut_s: float) -> float:
        """The least batch time of a way by the general solver; where even a floor is above ``cut_s``, that floor."""
        graph = task.graphs[way.graph]
        floor = _floor(graph, seconds, task)
        if floor > cut_s:
            return floor
        plan = plan_of(graph, seconds, way.recompute, hbm_bytes, task.training)
        return float("inf") if plan is None else plan.batch_s

    def fits(self, task: ModelTask, way: Way, hbm_bytes: int) -> bool:
        """Whether a way of running a model fits into a memory: whatever its layers take, so with a second each."""
        if isinstance(task, ClusterTask):
            chip = self.opened.chip(0, hbm_bytes)
            return placed_on(task, way, chip, None).plan is not None
        graph = task.graphs[way.graph]
        seconds = tuple(LayerSeconds(1.0, 1.0) for _ in graph.layers)
        return plan_of(graph, seconds, way.recompute, hbm_bytes, task.training) is not None

    @property
    def memories(self) -> list[int]:
        """The memories that count: the most is enough where they are free."""
        count = len(self.job.hbm_bytes)
        limited = self.job.objective.needs_energy or self.job.space.keep.most_usd is not None
        return list(range(count)) if limited else [count - 1]


def plain_of(job: Job, scale: Scale, opened: SpaceChips) -> Plain:
    """The plain path, with the models on every link of the space."""
    return Plain(job, scale, opened, networks_of(job.models, job.space, opened.chips.link_bytes_per_s))


def _joules(graph: Prepared, arrays: ChipArrays, electricity: Electricity | None, task: ModelTask) -> list[float]:
    """Joules that no plan of a graph undercuts on each chip; zero where they do not count."""
    found = np.zeros((len(graph.layers), len(arrays)))
    if electricity is not None:
        table, first = table_of(graph.passes, arrays), 0
        for at, one in enumerate(graph.passes):
            found[at // 2] += pass_floors(one, table, first, arrays, electricity)
            first += len(one.works)
    return [float(joules) for joules in dynamic_floors(graph, found, task.training)]


def _floor(graph: Prepared, seconds: Seconds, task: ModelTask) -> float:
    """S stages take at least max(C / S, longest layer), and a batch at least ceil(M / d) + S - 1 times that."""
    times = [seconds[kind].forward_s + seconds[kind].backward_s for kind in graph.calls]
    plain = sum(not graph.layers[kind].sharded for kind in graph.calls)
    rounds, best = task.training.microbatches(graph.microbatch), float("inf")
    for stages in range(1, min(len(times), task.training.devices) + 1):
        taken = graph.width * max(0, stages - plain) + min(stages, plain)
        copies = min(task.training.devices // taken, rounds)
        if copies:
            best = min(best, max(sum(times) / stages, *times) * (-(-rounds // copies) + stages - 1))
    return best


def bounded_layers(graph: Prepared, chips: Sequence[Chip]) -> list[Seconds]:
    """For each chip bounds on the schedules of all layers, pass by pass and component by component."""
    table, first = table_of(graph.passes, chip_arrays(chips)), 0
    found: list[list[float]] = [[] for _ in chips]
    for one in graph.passes:
        singles, spreads = times_on(one, table, first)
        first += len(one.works)
        for at, chip in enumerate(chips):
            cores = (chip.tensor_cores, chip.vector_cores)
            problem = problem_on(one, singles[:, at].tolist(), spreads[:, at].tolist(), cores)
            parts = [part_of(problem, order) for order in series(contract(problem))]
            found[at].append(sum(part.seconds_below(lower_bound(part)) for part in parts))
    return [tuple(LayerSeconds(*pair) for pair in zip(t[::2], t[1::2], strict=True)) for t in found]


@dataclass(frozen=True, slots=True)
class Bounded:
    """One chip's bounds by model and graph: seconds of its layers, and joules of a batch."""

    seconds: list[list[Seconds]]
    joules: list[list[float]]


def bounded(plain: Plain, numbers: Sequence[int], chips: Sequence[Chip]) -> list[Bounded]:
    """For each chip its bounds."""
    models = len(plain.job.models)
    found = [Bounded([[] for _ in range(models)], [[] for _ in range(models)]) for _ in chips]
    for own, tasks in plain.networks.groups(np.array(numbers, np.int64)):
        some = [chips[at] for at in own.tolist()]
        electricity = plain.electricity(numbers[int(own[0])])
        for model, task in enumerate(tasks):
            for graph in task.graphs:
                seconds, joules = bounded_layers(graph, some), _joules(graph, chip_arrays(some), electricity, task)
                for at, time, energy in zip(own.tolist(), seconds, joules, strict=True):
                    found[at].seconds[model].append(time)
                    found[at].joules[model].append(energy)
    return found


Below = Callable[[int], list[list[tuple[float, float]]]]


def ways_below(plain: Plain, numbers: Sequence[int]) -> list[Below | None]:
    """For each of some chips what no plan undercuts with a memory, by model: seconds and joules of every way that fits.

    None under rules whose chips are proved by placing them exactly.
    """
    if plain.job.rules == "cluster":
        return [None] * len(numbers)
    layers = bounded(plain, numbers, [plain.opened.chip(number, plain.job.hbm_bytes[-1]) for number in numbers])

    def of(number: int, own: Bounded) -> Below:
        def with_memory(hbm_bytes: int) -> list[list[tuple[float, float]]]:
            found = []
            for task, seconds, joules in zip(plain.networks.tasks_of(number), own.seconds, own.joules, strict=True):
                rows = [
                    (plain.batch(task, way, seconds[way.graph], hbm_bytes, np.inf), joules[way.graph])
                    for way in task.ways
                ]
                found.append([row for row in rows if row[0] < np.inf])
            return found

        return with_memory

    return [of(number, own) for number, own in zip(numbers, layers, strict=True)]


def check_bounds(plain: Plain, rows: Sequence[Closed], best: float) -> list[str]:
    """What is wrong with recorded bounds: each one anew. A chip that a bound closed must be above the cut-off."""
    cut = best * (1 - plain.job.gap if plain.job.gap > 0 else 1 + TIE)
    chips = [plain.opened.chip(one.chip, plain.job.hbm_bytes[-1]) for one in rows]
    exact = plain.job.rules == "cluster"
    layers = [] if exact else bounded(plain, [one.chip for one in rows], chips)
    wrong = []
    for at, one in enumerate(rows):
        said = cut if one.bound is None else max(cut, one.bound)
        if exact:
            bound = plain.reached(one.chip, said * (1 + NEAR))
        else:
            bound = plain.bound(one.chip, layers[at].seconds, layers[at].joules, said * (1 + NEAR))
        if one.reason == "bound" and bound <= cut * (1 - TIE):
            wrong.append(f"chip {one.chip} may have a score of {bound!r}, which is below the cut-off {cut!r}")
        elif one.bound is not None and one.bound > bound * (1 + NEAR):
            wrong.append(f"chip {one.chip} is said to have a bound of {one.bound!r}, and it is {bound!r}")
    return wrong


def check_evaluated(plain: Plain, rows: Sequence[Closed], evaluated: Mapping[int, Evaluated], best: float) -> list[str]:
    """What is wrong with opened chips: recorded bounds above their true score, or a score better than the best."""
    wrong = []
    for one in rows:
        score = min(plain.exact(one.chip, plain.memories))
        if score < best * (1 - TIE):
            wrong.append(f"chip {one.chip} has a score of {score!r}, better than the answer's {best!r}")
        if one.bound is None or one.bound > score * (1 + NEAR):
            wrong.append(f"chip {one.chip} is said to score at least {one.bound!r}, and it scores {score!r}")
        if evaluated[one.chip].score < score * (1 - NEAR):
            wrong.append(f"chip {one.chip} is said to score {evaluated[one.chip].score!r}, and it scores {score!r}")
    return wrong
