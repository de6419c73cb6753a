"""Compiled, for rules ``cluster``: every stage of every closed set, and which depths fit at what pace."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from phaze.placement.charts import Chart, Floats, Ints


class Kept(NamedTuple):
    """By layer: bytes kept and seconds computed again in modes none, selective and full; shared parameters.

    ``group`` is the number of the layer's tied group or -1; ``group_bytes``, ``group_size`` and ``group_last`` (the
    last member in topological order) are by group.
    """

    kept_bytes: "Floats"
    again_s: "Floats"
    group: "Ints"
    group_bytes: "Floats"
    group_size: "Ints"
    group_last: "Ints"


class Pairs(NamedTuple):
    """Every stage of every closed set u, at ``start[u]`` .. ``start[u + 1]``: what is left, and its sums by mode.

    ``backward_s`` holds what is computed again; ``largest_bytes`` are the parameters of the largest layer.
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


class Room(NamedTuple):
    """What stages must fit into: bytes of memory, bytes held for a byte of parameters, bytes more for each of the
    largest layer, and which modes are allowed."""

    hbm_bytes: float
    state: float
    working: float
    allowed: "Ints"


@njit(cache=True, nogil=True)
def pairs_of(chart: "Chart", kept: Kept, most_parameter_bytes: float, room: int) -> tuple[int, Pairs]:
    """All stages with no more parameters than that; how many there are, which may be more than there is ``room``."""
    n, sets, groups = chart.forward_s.shape[0], chart.size.shape[0], kept.group_size.shape[0]
    pairs = Pairs(
        np.zeros(sets + 1, np.int64),
        np.empty(room, np.int64),
        np.empty(room),
        np.empty((room, 3)),
        np.empty(room),
        np.empty(room),
        np.empty((room, 3)),
        np.empty((room, 3)),
        np.zeros((room, groups)),
    )
    place, taken, step = np.empty(n + 1, np.int64), np.full(n + 1, -1), np.empty(n + 1, np.int64)
    sums, seen, count = np.zeros((n + 1, 12)), np.zeros((n + 1, groups), np.int64), 0
    for top in range(sets):
        pairs.start[top] = count
        place[0], step[0], depth = top, chart.step_start[top], 0
        while depth >= 0:
            if step[depth] == chart.step_start[place[depth] + 1]:
                depth -= 1
                continue
            layer, rest = chart.step_layer[step[depth]], chart.step_set[step[depth]]
            step[depth] += 1
            if layer < taken[depth]:
                continue
            group = kept.group[layer]
            shared = kept.group_bytes[group] if group >= 0 and seen[depth, group] > 0 else 0.0
            parameters = sums[depth, 0] + chart.parameter_bytes[layer] - shared
            if parameters > most_parameter_bytes:
                continue
            depth += 1
            taken[depth], place[depth], step[depth] = layer, rest, chart.step_start[rest]
            seen[depth] = seen[depth - 1]
            if group >= 0:
                seen[depth, group] += 1
            sums[depth, 0] = parameters
            sums[depth, 10] = sums[depth - 1, 10] + chart.forward_s[layer]
            sums[depth, 11] = max(sums[depth - 1, 11], chart.parameter_bytes[layer])
            for mode in range(3):
                own = kept.kept_bytes[layer, mode]
                again_s = chart.backward_s[layer] + kept.again_s[layer, mode]
                sums[depth, 1 + mode] = sums[depth - 1, 1 + mode] + again_s
                sums[depth, 4 + mode] = sums[depth - 1, 4 + mode] + own
                sums[depth, 7 + mode] = max(sums[depth - 1, 7 + mode], chart.activation_bytes[layer] - own)
            if count < room:
                pairs.rest[count], pairs.parameter_bytes[count] = rest, parameters
                pairs.forward_s[count], pairs.largest_bytes[count] = sums[depth, 10], sums[depth, 11]
                pairs.backward_s[count], pairs.kept_bytes[count] = sums[depth, 1:4], sums[depth, 4:7]
                pairs.live_bytes[count] = sums[depth, 7:10]
                for g in range(groups):
                    last = (taken[1 : depth + 1] == kept.group_last[g]).any()
                    if last and seen[depth, g] < kept.group_size[g]:
                        pairs.tied[count, g] = 1.0
            count += 1
    pairs.start[sets] = count
    return count, pairs


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def mode_of(pairs: Pairs, room: Room, pair: int, flying: int) -> int:
    """The fastest mode in which a stage fits with so many microbatches in flight, of equals the first; 3 if none."""
    held = room.state * pairs.parameter_bytes[pair] + room.working * pairs.largest_bytes[pair]
    chosen = 3
    for mode in range(3):
        need = held + pairs.live_bytes[pair, mode] + flying * pairs.kept_bytes[pair, mode]
        faster = chosen == 3 or pairs.backward_s[pair, mode] < pairs.backward_s[pair, chosen]
        if room.allowed[mode] and need <= room.hbm_bytes and faster:
            chosen = mode
    return chosen


@njit(cache=True, nogil=True)
def depths_that_fit(pairs: Pairs, room: Room, rounds: int, gpipe: bool, depth: int) -> "Ints":
    """For S = 0 .. ``depth``: 1 if some cut into S stages fits."""
    sets = pairs.start.shape[0] - 1
    fits, found = np.zeros((depth + 1, sets), np.bool_), np.zeros(depth + 1, np.int64)
    fits[0, 0] = True
    for s in range(1, depth + 1):
        flying = rounds if gpipe else min(rounds, s)
        for top in range(1, sets):
            for pair in range(pairs.start[top], pairs.start[top + 1]):
                if fits[s - 1, pairs.rest[pair]] and mode_of(pairs, room, pair, flying) < 3:
                    fits[s, top] = True
                    break
        found[s] = fits[s, sets - 1]
    return found


@njit(cache=True, nogil=True)
def most_in_flight(pairs: Pairs, room: Room, pair: int, mode: int, cap: int) -> int:
    """How many microbatches may be in flight in a stage, at most ``cap``; 0 if not even one may."""
    held = room.state * pairs.parameter_bytes[pair] + room.working * pairs.largest_bytes[pair]
    held += pairs.live_bytes[pair, mode]
    kept, hbm = pairs.kept_bytes[pair, mode], room.hbm_bytes
    if room.allowed[mode] == 0 or held > hbm:
        return 0
    if held + cap * kept <= hbm:
        return cap
    number = int((hbm - held) / kept)
    while held + (number + 1) * kept <= hbm:
        number += 1
    while number > 0 and held + number * kept > hbm:
        number -= 1
    return number


@njit(cache=True, nogil=True)
def paces(pairs: Pairs, room: Room, rounds: int, gpipe: bool, depth: int, move_s: "Floats") -> "Floats":
    """For S = 0 .. ``depth``: the least greatest stage time of a cut into S stages; ``move_s`` is the least transfer
    into each closed set."""
    sets = pairs.start.shape[0] - 1
    g = np.full((sets, depth + 1), np.inf)
    g[0, 0] = 0.0
    for top in range(1, sets):
        row, entry_s = g[top], 0.0 if top == sets - 1 else move_s[top]
        for pair in range(pairs.start[top], pairs.start[top + 1]):
            rest, covered, slowest_s = pairs.rest[pair], 0, 0.0
            below, moved_s = g[rest], entry_s + (0.0 if rest == 0 else move_s[rest])
            for mode in range(3):
                most = most_in_flight(pairs, room, pair, mode, rounds)
                up_to = depth if rounds <= most else (0 if gpipe else min(depth, most))
                own_s = pairs.forward_s[pair] + pairs.backward_s[pair, mode] + moved_s
                for s in range(covered + 1 if own_s >= slowest_s else 1, up_to + 1):
                    row[s] = min(row[s], max(own_s, below[s - 1]))
                if up_to > 0:
                    covered, slowest_s = max(covered, up_to), max(slowest_s, own_s)
    whole: Floats = g[sets - 1]
    return whole
