"""Stages of a graph on chips, number by number from the end of a pipeline, and the best completions
after them.

The tables pace and rest of :mod:`.exact_cuts`.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .closed_sets import StageSets, even_chunks
from .job import Job, Shape, between_steps, boundary_levels, step_bytes, synchronised
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


def _not_hidden(job: Job, work: Floats, waits: Floats) -> Floats:
    """What some work does not hide of ZeRO's collectives."""
    return np.maximum(job.stack.sharding * waits, waits - work)


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
        levels = boundary_levels(self.job.network, self.shape)
        if self.space.ends_alone:
            # A table for any number of stages, between which there is one level.
            levels = [0]
        if self.job.stack.arriving:
            levels = []
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
            link = job.stack.link
            both = [stage_passes(edges, forward, backward, again, link) for edges in sets.edges]
            ahead, behind = (np.stack(passes) for passes in zip(*both, strict=True))
        else:
            ahead = sets.counts @ forward
            behind = sets.counts @ backward + sets.reruns @ again
        waits = [of_layers[:, None] for of_layers in self.waits]
        if not job.stack.paired:
            waited = [sets.counts @ of_layers for of_layers in waits]
            return (
                ahead + _not_hidden(job, ahead, waited[0]),
                behind + _not_hidden(job, behind, waited[1]),
            )
        ahead = ahead + sets.counts @ _not_hidden(job, forward, waits[0])
        behind = behind + (sets.counts - sets.reruns) @ _not_hidden(job, backward, waits[1])
        return ahead, behind + sets.reruns @ _not_hidden(job, backward + again, waits[1])

    def _transfers(self, number: int) -> tuple[Floats, Floats]:
        """Seconds of what enters and leaves the stages of a number, [cases, 1]."""
        sets, place = self.sets, self.shape.stages - number
        if self.job.stack.arriving:
            nothing = np.zeros((len(sets.blocks), 1))
            return nothing, nothing
        enter, leave = np.full((2, len(sets.calls)), self.around)
        # Nothing enters the first stage, which starts before all calls, or leaves the last one.
        if self.boundaries:
            entry, exit_ = np.clip((place - 1, place), 0, len(self.boundaries) - 1)
            enter[:-1] = self.boundaries[entry][:-1]
            leave[1:] = self.boundaries[exit_][1:]
        return enter[sets.before][:, None], leave[sets.after][:, None]

    def _stages(self, number: int) -> StageTimes:
        """The stages of a number from the end, each in the mode in which it is fastest."""
        sets, family, job, shape = self.sets, self.shape.family, self.job, self.shape
        stage = self.stage_of_case
        size = len(stage), len(self.chips.rate)
        seconds, waited = np.full(size, np.inf), np.full(size, np.inf)
        filled, backward = np.zeros(size), np.zeros(size)
        weight = (sets.counts @ self.chips.times.weight)[stage]
        unmet = sets.counts @ self.chips.times.waited
        alone = family.unmet(self.rounds, shape.stages)
        enter, leave = self._transfers(number)
        flying = family.flying(self.rounds, number, shape.stages)
        room, whole_chunks = job.room(self.space.hbm_bytes), even_chunks(sets, shape)
        for mode in self.space.modes_at(family, number):
            fits = whole_chunks & (sets.bytes_of[mode].needed(job, shape, flying) <= room)
            if not fits.any():
                continue
            ahead, behind = self._passes(mode)
            behind = behind + alone * unmet
            first, first_hidden = sent_behind(job, shape, self.rounds, ahead[stage], enter)
            last, last_hidden = sent_behind(job, shape, self.rounds, behind[stage], leave)
            # A mode that is faster with its transfers waited for is no slower where they are
            # hidden.
            better = fits[stage][:, None] & (first + last < waited)
            waited = np.where(better, first + last, waited)
            seconds = np.where(better, first + last - first_hidden - last_hidden, seconds)
            summed = self._filled(first, last, weight) + (1 - alone) * unmet[stage]
            filled = np.where(better, summed, filled)
            backward = np.where(better, last if family.apart else 0.0, backward)
        return StageTimes(seconds, backward, filled)

    def _filled(self, first: Floats, last: Floats, weight: Floats) -> Floats:
        """D of stages with these passes, or what it does not undercut where they are bounds."""
        family, stages = self.shape.family, self.shape.stages
        if family.split and not self.chips.times.exact:
            return family.least_filled(first, last - weight, weight, stages, "nothing")
        return family.filled(first, last, weight, stages)

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

    def least_pace(self, number: int, unsplit: Integers) -> Floats:
        """The greatest stage of the best completions of so many stages on one chip of which at
        least so many are unsplit, [sets, amounts]."""
        paces = self.pace[number][:, :, 0]
        # What completes with more unsplit stages counts, too.
        at_least = np.minimum.accumulate(paces[:, ::-1], axis=1)[:, ::-1]
        return np.asarray(at_least[:, np.clip(unsplit, 0, self.most_unsplit + 1)])

    def ends(self, shape: Shape) -> Floats:
        """The end of a batch of every distinct stage with so many replicas, [stages, chips]."""
        graph, sizes = self.space.graph, self.sets.bytes_of[0].size(self.job)
        block = reduced_block(graph, self.job, self.chips.times)
        seconds = synchronised(self.job, shape, sizes, graph.low, block)
        seconds = seconds + between_steps(self.job, shape)
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
