"""What searches of one family may share: work whose answer is the same in each of them, so that no
answer changes.

A sweep asks one study again with another value of one key. Where the graphs of its models stay,
exact schedules that have the same operators, times and cores are solved once for all points; where
also the axes of the space and the links stay, bounds on layer times of a chip are computed once,
whichever points keep it. Both are looked up by everything that they depend on.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from phaze.evaluate.layer_table import LayerTable
from phaze.schedule.solved import SolvedSchedules
from phaze.search.chips import SpaceChips
from phaze.search.exact_layers import ScheduleMemo
from phaze.search.task import SearchJob

Integers = NDArray[np.int64]
Times = list[list[LayerTable]]


def _shapes(job: SearchJob) -> tuple[object, ...]:
    """What the names of schedules stand for: the operators' cores and edges of every pass, by model
    and graph."""
    return tuple(
        tuple(
            tuple(
                (lowered.rule, lowered.units, lowered.edges, lowered.beside)
                for layer in graph.layers
                for lowered in layer.passes
            )
            for graph in task.graphs
        )
        for task in job.models
    )


def _family(job: SearchJob) -> tuple[object, ...]:
    """All that bounds on layer times depend on but the chip's own fields."""
    energy, space = job.objective.needs_energy, job.space
    layers = tuple(tuple(graph.layers for graph in task.graphs) for task in job.models)
    constants = tuple(task.constants for task in job.models)
    return (space.base, space.own_links, layers, constants, energy)


def chip_rows(chips: SpaceChips) -> NDArray[np.void]:
    """A chip as one value that can be sorted and found: all its fields."""
    columns = [np.ascontiguousarray(column).view(np.int64) for column in chips.columns()]
    table = np.ascontiguousarray(np.stack(columns, axis=1))
    return table.view([("", np.int64)] * table.shape[1]).ravel()


def _filled(old: Times, fresh: Times, places: Integers, missing: Integers) -> Times:
    """Times of all chips: of those at ``places`` (-1: none) in the old ones, and the fresh ones of
    the missing."""

    def filled(had: LayerTable, new: LayerTable) -> LayerTable:
        whole = had.taken(places)
        whole.put(missing, new)
        return whole

    return [
        [filled(a, b) for a, b in zip(*models, strict=True)]
        for models in zip(old, fresh, strict=True)
    ]


@dataclass(slots=True)
class _Bounded:
    """Bounds on layer times that were computed last, of which chips and of what family."""

    family: tuple[object, ...] = ()
    rows: NDArray[np.void] | None = None
    times: Times = field(default_factory=list)

    def take(
        self,
        family: tuple[object, ...],
        rows: NDArray[np.void],
        work_out: Callable[[Integers], Times],
    ) -> Times:
        """Those of the chips of ``rows``; ``work_out`` is asked for the places of those that are
        not there yet."""
        if self.rows is None or family != self.family or not len(self.rows):
            times = work_out(np.arange(len(rows)))
        elif np.array_equal(rows, self.rows):
            return self.times
        else:
            order = np.argsort(self.rows)
            place = order[
                np.minimum(np.searchsorted(self.rows, rows, sorter=order), len(order) - 1)
            ]
            missing = np.flatnonzero(self.rows[place] != rows)
            times = _filled(self.times, work_out(missing), place, missing)
        self.family, self.rows, self.times = family, rows, times
        return times


@dataclass(slots=True)
class Shared:
    """What was computed last; a value that is passed from search to search."""

    shapes: tuple[object, ...] = ()
    memo: ScheduleMemo = field(default_factory=ScheduleMemo)
    cheap: _Bounded = field(default_factory=_Bounded)
    finer: _Bounded = field(default_factory=_Bounded)

    def schedules(self, job: SearchJob) -> ScheduleMemo:
        """Schedules of the same graphs, counts of work at zero; none where the graphs are
        others."""
        shapes = _shapes(job)
        same = shapes == self.shapes
        schedules, listed = (self.memo.schedules, self.memo.listed) if same else ({}, {})
        self.memo = ScheduleMemo(schedules, listed=listed, solved=SolvedSchedules())
        self.shapes = shapes
        return self.memo

    def layer_times(
        self, job: SearchJob, chips: SpaceChips, work_out: Callable[[Integers], Times]
    ) -> Times:
        """Cheap bounds on layer times of all chips; ``work_out`` is asked for those that the last
        search did not have."""
        return self.cheap.take(_family(job), chip_rows(chips), work_out)

    def finer_times(
        self,
        job: SearchJob,
        chips: SpaceChips,
        index: Integers,
        work_out: Callable[[Integers], Times],
    ) -> Times:
        """The finer bounds of the chips of ``index`` alike."""
        return self.finer.take(
            _family(job), chip_rows(chips)[index], lambda missing: work_out(index[missing])
        )
