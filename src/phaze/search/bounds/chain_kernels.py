"""Compiled: the least batch time of a chain of equal blocks over all its structures, for every chip.

With f, b the seconds of prologue (0), block (1) and epilogue (2) on a chip and e = |edge| / B, a plan of S stages takes

    first(a)  = c0 + a c1 + e            or, recomputing, c0 + a c1 + max(f0 + a f1, e)          c = f + b
    middle(m) = e + m c1 + e             or, recomputing, e + m c1 + max(m f1, e)
    last(z)   = e + z c1 + c2
    batch     = max(first, middle, last) (ceil(M/d) + S - 1) + 4 (d - 1)/d w_first / B

The longest middle stage m is the table's (:mod:`phaze.search.bounds.chain_layouts`). For given S and a, last rises and
middle falls with z, so the best z lies where they cross. A number of stages is skipped when even max(C / S, c1) is too
long, C being the time of all layers; a when its first stage is; a chip when even C M / (S d) is, for the most S d that
there is.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

if TYPE_CHECKING:
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Flags = NDArray[np.bool_]


class ChainLayout(NamedTuple):
    """What fits, and the numbers of a job; see :mod:`phaze.search.bounds.chain_layouts`."""

    first_ok: "Flags"
    last_ok: "Flags"
    whole_ok: bool
    middle: "Ints"
    sync_s: "Floats"
    last_sync_s: float
    edge_s: float
    width: int
    plain_first: bool
    plain_last: bool
    least_first: int
    least_last: int
    again: bool
    devices: int
    microbatches: int


@njit(cache=True, nogil=True)
def middle_table(cap: "Ints", blocks: int, most: int) -> "Ints":
    """middle[S, R] from the caps by stage number."""
    middle = np.full((most + 1, blocks + 1), -1, np.int64)
    if most >= 2:
        middle[2, 0] = 0
    for stages in range(3, most + 1):
        if cap[stages - 1] < 1:
            break
        m, room = 1, stages - 2
        for rest in range(stages - 2, blocks + 1):
            while room < rest and m < blocks:
                m += 1
                room = 0
                for s in range(2, stages):
                    room += min(m, cap[s])
            if room < rest:
                break
            middle[stages, rest] = m
    return middle


@njit(cache=True, nogil=True)
def _degree(microbatches: int, most: int, longest: float, stages: int, sync: float, best: float) -> float:
    """The least of ``best`` and the batch times over data degrees up to ``most``.

    T (ceil(M/d) + S - 1) + W (1 - 1/d) >= T (S - 1) + W + (T M - W)/d, which falls with d where T M > W, and else is
    least at d = 1. So degrees are tried from the greatest down, the least one of each ceil(M/d), while that is < best.
    """
    if most < 1:
        return best
    if longest * microbatches <= sync:
        return min(best, longest * (microbatches + stages - 1))
    degree = most
    while degree > 0:
        if longest * (stages - 1) + sync + (longest * microbatches - sync) / degree >= best:
            break
        rounds = -(-microbatches // degree)
        degree = -(-microbatches // rounds)
        best = min(best, longest * (rounds + stages - 1) + sync * (degree - 1) / degree)
        degree -= 1
    return best


@njit(cache=True, nogil=True)
def _with_last(lay: ChainLayout, times: "Floats", place: tuple[int, int, int], first_s: float, best: float) -> float:
    """The least batch time when S, a and z are given."""
    stages, a, z = place
    f1, c1, c2 = times[0, 1], times[0, 1] + times[1, 1], times[0, 2] + times[1, 2]
    m = lay.middle[stages, lay.sync_s.shape[0] - 1 - a - z]
    if m < 0:
        return best
    longest = max(first_s, lay.edge_s + z * c1 + c2)
    if m > 0:
        longest = max(longest, lay.edge_s + m * c1 + (max(m * f1, lay.edge_s) if lay.again else lay.edge_s))
    plain = int(lay.plain_first and a == 0) + int(lay.plain_last and z == 0)
    taken = lay.width * (stages - plain) + plain
    most = min(lay.devices // taken, lay.microbatches)
    return float(_degree(lay.microbatches, most, longest, stages, lay.sync_s[a], best))


@njit(cache=True, nogil=True)
def _with_first(lay: ChainLayout, times: "Floats", stages: int, a: int, first_s: float, best: float) -> float:
    """The least batch time when S and a are given."""
    blocks = lay.sync_s.shape[0] - 1
    f1, c1, c2 = times[0, 1], times[0, 1] + times[1, 1], times[0, 2] + times[1, 2]
    low, high = lay.least_last, blocks - a - (stages - 2)
    if stages == 2:
        return float(_with_last(lay, times, (stages, a, high), first_s, best)) if lay.last_ok[high] else best
    while high >= low and not lay.last_ok[high]:
        high -= 1
    if high < low:
        return best
    if lay.plain_last and low == 0:
        best = _with_last(lay, times, (stages, a, 0), first_s, best)
    least = low
    while low < high:
        z = (low + high) // 2
        m = lay.middle[stages, blocks - a - z]
        longest = lay.edge_s + m * c1 + (max(m * f1, lay.edge_s) if lay.again else lay.edge_s)
        if m >= 0 and lay.edge_s + z * c1 + c2 >= longest:
            high = z
        else:
            low = z + 1
    best = _with_last(lay, times, (stages, a, low), first_s, best)
    if low > least:
        best = _with_last(lay, times, (stages, a, low - 1), first_s, best)
    return float(best)


@njit(cache=True, nogil=True)
def _with_stages(lay: ChainLayout, times: "Floats", stages: int, best: float) -> float:
    """The least batch time with that many stages, two or more."""
    blocks = lay.sync_s.shape[0] - 1
    f0, f1 = times[0, 0], times[0, 1]
    c0, c1, c2 = f0 + times[1, 0], f1 + times[1, 1], times[0, 2] + times[1, 2]
    plain = int(lay.plain_first) + int(lay.plain_last)
    taken = lay.width * max(0, stages - plain) + min(stages, plain)
    degrees = min(lay.devices // taken, lay.microbatches)
    if degrees < 1:
        return best
    rounds = -(-lay.microbatches // degrees) + stages - 1
    floor_s = max((c0 + blocks * c1 + c2) / stages, c1)
    if min(floor_s * (lay.microbatches + stages - 1), floor_s * rounds + 0.5 * lay.sync_s[lay.least_first]) >= best:
        return best
    for a in range(lay.least_first, blocks - (stages - 2) - lay.least_last + 1):
        first_s = c0 + a * c1 + (max(f0 + a * f1, lay.edge_s) if lay.again else lay.edge_s)
        if not lay.first_ok[stages, a] or first_s * rounds >= best:
            break
        best = _with_first(lay, times, stages, a, first_s, best)
    return float(best)


@njit(cache=True, nogil=True)
def _most_at_once(lay: ChainLayout, most: int) -> int:
    """The most stages that run at once, replicas counted: S d over all structures, at least 1.

    A batch of M microbatches takes at least (C / S) ceil(M / d) >= C M / (S d), C being the time of all layers.
    """
    plain, found = int(lay.plain_first) + int(lay.plain_last), 1
    for stages in range(1, most + 1):
        taken = lay.width * max(0, stages - plain) + min(stages, plain)
        found = max(found, stages * min(lay.devices // taken, lay.microbatches))
    return found


@njit(cache=True, nogil=True)
def least_batches(lay: ChainLayout, forward_s: "Floats", backward_s: "Floats", cut_s: float) -> "Floats":
    """For each chip the lesser of ``cut_s`` and the least batch time; seconds are [prologue, block, epilogue; chips].

    Infinite where nothing fits and ``cut_s`` is. Nothing above the cut is looked at, which is what makes it fast.
    """
    chips, most = forward_s.shape[1], lay.first_ok.shape[0] - 1
    found, times = np.empty(chips), np.empty((2, 3))
    blocks, recent = lay.sync_s.shape[0] - 1, 2
    at_once = _most_at_once(lay, most)
    for chip in range(chips):
        work = forward_s[0, chip] + backward_s[0, chip] + forward_s[2, chip] + backward_s[2, chip]
        work += blocks * (forward_s[1, chip] + backward_s[1, chip])
        if work * lay.microbatches / at_once * (1 - 1e-9) >= cut_s:
            found[chip] = cut_s
            continue
        for k in range(3):
            times[0, k], times[1, k] = forward_s[k, chip], backward_s[k, chip]
        best = cut_s
        if lay.whole_ok:
            total = times[0, 0] + times[1, 0] + blocks * (times[0, 1] + times[1, 1]) + times[0, 2] + times[1, 2]
            degrees = min(lay.devices // lay.width, lay.microbatches)
            best = _degree(lay.microbatches, degrees, total, 1, lay.sync_s[blocks] + lay.last_sync_s, best)
        if 2 <= recent <= most:
            best = _with_stages(lay, times, recent, best)
        for stages in range(2, most + 1):
            if stages != recent:
                after = _with_stages(lay, times, stages, best)
                if after < best:
                    best, recent = after, stages
        found[chip] = best
    return found


@njit(cache=True, nogil=True)
def first_floors(
    forward_s: "Floats",
    backward_s: "Floats",
    counts: "Floats",
    most_stages: "Ints",
    sync_s: "Floats",
    whole: "Flags",
    replicas: "Ints",
    in_all: "Floats",
    microbatches: int,
    again: bool,
    cut_s: float,
) -> "Floats":
    """By chip the lesser of ``cut_s`` and the bound of :mod:`phaze.search.bounds.graph_bounds`.

    Seconds are [layers, chips], ``counts`` [first stages, layers]; ``replicas`` by number of stages, 0 where there is
    no room for one.
    """
    kinds, chips = forward_s.shape
    found = np.empty(chips)
    for chip in range(chips):
        longest = share = total = 0.0
        for kind in range(kinds):
            f, b = forward_s[kind, chip], backward_s[kind, chip]
            if in_all[kind] == 0:
                continue
            longest = max(longest, f + b)
            share = max(share, f / (f + b)) if f + b > 0 else share
            total += in_all[kind] * (2 * f + b if again else f + b)
        best = cut_s
        for k in range(counts.shape[0]):
            stash = double = 0.0
            for kind in range(kinds):
                f, b = forward_s[kind, chip], backward_s[kind, chip]
                stash += counts[k, kind] * (f + b)
                double += counts[k, kind] * (2 * f + b)
            if whole[k]:
                best = _degree(microbatches, replicas[1], max(stash, longest), 1, sync_s[k], best)
                continue
            own = double if again else stash
            for stages in range(2, min(most_stages[k], replicas.shape[0] - 1) + 1):
                if replicas[stages] < 1:
                    continue
                rest = (total - own) / (stages - 1 + (share if again else 0.0))
                best = _degree(microbatches, replicas[stages], max(own, longest, rest), stages, sync_s[k], best)
        found[chip] = best
    return found


def warm() -> None:
    """Compile and cache every kernel of the room."""
    ones, whole = np.ones((1, 2)), np.zeros(1, np.bool_)
    numbers = np.ones(3, np.int64)
    first_floors(ones, ones, np.ones((1, 1)), numbers[:1] + 1, np.ones(1), whole, numbers, np.ones(1), 2, True, 1e9)
    cap = np.array([4, 4, 4, 4], np.int64)
    flags = np.ones((4, 5), np.bool_)
    lay = ChainLayout(
        flags, flags[0].copy(), True, middle_table(cap, 4, 3), np.ones(5), 1.0, 1.0, 1, False, False, 0, 0, True, 8, 8
    )
    least_batches(lay, np.ones((3, 2)), np.ones((3, 2)), np.inf)
    from phaze.search.bounds.warming import warm_all

    warm_all()
