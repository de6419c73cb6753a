"""Compiled: one replica runs the lists of a family's passes, each as soon as its stage is free and
it has what it needs (:mod:`phaze.pipeline.event_lists_kernels`)."""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit
from phaze.pipeline.event_lists_kernels import B, F, W

if TYPE_CHECKING:
    from phaze.pipeline.event_lists_kernels import Lists
    from phaze.pipeline.replica import Floats


@njit(cache=True, nogil=True)
def _ready_s(arrived: "Floats", begun: "Floats", what: int, microbatch: int, place: int) -> float:
    """When a pass has what it needs; the weight gradients joined to the gradients of inputs follow
    them."""
    if what == W:
        return min(float(arrived[W, place, microbatch]), float(begun[place]))
    return float(arrived[what, place, microbatch])


@njit(cache=True, nogil=True)
def _deliver(
    arrived: "Floats",
    channel: "Floats",
    messages_s: "Floats",
    done: "tuple[int, int, int, int]",
    end: float,
) -> None:
    """Hand what a pass made, ``done`` its kind, microbatch, place and stage, to the pass that needs
    it: the same of the next place, backwards of the one before; the last forward to its own
    backward, B to its own W.

    A message starts when its sender's channel of that kind is free.
    """
    what, microbatch, place, stage = done
    last = arrived.shape[1] - 1
    if what == B:
        arrived[W, place, microbatch] = end
    if what == F and place == last:
        arrived[B, place, microbatch] = end
    elif what == F or (what == B and place > 0):
        to = place + 1 if what == F else place - 1
        channel[what, stage] = max(channel[what, stage], end) + messages_s[what, to]
        arrived[what, to, microbatch] = channel[what, stage]


@njit(cache=True, nogil=True)
def run_events(
    passes_s: "Floats",
    messages_s: "Floats",
    lists: "Lists",
    rounds: int,
    chunks: int,
    starts_s: "Floats",
) -> float:
    """End of the last event of ``rounds`` microbatches; infinite if passes wait for each other.

    ``passes_s`` [F, B and W; stages] are seconds of a pass, in ``chunks`` equal pieces;
    ``messages_s`` [F and B; places] of the message that a place receives for a piece. ``starts_s``
    of shape (3, S, rounds * chunks) takes the starts, by microbatch and then chunk in the order of
    places, or has no room and is left alone.
    """
    stages, count = lists.shape[0], lists.shape[1]
    arrived, begun = np.full((3, stages * chunks, rounds), np.inf), np.full(stages * chunks, np.inf)
    arrived[F, 0, :] = 0.0
    channel, free, next_event = np.zeros((2, stages)), np.zeros(stages), np.zeros(stages, np.int64)
    keep, moved = starts_s.shape[2] == rounds * chunks, True
    while moved:
        moved = False
        for i in range(stages):
            while next_event[i] < count:
                end, start = next_event[i], free[i]
                while end == next_event[i] or (end < count and lists[i, end, 3] == 1):
                    what, microbatch, place, _ = lists[i, end]
                    start = max(start, _ready_s(arrived, begun, what, microbatch, place))
                    if what == B:
                        begun[place] = 0.0
                    end += 1
                for k in range(next_event[i], end):
                    begun[lists[i, k, 2]] = np.inf
                if start == np.inf:
                    break
                now = start
                for k in range(next_event[i], end):
                    what, microbatch, place, _ = lists[i, k]
                    if keep:
                        starts_s[what, i, microbatch * chunks + place // stages] = now
                    now += passes_s[what, i] / chunks
                for k in range(next_event[i], end):
                    what, microbatch, place, _ = lists[i, k]
                    _deliver(arrived, channel, messages_s, (what, microbatch, place, i), now)
                free[i], next_event[i], moved = now, end, True
    return float(free.max()) if (next_event == count).all() else np.inf
