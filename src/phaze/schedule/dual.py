"""The antichain dual: credits for operators whose sum no schedule can undercut.

Give every operator i a credit ``u_i >= 0`` (seconds). A *configuration* is a set c of operators,
each in one way to run (mode m, lasting ``d_im``), that the rules allow to run at the same time:
pairwise incomparable, within the cores. If

    sum over (i, m) in c of u_i / d_im  <=  1          for every configuration c               (*)

then every schedule lasts at least ``sum_i u_i``. Proof: let x_c be the time for which exactly the
configuration c runs. Operator i in mode m runs for d_im, so ``sum_{c with (i, m)} x_c = d_im``,
hence ``sum_i u_i = sum_i (u_i / d_im)
d_im = sum_c x_c sum_{(i, m) in c} u_i / d_im <= sum_c x_c <= makespan``.  []

At any moment t of a schedule the same argument for the rest of the time gives: rest >= sum of u_i
over what has not started + (remaining time / d_im) u_i over what runs. That is the potential h of
``labels.py``.

Special cases: u_i = min(L_i, P_i) along one chain (critical path: a configuration holds at most one
of a chain); u_i = min(L_i / cores, P_i) over all operators of a core kind (load: a configuration
holds at most ``cores`` on one core, or one spread). The best credits are those of the linear
program max sum u subject to (*), whose dual is ``min sum_c x_c, sum_{c with (i, m)} x_c / d_im >=
1``: covering all operators by configurations. :func:`antichain` solves that one by column
generation: a basis of n configurations, duals u, and the configuration of greatest price ``sum u_i
/ d_im`` enters until no price is above 1. At any round u / (greatest price) satisfies (*), so
stopping early is safe (Farley's bound). :func:`dearest <phaze.schedule.dual_kernels.dearest>` finds
the greatest price exactly, by depth first search with two bounds: at most one operator of each
chain of a chain cover, at most as many as cores.

:func:`greedy_credits` is the cheap version for one graph on many chips (rules icml24). In a given
order each operator gets the weight ``w_i = u_i / L_i`` that is left: at most min(1, P_i / L_i) (it
alone, on one core or spread) and, for each maximal antichain A with i, at most what keeps ``top(A)
<= 1``: the sum of the ``tensor_cores`` greatest weights of A's tensor and fused operators and the
``vector_cores`` greatest of its vector ones. ``top(A)`` is at least the weight of every
configuration inside A (a fused operator also takes a vector core, which is left out: that can only
make top larger), and every configuration on single cores lies in a maximal antichain, so (*)
holds."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from phaze.schedule.dual_kernels import greedy_duals, solve_dual
from phaze.schedule.order import bits
from phaze.schedule.part import Component, Floats, Ints, Tables, incomparable

# A limit on the rounds of column generation: a bound that is taken early is still one.
ROUNDS = 2000
# With more maximal antichains the greedy dual is left out as too dear; path and load remain.
MOST_ANTICHAINS = 4000


def chain_cover(below: Sequence[int]) -> Ints:
    """A number for each operator, equal numbers forming a chain: first fit along the topological
    order."""
    last: list[int] = []
    cover = []
    for j, mask in enumerate(below):
        for number, i in enumerate(last):
            if mask >> i & 1:
                last[number] = j
                break
        else:
            number = len(last)
            last.append(j)
        cover.append(number)
    return np.array(cover, np.int64)


def antichain(part: Component, tables: Tables) -> tuple[float, Floats]:
    """The bound of the linear program in units, and its credits; at most 63 operators."""
    beside = np.array(incomparable(part), np.uint64)
    bound, credits = solve_dual(tables, beside, chain_cover(part.order.below), ROUNDS)
    shrink = 1 - 1e-12
    return float(bound) * shrink, credits * shrink


def load_credits(part: Component, resource: int) -> Floats:
    """The credits of the load bound on tensor cores (0), vector cores (1) or the network (2)."""
    cores = max(1, part.cores[resource])
    credit = np.zeros(len(part))
    for i, (times, holds) in enumerate(zip(part.times, part.holds, strict=True)):
        shares = [
            time if code == 2 else time / cores if code == 1 else 0.0
            for time, code in zip(times, (holds[0][resource], holds[1][resource]), strict=True)
            if time > 0
        ]
        credit[i] = min(shares)
    return credit


def maximal_antichains(
    beside: Sequence[int], most: int = MOST_ANTICHAINS
) -> list[list[int]] | None:
    """The maximal sets of pairwise incomparable operators, or None when there are more than
    ``most``.

    Maximal cliques of the incomparability graph, by Bron and Kerbosch's recursion with a pivot.
    """
    antichains: list[list[int]] = []

    def extend(chosen: list[int], open_: int, closed: int) -> bool:
        if not open_ and not closed:
            antichains.append(chosen)
            return len(antichains) <= most
        both = open_ | closed
        pivot = max(bits(both), key=lambda i: ((beside[i] & open_).bit_count(), -i))
        for i in bits(open_ & ~beside[pivot]):
            if not extend([*chosen, i], open_ & beside[i], closed & beside[i]):
                return False
            open_ &= ~(1 << i)
            closed |= 1 << i
        return True

    return antichains if extend([], (1 << len(beside)) - 1, 0) else None


class Antichains(NamedTuple):
    """Maximal antichains for the kernels: their members one after another, where each begins, and
    the antichains of each operator likewise."""

    members: NDArray[np.int64]
    first: NDArray[np.int64]
    in_sets: NDArray[np.int64]
    in_first: NDArray[np.int64]


def antichain_arrays(beside: Sequence[int]) -> Antichains | None:
    """The maximal antichains of operators, each with the mask of what is beside it; None where they
    are too many."""
    sets = maximal_antichains(beside)
    if sets is None:
        return None
    inside: list[list[int]] = [[] for _ in beside]
    for number, antichain in enumerate(sets):
        for operator in antichain:
            inside[operator].append(number)
    return Antichains(*_joined(sets), *_joined(inside))


def _joined(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    flat = np.array([number for row in rows for number in row], np.int64)
    return flat, np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)


def beside_of(below: Sequence[int]) -> list[int]:
    """For each operator the mask of those that are incomparable to it."""
    count = len(below)
    above = [sum(1 << j for j in range(count) if below[j] >> i & 1) for i in range(count)]
    return [(1 << count) - 1 & ~(below[i] | above[i] | 1 << i) for i in range(count)]


def greedy_credits(
    one_core_s: Floats,
    all_cores_s: Floats,
    cores: NDArray[np.int64],
    kinds: Sequence[str],
    below: Sequence[int],
) -> Floats | None:
    """For each chip the greedy dual bound in seconds; None when the graph has too many maximal
    antichains.

    ``one_core_s`` and ``all_cores_s`` are [operators, chips], operators in topological order,
    ``cores`` is [chips, 2] (tensor, vector). A collective (kind none) runs alone, so it is in no
    antichain but its own.
    """
    count = len(below)
    vector = np.array([kind == "vector" for kind in kinds], np.bool_)
    alone = sum(1 << i for i, kind in enumerate(kinds) if kind == "none")
    sets = antichain_arrays(
        [0 if alone >> i & 1 else mask & ~alone for i, mask in enumerate(beside_of(below))]
    )
    if sets is None:
        return None
    weight = np.minimum(one_core_s, all_cores_s).mean(axis=1)
    orders = np.array(
        [np.argsort(-weight, kind="stable"), np.arange(count), np.arange(count)[::-1]], np.int64
    )
    one_core, spread = np.ascontiguousarray(one_core_s.T), np.ascontiguousarray(all_cores_s.T)
    return greedy_duals(one_core, spread, cores, vector, *sets, orders)
