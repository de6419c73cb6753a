"""One replica as discrete events: every pass of every microbatch on every stage, in the order of a
family's lists.

A stage runs its passes in turn, each when it is free and its neighbour has delivered (seconds
include waiting for transfers where these block). Stage i of S under 1F1B holds a forward (F_i) and
a backward (R_i) for each of m microbatches: with T = max(F_i + R_i) the last event ends at (m + S -
1) T at the latest, and exactly then if all stages take T; docs/placement.md has the proof.
Interleaved 1F1B of v chunks: equal stages and m a multiple of S end at m T + (S - 1) T / v. Where
transfers run behind other chunks each is a message: it starts when its piece has ended and its
sender's channel is free, and the piece that needs it waits for it
(:mod:`phaze.placement.stage_pace`). Split backward passes of equal stages end at m T + (S - 1) D.
GPipe ends at (m - 1) (max F + max R) + the sum of all F and R, as in a line where items wait for
their turn at every station.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phaze.pipeline.event_kernels import run_events
from phaze.pipeline.family import Family

Floats = npt.NDArray[np.float64]
NO_ROOM: Floats = np.empty((3, 0, 0))


@dataclass(frozen=True, slots=True)
class StageSeconds:
    """What the events of a replica need of its stages; all of length S.

    ``forward_s`` and ``backward_s`` of a microbatch; ``weight_s``, of the backward, the gradients
    of weights where a family splits it; what a stage receives for a microbatch, forwards and
    backwards, where transfers do not block.
    """

    forward_s: Sequence[float]
    backward_s: Sequence[float]
    weight_s: Sequence[float]
    forward_transfer_s: Sequence[float]
    backward_transfer_s: Sequence[float]

    def passes_s(self, family: Family) -> Floats:
        """[F, B and W; stages]; without a split, B is the whole backward."""
        backward = np.array(self.backward_s, dtype=float)
        weight = np.array(self.weight_s, dtype=float) if family.split else np.zeros_like(backward)
        return np.stack([np.array(self.forward_s, dtype=float), backward - weight, weight])

    def messages_s(self, family: Family) -> Floats:
        """[F and B; places]: one message that a place receives, of all that its stage receives for
        a microbatch: one a chunk, around the pipeline one less. None where a family's transfers
        block: its passes wait for them."""
        stages, chunks = len(self.forward_s), family.chunks
        if chunks == 1 or family.split:
            return np.zeros((2, stages * chunks))
        counts = np.full((2, stages), float(chunks))
        counts[0, 0] = counts[1, -1] = chunks - 1
        messages = np.array([self.forward_transfer_s, self.backward_transfer_s]) / counts
        return np.asarray(np.tile(messages, chunks))


@dataclass(frozen=True, slots=True)
class Events:
    """Start of every pass of one replica: ``forward_s[i, k]`` of stage i and microbatch k,
    ``backward_s`` likewise.

    With v chunks k counts pieces, v of each microbatch. ``weight_s`` likewise where the backward is
    split.
    """

    forward_s: Floats
    backward_s: Floats
    end_s: float
    weight_s: Floats | None = None


def last_event_s(
    family: Family, stages: StageSeconds, rounds: int, starts_s: Floats = NO_ROOM
) -> float:
    """End of the last event of ``rounds`` microbatches; ``starts_s`` takes the starts if it has
    room for them."""
    lists = family.event_lists(len(stages.forward_s), rounds, family.chunks)
    return float(
        run_events(
            stages.passes_s(family),
            stages.messages_s(family),
            lists,
            rounds,
            family.chunks,
            starts_s,
        )
    )


def events(family: Family, stages: StageSeconds, rounds: int) -> Events:
    """When every pass starts, for a drawing."""
    starts_s = np.empty((3, len(stages.forward_s), rounds * family.chunks))
    end_s = last_event_s(family, stages, rounds, starts_s)
    return Events(starts_s[0], starts_s[1], end_s, starts_s[2] if family.split else None)
