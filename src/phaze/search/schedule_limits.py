"""How much a search spends on one schedule."""

from phaze.schedule.list_schedule import QUICK
from phaze.schedule.solve import Scheduler, SchedulingLimits

# List schedules are for those who are short of time: one rule of priority.
LISTED = SchedulingLimits(list_work=QUICK)
# Within a search schedules are proved by labels alone; what they leave open counts in the gap.
LIMITS = SchedulingLimits(cpsat=0.0, label_effort=200_000_000)


def limits_of(scheduler: Scheduler) -> SchedulingLimits:
    """How much a search spends on one schedule."""
    return LISTED if scheduler == "list" else LIMITS
