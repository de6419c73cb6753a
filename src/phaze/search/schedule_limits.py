"""How much a search spends on one schedule."""

from phaze.schedule.list_schedule import QUICK
from phaze.schedule.solve import Limits, Scheduler

# List schedules are for those who are short of time: one rule of priority.
LISTED = Limits(list_work=QUICK)
# Within a search schedules are proved by labels alone; what they leave open counts in the gap.
LIMITS = Limits(cpsat=0.0, label_effort=200_000_000)


def limits_of(scheduler: Scheduler) -> Limits:
    """How much a search spends on one schedule."""
    return LISTED if scheduler == "list" else LIMITS
