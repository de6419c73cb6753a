"""Stages of a graph on chips, number by number from the end of a pipeline, and the best completions
after them.

The tables pace and rest of :mod:`.exact_cuts`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .closed_sets import StageSets, even_chunks
from .job import Job, Shape, boundary_levels, step_bytes, synchronised
from .plan_classes import PlanSpace
from .plans import around_seconds, gathered, reduced_block, sent_behind, sent_seconds
from .row_costs import Chipwise
from .stages import stage_passes

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StageTimes:
    """The stages of one number from the end, [cases, chips]: seconds at the pace, infinite where
    nothing fits, of these the backward pass where it runs apart, what is summed. A case is a step
    between sets, or where nothing depends on the sets a distinct stage."""

    seconds: Floats
    backward: Floats
    filled: Floats


def _work(job: Job, layers: Floats, waits: Floats, counts: Floats, whole: Floats) -> Floats:
    """A pass of every stage: work of a call of each layer, ZeRO's collectives of one, how many
    calls there are; ``whole`` is the work with all that is recomputed."""
    exposed, waited = 1 - job.stack.hidden, (counts @ waits)[:, None]
    if job.stack.paired:
        return np.asarray(counts @ np.maximum(layers + exposed * waits[:, None], waits[:, None]))
    return np.maximum(whole + exposed * waited, waited)


@dataclass(slots=True)
class Completions:
    """Stages and completions of a shape on some chips, number by number from the end.

    ``pace`` is [sets, unsplit stages + 1, chips], its last column infinite; ``rest`` [sets,
    chips]."""

    space: PlanSpace
    job: Job
    shape: Shape
    rounds: float
    chips: Chipwise
    sets: StageSets
    stages: list[StageTimes] = field(default_factory=list)
    pace: list[Floats] = field(default_factory=list)
    rest: list[Floats] = field(default_factory=list)
    passes: dict[int, tuple[Floats, Floats]] = field(default_factory=dict)
    waits: tuple[Floats, Floats] = field(init=False)
    boundaries: list[Floats] = field(init=False)
    around: float = field(init=False)

    def __post_init__(self) -> None:
        graph, sets, count = self.space.graph, self.sets, len(self.chips.rate)
        self.waits = gathered(graph, self.job, self.shape)
        levels = [] if self.job.stack.arriving else boundary_levels(self.job.network, self.shape)
        chunks = self.shape.family.chunks
        self.boundaries = [
            chunks * sent_seconds(graph, self.job, level, sets.enter) for level in levels
        ]
        outer = max([0, *levels])
        self.around = around_seconds(
            graph, self.job, self.shape.family, outer, self.space.parts.around
        )
        # Of nothing nothing is left to run.
        pace = np.full((len(sets.calls), self.most_unsplit + 2, count), np.inf)
        pace[0, 0] = 0.0
        rest = np.full((len(sets.calls), count), np.inf)
        rest[0] = 0.0
        self.pace, self.rest = [pace], [rest]

    @property
    def most_unsplit(self) -> int:
        """Stages that can be unsplit."""
        return self.space.parts.unsplit

    @property
    def case(self) -> Integers:
        """The case of every step."""
        return self.sets.stage if self.job.stack.arriving else np.arange(len(self.sets.stage))

    @property
    def stage_of_case(self) -> Integers:
        """The distinct stage of every case."""
        return np.arange(len(self.sets.blocks)) if self.job.stack.arriving else self.sets.stage

    def _passes(self, mode: int) -> tuple[Floats, Floats]:
        """Forward and backward pass of every distinct stage in a mode, with what it recomputes,
        [stages, chips]."""
        if mode not in self.passes:
            self.passes[mode] = self._timed(mode)
        return self.passes[mode]

    def _timed(self, mode: int) -> tuple[Floats, Floats]:
        times, sets, job = self.chips.times, self.sets, self.job
        forward, backward, again = times.forward, times.backward, times.again[mode]
        if job.stack.arriving:
            both = [
                stage_passes(stage, forward, backward, again, job.stack.link)
                for stage in sets.edges
            ]
            return np.stack([ahead for ahead, _ in both]), np.stack([behind for _, behind in both])
        ahead = _work(job, forward, self.waits[0], sets.counts, sets.counts @ forward)
        whole = sets.counts @ backward + sets.reruns @ again
        if not job.stack.paired:
            return ahead, _work(job, backward + again, self.waits[1], sets.counts, whole)
        kept = _work(job, backward, self.waits[1], sets.counts - sets.reruns, whole)
        return ahead, kept + _work(job, backward + again, self.waits[1], sets.reruns, whole)

    def _transfers(self, number: int) -> tuple[Floats, Floats]:
        """Seconds of what enters and leaves the stages of a number, [cases, 1]."""
        sets, place = self.sets, self.shape.stages - number
        if self.job.stack.arriving:
            nothing = np.zeros((len(sets.blocks), 1))
            return nothing, nothing
        around = np.full(len(sets.calls), self.around)
        enter = self.boundaries[place - 1] if place else around
        leave = self.boundaries[place] if number > 1 else around
        return enter[sets.before][:, None], leave[sets.after][:, None]

    def _stages(self, number: int) -> StageTimes:
        """The stages of a number from the end, each in the mode in which it is fastest."""
        sets, family, job, shape = self.sets, self.shape.family, self.job, self.shape
        stage = self.stage_of_case
        size = len(stage), len(self.chips.rate)
        seconds, waited = np.full(size, np.inf), np.full(size, np.inf)
        filled, backward = np.zeros(size), np.zeros(size)
        weight = (sets.counts @ self.chips.times.weight)[stage]
        enter, leave = self._transfers(number)
        flying = family.flying(self.rounds, number, shape.stages)
        room, whole_chunks = job.room(self.space.hbm_bytes), even_chunks(sets, shape)
        for mode in self.space.modes_at(family, number):
            fits = whole_chunks & (sets.bytes_of[mode].needed(job, shape, flying) <= room)
            if not fits.any():
                continue
            ahead, behind = self._passes(mode)
            first, first_hidden = sent_behind(job, shape, self.rounds, ahead[stage], enter)
            last, last_hidden = sent_behind(job, shape, self.rounds, behind[stage], leave)
            # A mode that is faster with its transfers waited for is no slower where they are
            # hidden.
            better = fits[stage][:, None] & (first + last < waited)
            waited = np.where(better, first + last, waited)
            seconds = np.where(better, first + last - first_hidden - last_hidden, seconds)
            filled = np.where(better, family.filled(first, last, weight, shape.stages), filled)
            backward = np.where(better, last if family.apart else 0.0, backward)
        return StageTimes(seconds, backward, filled)

    def grown(self, number: int) -> None:
        """Completions of so many stages."""
        sets, case = self.sets, self.case
        columns = np.arange(self.most_unsplit + 1)[None, :] - sets.unsplit[sets.stage][:, None]
        starts = sets.first_step[1:]
        while len(self.stages) < number:
            stages = self._stages(len(self.stages) + 1)
            self.stages.append(stages)
            seconds = stages.seconds[case]
            slower = np.maximum(seconds[:, None, :], self.pace[-1][sets.after[:, None], columns])
            pace = np.full_like(self.pace[0], np.inf)
            pace[1:, :-1] = np.minimum.reduceat(slower, starts, axis=0)
            self.pace.append(pace)
            if self.shape.family.share(2) > 0:
                summed = (
                    np.where(np.isfinite(seconds), stages.filled[case], np.inf)
                    + self.rest[-1][sets.after]
                )
                rest = np.full_like(self.rest[0], np.inf)
                rest[1:] = np.minimum.reduceat(summed, starts, axis=0)
                self.rest.append(rest)
            else:
                self.rest.append(np.zeros_like(self.rest[0]))

    def ends(self, shape: Shape) -> Floats:
        """The end of a batch of every distinct stage with so many replicas, [stages, chips]."""
        graph, sizes = self.space.graph, self.sets.bytes_of[0].size(self.job)
        block = reduced_block(graph, self.job, self.chips.times)
        seconds = synchronised(self.job, shape, sizes, graph.low, block)
        return np.asarray(
            seconds[:, None] + step_bytes(self.job, shape, sizes)[:, None] / self.chips.rate
        )

    def first_stages(self, stages: int) -> tuple[Integers, Floats, Floats]:
        """Plans of so many stages by their first one: the distinct stage of each step, the greatest
        stage by how many are unsplit [steps, unsplit, chips], and the least sum of D [steps,
        chips]."""
        sets = self.sets
        steps = sets.first_stages
        after, case = sets.after[steps], self.case[steps]
        unsplit = sets.unsplit[sets.stage[steps]].astype(np.int64)
        columns = np.arange(self.most_unsplit + 1)[None, :] - unsplit[:, None]
        first = self.stages[stages - 1]
        slowest = np.maximum(
            first.seconds[case][:, None, :], self.pace[stages - 1][after[:, None], columns]
        )
        return sets.stage[steps], slowest, first.filled[case] + self.rest[stages - 1][after]
