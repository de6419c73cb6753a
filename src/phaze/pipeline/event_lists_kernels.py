"""Compiled: the order in which the stages of a family run their passes.

Chunk c of stage i is *place* c S + i of a longer line; where the line is folded into a V, stage i
has places i and 2 S - 1 - i. A pass is a forward (F), a backward (B), or, where that is split, the
gradients of inputs (B) and of weights (W) of one microbatch at one place. Passes *joined* to the
one before them start when all have what they need, run after one another, and deliver at the end of
the last.

Every function has the same form: of stages, microbatches of a replica and chunks a stage it makes
[stages, passes, (what, microbatch, place, joined to the pass before it)].
"""

from typing import TYPE_CHECKING

import numpy as np

from phaze.compiled import njit

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Lists = npt.NDArray[np.int32]

# What a pass is.
F, B, W = 0, 1, 2


@njit(cache=True, nogil=True)
def turns(rounds: int, stages: int, chunks: int) -> "Ints":
    """The order in which every stage runs forwards, as (microbatch, chunk): as many microbatches as
    there are stages pass one chunk after the other; backwards run in the same order, chunks from
    the last."""
    order, place = np.empty((rounds * chunks, 2), np.int64), 0
    for first in range(0, rounds, stages):
        for chunk in range(chunks):
            for microbatch in range(first, min(rounds, first + stages)):
                order[place, 0], order[place, 1] = microbatch, chunk
                place += 1
    return order


@njit(cache=True, nogil=True)
def _add(
    passes: "Lists", place: int, what: int, which: "tuple[int, int]", joined: bool = False
) -> int:
    """One more pass of a list: ``which`` are its microbatch and place; ``joined`` to the one before
    it."""
    passes[place, 0], passes[place, 1], passes[place, 2], passes[place, 3] = (
        what,
        which[0],
        which[1],
        int(joined),
    )
    return place + 1


@njit(cache=True, nogil=True)
def all_forwards_first(stages: int, rounds: int, chunks: int) -> "Lists":
    """GPipe: all forwards of a stage, then all its backwards."""
    lists = np.empty((stages, 2 * rounds * chunks, 4), np.int32)
    for stage in range(stages):
        place = 0
        for what in (F, B):
            for microbatch in range(rounds):
                place = _add(lists[stage], place, what, (microbatch, stage))
    return lists


@njit(cache=True, nogil=True)
def one_f_one_b(stages: int, rounds: int, chunks: int) -> "Lists":
    """1F1B: stage i (from 0) runs S - i forwards, with v > 1 chunks 2 (S - 1 - i) + (v - 1) S + 1,
    then one backward and one forward in turn."""
    lists = np.empty((stages, 2 * rounds * chunks, 4), np.int32)
    order, total = turns(rounds, stages, chunks), rounds * chunks
    for stage in range(stages):
        lead = (
            stages - stage if chunks == 1 else 2 * (stages - 1 - stage) + (chunks - 1) * stages + 1
        )
        forwards, backwards, place = 0, 0, 0
        while backwards < total:
            if forwards < min(total, lead + backwards):
                microbatch, chunk = order[forwards]
                place = _add(lists[stage], place, F, (microbatch, chunk * stages + stage))
                forwards += 1
            else:
                microbatch, chunk = order[backwards]
                place = _add(
                    lists[stage], place, B, (microbatch, (chunks - 1 - chunk) * stages + stage)
                )
                backwards += 1
    return lists


@njit(cache=True, nogil=True)
def looped_zero_bubble(stages: int, rounds: int, chunks: int) -> "Lists":
    """ZB-H1, interleaved or not: (v - 1) S + S - 1 - i forwards ahead; then a forward and B in
    turn, from the i-th B on each with the W of i before; then what is left of W."""
    lists = np.empty((stages, 3 * rounds * chunks, 4), np.int32)
    order, total = turns(rounds, stages, chunks), rounds * chunks
    for stage in range(stages):
        passes, place = lists[stage], 0
        ahead = min(total, (chunks - 1) * stages + stages - 1 - stage)
        for k in range(ahead):
            place = _add(passes, place, F, (order[k, 0], order[k, 1] * stages + stage))
        for k in range(total + stage):
            if ahead + k < total:
                place = _add(
                    passes, place, F, (order[ahead + k, 0], order[ahead + k, 1] * stages + stage)
                )
            if k < total:
                place = _add(
                    passes, place, B, (order[k, 0], (chunks - 1 - order[k, 1]) * stages + stage)
                )
            if stage <= k:
                microbatch, chunk = order[k - stage]
                place = _add(passes, place, W, (microbatch, (chunks - 1 - chunk) * stages + stage))
    return lists


@njit(cache=True, nogil=True)
def _counted(
    passes: "Lists", place: int, what: int, chunk: int, done: "Ints", places: "tuple[int, int]"
) -> int:
    """The next pass of a kind and chunk; ``done`` counts them."""
    which = (done[what, chunk], places[chunk])
    done[what, chunk] += 1
    return int(_add(passes, place, what, which))


@njit(cache=True, nogil=True)
def _zero_bubble_v_stage(passes: "Lists", stage: int, stages: int, rounds: int) -> int:
    done, place, places = np.zeros((3, 2), np.int64), 0, (stage, 2 * stages - 1 - stage)
    for _ in range(2 * (stages - stage) - 1):
        place = _counted(passes, place, F, 0, done, places)
    for _ in range(stage):
        place = _counted(passes, place, F, 1, done, places)
        place = _counted(passes, place, F, 0, done, places)
    for _ in range(stages - stage):
        for what in (F, B, W):
            place = _counted(passes, place, what, 1, done, places)
    while done[F, 1] < done[F, 0] or done[F, 0] < rounds:
        for chunk in range(2):
            if chunk == 1 or done[F, 0] < rounds:
                place = _counted(passes, place, F, chunk, done, places)
            place = _counted(passes, place, B, chunk, done, places)
            place = _counted(passes, place, W, chunk, done, places)
    for _ in range(stage):
        place = _counted(passes, place, B, 0, done, places)
        place = _counted(passes, place, B, 1, done, places)
    for _ in range(stages - stage):
        place = _counted(passes, place, B, 0, done, places)
        place = _counted(passes, place, W, 0, done, places)
    for chunk in (1, 0):
        while done[W, chunk] < done[B, chunk]:
            place = _counted(passes, place, W, chunk, done, places)
    return place


@njit(cache=True, nogil=True)
def zero_bubble_v(stages: int, rounds: int, chunks: int) -> "Lists":
    """ZB-V: 2 (S - i) - 1 forwards of the first chunk, i times one of each, S - i times F B W of
    the second; then F B W of both in turn; at the end i times B of both, S - i times B W of the
    first, and the W left."""
    lists = np.empty((stages, 3 * rounds * chunks, 4), np.int32)
    for stage in range(stages):
        _zero_bubble_v_stage(lists[stage], stage, stages, rounds)
    return lists


@njit(cache=True, nogil=True)
def _backward(
    passes: "Lists", place: int, chunk: int, done: "Ints", places: "tuple[int, int]", joined: bool
) -> int:
    """A backward pass with its weight gradients, in one; ``joined`` to a forward before it."""
    which = (done[B, chunk], places[chunk])
    place = _add(passes, place, B, which, joined)
    place = _add(passes, place, W, which, True)
    done[B, chunk] += 1
    return place


@njit(cache=True, nogil=True)
def _dualpipe_v_stage(passes: "Lists", stage: int, stages: int, rounds: int) -> int:
    done, place, places = np.zeros((3, 2), np.int64), 0, (stage, 2 * stages - 1 - stage)
    waiting, put, done_weights = np.empty((2 * rounds, 2), np.int64), 0, 0
    for _ in range(2 * (stages - stage - 1)):
        place = _counted(passes, place, F, 0, done, places)
    for _ in range(stage + 1):
        place = _counted(passes, place, F, 0, done, places)
        place = _counted(passes, place, F, 1, done, places)
    for _ in range(stages - stage - 1):
        microbatch = done[B, 1]
        place = _counted(passes, place, B, 1, done, places)
        place = _add(passes, place, W, (microbatch, places[1]))
        place = _counted(passes, place, F, 1, done, places)
    for k in range(rounds - 2 * stages + stage + 1):
        place = _counted(passes, place, F, 0, done, places)
        place = _backward(passes, place, 1, done, places, not (k == 0 and stage == stages - 1))
        place = _counted(passes, place, F, 1, done, places)
        place = _backward(passes, place, 0, done, places, True)
    for _ in range(stages - stage - 1):
        place = _backward(passes, place, 1, done, places, False)
        place = _counted(passes, place, F, 1, done, places)
        place = _backward(passes, place, 0, done, places, True)
    # Of the last backwards of both chunks in turn, those from the middle on leave W for later.
    for k in range(stages + stage + 1):
        chunk = 0 if k > 2 * stage + 1 else (1, 0)[k % 2]
        if k > 2 * stage + 1 and done_weights < put:
            place = _add(passes, place, W, (waiting[done_weights, 0], waiting[done_weights, 1]))
            done_weights += 1
        if k > stage:
            waiting[put, 0], waiting[put, 1] = done[B, chunk], places[chunk]
            put += 1
            place = _counted(passes, place, B, chunk, done, places)
        else:
            place = _backward(passes, place, chunk, done, places, False)
    while done_weights < put:
        place = _add(passes, place, W, (waiting[done_weights, 0], waiting[done_weights, 1]))
        done_weights += 1
    return place


@njit(cache=True, nogil=True)
def dualpipe_v(stages: int, rounds: int, chunks: int) -> "Lists":
    """DualPipeV: forwards ahead; B W F of the second chunk; then a forward of one chunk in one with
    the whole backward of the other, in turn; then backwards, in the second half of which W waits
    until there is nothing else."""
    lists = np.empty((stages, 3 * rounds * chunks, 4), np.int32)
    for stage in range(stages):
        _dualpipe_v_stage(lists[stage], stage, stages, rounds)
    return lists
