"""The layers of a graph on one chip with every pass scheduled exactly, and the schedules found so
far."""

from collections.abc import MutableMapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from phaze.cost.chip_set import ChipSet
from phaze.evaluate.layer_table import LayerTable, layer_table
from phaze.evaluate.lowered_pass import LoweredPass, Times, WorkTimes
from phaze.hardware.calibration import Constants
from phaze.schedule.problem import Schedule
from phaze.schedule.solve import PartMemo, Scheduler
from phaze.schedule.solved import SolvedSchedules
from phaze.search.deadline import OutOfTime
from phaze.search.energy import spread_of
from phaze.search.rank_graph import RankGraph
from phaze.search.schedule_limits import limits_of

Floats = NDArray[np.float64]
# Makespan, lower bound, what is spread over all cores, and the schedule where it is at hand.
SolvedPass = tuple[float, float, bytes, Schedule | None]


@dataclass(slots=True)
class ScheduleMemo:
    """Schedules solved so far, by all that they depend on: makespan, bound, what is spread, and
    where it is at hand the schedule itself; and counts of the work.

    ``frozen``: the time is up, and what is not there raises :class:`OutOfTime` instead of being
    solved. ``kept``: every schedule that was solved, in order, where it is wanted. ``parts``:
    answers of components, where others share them. ``solved``: whole schedules, where the same
    passes are considered again when the search is over. ``works``: what works take by model, graph
    and chip, of the chips of a round; ``duals``: what no schedules undercut. ``listed``: list
    schedules, which are kept for first designs alone.
    """

    schedules: MutableMapping[bytes, SolvedPass] = field(default_factory=dict)
    requests: int = 0
    placements: int = 0
    scheduler: Scheduler = "exact"
    frozen: bool = False
    in_order: list[Schedule] | None = None
    parts: PartMemo | None = None
    solved: SolvedSchedules | None = None
    works: dict[tuple[int, int, int], WorkTimes] = field(default_factory=dict)
    duals: dict[tuple[int, int, int], LayerTable] = field(default_factory=dict)
    listed: MutableMapping[bytes, SolvedPass] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The work done, for people."""
        if not self.requests:
            return f"It took {self.placements:,} placements."
        schedules = (
            f"{len(self.schedules):,} distinct exact schedules ({self.requests:,} requested)"
        )
        return f"It took {schedules} and {self.placements:,} placements."


def _schedule(lowered: LoweredPass, name: bytes, times: Times, memo: ScheduleMemo) -> SolvedPass:
    """Makespan and bound of a pass on one chip, and what it spreads; cores beyond the number of
    operators make no difference."""
    exact = lowered.exact(times)
    if exact is not None:
        return float(exact[0]), float(exact[0]), b"", None
    memo.requests += 1
    cores = (
        min(int(times.tensor_cores[0]), len(lowered.units)),
        min(int(times.vector_cores[0]), len(lowered.units)),
    )
    key = b"%s %d %d " % (name, *cores) + b"".join(
        column.tobytes() for column in (times.one_core_s, times.spread_s, times.hbm_s)
    )
    if key not in memo.schedules:
        if memo.frozen:
            raise OutOfTime
        limits, scheduler = limits_of(memo.scheduler), memo.scheduler
        schedule = lowered.schedule(times, 0, limits, memo.parts, scheduler, memo.solved)
        memo.schedules[key] = (
            schedule.makespan_s,
            schedule.lower_bound_s,
            spread_of(schedule),
            schedule,
        )
        if memo.in_order is not None:
            memo.in_order.append(schedule)
    return memo.schedules[key]


@dataclass(frozen=True, slots=True)
class ExactLayers:
    """The distinct layers of one graph on one chip: their seconds by schedules, and by what is
    proved of these (the same where all are optimal); what each pass spreads over all cores, and its
    schedule where it is at hand."""

    times: LayerTable
    proved: LayerTable
    spreads: tuple[bytes, ...]
    schedules: tuple[Schedule | None, ...] = ()


def exact_layers(
    graph: RankGraph,
    name: bytes,
    chip: ChipSet,
    constants: Constants,
    memo: ScheduleMemo,
    costs: WorkTimes | None = None,
) -> ExactLayers:
    """All distinct layers of one graph on one chip, every pass scheduled; ``name`` tells graphs
    apart, ``costs`` as in :func:`phaze.evaluate.layer_table.layer_table`."""
    passes: list[SolvedPass] = []

    def scheduled(lowered: LoweredPass, times: Times) -> Floats:
        passes.append(_schedule(lowered, b"%s %d" % (name, len(passes)), times, memo))
        return np.array([passes[-1][0]])

    times = layer_table(graph.layers, chip, constants, scheduled, costs)
    least = iter(passes)
    proved = times
    if any(lower_s < makespan_s for makespan_s, lower_s, *_ in passes):
        proved = layer_table(
            graph.layers,
            chip,
            constants,
            lambda lowered, layer_times: np.array([next(least)[1]]),
            costs,
        )
    return ExactLayers(
        times, proved, tuple(solved[2] for solved in passes), tuple(solved[3] for solved in passes)
    )
