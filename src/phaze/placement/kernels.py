"""Compiled: the table over (closed set, unsplit stages, stages), and the choice from it.

With g(U, q, s) the least over all cuts of closed set U into s stages, q of them without a sharded layer, of the
greatest cost c of a stage, and X running over the stages that can be taken from U,

    g(U, q, 1) = c(U, 1),   g(U, q, s) = min over X of max( c(X, s), g(U - X, q - [X unsplit], s - 1) )        (table)

where c is the stage's time, infinite where it does not fit, or its memory. The whole graph is left out of the table:
its first stage decides the synchronisation, so each is tried with every q, s and data degree (fastest). There is no
axis of devices: s stages of which q are unsplit take t (s - q) + q of them. ``limit_s[S]`` is the greatest stage time
that a plan of at least S stages may have and still be of interest; a stage of number s in the table belongs to a plan
of more than s stages.
"""

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from phaze.placement.stage_kernels import (
    BEST,
    BY_MEMORY,
    FULL,
    Case,
    Figures,
    Rules,
    Stages,
    cost_of,
    figures,
    new_stages,
    stages_of,
)

if TYPE_CHECKING:
    from phaze.placement.charts import Floats, Ints


@njit(cache=True, nogil=True)
def last_cost(rules: Rules, stage: Figures) -> float:
    """Cost of the last stage of a pipeline."""
    return float(stage.held_bytes if rules.objective == BY_MEMORY else stage.stash_s)


@njit(cache=True, nogil=True)
def _within(cost: float, up_to: int, limit_s: "Floats") -> int:
    """The greatest s <= ``up_to`` at which a stage of that cost is still of interest; limits fall with s."""
    low, high = 0, up_to
    while low < high:
        middle = (low + high + 1) // 2
        if cost <= limit_s[middle + 1]:
            low = middle
        else:
            high = middle - 1
    return low


@njit(cache=True, nogil=True)
def _relax(case: Case, found: Stages, count: int, top: int, tables: "tuple[Floats, Floats]") -> None:
    """Let the ``count`` stages found for closed set ``top`` improve its row of g."""
    g, limit_s = tables
    rules, size, unsplit = case.rules, case.chart.size, case.chart.unsplit
    rests, plain, kinds, most = found.rest, found.unsplit, g.shape[1], g.shape[2] - 1
    for k in range(count):
        rest = rests[k]
        shift = 1 if kinds > 1 and plain[k] else 0
        stage = figures(found, k)
        if rest == 0:
            g[top, shift, 1] = min(g[top, shift, 1], last_cost(rules, stage))
            continue
        first, a, second, b, slope = cost_of(rules, stage, min(size[rest] + 1, most))
        from_s = a + 1
        a, b = _within(first, a, limit_s), _within(second, b, limit_s)
        if a < 2 and b < from_s:
            continue
        for q in range(min(unsplit[rest], kinds - 1 - shift) + 1):
            for s in range(2, a + 1):
                cost = max(first + slope * (s - 1), g[rest, q, s - 1])
                g[top, q + shift, s] = min(g[top, q + shift, s], cost)
            for s in range(from_s, b + 1):
                cost = max(second + slope * (s - 1), g[rest, q, s - 1])
                g[top, q + shift, s] = min(g[top, q + shift, s], cost)


@njit(cache=True, nogil=True)
def _longest(case: Case, limit_s: "Floats") -> "Floats":
    """For each closed set the greatest time of a stage taken from it that is of interest; below 0 if none is.

    Stage s of U stands in a plan of S > s stages, and the layers of U fill s stages of limit(S) <= limit(s + 1) at the
    most, so s is at least the first number with C(U) <= s limit(s + 1), and the stage takes at most limit(s + 1).
    """
    chart, most = case.chart, limit_s.shape[0] - 2
    inside_s, longest_s = np.zeros(chart.size.shape[0]), np.full(chart.size.shape[0], -1.0)
    for top in range(1, chart.size.shape[0]):
        step = chart.step_start[top]
        layer = chart.step_layer[step]
        inside_s[top] = inside_s[chart.step_set[step]] + chart.forward_s[layer] + chart.backward_s[layer]
        for s in range(1, most):
            if inside_s[top] <= s * limit_s[s + 1] * (1 + 1e-9):
                longest_s[top] = limit_s[s + 1]
                break
    longest_s[chart.size.shape[0] - 1] = limit_s[1]
    return longest_s


@njit(cache=True, nogil=True)
def table(case: Case, kinds: int, limit_s: "Floats") -> "Floats":
    """g for every closed set but the whole graph, with up to ``kinds`` - 1 unsplit stages."""
    sets, most = case.chart.size.shape[0], limit_s.shape[0] - 2
    g, found = np.full((sets, kinds, most + 1), np.inf), new_stages(sets)
    longest_s = _longest(case, limit_s)
    if most > 1:
        for top in range(1, sets - 1):
            if longest_s[top] >= 0:
                _relax(case, found, stages_of(case, top, longest_s[top], found), top, (g, limit_s))
    return g


@njit(cache=True, nogil=True)
def _cost_at(rules: Rules, stage: Figures, last: bool, s: int) -> float:
    """Cost of a stage at number ``s``; infinite where it does not fit or may not stand."""
    if (s == 1) != last:
        return np.inf
    if s == 1:
        return float(last_cost(rules, stage))
    first, a, second, b, slope = cost_of(rules, stage, s)
    if s <= a:
        return float(first + slope * (s - 1))
    return float(second + slope * (s - 1)) if s <= b else np.inf


@njit(cache=True, nogil=True)
def _degree(microbatches: int, most: int, term: tuple[float, int, float], best: float) -> tuple[float, int]:
    """The least batch time below ``best`` over data degrees up to ``most``, and the degree (0 if there is none).

    ``term`` holds the greatest stage time T, the number of stages s, and W.

    With W = 4 w / B the time is T (ceil(M/d) + s - 1) + W (1 - 1/d) >= T (s - 1) + W + (T M - W) / d. If
    T M <= W that is least at d = 1, where it is exact. Else it falls with d, so degrees are tried from the greatest
    down, the least d for each ceil(M/d), until it passes the best.
    """
    longest, s, sync = term
    if longest * microbatches <= sync:
        cost = longest * (microbatches + s - 1)
        return (cost, 1) if cost < best else (best, 0)
    chosen, degree = 0, most
    while degree > 0:
        if longest * (s - 1) + sync + (longest * microbatches - sync) / degree >= best * (1 + 1e-12):
            break
        rounds = -(-microbatches // degree)
        degree = -(-microbatches // rounds)
        cost = longest * (rounds + s - 1) + sync * (degree - 1) / degree
        if cost < best:
            best, chosen = cost, degree
        degree -= 1
    return best, chosen


@njit(cache=True, nogil=True)
def fastest(case: Case, g: "Floats", limit_s: "Floats", best: float) -> tuple[float, int, int, int, int]:
    """The plan faster than ``best``: batch time, first stage, unsplit stages, stages, data degree (0: none is)."""
    chart, kinds, most = case.chart, g.shape[1], g.shape[2] - 1
    found = new_stages(g.shape[0])
    chosen = (best, 0, 0, 0, 0)
    for k in range(stages_of(case, g.shape[0] - 1, limit_s[1], found)):
        rest = found.rest[k]
        shift = 1 if kinds > 1 and found.unsplit[k] else 0
        sync = 4 * found.parameter_bytes[k] / case.rules.link_bytes_per_s
        for s in range(1, (1 if rest == 0 else min(most, chart.size[rest] + 1)) + 1):
            own = _cost_at(case.rules, figures(found, k), rest == 0, s)
            if own > limit_s[s]:
                continue
            for q in range(shift, min(chart.unsplit[rest], kinds - 1 - shift) + shift + 1):
                longest = own if s == 1 else max(own, g[rest, q - shift, s - 1])
                taken = case.width * (s - q) + q
                if longest == np.inf or taken > case.devices:
                    continue
                degrees = min(case.devices // taken, case.microbatches)
                cost, degree = _degree(case.microbatches, degrees, (longest, s, sync), chosen[0])
                if degree > 0:
                    chosen = (cost, k, q, s, degree)
    return chosen


@njit(cache=True, nogil=True)
def leanest(case: Case, g: "Floats", by_devices: bool) -> tuple[float, int, int, int]:
    """The least table value, or the fewest devices with a finite one: that number, first stage, unsplit, stages."""
    chart, kinds, most = case.chart, g.shape[1], g.shape[2] - 1
    found = new_stages(g.shape[0])
    chosen = (np.inf, 0, 0, 0)
    for k in range(stages_of(case, g.shape[0] - 1, np.inf, found)):
        rest = found.rest[k]
        shift = 1 if kinds > 1 and found.unsplit[k] else 0
        for s in range(1, (1 if rest == 0 else min(most, chart.size[rest] + 1)) + 1):
            own = _cost_at(case.rules, figures(found, k), rest == 0, s)
            for q in range(shift, min(chart.unsplit[rest], kinds - 1 - shift) + shift + 1):
                worst = own if s == 1 else max(own, g[rest, q - shift, s - 1])
                taken = case.width * (s - q) + q
                if worst < np.inf and taken <= case.devices:
                    measure = float(taken) if by_devices else worst
                    if measure < chosen[0]:
                        chosen = (measure, k, q, s)
    return chosen


@njit(cache=True, nogil=True)
def _recomputes(rules: Rules, stage: Figures, number: int) -> bool:
    if number == 1:
        return False
    if rules.objective != BY_MEMORY:
        return bool(number > cost_of(rules, stage, number)[1])
    lean = stage.entering_bytes < stage.stashed_bytes
    return bool(rules.recompute == FULL or (rules.recompute == BEST and lean))


@njit(cache=True, nogil=True)
def _mark(case: Case, place: int, stage: int, owner: "Ints") -> None:
    """Let ``stage`` own every layer of closed set ``place``."""
    while place != 0:
        step = case.chart.step_start[place]
        owner[case.chart.step_layer[step]] = stage
        place = case.chart.step_set[step]


@njit(cache=True, nogil=True)
def trace(case: Case, g: "Floats", limit_s: "Floats", choice: tuple[int, int, int]) -> tuple["Ints", "Ints"]:
    """The stage of every layer in the plan of that first stage, unsplit stages and stages; which stages recompute."""
    first, q, stages = choice
    found = new_stages(g.shape[0])
    owner, again = np.zeros(case.chart.forward_s.shape[0], np.int64), np.zeros(stages, np.int64)
    top, longest_s = g.shape[0] - 1, _longest(case, limit_s)
    for number in range(stages, 0, -1):
        begin = first if number == stages else 0
        for k in range(begin, stages_of(case, top, longest_s[top], found)):
            rest = found.rest[k]
            shift = 1 if g.shape[1] > 1 and found.unsplit[k] else 0
            stage = figures(found, k)
            if number < stages:
                promised = g[top, q, number]
                if q < shift or _cost_at(case.rules, stage, rest == 0, number) > promised:
                    continue
                if number > 1 and g[rest, q - shift, number - 1] > promised:
                    continue
            again[stages - number] = _recomputes(case.rules, stage, number)
            _mark(case, rest, stages - number + 1, owner)
            top, q = rest, q - shift
            break
    return owner, again


def warm() -> None:
    """Compile and cache every kernel of the room."""
    from phaze.placement.answer import place
    from phaze.placement.cluster_profile import any_problem_of
    from phaze.placement.event_kernels import interleaved_events
    from phaze.placement.one.answer import place as place_one
    from phaze.placement.one.profile import problem_of

    # Placement itself never interleaves: only plans with chunks, and their pages, ask for these events.
    interleaved_events(np.ones(2), np.ones(2), 2, 2, np.empty((2, 2, 4)))

    numbers = {"forward_s": 1.0, "backward_s": 2.0, "parameter_bytes": 1.0, "activation_bytes": 1.0, "sharded": True}
    layers = [{"id": i, **numbers} for i in range(3)]
    edges = [{"from": 0, "to": 1, "bytes": 1.0}, {"from": 1, "to": 2, "bytes": 1.0}]
    raw = {"schema": "phaze.profile/1", "devices": 4, "microbatches": 4, "optimizer": "sgd", "recompute": "best"}
    raw["widths"] = {"1": {"layers": layers, "edges": edges}}
    level = {"name": "all", "kind": "switch", "size": 4, "bandwidth": 1.0, "latency": 0.0}
    for memory in (100.0, 0.5):
        cluster = {**raw, "rules": "cluster", "hbm_bytes": memory, "cluster": [level]}
        flat = {**raw, "rules": "icml24", "hbm_bytes": memory, "link_bytes_per_s": 1.0}
        for document in (flat, {**cluster, "zero": 3}, {**cluster, "schedule": "gpipe"}):
            place(any_problem_of(document, "warm"))
            place_one(problem_of(document, "warm"))
