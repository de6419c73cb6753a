"""The same plan as discrete events: every forward and backward of every microbatch on every stage of one replica.

Events of 1F1B with a flush. Stage i of S holds a forward (seconds F_i, waiting for its inputs included) and a backward
(R_i) for each of m = ceil(M / d) microbatches; it runs S - i forwards ahead and then one forward and one backward in
turn, each when it is free and the neighbour has delivered. With T = max(F_i + R_i) the last event ends at
(m + S - 1) T at the latest, and exactly then if all stages take T; docs/placement.md has the proof. The gradients are
synchronised after it, as the rules say.

Interleaved 1F1B runs each pass in as many equal pieces as a stage has chunks; equal stages and m a multiple of S end
at m T + (S - 1) T / v. Where transfers run behind other chunks each is a message: it starts when its piece has ended
and its sender's channel is free, and the piece that needs it waits for it (:mod:`phaze.placement.stage_pace`).

Families of split backward passes run gradients of inputs and of weights apart
(:mod:`phaze.placement.split_event_kernels`); equal stages end at m T + (S - 1) D.

Under GPipe every stage runs all its forwards and then all its backwards; the last event ends at
(m - 1) (max F + max R) + the sum of all F and R, as in a line where items wait for their turn at every station.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from phaze.placement.event_kernels import events, gpipe_events, interleaved_events
from phaze.placement.plan import Plan, Stage
from phaze.placement.split_event_kernels import DUALPIPE_V, LOOPED, ZB_V, split_events, split_lists

# Beyond so many events one more microbatch every T seconds is reckoned, the pace that the slowest stage keeps.
MOST_EVENTS = 1_000_000

Floats = npt.NDArray[np.float64]
# In which order the stages of a family run their passes.
ORDER_OF: Mapping[str, int] = MappingProxyType(
    {"zb-h1": LOOPED, "zb-interleaved": LOOPED, "zb-v": ZB_V, "dualpipe-v": DUALPIPE_V}
)


@dataclass(frozen=True, slots=True)
class Timeline:
    """Start of every event of one replica: ``forward_s[i, k]`` of stage i and microbatch k, ``backward_s`` likewise.

    With v chunks k counts pieces, v of each microbatch. ``weight_s`` likewise where the gradients of weights are apart.
    """

    forward_s: Floats
    backward_s: Floats
    end_s: float
    weight_s: Floats | None = None


def _durations(plan: Plan) -> tuple[Floats, Floats]:
    return (
        np.array([stage.forward_s for stage in plan.stages]),
        np.array([stage.backward_s for stage in plan.stages]),
    )


def message_seconds(forward_s: Sequence[float], backward_s: Sequence[float], chunks: int) -> Floats:
    """[forward and backward, stages]: one message that a stage receives, of all that it receives for a microbatch: one
    a chunk, around the pipeline one less."""
    counts = np.full((2, len(forward_s)), float(chunks))
    counts[0, 0] = counts[1, -1] = max(1, chunks - 1)
    return np.asarray(np.array([forward_s, backward_s]) / counts)


def _messages(plan: Plan) -> Floats:
    ahead = [stage.forward_transfer_s for stage in plan.stages]
    return message_seconds(ahead, [stage.backward_transfer_s for stage in plan.stages], plan.chunks)


def _run(plan: Plan, rounds: int, all_ahead: bool, starts_s: Floats) -> float:
    if plan.family in ORDER_OF:
        ahead_s, behind_s = _durations(plan)
        weight_s = np.array([stage.weight_s for stage in plan.stages])
        lists = split_lists(ORDER_OF[plan.family], len(plan.stages), rounds, plan.chunks)
        return float(split_events(np.stack([ahead_s, behind_s - weight_s, weight_s]), lists, plan.chunks, starts_s))
    if plan.chunks > 1:
        return float(interleaved_events(np.stack(_durations(plan)), _messages(plan), rounds, plan.chunks, starts_s))
    return float((gpipe_events if all_ahead else events)(*_durations(plan), rounds, starts_s))


def _overlapped_s(stage: Stage) -> float:
    """A microbatch of a stage once the pipeline is full."""
    return max(stage.forward_s, stage.forward_transfer_s) + max(stage.backward_s, stage.backward_transfer_s)


def replica_seconds(plan: Plan, rounds: int, all_ahead: bool = False) -> float:
    """End of the last event of one replica that runs ``rounds`` microbatches."""
    count = len(plan.stages)
    watched = min(rounds, max(MOST_EVENTS // (plan.chunks * count), 4 * count))
    if (plan.chunks > 1 or plan.family in ORDER_OF) and watched < rounds:
        watched -= (watched - rounds) % count
    ahead_s, behind_s = _durations(plan)
    end_s = _run(plan, watched, all_ahead, np.empty((2, 0, 0)))
    pace_s = ahead_s.max() + behind_s.max() if all_ahead else max(map(_overlapped_s, plan.stages))
    return end_s + (rounds - watched) * float(pace_s)


def timeline(plan: Plan, rounds: int, all_ahead: bool = False) -> Timeline:
    """When every event of one replica of ``rounds`` microbatches starts, for a drawing."""
    apart = plan.family in ORDER_OF
    starts_s = np.empty((2 + apart, len(plan.stages), rounds * plan.chunks))
    end_s = _run(plan, rounds, all_ahead, starts_s)
    return Timeline(starts_s[0], starts_s[1], end_s, starts_s[2] if apart else None)
