"""Compiled: the stage table, every stage that can be taken from every closed set, with its sums by
recompute mode.

Closed sets are those of :mod:`phaze.placement.cut_sets`.

A stage taken from closed set U is a walk of single removals in topological order, so its sums, its
forward walk and its entering edges grow with each layer; only the leaving edges are considered
anew. Stages longer than ``limit_s`` of their closed set, or that fit into no device even with one
microbatch in flight, are left out with all that hold them.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from phaze.compiled import njit

if TYPE_CHECKING:
    from phaze.placement.cut_sets import CutSets, Flags, Floats, Ints


# The first column of the sums by mode: seconds recomputed, bytes kept, bytes live of the first,
# then of the others.
AGAIN = 7


class Saved(NamedTuple):
    """By layer: bytes kept and seconds recomputed in every mode, the first being none, shared
    parameters, and blocks.

    ``group`` is the number of the layer's tied group or -1; ``group_bytes``, ``group_size`` and
    ``group_last`` (the last member in topological order) are by group. ``link_bytes_per_s`` is 0
    unless edges arrive inside a stage. ``live_bytes`` are held beside those kept while the layer
    runs, by mode, ``buffer_bytes`` once for a ``kind``. ``pairs`` is 1 where the weights of two
    layers in a row are gathered at once, else 0.
    """

    kept_bytes: "Floats"
    again_s: "Floats"
    group: "Ints"
    group_bytes: "Floats"
    group_size: "Ints"
    group_last: "Ints"
    block: "Ints"
    link_bytes_per_s: float
    live_bytes: "Floats"
    buffer_bytes: "Floats"
    kind: "Ints"
    pairs: float


class Room(NamedTuple):
    """What stages must fit into: bytes of memory, bytes held for a byte of parameters, bytes more
    for each of the largest layer, bytes more for a byte of experts (less than 0 where more ranks
    hold these alike) and for each of the layer that has most, and which modes are allowed at
    numbers from 2 on and at number 1, the last stage."""

    hbm_bytes: float
    state: float
    working: float
    experts: float
    experts_working: float
    allowed: "Ints"
    last: "Ints"


class StageTable(NamedTuple):
    """Every stage of every closed set u, at ``start[u]`` .. ``start[u + 1]``: what is left of u,
    and its sums by mode.

    ``backward_s`` includes recomputing; ``largest_bytes`` are the parameters of the largest layer,
    or pair of layers in a row, and where some are experts that ranks shard the most dense ones,
    ``most_expert_bytes`` the most experts; ``buffer_bytes`` those of its kinds of layers, each
    once; ``tied`` marks groups that lie in this stage and in others, at the stage of their last
    member; ``unsplit`` is 1 without a sharded layer.
    """

    start: "Ints"
    rest: "Ints"
    forward_s: "Floats"
    backward_s: "Floats"
    parameter_bytes: "Floats"
    largest_bytes: "Floats"
    buffer_bytes: "Floats"
    kept_bytes: "Floats"
    live_bytes: "Floats"
    tied: "Floats"
    unsplit: "Ints"
    blocks: "Ints"
    expert_bytes: "Floats"
    most_expert_bytes: "Floats"


@njit(cache=True, nogil=True)
def new_table(sets: int, room: int, groups: int, modes: int) -> StageTable:
    """Room for that many stages."""
    return StageTable(
        np.zeros(sets + 1, np.int64),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty((room, modes)),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty((room, modes)),
        np.empty((room, modes)),
        np.zeros((room, groups)),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.zeros(room),
        np.zeros(room),
    )


@njit(cache=True, nogil=True, inline="always")
def _slowest(
    begin: int, end: int, others: "Ints", sizes: "Floats", inside: "Flags"
) -> tuple[float, float]:
    """The most bytes of an edge whose other end lies outside the stage, below 0 if there is none,
    and their sum."""
    most, total = -1.0, 0.0
    for edge in range(begin, end):
        if not inside[others[edge]]:
            most = max(most, sizes[edge])
            total += sizes[edge]
    return most, total


@njit(cache=True, nogil=True, inline="always")
def _saves(
    saved: Saved, sums: "Floats", place: tuple[int, int], used: "Ints", inside: bool
) -> float:
    """Add what a layer keeps and recomputes, by mode; the least kept and live of any mode.

    ``place`` are the depth of the walk and the layer.
    """
    depth, layer = place
    kept_bytes, again_s, live_bytes = saved.kept_bytes, saved.again_s, saved.live_bytes
    least, most = np.inf, max(sums[depth, 5], live_bytes[layer, 0])
    sums[depth + 1, 5], none = most, sums[depth, AGAIN + 1] + kept_bytes[layer, 0]
    for mode in range(kept_bytes.shape[1]):
        column = AGAIN + 3 * mode
        sums[depth + 1, column] = sums[depth, column] + again_s[layer, mode]
        stash = sums[depth, column + 1] + kept_bytes[layer, mode]
        live = max(sums[depth, column + 2], live_bytes[layer, mode])
        sums[depth + 1, column + 1], sums[depth + 1, column + 2] = stash, live
        if used[mode] > 0:
            least = min(least, none + most if inside else stash + live)
    return least


@njit(cache=True, nogil=True, inline="always")
def _buffered(saved: Saved, sums: "Floats", counts: "Ints", depth: int, layer: int) -> float:
    """The buffers of a stage with one more layer: those of its kind, if no layer of it was
    there."""
    bit = np.int64(1) << saved.kind[layer] if saved.buffer_bytes[layer] > 0 else np.int64(0)
    new = 0.0 if counts[depth, 2] & bit else saved.buffer_bytes[layer]
    counts[depth + 1, 2], sums[depth + 1, 6] = counts[depth, 2] | bit, sums[depth, 6] + new
    return float(sums[depth + 1, 6])


@njit(cache=True, nogil=True, inline="always")
def _latest(
    depth: int,
    layers: "Ints",
    sums: "Floats",
    leaving: "Ints",
    leavers: "Ints",
    edges: "tuple[Ints, Ints, Floats]",
    inside: "Flags",
    link: float,
) -> float:
    """The latest end of a backward that waits for an edge; ``leaving`` lists at which depths such
    layers were taken."""
    start, head, size = edges
    latest_s, left = 0.0, 0
    leaving[depth - 1, leavers[depth - 1]] = depth
    for i in range(leavers[depth - 1] + 1):
        level = leaving[depth - 1, i]
        most = -1.0
        for edge in range(start[layers[level]], start[layers[level] + 1]):
            if not inside[head[edge]]:
                most = max(most, size[edge])
        if most >= 0:
            leaving[depth, left] = level
            left += 1
            latest_s = max(latest_s, most / link + sums[level, 2])
    leavers[depth] = left
    return latest_s


@njit(cache=True, nogil=True, inline="always")
def _write(
    back_s: "Floats",
    stash: "Floats",
    live: "Floats",
    sums: "Floats",
    place: tuple[int, int],
    latest_s: float,
    inside: bool,
) -> None:
    """Write the numbers by mode of a stage; where edges arrive inside it, all that it does not keep
    is live.

    ``place`` are the number of the stage and the depth of the walk.
    """
    count, depth = place
    for mode in range(stash.shape[1]):
        column = AGAIN + 3 * mode
        back_s[count, mode] = max(sums[depth, 2] + sums[depth, column], latest_s)
        stash[count, mode], live[count, mode] = sums[depth, column + 1], sums[depth, column + 2]
        if inside:
            live[count, mode] = sums[depth, AGAIN + 1] - sums[depth, column + 1] + sums[depth, 5]


@njit(cache=True, nogil=True)
def _tie(saved: Saved, tied: "Floats", seen: "Ints", where: tuple[int, int, int]) -> None:
    """Count the layer of a tied group that was taken, and mark groups that lie in this stage and in
    others.

    Members before the last add 1, the last as many as there can be: it is in the stage from then
    on.
    """
    depth, layer, count = where
    for g in range(saved.group_size.shape[0]):
        size, seen[depth, g] = saved.group_size[g], seen[depth - 1, g]
        if saved.group[layer] == g:
            seen[depth, g] += size if saved.group_last[g] == layer else 1
        if count < tied.shape[0] and size <= seen[depth, g] < 2 * size - 1:
            tied[count, g] = 1.0


@njit(cache=True, nogil=True, inline="always")
def _gathered(saved: Saved, parameter_bytes: "Floats", layers: "Ints", depth: int) -> float:
    """Parameters of the layer that was taken last, and of the one before where both are gathered at
    once."""
    before = saved.pairs * parameter_bytes[layers[depth - 1]] if depth > 1 else 0.0
    return float(parameter_bytes[layers[depth]] + before)


@njit(cache=True, nogil=True)
def stage_table(
    cut_sets: "CutSets", saved: Saved, device: Room, limit_s: "Floats", room: int
) -> tuple[int, StageTable]:
    """All stages within the limits; how many there are, which may be more than there is ``room``
    for."""
    n, sets, groups = cut_sets.forward_s.shape[0], cut_sets.size.shape[0], saved.group_size.shape[0]
    modes, link, count = saved.kept_bytes.shape[1], saved.link_bytes_per_s, 0
    # The column of what the last mode keeps, full: where edges arrive inside a stage, those from
    # outside it.
    table, used, full = (
        new_table(sets, room, groups, modes),
        device.allowed + device.last,
        AGAIN + 3 * modes - 2,
    )
    (
        start,
        rests,
        ahead_s,
        back_s,
        weights,
        largest,
        buffers,
        kepts,
        lives,
        _,
        unsplit,
        blocks,
        _,
        _,
    ) = table
    _, _, parameter_bytes, _, sharded, in_start, in_tail, in_bytes, _, _, _, _, _, _, _, _ = (
        cut_sets
    )
    step_start, step_layer, step_set = cut_sets.step_start, cut_sets.step_layer, cut_sets.step_set
    forward_s, backward_s, state, hbm = (
        cut_sets.forward_s,
        cut_sets.backward_s,
        device.state,
        device.hbm_bytes,
    )
    # By depth of the walk: the layer taken, what is left, the next step, tied groups, unsplit,
    # blocks, kinds with buffers as bits, and sums: parameters, forward, backward without
    # recomputing, largest layer, end of the forward walk, most live in every mode, buffers, and
    # from AGAIN on by mode recomputed seconds, kept and live.
    layers, place, step = np.full(n + 1, -1), np.empty(n + 1, np.int64), np.empty(n + 1, np.int64)
    seen, counts = np.zeros((n + 1, groups), np.int64), np.zeros((n + 1, 3), np.int64)
    sums = np.zeros((n + 1, AGAIN + 3 * modes))
    inside, leavers, counts[0, 0] = np.zeros(n, np.bool_), np.zeros(n + 1, np.int64), 1
    leaving, edges = (
        np.empty((n + 1, n + 1), np.int64),
        (cut_sets.out_start, cut_sets.out_head, cut_sets.out_bytes),
    )
    for top in range(sets):
        start[top], place[0], step[0], depth = count, top, step_start[top], 0
        while depth >= 0:
            if step[depth] == step_start[place[depth] + 1]:
                inside[layers[depth]] = False
                depth -= 1
                continue
            layer, rest = step_layer[step[depth]], step_set[step[depth]]
            step[depth] += 1
            group, parameters = saved.group[layer], sums[depth, 0] + parameter_bytes[layer]
            if group >= 0 and seen[depth, group] > 0:
                parameters -= saved.group_bytes[group]
            ahead, back = sums[depth, 1] + forward_s[layer], sums[depth, 2] + backward_s[layer]
            if layer < layers[depth] or ahead + back > limit_s[top]:
                continue
            least = _saves(saved, sums, (depth, layer), used, link > 0)
            if state * parameters + _buffered(saved, sums, counts, depth, layer) + least > hbm:
                continue
            depth, latest_s = depth + 1, 0.0
            layers[depth], place[depth], step[depth] = layer, rest, step_start[rest]
            sums[depth, 0], sums[depth, 1], sums[depth, 2], sums[depth, 4] = (
                parameters,
                ahead,
                back,
                ahead,
            )
            sums[depth, 3] = max(
                sums[depth - 1, 3], _gathered(saved, parameter_bytes, layers, depth)
            )
            counts[depth, 0], counts[depth, 1] = (
                counts[depth - 1, 0] * (not sharded[layer]),
                counts[depth - 1, 1] + saved.block[layer],
            )
            if link > 0:
                inside[layer] = True
                most, came = _slowest(
                    in_start[layer], in_start[layer + 1], in_tail, in_bytes, inside
                )
                sums[depth, full] = sums[depth - 1, full] + came
                sums[depth, 4] = max(sums[depth - 1, 4], most / link) + forward_s[layer]
                latest_s = _latest(depth, layers, sums, leaving, leavers, edges, inside, link)
            if groups > 0:
                _tie(saved, table.tied, seen, (depth, layer, count))
            if count < room:
                rests[count], largest[count], ahead_s[count] = rest, sums[depth, 3], sums[depth, 4]
                weights[count], buffers[count] = parameters, sums[depth, 6]
                unsplit[count], blocks[count] = counts[depth, 0], counts[depth, 1]
                _write(back_s, kepts, lives, sums, (count, depth), latest_s, link > 0)
            count += 1
    start[sets] = count
    return count, table


@njit(cache=True, nogil=True)
def owners(cut_sets: "CutSets", rests: "Ints") -> "Ints":
    """The stage of every layer, from what is left after each stage, first to last."""
    owner = np.zeros(cut_sets.forward_s.shape[0], np.int64)
    for stage in range(rests.shape[0]):
        place = rests[stage]
        while place != 0:
            owner[cut_sets.step_layer[cut_sets.step_start[place]]] = stage + 1
            place = cut_sets.step_set[cut_sets.step_start[place]]
    return owner


@njit(cache=True, nogil=True)
def cut_bytes(cut_sets: "CutSets") -> "Floats":
    """Bytes of the edges that lead into each closed set from outside."""
    n, sets = cut_sets.forward_s.shape[0], cut_sets.size.shape[0]
    total, inside = np.zeros(sets), np.zeros(n, np.bool_)
    for place in range(sets):
        inside[:] = False
        rest = place
        while rest != 0:
            inside[cut_sets.step_layer[cut_sets.step_start[rest]]] = True
            rest = cut_sets.step_set[cut_sets.step_start[rest]]
        for layer in range(n):
            if inside[layer]:
                for edge in range(cut_sets.in_start[layer], cut_sets.in_start[layer + 1]):
                    if not inside[cut_sets.in_tail[edge]]:
                        total[place] += cut_sets.in_bytes[edge]
    return total
