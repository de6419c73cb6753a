"""A run checked again by the plain path: one chip at a time, the general placement solver, no structures, no arrays.

    files     the study gives the digest that the result names; the list of closed chips has its digest and every chip
    answer    every field of the chip; each model's layer times by scheduling anew; its plan by the placement checker
              and by the general solver; no other way of running it, no smaller memory, no evaluated chip is better
    proof     counts, global bound and gap from the list; for a sample of the chips that a bound closed (or all) the
              bound anew, schedule bounds of :func:`phaze.schedule.bounds.lower_bound` in the general solver: it must be
              above the cut-off, and what was recorded not above it

What is found wrong is a sentence each; a good run has none.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.cost.parts import chip_arrays
from phaze.evaluate.flow import LayerSeconds, Prepared, graph_of, layer_schedules, placement_of, seconds_of
from phaze.evaluate.passes import problem_on, table_of, times_on
from phaze.hardware.chip import Chip
from phaze.placement.solve import fastest_plan
from phaze.schedule.bounds import lower_bound
from phaze.schedule.order import contract, series
from phaze.schedule.part import part_of
from phaze.search.certificate import certificate_of
from phaze.search.chips import SpaceChips
from phaze.search.evaluation import LIMITS
from phaze.search.factors import factors_of
from phaze.search.journal import Closed
from phaze.search.objective import Scale
from phaze.search.run import TIE
from phaze.search.space import combinations_of
from phaze.search.task import Job, ModelTask, Way

Seconds = tuple[LayerSeconds, ...]
NEAR = 1e-8


@dataclass(frozen=True, slots=True)
class Plain:
    """The plain path of a job."""

    job: Job
    scale: Scale
    opened: SpaceChips
    factors: NDArray[np.float64]

    def batch(self, task: ModelTask, way: Way, seconds: Seconds, hbm_bytes: int, cut_s: float = np.inf) -> float:
        """The least batch time of a way by the general solver; where even a floor is above ``cut_s``, that floor."""
        graph = task.graphs[way.graph]
        floor = _floor(graph, seconds, task)
        if floor > cut_s:
            return floor
        layers = graph_of(graph, seconds)
        plan = fastest_plan(placement_of([layers], graph.microbatch, way.recompute, hbm_bytes, task.training))
        return float("inf") if plan is None else plan.batch_s

    def score(self, chip: int, seconds: Sequence[Sequence[Seconds]], memories: Sequence[int], cut: float) -> float:
        """The least score over memories with layer times by model and graph; scores above ``cut`` may be floors."""
        best = float("inf")
        for hbm in memories:
            factor = float(self.factors[hbm, chip])
            single = (cut / factor) ** (1 / self.job.objective.power) if len(self.job.models) == 1 else np.inf
            times = [
                min(self.batch(task, way, own[way.graph], self.job.hbm_bytes[hbm], single) for way in task.ways)
                for task, own in zip(self.job.models, seconds, strict=True)
            ]
            best = min(best, float(self.scale.score(np.array(times), factor)))
        return best

    def exact(self, chip: int) -> list[list[Seconds]]:
        """Layer times of a chip by scheduling every pass of every graph."""
        value = self.opened.chip(chip, self.job.hbm_bytes[-1])
        return [[seconds_of(layer_schedules(g, value, LIMITS)) for g in task.graphs] for task in self.job.models]

    @property
    def memories(self) -> list[int]:
        """The memories that count: the most is enough where they are free."""
        count = len(self.job.hbm_bytes)
        return list(range(count)) if self.job.objective.needs_hbm else [count - 1]


def plain_of(job: Job, scale: Scale, opened: SpaceChips) -> Plain:
    """The plain path, with the factor of every memory and chip."""
    return Plain(job, scale, opened, factors_of(job.objective, opened, list(job.hbm_bytes)))


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


def check_list(plain: Plain, result: Mapping[str, Any], closed: Sequence[Closed]) -> list[str]:
    """What is wrong with the list of closed chips and what the certificate says of it."""
    said, best = result["certificate"], float(result["objective"]["score"])
    if [one.chip for one in closed] != list(range(len(plain.opened))):
        return ["the journal does not close every chip of the space once"]
    outside = combinations_of(plain.job.space) - len(plain.opened)
    true = certificate_of(list(closed), best, plain.job.gap, outside).document()
    wrong = [
        f"certificate.{key}: {said.get(key)!r}, but {value!r} by the journal"
        for key, value in true.items()
        if said.get(key) != value
    ]
    cut = best * (1 - plain.job.gap if plain.job.gap > 0 else 1 + TIE)
    for one in closed:
        if one.reason == "bound" and (one.bound is None or one.bound <= cut):
            wrong.append(f"chip {one.chip} is closed by a bound of {one.bound!r}, which does not close it")
    return wrong


def check_bounds(plain: Plain, closed: Sequence[Closed], best: float, count: int | None, seed: int) -> list[str]:
    """What is wrong with the bounds of a sample of the chips that a bound or memory closed; None: of all of them."""
    ours = [one for one in closed if one.reason in ("bound", "memory")]
    if count is not None and len(ours) > count:
        ours = random.Random(seed).sample(ours, count)
    cut = best * (1 - plain.job.gap if plain.job.gap > 0 else 1 + TIE)
    chips = [plain.opened.chip(one.chip, plain.job.hbm_bytes[-1]) for one in ours]
    layers = [[bounded_layers(graph, chips) for graph in task.graphs] for task in plain.job.models] if ours else []
    wrong = []
    for at, one in enumerate(ours):
        seconds = [[own[at] for own in model] for model in layers]
        said = cut if one.bound is None else max(cut, one.bound)
        bound = plain.score(one.chip, seconds, plain.memories, said * (1 + NEAR))
        if bound <= cut * (1 - TIE):
            wrong.append(f"chip {one.chip} may have a score of {bound!r}, which is below the cut-off {cut!r}")
        elif one.reason == "memory" and np.isfinite(bound):
            wrong.append(f"chip {one.chip} is said to fit nothing, and its bound is {bound!r}")
        elif one.bound is not None and one.bound > bound * (1 + NEAR):
            wrong.append(f"chip {one.chip} is said to have a bound of {one.bound!r}, and it is {bound!r}")
    return wrong


def check_evaluated(plain: Plain, closed: Sequence[Closed], best: float, count: int | None, seed: int) -> list[str]:
    """What is wrong with opened chips: recorded bounds above their true score, or a score better than the best."""
    ours = [one for one in closed if one.reason == "evaluated"]
    if count is not None and len(ours) > count:
        ours = random.Random(seed).sample(ours, count)
    wrong = []
    for one in ours:
        score = plain.score(one.chip, plain.exact(one.chip), plain.memories, np.inf)
        if score < best * (1 - TIE):
            wrong.append(f"chip {one.chip} has a score of {score!r}, better than the answer's {best!r}")
        if one.bound is None or one.bound > score * (1 + NEAR):
            wrong.append(f"chip {one.chip} is said to score at least {one.bound!r}, and it scores {score!r}")
    return wrong
