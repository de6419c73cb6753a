"""Compiled loops of the list schedule: one pass for given decisions, and the local search over
them."""

import numpy as np

from phaze.compiled import njit
from phaze.schedule.part import Floats, Ints, Tables

# Later than any time; a time added to it stays within 64 bits.
FAR = 2**62


@njit(cache=True, nogil=True)
def _amount(tables: Tables, step: int, resource: int) -> int:
    """How much of a resource a step holds."""
    code = tables.holds[step >> 1, step & 1, resource]
    return int(code if code < 2 else tables.cores[resource])


@njit(cache=True, nogil=True)
def _ready(preds: Ints, first_pred: Ints, ends: Ints, j: int, now: int) -> bool:
    waiting = False
    for k in range(first_pred[j], first_pred[j + 1]):
        waiting = waiting or ends[preds[k]] > now
    return not waiting


@njit(cache=True, nogil=True)
def _pick(
    tables: Tables,
    preds: Ints,
    first_pred: Ints,
    spread: Ints,
    priority: Floats,
    ends: Ints,
    left: Ints,
    now: int,
) -> int:
    """The operator of highest priority that is ready and fits at ``now``; -1 if there is none."""
    pick = -1
    for j in range(len(priority)):
        if ends[j] < FAR or (pick >= 0 and priority[j] <= priority[pick]):
            continue
        fits = _ready(preds, first_pred, ends, j, now)
        for resource in range(3):
            fits = fits and left[resource] >= _amount(tables, 2 * j + spread[j], resource)
        if fits:
            pick = j
    return pick


@njit(cache=True, nogil=True)
def list_pass(
    tables: Tables, preds: Ints, first_pred: Ints, spread: Ints, priority: Floats, starts: Ints
) -> int:
    """Start times by the parallel list rule: at each moment the ready operators that fit, highest
    priority first."""
    n = len(priority)
    ends = np.full(n, FAR)
    left = tables.cores.copy()
    now, done, latest = 0, 0, 0
    while done < n:
        pick = _pick(tables, preds, first_pred, spread, priority, ends, left, now)
        if pick >= 0:
            starts[pick] = now
            ends[pick] = now + tables.time[pick, spread[pick]]
            latest = max(latest, ends[pick])
            done += 1
            for resource in range(3):
                left[resource] -= _amount(tables, 2 * pick + spread[pick], resource)
            continue
        after = FAR
        for j in range(n):
            if now < ends[j] < after:
                after = ends[j]
        for j in range(n):
            if ends[j] == after:
                for resource in range(3):
                    left[resource] += _amount(tables, 2 * j + spread[j], resource)
        now = after
    return latest


@njit(cache=True, nogil=True)
def improve(
    tables: Tables,
    preds: Ints,
    first_pred: Ints,
    spread: Ints,
    priority: Floats,
    passes: int,
    goal: int,
) -> int:
    """Flip one spread-or-single decision, or exchange two priorities, while that helps, up to
    ``passes`` passes."""
    n = len(priority)
    starts = np.empty(n, np.int64)
    best = list_pass(tables, preds, first_pred, spread, priority, starts)
    before = best + 1
    while before > best > goal and passes > 0:
        before = best
        for j in range(n):
            if tables.time[j, 0] == 0 or tables.time[j, 1] == 0 or passes <= 0:
                continue
            spread[j] = 1 - spread[j]
            makespan = list_pass(tables, preds, first_pred, spread, priority, starts)
            passes -= 1
            if makespan < best:
                best = makespan
            else:
                spread[j] = 1 - spread[j]
        for pair in range(n * (n - 1) // 2):
            if passes <= 0 or best <= goal:
                break
            j = pair % n
            k = (j + 1 + pair // n) % n
            priority[j], priority[k] = priority[k], priority[j]
            makespan = list_pass(tables, preds, first_pred, spread, priority, starts)
            passes -= 1
            if makespan < best:
                best = makespan
            else:
                priority[j], priority[k] = priority[k], priority[j]
    return best
