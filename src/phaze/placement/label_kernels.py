"""Compiled: the best cut of one shape (width, stages S, replicas, order, family), where sums of
stage times count.

The cost alpha (max A + max B) + beta sum D + E + Y is minimised over cuts; A is what a stage takes
at the pace of the pipeline, T' (:mod:`phaze.placement.stage_pace`), and B is 0, or A and B are its
forward and its backward time where passes are separate; D is T, transfers waited for, or what a
family of split backward passes counts. Neither falls with a longer pass or transfer. With *states*
(s, U), closed set U cut into s stages:

1. For every state the least max A, max B, sum of D and greatest parameter bytes that E counts over
   all ways to cut what lies before U into S - s stages, each by itself, with the least that a
   transfer can take (completions). E does not fall with parameter bytes, so this serves all shapes
   with the same width, depth, memory and microbatches in flight.
2. Labels over states from the end of the pipeline: max A, max B, beta sum D + Y, greatest size,
   unsplit stages. A label is dropped if another of its state is no worse in all of them, or if it
   does not beat the best plan known even with the least of each that step 1 allows. Both keep an
   optimal plan, as the cost rises with all of them and as more unsplit stages never take more
   devices.

Labels are made twice: first only the most promising one of each state is kept, which gives a plan
and with it a limit; then all (best_cut).
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from phaze.compiled import njit
from phaze.placement.bottleneck_kernels import NO_MODE, held_bytes, highest, mode_of
from phaze.placement.stage_kernels import Room, StageTable

if TYPE_CHECKING:
    from phaze.placement.cut_sets import Floats, Ints


class ShapeCosts(NamedTuple):
    """What one shape makes its stages cost.

    ``in_flight`` and ``level`` are by stage number from the end, 0 .. S; ``moves_s`` are transfers
    by level and closed set, its last row those before the first and after the last stage,
    ``start_s`` what chunks add to each pass, ``unpaired`` the share of transfers that other chunks
    never hide, 1 where transfers block. ``ahead_s`` and ``behind_s`` are the collectives of ZeRO of
    the layers in each closed set, of which ``shown`` is the exposed share. ``end_s`` is E by number
    of a stage's size, ``size_of`` numbers the parameter bytes of every stage in their order,
    ``size`` counts the layers of a closed set and ``unsplit`` those not sharded; at least
    ``unsplit_needed`` stages must be unsplit. ``least_s`` is less than the sum of D of any stages.
    ``grows``: a stage of a chain takes no less than one inside it. ``fill_terms`` are those of D by
    row, ``weight_s`` the weight gradients of the layers in each closed set; no rows where D is T.
    """

    stages: int
    alpha: float
    beta: float
    separate_passes: bool
    first_end: bool
    grows: bool
    in_flight: "Floats"
    level: "Ints"
    moves_s: "Floats"
    start_s: float
    unpaired: float
    ahead_s: "Floats"
    behind_s: "Floats"
    shown: float
    end_s: "Floats"
    tied_s: "Floats"
    room: Room
    least_s: float
    size: "Ints"
    size_of: "Ints"
    unsplit: "Ints"
    unsplit_needed: int
    fill_terms: "Floats"
    weight_s: "Floats"


@njit(cache=True, nogil=True, inline="always")
def stage_seconds(
    table: StageTable, costs: ShapeCosts, pair: int, top: int, mode: int
) -> tuple[float, float]:
    """Forward and backward of a stage in a mode, without transfers."""
    forward_s, backward_s = table.forward_s[pair], table.backward_s[pair, mode]
    if costs.ahead_s.shape[0] > 0:
        rest = table.rest[pair]
        ahead_s, behind_s = (
            costs.ahead_s[top] - costs.ahead_s[rest],
            costs.behind_s[top] - costs.behind_s[rest],
        )
        forward_s = max(forward_s + costs.shown * ahead_s, ahead_s)
        backward_s = max(backward_s + costs.shown * behind_s, behind_s)
    return forward_s, backward_s


@njit(cache=True, nogil=True, inline="always")
def _paced(work_s: float, transfer_s: float, costs: ShapeCosts) -> float:
    """A pass and its transfers at the pace of the pipeline."""
    return max(work_s, transfer_s) + costs.unpaired * min(work_s, transfer_s) + costs.start_s


@njit(cache=True, nogil=True, inline="always")
def counted_seconds(
    table: StageTable,
    costs: ShapeCosts,
    place: tuple[int, int],
    passes: tuple[float, float],
    least: bool,
) -> float:
    """D of a stage, ``place`` its pair and closed set, with these forward and backward seconds;
    with ``least`` no more than it is with longer ones: without the terms that fall with them."""
    forward_s, backward_s = passes
    if costs.fill_terms.shape[0] == 0:
        return forward_s + backward_s
    pair, top = place
    weight_s, most_s = costs.weight_s[top] - costs.weight_s[table.rest[pair]], 0.0
    for k in range(costs.fill_terms.shape[0]):
        a, b, c = costs.fill_terms[k]
        if not (least and (a < 0 or b < 0)):
            most_s = max(most_s, a * forward_s + b * (backward_s - weight_s) + c * weight_s)
    return most_s


@njit(cache=True, nogil=True)
def _numbers(table: StageTable, costs: ShapeCosts, pair: int, top: int) -> tuple[int, int]:
    """The least and greatest number that a stage can have: there are layers enough before and
    behind it."""
    whole, rest = costs.size.shape[0] - 1, table.rest[pair]
    low, high = (
        max(1 if rest == 0 else 2, costs.stages - costs.size[whole] + costs.size[top]),
        costs.stages,
    )
    if top < whole:
        high -= 1
    else:
        low = costs.stages
    return low, min(high, 1 if rest == 0 else costs.size[rest] + 1)


@njit(cache=True, nogil=True)
def completions(table: StageTable, costs: ShapeCosts, limit_s: float) -> "Floats":
    """By (what, U, s), what being max A, max B, sum of D, size: the least of it over cuts of what
    lies before U, none of whose stages takes longer than ``limit_s``."""
    sets = table.start.shape[0] - 1
    least = np.full((4, sets, costs.stages + 1), np.inf)
    least[:, sets - 1, costs.stages] = 0.0
    move_s = np.empty(sets)
    for top in range(sets):
        ends = top in (0, sets - 1)
        move_s[top] = costs.moves_s[-1, top] if ends else costs.moves_s[:-1, top].min()
    chain = costs.grows and sets == costs.size[sets - 1] + 1
    for top in range(sets - 1, 0, -1):
        counted = top == sets - 1 or not costs.first_end
        for pair in range(table.start[top], table.start[top + 1]):
            # The stages of a chain's closed set grow by one layer each time.
            if chain and table.forward_s[pair] + table.backward_s[pair, 0] > limit_s:
                break
            rest, size, covered, slowest_s = table.rest[pair], float(costs.size_of[pair]), 0, 0.0
            low, high = _numbers(table, costs, pair, top)
            allowed, state_bytes = (
                costs.room.last if rest == 0 else costs.room.allowed,
                held_bytes(table, costs.room, pair),
            )
            for mode in range(table.kept_bytes.shape[1]):
                ahead_s, back_s = stage_seconds(table, costs, pair, top, mode)
                a, b = _paced(ahead_s, move_s[top], costs), _paced(back_s, move_s[rest], costs)
                if high < low or not allowed[mode] or a + b > limit_s:
                    continue
                room = state_bytes + table.live_bytes[pair, mode]
                up_to = highest(
                    room, table.kept_bytes[pair, mode], costs.room.hbm_bytes, costs.in_flight, high
                )
                ahead_s, back_s = (
                    ahead_s + (move_s[top] + costs.start_s),
                    back_s + (move_s[rest] + costs.start_s),
                )
                counted_s = counted_seconds(table, costs, (pair, top), (ahead_s, back_s), True)
                both_s = ahead_s + back_s
                if not costs.separate_passes:
                    a, b = a + b, 0.0
                for number in range(max(low, covered + 1 if both_s >= slowest_s else 1), up_to + 1):
                    least[0, rest, number - 1] = min(
                        least[0, rest, number - 1], max(a, least[0, top, number])
                    )
                    least[1, rest, number - 1] = min(
                        least[1, rest, number - 1], max(b, least[1, top, number])
                    )
                    least[2, rest, number - 1] = min(
                        least[2, rest, number - 1], counted_s + least[2, top, number]
                    )
                    here = max(size if counted else 0.0, least[3, top, number])
                    least[3, rest, number - 1] = min(least[3, rest, number - 1], here)
                if up_to > 0:
                    covered, slowest_s = max(covered, up_to), max(slowest_s, both_s)
    return least


@njit(cache=True, nogil=True)
def shape_bound(costs: ShapeCosts, least: "Floats") -> float:
    """What no cut of the shape can beat."""
    whole = least[:, 0, 0]
    if whole[0] == np.inf:
        return np.inf
    return float(
        costs.alpha * (whole[0] + whole[1]) + costs.beta * whole[2] + costs.end_s[int(whole[3])]
    )


@njit(cache=True, nogil=True)
def _grown(values: "Floats") -> "Floats":
    larger = np.empty((2 * values.shape[0], values.shape[1]))
    larger[: values.shape[0]] = values
    return larger


@njit(cache=True, nogil=True, inline="always")
def _no_worse(label: "Floats", other: "Floats") -> bool:
    """Whether a label is no worse than another: each component at most, unsplit stages at least as
    many."""
    return bool(
        label[0] <= other[0]
        and label[1] <= other[1]
        and label[2] <= other[2]
        and label[3] <= other[3]
        and label[7] >= other[7]
    )


@njit(cache=True, nogil=True)
def _insert(labels: "Floats", begin: int, count: int, new: "Floats", single: bool) -> int:
    """Put a label among those from ``begin`` on unless one is no worse; drop those that it is no
    worse than. With ``single`` only the most promising is kept."""
    if single and count > begin and new[6] >= labels[begin, 6]:
        return count
    place, count = begin, begin if single else count
    while place < count:
        row = labels[place]
        if _no_worse(row, new):
            return count
        if _no_worse(new, row):
            count -= 1
            labels[place] = labels[count]
            continue
        place += 1
    labels[count] = new
    return count + 1


@njit(cache=True, nogil=True)
def _labelled(
    table: StageTable, costs: ShapeCosts, least: "Floats", best: float, single: bool
) -> "tuple[float, Ints, Ints]":
    """The cheapest cut below ``best`` that labels find; with ``single`` one label a state, the most
    promising."""
    depth, alpha, beta, sets = costs.stages, costs.alpha, costs.beta, table.start.shape[0] - 1
    # Columns: max A, max B, beta sum D + Y, size, stage, label before, bound, unsplit stages. 4096
    # rows are 256 KiB, which stay in a core's second cache; room for more is doubled.
    labels, count, new = np.zeros((4096, 8)), 1, np.zeros(8)
    begin = np.ones((depth + 1, sets + 1), np.int64)
    begin[0, 0], chain, floor_s = (
        0,
        costs.grows and sets == costs.size[sets - 1] + 1,
        beta * costs.least_s,
    )
    unsplit, needed = costs.unsplit, float(costs.unsplit_needed)
    for s in range(1, depth + 1):
        begin[s, 0], in_flight = count, costs.in_flight[s]
        for top in range(1, sets):
            begin[s, top] = count
            if least[0, top, s] == np.inf:
                continue
            least_a, least_b, least_sum, least_size = least[:, top, s]
            entry_s = costs.moves_s[costs.level[s], top]
            before = float(unsplit[sets - 1] - unsplit[top])
            for pair in range(table.start[top], table.start[top + 1]):
                # Stages of a chain grow by one layer each time, so all further ones are too long as
                # well.
                if (
                    chain
                    and alpha * (table.forward_s[pair] + table.backward_s[pair, 0]) + floor_s
                    >= best
                ):
                    break
                rest = table.rest[pair]
                empty = begin[s - 1, rest] == begin[s - 1, rest + 1]
                mode = NO_MODE if empty else mode_of(table, costs.room, pair, in_flight)
                if mode == NO_MODE:
                    continue
                forward_s, backward_s = stage_seconds(table, costs, pair, top, mode)
                exit_s = costs.moves_s[costs.level[s - 1], rest]
                a, b = _paced(forward_s, entry_s, costs), _paced(backward_s, exit_s, costs)
                forward_s, backward_s = (
                    forward_s + (entry_s + costs.start_s),
                    backward_s + (exit_s + costs.start_s),
                )
                counted_s = counted_seconds(
                    table, costs, (pair, top), (forward_s, backward_s), False
                )
                own_s = beta * counted_s + costs.tied_s[pair]
                if not costs.separate_passes:
                    a, b = a + b, 0.0
                if alpha * (max(a, least_a) + max(b, least_b)) + floor_s >= best:
                    continue
                size = float(costs.size_of[pair]) if s == depth or not costs.first_end else 0.0
                plain = float(table.unsplit[pair])
                for label in range(begin[s - 1, rest], begin[s - 1, rest + 1]):
                    row = labels[label]
                    new[0], new[1], new[2] = max(a, row[0]), max(b, row[1]), own_s + row[2]
                    new[3], new[4], new[5] = max(size, row[3]), float(pair), float(label)
                    # More unsplit stages than needed are worth nothing, so that such labels can
                    # dominate each other.
                    new[7] = min(row[7] + plain, needed)
                    pace_s = max(new[0], least_a) + max(new[1], least_b)
                    new[6] = (
                        alpha * pace_s
                        + new[2]
                        + beta * least_sum
                        + costs.end_s[int(max(new[3], least_size))]
                    )
                    if new[6] >= best or new[7] + before < needed:
                        continue
                    if count == labels.shape[0]:
                        labels = _grown(labels)
                    count = _insert(labels, begin[s, top], count, new, single)
                    if s == depth:
                        best = min(best, new[6])
        begin[s, sets] = count
    return _path(table, costs, labels[: begin[depth, sets]], begin[depth, sets - 1])


@njit(cache=True, nogil=True)
def _path(
    table: StageTable, costs: ShapeCosts, labels: "Floats", begin: int
) -> "tuple[float, Ints, Ints]":
    """Follow the cheapest of the labels of the whole graph back; nothing and an infinite cost if
    there is none."""
    cost, chosen = np.inf, -1
    for label in range(begin, labels.shape[0]):
        if labels[label, 6] < cost:
            cost, chosen = labels[label, 6], label
    path, modes = np.empty(costs.stages, np.int64), np.empty(costs.stages, np.int64)
    if chosen >= 0:
        for i in range(costs.stages):
            path[i] = int(labels[chosen, 4])
            modes[i] = mode_of(table, costs.room, path[i], costs.in_flight[costs.stages - i])
            chosen = int(labels[chosen, 5])
    return cost, path, modes


@njit(cache=True, nogil=True)
def best_cut(
    table: StageTable, costs: ShapeCosts, least: "Floats", best: float
) -> "tuple[float, Ints, Ints]":
    """The cheapest cut of a shape below ``best``: its cost, its stages as pairs first to last, and
    their modes."""
    if shape_bound(costs, least) >= best:
        return np.inf, np.empty(0, np.int64), np.empty(0, np.int64)
    quick = _labelled(table, costs, least, best, True)
    exact = _labelled(table, costs, least, min(best, quick[0]), False)
    return exact if exact[0] < quick[0] else quick
