"""The same plan as discrete events: every forward and backward of every microbatch on every stage of one replica.

Events of 1F1B with a flush. Stage i of S holds a forward (seconds F_i, waiting for its inputs included) and a backward
(R_i) for each of m = ceil(M / d) microbatches; it runs S - i forwards ahead and then one forward and one backward in
turn, each when it is free and the neighbour has delivered. With T = max(F_i + R_i) the last event ends at
(m + S - 1) T at the latest, and exactly then if all stages take T; docs/placement.md has the proof. The gradients are
synchronised after it, as the rules say.

Interleaved 1F1B runs each pass in as many equal pieces as a stage has chunks; equal stages and m a multiple of S end
at m T + (S - 1) T / v.

Under GPipe every stage runs all its forwards and then all its backwards; the last event ends at
(m - 1) (max F + max R) + the sum of all F and R, as in a line where items wait for their turn at every station.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phaze.placement.event_kernels import events, gpipe_events, interleaved_events
from phaze.placement.plan import Plan

# Beyond so many events one more microbatch every T seconds is reckoned, the pace that the slowest stage keeps.
MOST_EVENTS = 1_000_000

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Start of every event of one replica: ``forward_s[i, k]`` of stage i and microbatch k, ``backward_s`` likewise.

    With v chunks k counts pieces, v of each microbatch.
    """

    forward_s: Floats
    backward_s: Floats
    end_s: float


def _durations(plan: Plan) -> tuple[Floats, Floats]:
    return (
        np.array([stage.forward_s for stage in plan.stages]),
        np.array([stage.backward_s for stage in plan.stages]),
    )


def _run(plan: Plan, rounds: int, all_ahead: bool, starts_s: Floats) -> float:
    if plan.chunks > 1:
        return float(interleaved_events(*_durations(plan), rounds, plan.chunks, starts_s))
    return float((gpipe_events if all_ahead else events)(*_durations(plan), rounds, starts_s))


def replica_seconds(plan: Plan, rounds: int, all_ahead: bool = False) -> float:
    """End of the last event of one replica that runs ``rounds`` microbatches."""
    count = len(plan.stages)
    watched = min(rounds, max(MOST_EVENTS // (plan.chunks * count), 4 * count))
    if plan.chunks > 1 and watched < rounds:
        watched -= (watched - rounds) % count
    ahead_s, behind_s = _durations(plan)
    end_s = _run(plan, watched, all_ahead, np.empty((2, 0, 0)))
    pace_s = ahead_s.max() + behind_s.max() if all_ahead else (ahead_s + behind_s).max()
    return end_s + (rounds - watched) * float(pace_s)


def timeline(plan: Plan, rounds: int, all_ahead: bool = False) -> Timeline:
    """When every event of one replica of ``rounds`` microbatches starts, for a drawing."""
    starts_s = np.empty((2, len(plan.stages), rounds * plan.chunks))
    end_s = _run(plan, rounds, all_ahead, starts_s)
    return Timeline(starts_s[0], starts_s[1], end_s)
