"""Credits for one layer on many chips at once, where collectives run beside work; ``dual.py``
proves what credits give.

**links** (:func:`queue_and_network`). What may run together is one operator with cores and one
collective that are incomparable, so the linear program is

    max sum u_i,   u_o / d_o + u_c / d_c <= 1  for every incomparable pair (o, c),   0 <= u_i <= d_i

over a bipartite graph; its corners are whole: each operator gets all of its time or nothing. A best
one takes a set A of collectives and every other operator that is comparable to all of A. So with
the sets that no larger one contains,

    bound = max over sets of the sum of their times        = sum of all times - what collectives can
                                                           at most hide

which is the linear program itself, exactly, by one product of a 0/1 matrix with the times. What
holds cores and network runs alone and is in every set.

**overlap** (:func:`kinds_and_network`). For a maximal antichain A let, over its operators, with a_i
= u_i / P_i and b_i = u_i / L_i,

    tensor(A)  = max(greatest a_i of tensor operators, sum of the greatest b_i of tensor and fused
               ones, one a core)
    vector(A)  = max(greatest a_i of vector operators, sum of the greatest b_i of vector ones, one a
               core)
    network(A) = greatest a_i of collectives,     fused(A) = greatest a_i of fused operators

Whatever runs at one moment lies in a maximal antichain and is either a spread fused operator, and
at most one collective beside it, or on the tensor cores one spread or singles, on the vector cores
the same, and at most one collective. So the credits are feasible if for every A

    tensor(A) + vector(A) + network(A) <= 1   and   fused(A) + network(A) <= 1

and are given greedily: in some order each operator gets the most that every antichain with it
leaves. The best of a few orders counts: the longest path first, then by time; in the order of the
graph; against it; by time; those with tensor cores first; collectives first.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from phaze.schedule.chip_dual_kernels import greedy_kinds
from phaze.schedule.dual import antichain_arrays, beside_of
from phaze.schedule.order import bits
from phaze.schedule.part import Floats

# Sets of collectives are tried one by one up to so many collectives in a component, 4096 sets.
MOST_COLLECTIVES = 12
# Chips whose sums are held at a time: 4096 sets of them are 32 MB.
CHUNK = 1024
TENSOR, VECTOR, FUSED, NETWORK = range(4)


def queue_and_network(
    spread_s: Floats, collectives: Sequence[bool], alone: Sequence[bool], below: Sequence[int]
) -> Floats:
    """The linear program of rules links for each chip, [operators, chips] in seconds.

    ``collectives`` hold the network and no core, ``alone`` both; all others have cores. Collectives
    beyond ``MOST_COLLECTIVES`` get no credit, so that the bound is lower and still one.
    """
    beside = beside_of(below)
    numbers = [i for i, flag in enumerate(collectives) if flag][:MOST_COLLECTIVES]
    with_cores = sum(1 << i for i, flag in enumerate(collectives) if not flag)
    free = sum(1 << i for i, flag in enumerate(alone) if flag)
    masks: set[int] = set()
    for chosen in range(1 << len(numbers)):
        members, hidden = 0, 0
        for index, i in enumerate(numbers):
            if chosen >> index & 1:
                members |= 1 << i
                hidden |= beside[i] & ~free
        masks.add(members | with_cores & ~hidden)
    sets = [
        mask
        for mask in sorted(masks)
        if not any(mask != other and mask & ~other == 0 for other in masks)
    ]
    matrix = np.array([[mask >> i & 1 for i in range(len(below))] for mask in sets], float)
    chips = spread_s.shape[1]
    best = np.empty(chips)
    for start in range(0, chips, CHUNK):
        best[start : start + CHUNK] = (matrix @ spread_s[:, start : start + CHUNK]).max(axis=0)
    return best


def _longest_path_first(below: Sequence[int], weight: Floats) -> list[int]:
    count = len(below)
    ends, last = np.zeros(count), [-1] * count
    for j in range(count):
        before = bits(below[j])
        if before:
            last[j] = max(before, key=lambda i: (ends[i], i))
        ends[j] = weight[j] + (ends[last[j]] if before else 0.0)
    path, operator = [], int(np.argmax(ends))
    while operator >= 0:
        path.append(operator)
        operator = last[operator]
    rest = [int(i) for i in np.argsort(-weight, kind="stable") if int(i) not in path]
    return [*reversed(path), *rest]


def kinds_and_network(
    one_core_s: Floats,
    spread_s: Floats,
    cores: tuple[NDArray[np.int64], NDArray[np.int64]],
    roles: Sequence[int],
    below: Sequence[int],
) -> Floats | None:
    """The greedy credits of rules overlap for each chip; None when the graph has too many maximal
    antichains.

    Times are [operators, chips] and above zero; ``roles`` are TENSOR, VECTOR, FUSED (also with the
    network) or NETWORK.
    """
    count = len(below)
    sets = antichain_arrays(beside_of(below))
    if sets is None:
        return None
    weight = np.minimum(one_core_s, spread_s).mean(axis=1)
    by_time = [int(i) for i in np.argsort(-weight, kind="stable")]
    path = _longest_path_first(below, weight)
    orders = [path, list(range(count)), list(range(count))[::-1], by_time]
    # All of one resource first is the load bound of it, and what is left to the others.
    for first_roles in ((TENSOR, FUSED), (NETWORK,)):
        chosen = [i for i in by_time if roles[i] in first_roles]
        orders.append([*chosen, *(i for i in by_time if roles[i] not in first_roles)])
    alone, spread = np.ascontiguousarray(one_core_s.T), np.ascontiguousarray(spread_s.T)
    both = np.stack(cores, axis=1).astype(np.int64)
    return greedy_kinds(
        alone, spread, both, np.array(roles, np.int64), *sets, np.array(orders, np.int64)
    )
