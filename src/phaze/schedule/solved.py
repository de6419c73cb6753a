"""Schedules that were solved, by all that they depend on: who asks for the same pass again has its
schedule at once.

The same problem, scheduler and limits give the same schedule, so no answer depends on what is
remembered. It lives within one process, and nothing is read from a file.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from phaze.schedule.problem import Schedule, ScheduleProblem
from phaze.schedule.solve import PartMemo, Scheduler, SchedulingLimits, solve

# Schedules that are kept, about 10 kB each; beyond them the oldest are forgotten.
MOST = 2000

Question = tuple[ScheduleProblem, Scheduler, SchedulingLimits | None]


@dataclass(slots=True)
class SolvedSchedules:
    """Schedules by problem, scheduler and limits."""

    schedules: dict[Question, Schedule] = field(default_factory=dict)

    def solve(
        self,
        problem: ScheduleProblem,
        scheduler: Scheduler = "exact",
        limits: SchedulingLimits | None = None,
        parts: PartMemo | None = None,
    ) -> Schedule:
        """As :func:`phaze.schedule.solve.solve`, each question once."""
        question = problem, scheduler, limits
        if question not in self.schedules:
            self.update([(question, solve(problem, scheduler, limits, parts))])
        return self.schedules[question]

    def update(self, solved: Iterable[tuple[Question, Schedule]]) -> None:
        """Remember what was solved elsewhere too."""
        self.schedules.update(solved)
        while len(self.schedules) > MOST:
            del self.schedules[next(iter(self.schedules))]
