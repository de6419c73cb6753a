"""Compiled: the events of a pipeline, one replica, under 1F1B, GPipe and interleaved 1F1B."""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit

if TYPE_CHECKING:
    from phaze.placement.cut_sets import Floats, Ints


@njit(cache=True, nogil=True)
def events(forward_s: "Floats", backward_s: "Floats", rounds: int, starts_s: "Floats") -> float:
    """End of the last event of 1F1B: stage i runs S - i forwards ahead, then one forward, one backward, in turn.

    At step j stage i (from 0) runs forward j and backward j - (S - i) + 1, each as soon as the stage is free and the
    neighbour has delivered. ``starts_s`` of shape (2, S, rounds) takes the starts, or has no room and is left alone.
    """
    stages = forward_s.shape[0]
    free, ahead, behind = np.zeros(stages), np.zeros(stages), np.zeros(stages + 1)
    keep = starts_s.shape[2] == rounds
    for step in range(rounds + stages - 1):
        for i in range(stages):
            if step < rounds:
                start = max(free[i], ahead[i - 1]) if i > 0 else free[i]
                free[i] = ahead[i] = start + forward_s[i]
                if keep:
                    starts_s[0, i, step] = start
        for i in range(stages):
            turn = step - (stages - i) + 1
            if 0 <= turn < rounds:
                start = max(free[i], behind[i + 1]) if i < stages - 1 else free[i]
                free[i] = behind[i] = start + backward_s[i]
                if keep:
                    starts_s[1, i, turn] = start
    return float(free.max())


@njit(cache=True, nogil=True)
def gpipe_events(forward_s: "Floats", backward_s: "Floats", rounds: int, starts_s: "Floats") -> float:
    """End of the last event of GPipe: all forwards of a stage, then all its backwards; ``starts_s`` as in events."""
    stages, keep = forward_s.shape[0], starts_s.shape[2] == rounds
    free = np.zeros(stages)
    for one in range(rounds):
        done = 0.0
        for i in range(stages):
            start = max(free[i], done)
            free[i] = done = start + forward_s[i]
            if keep:
                starts_s[0, i, one] = start
    for one in range(rounds):
        done = 0.0
        for i in range(stages - 1, -1, -1):
            start = max(free[i], done)
            free[i] = done = start + backward_s[i]
            if keep:
                starts_s[1, i, one] = start
    return float(free.max())


@njit(cache=True, nogil=True)
def turns(rounds: int, stages: int, chunks: int) -> "Ints":
    """The order in which every stage runs forwards, as (microbatch, chunk): as many microbatches as there are stages
    pass one chunk after the other; backwards run in the same order, chunks from the last."""
    order, at = np.empty((rounds * chunks, 2), np.int64), 0
    for first in range(0, rounds, stages):
        for chunk in range(chunks):
            for one in range(first, min(rounds, first + stages)):
                order[at, 0], order[at, 1] = one, chunk
                at += 1
    return order


@njit(cache=True, nogil=True)
def _deliver(
    ready: "Floats", channel: "Floats", messages_s: "Floats", piece: tuple[int, int, int, int], end: float
) -> None:
    """Hand what a piece made, ``piece`` its pass, stage, number and the chunks, to the piece that needs it: the same of
    the next stage, or the next chunk of the first; backwards likewise; the last forward of all to its own backward.

    A message starts when its sender's channel of that pass is free.
    """
    way, i, number, chunks = piece
    last, chunk = ready.shape[1] - 1, number % chunks
    if way == 0:
        to, then = (i + 1, number) if i < last else (0, number + 1)
        over = i == last and chunk == chunks - 1
    else:
        to, then = (i - 1, number) if i > 0 else (last, number - 1)
        over = i == 0 and chunk == 0
    if not over:
        channel[way, i] = max(channel[way, i], end) + messages_s[way, to]
        ready[way, to, then] = channel[way, i]
    elif way == 0:
        ready[1, i, number] = end


@njit(cache=True, nogil=True)
def interleaved_events(passes_s: "Floats", messages_s: "Floats", rounds: int, chunks: int, starts_s: "Floats") -> float:
    """End of the last event of interleaved 1F1B, each pass of a stage in ``chunks`` equal pieces.

    ``passes_s`` and ``messages_s`` are [forward and backward, stages]: seconds of a pass, and of one message that the
    stage receives for a piece of it. Piece c of stage i hands on to piece c of stage i + 1, the last stage to piece
    c + 1 of the first. Stage i (from 0) runs 2 (S - 1 - i) + (v - 1) S forward pieces ahead, then one forward and one
    backward piece in turn, each as soon as it is free and has what it needs. ``starts_s`` of shape (2, S, rounds *
    chunks) takes the starts, by microbatch and then chunk, or has no room and is left alone.
    """
    stages, total = passes_s.shape[1], rounds * chunks
    order, ready, channel = turns(rounds, stages, chunks), np.full((2, stages, total), np.inf), np.zeros((2, stages))
    ready[0, 0, ::chunks] = 0.0
    free, ahead, behind = np.zeros(stages), np.zeros(stages, np.int64), np.zeros(stages, np.int64)
    keep, moved = starts_s.shape[2] == total, True
    while moved:
        moved = False
        for i in range(stages):
            lead = min(total, 2 * (stages - 1 - i) + (chunks - 1) * stages + 1)
            while behind[i] < total:
                forward = ahead[i] < min(total, lead + behind[i])
                one, chunk = order[ahead[i] if forward else behind[i]]
                way, piece = (0, one * chunks + chunk) if forward else (1, one * chunks + chunks - 1 - chunk)
                if ready[way, i, piece] == np.inf:
                    break
                start = max(free[i], ready[way, i, piece])
                free[i] = start + passes_s[way, i] / chunks
                _deliver(ready, channel, messages_s, (way, i, piece, chunks), free[i])
                if keep:
                    starts_s[way, i, piece] = start
                ahead[i] += 1 - way
                behind[i] += way
                moved = True
    return float(free.max()) if behind.min() == total else np.inf
