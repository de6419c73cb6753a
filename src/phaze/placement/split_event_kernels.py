"""Compiled: the events of a pipeline whose backward pass is split into gradients of inputs (B) and of weights (W).

Chunk c of stage i is *place* c S + i of a longer line; where the line is folded into a V, stage i has places i and
2 S - 1 - i. A stage runs a fixed list of passes:

    looped      (v - 1) S + S - 1 - i forwards ahead; then a forward and B in turn, from the i-th B on each with the W
                of i before; then what is left of W                                  (zb-h1, zb-interleaved)
    zb-v        2 (S - i) - 1 forwards of the first chunk, i times one of each, S - i times F B W of the second; then
                F B W of both in turn; at the end i times B of both, S - i times B W of the first, and the W left
    dualpipe-v  forwards ahead; B W F of the second chunk; then a forward of one chunk in one with the whole backward of
                the other, in turn; then backwards, in the second half of which W waits until there is nothing else

Passes *in one* start when all have what they need, run after one another, and deliver at the end of the last.
"""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit
from phaze.placement.event_kernels import turns

if TYPE_CHECKING:
    from phaze.placement.cut_sets import Floats, Ints

# What a pass is, and the orders that lists are made of.
F, B, W = 0, 1, 2
LOOPED, ZB_V, DUALPIPE_V = 0, 1, 2


@njit(cache=True, nogil=True)
def _add(passes: "Ints", at: int, what: int, which: "tuple[int, int]", joined: bool = False) -> int:
    """One more pass of a list: ``which`` are its microbatch and place; ``joined`` to the one before it."""
    passes[at, 0], passes[at, 1], passes[at, 2], passes[at, 3] = what, which[0], which[1], int(joined)
    return at + 1


@njit(cache=True, nogil=True)
def _looped(passes: "Ints", stage: int, stages: int, rounds: int, chunks: int) -> int:
    order, total, at = turns(rounds, stages, chunks), rounds * chunks, 0
    ahead = min(total, (chunks - 1) * stages + stages - 1 - stage)
    for k in range(ahead):
        at = _add(passes, at, F, (order[k, 0], order[k, 1] * stages + stage))
    for k in range(total + stage):
        if ahead + k < total:
            at = _add(passes, at, F, (order[ahead + k, 0], order[ahead + k, 1] * stages + stage))
        if k < total:
            at = _add(passes, at, B, (order[k, 0], (chunks - 1 - order[k, 1]) * stages + stage))
        if stage <= k:
            one, chunk = order[k - stage]
            at = _add(passes, at, W, (one, (chunks - 1 - chunk) * stages + stage))
    return at


@njit(cache=True, nogil=True)
def _counted(passes: "Ints", at: int, what: int, chunk: int, done: "Ints", places: "tuple[int, int]") -> int:
    """The next pass of a kind and chunk; ``done`` counts them."""
    which = (done[what, chunk], places[chunk])
    done[what, chunk] += 1
    return int(_add(passes, at, what, which))


@njit(cache=True, nogil=True)
def _zb_v(passes: "Ints", stage: int, stages: int, rounds: int) -> int:
    done, at, places = np.zeros((3, 2), np.int64), 0, (stage, 2 * stages - 1 - stage)
    for _ in range(2 * (stages - stage) - 1):
        at = _counted(passes, at, F, 0, done, places)
    for _ in range(stage):
        at = _counted(passes, at, F, 1, done, places)
        at = _counted(passes, at, F, 0, done, places)
    for _ in range(stages - stage):
        for what in (F, B, W):
            at = _counted(passes, at, what, 1, done, places)
    while done[F, 1] < done[F, 0] or done[F, 0] < rounds:
        for chunk in range(2):
            if chunk == 1 or done[F, 0] < rounds:
                at = _counted(passes, at, F, chunk, done, places)
            at = _counted(passes, at, B, chunk, done, places)
            at = _counted(passes, at, W, chunk, done, places)
    for _ in range(stage):
        at = _counted(passes, at, B, 0, done, places)
        at = _counted(passes, at, B, 1, done, places)
    for _ in range(stages - stage):
        at = _counted(passes, at, B, 0, done, places)
        at = _counted(passes, at, W, 0, done, places)
    for chunk in (1, 0):
        while done[W, chunk] < done[B, chunk]:
            at = _counted(passes, at, W, chunk, done, places)
    return at


@njit(cache=True, nogil=True)
def _backward(passes: "Ints", at: int, chunk: int, done: "Ints", places: "tuple[int, int]", joined: bool) -> int:
    """A backward pass with its weight gradients, in one; ``joined`` to a forward before it."""
    which = (done[B, chunk], places[chunk])
    at = _add(passes, at, B, which, joined)
    at = _add(passes, at, W, which, True)
    done[B, chunk] += 1
    return at


@njit(cache=True, nogil=True)
def _dualpipe_v(passes: "Ints", stage: int, stages: int, rounds: int) -> int:
    done, at, places = np.zeros((3, 2), np.int64), 0, (stage, 2 * stages - 1 - stage)
    waiting, put, taken = np.empty((2 * rounds, 2), np.int64), 0, 0
    for _ in range(2 * (stages - stage - 1)):
        at = _counted(passes, at, F, 0, done, places)
    for _ in range(stage + 1):
        at = _counted(passes, at, F, 0, done, places)
        at = _counted(passes, at, F, 1, done, places)
    for _ in range(stages - stage - 1):
        own = done[B, 1]
        at = _counted(passes, at, B, 1, done, places)
        at = _add(passes, at, W, (own, places[1]))
        at = _counted(passes, at, F, 1, done, places)
    for k in range(rounds - 2 * stages + stage + 1):
        at = _counted(passes, at, F, 0, done, places)
        at = _backward(passes, at, 1, done, places, not (k == 0 and stage == stages - 1))
        at = _counted(passes, at, F, 1, done, places)
        at = _backward(passes, at, 0, done, places, True)
    for _ in range(stages - stage - 1):
        at = _backward(passes, at, 1, done, places, False)
        at = _counted(passes, at, F, 1, done, places)
        at = _backward(passes, at, 0, done, places, True)
    # Of the last backwards of both chunks in turn, those from the middle on leave W for later.
    for k in range(stages + stage + 1):
        chunk = 0 if k > 2 * stage + 1 else (1, 0)[k % 2]
        if k > 2 * stage + 1 and taken < put:
            at = _add(passes, at, W, (waiting[taken, 0], waiting[taken, 1]))
            taken += 1
        if k > stage:
            waiting[put, 0], waiting[put, 1] = done[B, chunk], places[chunk]
            put += 1
            at = _counted(passes, at, B, chunk, done, places)
        else:
            at = _backward(passes, at, chunk, done, places, False)
    while taken < put:
        at = _add(passes, at, W, (waiting[taken, 0], waiting[taken, 1]))
        taken += 1
    return at


@njit(cache=True, nogil=True)
def split_lists(order: int, stages: int, rounds: int, chunks: int) -> "Ints":
    """What every stage runs: [stages, passes, (what, microbatch, place, joined to the pass before it)]."""
    lists = np.empty((stages, 3 * rounds * chunks, 4), np.int64)
    for stage in range(stages):
        if order == LOOPED:
            _looped(lists[stage], stage, stages, rounds, chunks)
        elif order == ZB_V:
            _zb_v(lists[stage], stage, stages, rounds)
        else:
            _dualpipe_v(lists[stage], stage, stages, rounds)
    return lists


@njit(cache=True, nogil=True)
def _ready_s(done: "Floats", what: int, one: int, place: int, begun: "Floats") -> float:
    """When a pass has what it needs; a place that runs in one with it (``begun``) counts as ready."""
    places = done.shape[1]
    if what == F:
        return float(done[F, place - 1, one]) if place > 0 else 0.0
    if what == W:
        return min(float(done[B, place, one]), float(begun[B, place]))
    if place < places - 1:
        return float(done[B, place + 1, one])
    return float(done[F, place, one])


@njit(cache=True, nogil=True)
def split_events(passes_s: "Floats", lists: "Ints", chunks: int, starts_s: "Floats") -> float:
    """End of the last event; ``passes_s`` are F, B and W of every stage, each in ``chunks`` equal pieces.

    ``starts_s`` of shape (3, S, rounds * chunks) takes the starts, by microbatch and then chunk in the order of places,
    or has no room and is left alone.
    """
    stages, count = lists.shape[0], lists.shape[1]
    rounds, places = count // (3 * chunks), stages * chunks
    done, free, at = np.full((3, places, rounds), np.inf), np.zeros(stages), np.zeros(stages, np.int64)
    begun, keep, moved = np.full((3, places), np.inf), starts_s.shape[2] == rounds * chunks, True
    while moved:
        moved = False
        for i in range(stages):
            while at[i] < count:
                end, start = at[i], free[i]
                while end == at[i] or (end < count and lists[i, end, 3] == 1):
                    what, one, place, _ = lists[i, end]
                    start = max(start, _ready_s(done, what, one, place, begun))
                    begun[what, place] = 0.0
                    end += 1
                for k in range(at[i], end):
                    begun[lists[i, k, 0], lists[i, k, 2]] = np.inf
                if start == np.inf:
                    break
                now = start
                for k in range(at[i], end):
                    what, one, place, _ = lists[i, k]
                    if keep:
                        starts_s[what, i, one * chunks + place // stages] = now
                    now += passes_s[what, i] / chunks
                for k in range(at[i], end):
                    what, one, place, _ = lists[i, k]
                    done[what, place, one] = now
                free[i], at[i], moved = now, end, True
    return float(free.max()) if (at == count).all() else np.inf
