"""Compiled loops of the greedy credits for many chips: the mathematics stands in
``chip_dual.py``."""

import numpy as np

from phaze.compiled import njit
from phaze.schedule.part import Floats, Ints

TENSOR, VECTOR, FUSED, NETWORK = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def _top(
    single: Floats,
    roles: Ints,
    members: Ints,
    skipped: int,
    vector: bool,
    most: int,
    sorted_: Floats,
) -> float:
    """The sum of the ``most`` greatest ``single`` of the vector, or of the tensor and fused,
    members but one."""
    count, total = 0, 0.0
    if most <= 0:
        return 0.0
    for k in members:
        if k == skipped or single[k] <= 0 or roles[k] == NETWORK or vector != (roles[k] == VECTOR):
            continue
        place = count
        if count == most:
            if single[k] <= sorted_[most - 1]:
                continue
            place = most - 1
            total -= sorted_[place]
        else:
            count += 1
        while place > 0 and sorted_[place - 1] < single[k]:
            sorted_[place] = sorted_[place - 1]
            place -= 1
        sorted_[place] = single[k]
        total += single[k]
    return total


@njit(cache=True, nogil=True)
def _greatest(alone: Floats, roles: Ints, members: Ints, role: int) -> float:
    best = 0.0
    for k in members:
        if roles[k] == role:
            best = max(best, alone[k])
    return best


@njit(cache=True, nogil=True)
def _room(
    alone: Floats, single: Floats, roles: Ints, members: Ints, i: int, cores: Ints, one_core: float,
    spread: float,
    sorted_: Floats,
) -> float:  # fmt: skip
    """The most credit, in seconds, that antichain ``members`` leaves to its operator i."""
    role = roles[i]
    network = 0.0 if role == NETWORK else _greatest(alone, roles, members, NETWORK)
    vector, tensor = 0.0, 0.0
    if role != VECTOR:
        vector = _top(single, roles, members, -1, True, cores[1], sorted_)
        vector = max(vector, _greatest(alone, roles, members, VECTOR))
    if role in (VECTOR, NETWORK):
        tensor = _top(single, roles, members, -1, False, cores[0], sorted_)
        tensor = max(tensor, _greatest(alone, roles, members, TENSOR))
    if role == NETWORK:
        used = max(tensor + vector, _greatest(alone, roles, members, FUSED))
        return spread * max(0.0, 1.0 - used)
    left = max(0.0, 1.0 - network - tensor - vector)
    others = _top(
        single, roles, members, i, role == VECTOR, cores[1 if role == VECTOR else 0] - 1, sorted_
    )
    most = one_core * max(0.0, left - others)
    return min(most, spread * (max(0.0, 1.0 - network) if role == FUSED else left))


@njit(cache=True, nogil=True)
def greedy_kinds(
    one_core: Floats, spread: Floats, cores: Ints, roles: Ints,
    members: Ints, first: Ints, in_sets: Ints, in_first: Ints, orders: Ints,
) -> Floats:  # fmt: skip
    """For each chip the best sum of greedy credits over the given orders.

    ``one_core`` and ``spread`` are [chips, operators]; antichain a is ``members[first[a] : first[a
    + 1]]``, and the antichains with operator i are ``in_sets[in_first[i] : in_first[i + 1]]``.
    """
    chips, n = one_core.shape
    best = np.zeros(chips)
    alone, single, sorted_ = np.zeros(n), np.zeros(n), np.zeros(n + 1)
    for chip in range(chips):
        for order in orders:
            alone[:], single[:] = 0.0, 0.0
            total = 0.0
            for i in order:
                most = min(one_core[chip, i], spread[chip, i])
                for k in range(in_first[i], in_first[i + 1]):
                    if most <= 0:
                        break
                    a = in_sets[k]
                    antichain = members[first[a] : first[a + 1]]
                    room = _room(
                        alone,
                        single,
                        roles,
                        antichain,
                        i,
                        cores[chip],
                        one_core[chip, i],
                        spread[chip, i],
                        sorted_,
                    )
                    most = min(most, room)
                alone[i], single[i] = most / spread[chip, i], most / one_core[chip, i]
                total += most
            best[chip] = max(best[chip], total)
    return best
