"""Compiled: the stage table, every stage that can be taken from every closed set, with its sums by recompute mode.

A stage taken from closed set U is a walk of single removals in topological order, so its sums, its forward walk and its
entering edges grow with each layer; only the leaving edges are looked at anew. Stages longer than ``limit_s`` of their
closed set, or that fit into no device even with one microbatch in flight, are left out with all that hold them. Arrays are taken out of
their tuples once: inside the loops that would cost more than the arithmetic.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from phaze.placement.charts import Chart, Flags, Floats, Ints

MODE_COUNT = 3


class Saved(NamedTuple):
    """By layer: bytes kept and seconds recomputed in modes none, selective and full, shared parameters, and blocks.

    ``group`` is the number of the layer's tied group or -1; ``group_bytes``, ``group_size`` and ``group_last`` (the
    last member in topological order) are by group. ``link_bytes_per_s`` is 0 unless edges arrive inside a stage.
    """

    kept_bytes: "Floats"
    again_s: "Floats"
    group: "Ints"
    group_bytes: "Floats"
    group_size: "Ints"
    group_last: "Ints"
    block: "Ints"
    link_bytes_per_s: float


class Room(NamedTuple):
    """What stages must fit into: bytes of memory, bytes held for a byte of parameters, bytes more for each of the
    largest layer, and which modes are allowed at numbers from 2 on and at number 1, the last stage."""

    hbm_bytes: float
    state: float
    working: float
    allowed: "Ints"
    last: "Ints"


class StageTable(NamedTuple):
    """Every stage of every closed set u, at ``start[u]`` .. ``start[u + 1]``: what is left of u, and its sums by mode.

    ``backward_s`` includes recomputing; ``largest_bytes`` are the parameters of the largest layer; ``tied`` marks
    groups that lie in this stage and in others, at the stage of their last member; ``unsplit`` is 1 without a sharded
    layer.
    """

    start: "Ints"
    rest: "Ints"
    forward_s: "Floats"
    backward_s: "Floats"
    parameter_bytes: "Floats"
    largest_bytes: "Floats"
    kept_bytes: "Floats"
    live_bytes: "Floats"
    tied: "Floats"
    unsplit: "Ints"
    blocks: "Ints"


@njit(cache=True)
def new_table(sets: int, room: int, groups: int) -> StageTable:
    """Room for that many stages."""
    return StageTable(
        np.zeros(sets + 1, np.int64),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty((room, 3)),
        np.empty(room),
        np.empty(room),
        np.empty((room, 3)),
        np.empty((room, 3)),
        np.zeros((room, groups)),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
    )


@njit(cache=True)
def _arrival(chart: "Chart", inside: "Flags", layer: int, link: float) -> tuple[float, float]:
    """Seconds of the slowest edge that enters at a layer from outside the stage, and the bytes of all of them."""
    arrival_s = came = 0.0
    for edge in range(chart.in_start[layer], chart.in_start[layer + 1]):
        if not inside[chart.in_tail[edge]]:
            arrival_s = max(arrival_s, chart.in_bytes[edge] / link)
            came += chart.in_bytes[edge]
    return arrival_s, came


@njit(cache=True)
def _leaving(chart: "Chart", inside: "Flags", layer: int, link: float, behind_s: float) -> float:
    """When the slowest edge that leaves at a layer lets its backward end; below 0 if none leaves."""
    latest_s = -1.0
    for edge in range(chart.out_start[layer], chart.out_start[layer + 1]):
        if not inside[chart.out_head[edge]]:
            latest_s = max(latest_s, chart.out_bytes[edge] / link + behind_s)
    return latest_s


@njit(cache=True)
def stage_table(
    chart: "Chart", saved: Saved, device: Room, limit_s: "Floats", room: int
) -> tuple[int, StageTable]:
    """All stages within the limits; how many there are, which may be more than there is ``room`` for."""
    n, sets, groups = chart.forward_s.shape[0], chart.size.shape[0], saved.group_size.shape[0]
    table, link = new_table(sets, room, groups), saved.link_bytes_per_s
    start, rests, ahead_s, back_s, weights, largest, kepts, lives, tied, unsplit, blocks = table
    forward_s, backward_s, parameter_bytes = chart.forward_s, chart.backward_s, chart.parameter_bytes
    activation_bytes, sharded, kept_bytes, again_s = (
        chart.activation_bytes,
        chart.sharded,
        saved.kept_bytes,
        saved.again_s,
    )
    step_start, step_layer, step_set, group_of, block = (
        chart.step_start,
        chart.step_layer,
        chart.step_set,
        saved.group,
        saved.block,
    )
    place, taken, step = np.empty(n + 1, np.int64), np.full(n + 1, -1), np.empty(n + 1, np.int64)
    # Columns: parameters, backward by mode (1 .. 3), kept (4 .. 6), live (7 .. 9), forward, largest layer, end of the
    # forward walk, backward without recomputing, bytes that entered.
    sums, counts = np.zeros((n + 1, 15)), np.zeros((n + 1, 2), np.int64)
    seen, inside = np.zeros((n + 1, groups), np.int64), np.zeros(n, np.bool_)
    leaving, leavers = np.empty((n + 1, n + 1), np.int64), np.zeros(n + 1, np.int64)
    counts[0, 0], count = 1, 0
    for top in range(sets):
        start[top] = count
        place[0], step[0], depth, most_s = top, step_start[top], 0, limit_s[top]
        while depth >= 0:
            if step[depth] == step_start[place[depth] + 1]:
                if depth > 0:
                    inside[taken[depth]] = False
                depth -= 1
                continue
            layer, rest = step_layer[step[depth]], step_set[step[depth]]
            step[depth] += 1
            if layer < taken[depth]:
                continue
            before, after, group = sums[depth], sums[depth + 1], group_of[layer]
            shared = saved.group_bytes[group] if group >= 0 and seen[depth, group] > 0 else 0.0
            after[0] = before[0] + parameter_bytes[layer] - shared
            after[10], after[13] = before[10] + forward_s[layer], before[13] + backward_s[layer]
            if after[10] + after[13] > most_s:
                continue
            after[11], least = max(before[11], parameter_bytes[layer]), np.inf
            for mode in range(3):
                own = kept_bytes[layer, mode]
                after[1 + mode] = before[1 + mode] + backward_s[layer] + again_s[layer, mode]
                after[4 + mode] = before[4 + mode] + own
                after[7 + mode] = max(before[7 + mode], activation_bytes[layer] - own)
                if device.allowed[mode] or device.last[mode]:
                    least = min(least, after[4] if link > 0 else after[4 + mode] + after[7 + mode])
            if device.state * after[0] + least > device.hbm_bytes:
                continue
            depth += 1
            taken[depth], place[depth], step[depth] = layer, rest, step_start[rest]
            counts[depth, 0] = 0 if sharded[layer] else counts[depth - 1, 0]
            counts[depth, 1] = counts[depth - 1, 1] + block[layer]
            ready_s, latest_s = after[10], 0.0
            if link > 0:
                inside[layer] = True
                arrival_s, came = _arrival(chart, inside, layer, link)
                after[14] = before[14] + came
                after[12] = ready_s = max(before[12], arrival_s) + forward_s[layer]
                leaving[depth - 1, leavers[depth - 1]], leavers[depth] = depth, 0
                for i in range(leavers[depth - 1] + 1):
                    level = leaving[depth - 1, i]
                    leaves_s = _leaving(chart, inside, taken[level], link, sums[level, 13])
                    if leaves_s >= 0:
                        leaving[depth, leavers[depth]] = level
                        leavers[depth] += 1
                        latest_s = max(latest_s, leaves_s)
            for g in range(groups):
                seen[depth, g] = seen[depth - 1, g]
            if group >= 0:
                # Members before the last add 1, the last as many as there can be: it is in the stage from then on.
                seen[depth, group] += saved.group_size[group] if saved.group_last[group] == layer else 1
            if count < room:
                rests[count], weights[count], largest[count] = rest, after[0], after[11]
                ahead_s[count], unsplit[count], blocks[count] = ready_s, counts[depth, 0], counts[depth, 1]
                for mode in range(3):
                    back_s[count, mode] = max(after[1 + mode], latest_s)
                    kepts[count, mode], lives[count, mode] = after[4 + mode], after[7 + mode]
                if link > 0:
                    kepts[count, 2], lives[count, 2] = after[14], after[4] - after[14]
                for g in range(groups):
                    size = saved.group_size[g]
                    if size <= seen[depth, g] < 2 * size - 1:
                        tied[count, g] = 1.0
            count += 1
    start[sets] = count
    return count, table


@njit(cache=True)
def cut_bytes(chart: "Chart") -> "Floats":
    """Bytes of the edges that lead into each closed set from outside."""
    n, sets = chart.forward_s.shape[0], chart.size.shape[0]
    total, inside = np.zeros(sets), np.zeros(n, np.bool_)
    for place in range(sets):
        inside[:] = False
        at = place
        while at != 0:
            inside[chart.step_layer[chart.step_start[at]]] = True
            at = chart.step_set[chart.step_start[at]]
        for layer in range(n):
            if inside[layer]:
                for edge in range(chart.in_start[layer], chart.in_start[layer + 1]):
                    if not inside[chart.in_tail[edge]]:
                        total[place] += chart.in_bytes[edge]
    return total
