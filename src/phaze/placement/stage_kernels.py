"""Compiled: the stages that can be taken from a closed set, and what each costs at each stage number.

A stage X taken from closed set U is a walk of single removals in topological order, so its forward walk, its sums and
its entering edges grow with each layer; only the leaving edges are looked at anew. The cost of a stage is first +
slope (s - 1) over at most two ranges of its number s, as memory grows with s and a stage recomputes where it cannot
stash. Arrays are taken out of their tuples once for each closed set: inside the loops that would cost more than the
arithmetic.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from phaze.placement.charts import Chart, Flags, Floats, Ints

BY_TIME, BY_MEMORY = 0, 1
NONE, FULL, BEST = 0, 1, 2


class Rules(NamedTuple):
    """What a stage is judged by: memory there is, bytes held for a byte of parameters, link, recompute, objective."""

    hbm_bytes: float
    state_factor: float
    link_bytes_per_s: float
    recompute: int
    objective: int


class Case(NamedTuple):
    """One width of a problem: its arrays, its rules, devices of a split stage, devices and microbatches in all."""

    chart: "Chart"
    rules: Rules
    width: int
    devices: int
    microbatches: int


class Stages(NamedTuple):
    """Stages that can be taken from one closed set: what is left, seconds, bytes, and whether no layer is sharded."""

    rest: "Ints"
    stash_s: "Floats"
    again_s: "Floats"
    held_bytes: "Floats"
    stashed_bytes: "Floats"
    entering_bytes: "Floats"
    parameter_bytes: "Floats"
    unsplit: "Flags"


class Figures(NamedTuple):
    """The numbers of one stage that decide its cost."""

    stash_s: float
    again_s: float
    held_bytes: float
    stashed_bytes: float
    entering_bytes: float


@njit(cache=True, nogil=True)
def new_stages(room: int) -> Stages:
    """Room for that many stages."""
    return Stages(
        np.empty(room, np.int64),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room),
        np.empty(room, np.bool_),
    )


@njit(cache=True, nogil=True)
def _chain_stages(case: Case, top: int, limit_s: float, found: Stages) -> int:
    """Stages of a chain: its layers from ``n - top`` on, one more each time. Edges may skip layers."""
    chart, rules = case.chart, case.rules
    forward_s, backward_s, sharded = chart.forward_s, chart.backward_s, chart.sharded
    in_start, in_tail, in_bytes = chart.in_start, chart.in_tail, chart.in_bytes
    out_start, out_head, out_bytes = chart.out_start, chart.out_head, chart.out_bytes
    rests, stash_s, again_s, held, stashed, entering, parameters, unsplit = found
    hbm, factor, link = rules.hbm_bytes, rules.state_factor, rules.link_bytes_per_s
    n = forward_s.shape[0]
    begin = n - top
    behind_s, skippers, skipping = np.empty(n), np.empty(n, np.int64), 0
    ready_s = ahead = back = weights = kept = came = 0.0
    plain = True
    for layer in range(begin, n):
        arrival_s = 0.0
        for edge in range(in_start[layer], in_start[layer + 1]):
            if in_tail[edge] < begin:
                arrival_s = max(arrival_s, in_bytes[edge] / link)
                came += in_bytes[edge]
        ready_s = max(ready_s, arrival_s) + forward_s[layer]
        ahead += forward_s[layer]
        back += backward_s[layer]
        weights += chart.parameter_bytes[layer]
        kept += chart.activation_bytes[layer]
        if factor * weights + kept > hbm or ahead + back > limit_s:
            return int(layer - begin)
        behind_s[layer] = back
        plain = plain and not sharded[layer]
        latest_s = 0.0
        for edge in range(out_start[layer], out_start[layer + 1]):
            latest_s = max(latest_s, out_bytes[edge] / link + back)
        for i in range(skipping):
            for edge in range(out_start[skippers[i]], out_start[skippers[i] + 1]):
                if out_head[edge] > layer:
                    latest_s = max(latest_s, out_bytes[edge] / link + behind_s[skippers[i]])
        if out_start[layer + 1] > out_start[layer] and out_head[out_start[layer + 1] - 1] > layer + 1:
            skippers[skipping] = layer
            skipping += 1
        k = layer - begin
        rests[k], stash_s[k], again_s[k] = (
            n - 1 - layer,
            ready_s + max(back, latest_s),
            ready_s + max(ahead + back, latest_s),
        )
        held[k], stashed[k], entering[k], parameters[k], unsplit[k] = (
            factor * weights + kept,
            kept,
            came,
            weights,
            plain,
        )
    return top


@njit(cache=True, nogil=True)
def _branching_stages(case: Case, top: int, limit_s: float, found: Stages) -> int:
    """Stages of a graph that branches, by a walk over removals of ascending layers; ``sums`` has a row a layer.

    ``leaving`` lists, for each depth of the walk, at which depths layers with leaving edges were taken.
    """
    chart, rules = case.chart, case.rules
    forward_s, backward_s, sharded = chart.forward_s, chart.backward_s, chart.sharded
    parameter_bytes, activation_bytes = chart.parameter_bytes, chart.activation_bytes
    in_start, in_tail, in_bytes = chart.in_start, chart.in_tail, chart.in_bytes
    out_start, out_head, out_bytes = chart.out_start, chart.out_head, chart.out_bytes
    step_start, step_layer, step_set = chart.step_start, chart.step_layer, chart.step_set
    rests, stash_s, again_s, held, stashed, entering, parameters, unsplit = found
    hbm, factor, link = rules.hbm_bytes, rules.state_factor, rules.link_bytes_per_s
    n = forward_s.shape[0]
    place, taken, step = np.empty(n + 1, np.int64), np.full(n + 1, -1), np.empty(n + 1, np.int64)
    sums, split, inside = np.zeros((n + 1, 6)), np.zeros(n + 1, np.bool_), np.zeros(n, np.bool_)
    leaving, leavers = np.empty((n + 1, n), np.int64), np.zeros(n + 1, np.int64)
    place[0], step[0] = top, step_start[top]
    depth = count = 0
    while depth >= 0:
        if step[depth] == step_start[place[depth] + 1]:
            if depth > 0:
                inside[taken[depth]] = False
            depth -= 1
            continue
        layer, rest = step_layer[step[depth]], step_set[step[depth]]
        step[depth] += 1
        ahead, back = sums[depth, 1] + forward_s[layer], sums[depth, 2] + backward_s[layer]
        weights, kept = sums[depth, 3] + parameter_bytes[layer], sums[depth, 4] + activation_bytes[layer]
        if layer < taken[depth] or factor * weights + kept > hbm or ahead + back > limit_s:
            continue
        arrival_s, came = 0.0, sums[depth, 5]
        for edge in range(in_start[layer], in_start[layer + 1]):
            if not inside[in_tail[edge]]:
                arrival_s = max(arrival_s, in_bytes[edge] / link)
                came += in_bytes[edge]
        ready_s = max(sums[depth, 0], arrival_s) + forward_s[layer]
        depth += 1
        inside[layer], taken[depth], split[depth] = True, layer, split[depth - 1] or sharded[layer]
        place[depth], step[depth] = rest, step_start[rest]
        row = sums[depth]
        row[0], row[1], row[2], row[3], row[4], row[5] = ready_s, ahead, back, weights, kept, came
        leaving[depth - 1, leavers[depth - 1]] = depth
        latest_s, leavers[depth] = 0.0, 0
        for i in range(leavers[depth - 1] + 1):
            level, leaves_s = leaving[depth - 1, i], -1.0
            for edge in range(out_start[taken[level]], out_start[taken[level] + 1]):
                if not inside[out_head[edge]]:
                    leaves_s = max(leaves_s, out_bytes[edge] / link + sums[level, 2])
            if leaves_s >= 0:
                leaving[depth, leavers[depth]] = level
                leavers[depth] += 1
                latest_s = max(latest_s, leaves_s)
        rests[count], stash_s[count], again_s[count] = (
            rest,
            ready_s + max(back, latest_s),
            ready_s + max(ahead + back, latest_s),
        )
        held[count], stashed[count], entering[count] = factor * weights + kept, kept, came
        parameters[count], unsplit[count] = weights, not split[depth]
        count += 1
    return count


@njit(cache=True, nogil=True)
def stages_of(case: Case, top: int, limit_s: float, found: Stages) -> int:
    """Write all stages that can be taken from closed set ``top``, whose state fits and whose layers alone take no
    longer than ``limit_s``; how many there are."""
    if case.chart.size.shape[0] == case.chart.forward_s.shape[0] + 1:
        return int(_chain_stages(case, top, limit_s, found))
    return int(_branching_stages(case, top, limit_s, found))


@njit(cache=True, nogil=True)
def _highest(held: float, kept: float, hbm: float, most: int) -> int:
    """The greatest stage number s <= ``most`` with held + (s - 1) kept <= hbm."""
    if held + (most - 1) * kept <= hbm:
        return most
    number = int((hbm - held) / kept) + 1
    while held + number * kept <= hbm:
        number += 1
    while number > 1 and held + (number - 1) * kept > hbm:
        number -= 1
    return number


@njit(cache=True, nogil=True)
def cost_of(rules: Rules, stage: Figures, most: int) -> tuple[float, int, float, int, float]:
    """Cost of a stage at numbers s >= 2: first + slope (s - 1) up to s = a, second + slope (s - 1) up to s = b."""
    if rules.objective == BY_MEMORY:
        kept = stage.stashed_bytes if rules.recompute == NONE else stage.entering_bytes
        if rules.recompute == BEST:
            kept = min(stage.stashed_bytes, stage.entering_bytes)
        return stage.held_bytes, most, stage.held_bytes, most, kept
    a = 1 if rules.recompute == FULL else _highest(stage.held_bytes, stage.stashed_bytes, rules.hbm_bytes, most)
    b = a
    if rules.recompute != NONE:
        b = max(a, _highest(stage.held_bytes, stage.entering_bytes, rules.hbm_bytes, most))
    return stage.stash_s, a, stage.again_s, b, 0.0


@njit(cache=True, nogil=True)
def figures(found: Stages, k: int) -> Figures:
    """The figures of stage ``k``."""
    return Figures(
        found.stash_s[k], found.again_s[k], found.held_bytes[k], found.stashed_bytes[k], found.entering_bytes[k]
    )
