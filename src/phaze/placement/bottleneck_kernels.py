"""Compiled: the bottleneck table over (closed set, unsplit stages, stages), and what is read off
it.

Closed sets are those of :mod:`phaze.placement.cut_sets`.

With g(U, q, s) the least over all cuts of closed set U into s stages, q of them unsplit, of the
greatest stage time, and X running over the stages that can be taken from U,

    g(empty, 0, 0) = 0,   g(U, q, s) = min over X of max( T(X, s), g(U - X, q - [X unsplit], s - 1)
                          )       (bottleneck)

where T(X, s) is the time in the fastest mode in which X fits at number s, infinite if there is
none. s stages of which q are unsplit take t (s - q) + q devices, so there is no axis of devices.
``limit_s[S]`` is the greatest stage time of a plan of at least S stages that is of interest; a
stage of number s of a part of the graph belongs to a plan of more than s. Where only the pace and
the first stage count, the table decides (fastest); otherwise it bounds.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from phaze.compiled import njit
from phaze.placement.stage_kernels import Room, StageTable

if TYPE_CHECKING:
    from phaze.placement.cut_sets import CutSets, Floats, Ints

NO_MODE = -1
"""No mode of recompute fits."""


class ReplicaDegrees(NamedTuple):
    """Devices of a split stage, devices and microbatches in all, and alpha = m + slope S + offset
    of the family."""

    width: int
    devices: int
    microbatches: int
    slope: float
    offset: float


@njit(cache=True, nogil=True, inline="always")
def held_bytes(table: StageTable, room: Room, pair: int) -> float:
    """Bytes of weights, gradients, their buffers and optimizer state of a stage."""
    state = room.state * table.parameter_bytes[pair] + room.working * table.largest_bytes[pair]
    experts = (
        room.experts * table.expert_bytes[pair]
        + room.experts_working * table.most_expert_bytes[pair]
    )
    return float(state + table.buffer_bytes[pair] + experts)


@njit(cache=True, nogil=True, inline="always")
def mode_of(table: StageTable, room: Room, pair: int, in_flight: float) -> int:
    """The fastest mode in which a stage fits with so many microbatches in flight, of equals the
    first; or NO_MODE."""
    state_bytes, chosen = held_bytes(table, room, pair), NO_MODE
    allowed = room.last if table.rest[pair] == 0 else room.allowed
    for mode in range(table.kept_bytes.shape[1]):
        if allowed[mode]:
            need = (
                state_bytes
                + table.live_bytes[pair, mode]
                + in_flight * table.kept_bytes[pair, mode]
            )
            faster = (
                chosen == NO_MODE or table.backward_s[pair, mode] < table.backward_s[pair, chosen]
            )
            if need <= room.hbm_bytes and faster:
                chosen = mode
    return chosen


@njit(cache=True, nogil=True, inline="always")
def highest(
    state_bytes: float, stash_bytes: float, hbm: float, in_flight: "Floats", most: int
) -> int:
    """The greatest number s <= ``most`` with held + in_flight[s] kept <= hbm, 0 if none; it
    never falls with s."""
    if state_bytes + in_flight[most] * stash_bytes <= hbm:
        return most
    low, high = 0, most - 1
    while low < high:
        middle = (low + high + 1) // 2
        if state_bytes + in_flight[middle] * stash_bytes <= hbm:
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True, nogil=True)
def _within(time_s: float, most: int, limit_s: "Floats", shift: int) -> int:
    """The greatest s <= ``most`` at which a stage of that time is of interest; limits fall with
    s."""
    if time_s <= limit_s[most + shift]:
        return most
    low, high = 0, most - 1
    while low < high:
        middle = (low + high + 1) // 2
        if time_s <= limit_s[middle + shift]:
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True, nogil=True)
def bottleneck(
    cut_sets: "CutSets",
    table: StageTable,
    room: Room,
    in_flight: "Floats",
    limits: "tuple[int, Floats, Floats]",
) -> "Floats":
    """g for every closed set; ``limits`` are the kinds of q, the least transfer into each closed
    set, limit_s."""
    kinds, move_s, limit_s = limits
    sets, most = table.start.shape[0] - 1, in_flight.shape[0] - 1
    size, unsplit, g = cut_sets.size, cut_sets.unsplit, np.full((sets, kinds, most + 1), np.inf)
    g[0, 0, 0] = 0.0
    start, rests, forward_s, backward_s = table.start, table.rest, table.forward_s, table.backward_s
    stash_bytes, live, whole_stage, modes = (
        table.kept_bytes,
        table.live_bytes,
        table.unsplit,
        table.kept_bytes.shape[1],
    )
    hbm, inner, last = room.hbm_bytes, room.allowed, room.last
    for top in range(1, sets):
        later = 0 if top == sets - 1 else 1
        entry_s = move_s[top] if later else 0.0
        for pair in range(start[top], start[top + 1]):
            rest = rests[pair]
            shift = whole_stage[pair] if kinds > 1 else 0
            begin, end = (1, 1) if rest == 0 else (2, min(most, size[rest] + 1))
            base_s = forward_s[pair] + entry_s + (0.0 if rest == 0 else move_s[rest])
            state_bytes, covered, slowest_s = held_bytes(table, room, pair), 0, 0.0
            for mode in range(modes):
                own_s = base_s + backward_s[pair, mode]
                # A mode that is slower than those before it only matters at numbers where they do
                # not fit.
                if not (last[mode] if rest == 0 else inner[mode]) or (
                    covered >= end and own_s >= slowest_s
                ):
                    continue
                up_to = _within(own_s, end, limit_s, later)
                if up_to >= begin:
                    up_to = highest(
                        state_bytes + live[pair, mode],
                        stash_bytes[pair, mode],
                        hbm,
                        in_flight,
                        up_to,
                    )
                if up_to < begin:
                    continue
                first = max(begin, covered + 1) if own_s >= slowest_s else begin
                for q in range(min(unsplit[rest], kinds - 1 - shift) + 1):
                    for s in range(first, up_to + 1):
                        g[top, q + shift, s] = min(
                            g[top, q + shift, s], max(own_s, g[rest, q, s - 1])
                        )
                covered, slowest_s = max(covered, up_to), max(slowest_s, own_s)
    return g


@njit(cache=True, nogil=True)
def longest_of(cut_sets: "CutSets", limit_s: "Floats") -> "Floats":
    """For each closed set the greatest time of a stage taken from it that is of interest; below 0
    if none is.

    Stage s of U stands in a plan of S > s stages, and the layers of U fill s stages of limit(S) <=
    limit(s + 1) at the most, so s is at least the first number with C(U) <= s limit(s + 1), and the
    stage takes at most limit(s + 1).
    """
    sets, most = cut_sets.size.shape[0], limit_s.shape[0] - 2
    inside_s, longest_s = np.zeros(sets), np.full(sets, -1.0)
    for top in range(1, sets):
        step = cut_sets.step_start[top]
        layer = cut_sets.step_layer[step]
        inside_s[top] = (
            inside_s[cut_sets.step_set[step]]
            + cut_sets.forward_s[layer]
            + cut_sets.backward_s[layer]
        )
        for s in range(1, most):
            # The slack covers sums of the same seconds in another order; a limit too high prunes
            # less, never wrongly.
            if inside_s[top] <= s * limit_s[s + 1] * (1 + 1e-9):
                longest_s[top] = limit_s[s + 1]
                break
    longest_s[sets - 1] = limit_s[1]
    return longest_s


@njit(cache=True, nogil=True)
def fastest_degree(
    degrees: ReplicaDegrees, most: int, term: tuple[float, int, float], best: float
) -> tuple[float, int]:
    """The least batch time below ``best`` over data degrees up to ``most``, and the degree (0 if
    there is none).

    ``term`` holds the pace T, the number of stages S, and W. With r = slope S + offset the time is
    T (ceil(M/d) + r) + W (1 - 1/d) >= T r + W + (T M - W) / d. If T M <= W that is least at d = 1,
    where it is exact. Else it falls with d, so degrees are tried from the greatest down, the least
    d for each ceil(M/d), until it passes the best.
    """
    pace_s, s, sync_s = term
    microbatches, more = degrees.microbatches, degrees.slope * s + degrees.offset
    if pace_s * microbatches <= sync_s:
        cost = pace_s * (microbatches + more)
        return (cost, 1) if cost < best else (best, 0)
    chosen, degree = 0, most
    while degree > 0:
        # A tie within rounding is evaluated rather than cut off, so that equal plans keep their
        # order.
        if pace_s * more + sync_s + (pace_s * microbatches - sync_s) / degree >= best * (1 + 1e-12):
            break
        rounds = -(-microbatches // degree)
        # Among degrees with as many rounds the least has the cheapest all-reduce.
        degree = -(-microbatches // rounds)
        cost = pace_s * (rounds + more) + sync_s * (degree - 1) / degree
        if cost < best:
            best, chosen = cost, degree
        degree -= 1
    return best, chosen


@njit(cache=True, nogil=True)
def best_of_table(
    cut_sets: "CutSets",
    table: StageTable,
    room: Room,
    in_flight: "Floats",
    rest_of: "tuple[Floats, Floats, ReplicaDegrees, float, float]",
) -> tuple[float, int, int, int, int]:
    """The plan faster than ``best``: batch time, first stage, unsplit stages, stages, data degree
    (0: none is).

    ``rest_of`` holds g, limit_s, the degrees, the seconds of W for a byte of the first stage's
    parameters, and the best time known.
    """
    g, limit_s, degrees, sync_s_per_byte, best = rest_of
    sets, kinds, most = g.shape[0], g.shape[1], g.shape[2] - 1
    chosen = (best, 0, 0, 0, 0)
    for pair in range(table.start[sets - 1], table.start[sets]):
        rest = table.rest[pair]
        shift, sync_s = (
            table.unsplit[pair] if kinds > 1 else 0,
            sync_s_per_byte * table.parameter_bytes[pair],
        )
        begin, end = (1, 1) if rest == 0 else (2, min(most, cut_sets.size[rest] + 1))
        for s in range(begin, end + 1):
            mode = mode_of(table, room, pair, in_flight[s])
            # More microbatches are in flight further from the end, so no later number fits either.
            if mode == NO_MODE:
                break
            own_s = table.forward_s[pair] + table.backward_s[pair, mode]
            if own_s > limit_s[s]:
                break
            for q in range(shift, min(cut_sets.unsplit[rest], kinds - 1 - shift) + shift + 1):
                pace_s = max(own_s, g[rest, q - shift, s - 1])
                devices = degrees.width * (s - q) + q
                if pace_s == np.inf or devices > degrees.devices:
                    continue
                replicas = min(degrees.devices // devices, degrees.microbatches)
                cost, degree = fastest_degree(degrees, replicas, (pace_s, s, sync_s), chosen[0])
                if degree > 0:
                    chosen = (cost, pair, q, s, degree)
    return chosen


@njit(cache=True, nogil=True)
def trace(
    table: StageTable,
    room: Room,
    in_flight: "Floats",
    g: "Floats",
    choice: tuple[int, int, int],
) -> "tuple[Ints, Ints]":
    """The stages first to last of the plan of that first stage, unsplit stages and stages, and
    their modes."""
    pair, q, stages = choice
    path, modes = np.empty(stages, np.int64), np.empty(stages, np.int64)
    for number in range(stages, 0, -1):
        path[stages - number], modes[stages - number] = (
            pair,
            mode_of(table, room, pair, in_flight[number]),
        )
        top = table.rest[pair]
        q -= table.unsplit[pair] if g.shape[1] > 1 else 0
        promised = g[top, q, number - 1]
        for other in range(table.start[top], table.start[top + 1]):
            shift, rest = table.unsplit[other] if g.shape[1] > 1 else 0, table.rest[other]
            mode = mode_of(table, room, other, in_flight[number - 1])
            if q < shift or mode == NO_MODE or (rest == 0) != (number == 2):
                continue
            own_s = table.forward_s[other] + table.backward_s[other, mode]
            if max(own_s, g[rest, q - shift, number - 2]) <= promised:
                pair = other
                break
    return path, modes
