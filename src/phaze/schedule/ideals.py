"""Order ideals of a component and what is known of the rest after each: the backward sweep.

An ideal is a set S of operators with everything below each of them (here also with the twins that
start no later, see ``part.py``). The sets of started operators along any schedule are ideals. They
are enumerated by size, at most ``most``; a mask is one 64-bit word, so a component has at most 63
operators. Larger ones are not enumerated: their answer is a list schedule or CP-SAT's, with a bound
(``solve.py``).

g(S): the least time from the moment when all of S has ended to the end of everything, where there
is no limit on cores. Under rules where a spread operator runs alone (icml24), time falls into
steps: one spread operator, or a phase of operators on one core each. In a phase from S that lasts
T, every operator outside S whose earliest end ``e_j = L_j + max(e_i: i below j, i not in S)`` is at
most T can be done, and having done more never hurts (leave it out later: what remains is a subset
of the work, in the same order). A phase may be cut at any moment into two that each start from an
ideal with nothing running only if nothing is cut; so phases end where some e_j does. Hence

    g(all) = 0,     g(S) = min( P_j + g(S + j)  over j ready, spread;
                                T + g({i: i in S or e_i <= T})  over T in {e_j} )
                                                                (:func:`sweep_alone`)

An operator that runs at T but has not ended is not in the next ideal: the barrier that ends the
phase must wait for it or it has not started; if it is waited for, T is its end. So g is exact
without core limits, and a lower bound with them.

Under other rules g(S) is the longest path of shortest times outside S (:func:`sweep_paths`).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.schedule.kernels import enumerate_ideals, places, sweep_alone, sweep_paths
from phaze.schedule.part import WORD, Component, Ints, Masks, Tables, longest_paths

# Room that most layers need no more than; it is doubled until all ideals fit.
FIRST = 1024


@dataclass(frozen=True, slots=True)
class Ideals:
    """The ideals by size, their successors, g of each, and g after all that is not above each
    operator."""

    masks: Masks
    nexts: NDArray[np.int32]
    levels: Ints
    g: Ints
    tail: Ints

    def __len__(self) -> int:
        return len(self.masks)


def ideals_of(part: Component, tables: Tables, most: int) -> Ideals | None:
    """All ideals of the component with g, or None when there are more than ``most`` or a mask needs
    a second word."""
    if len(part) > WORD:
        return None
    room, everything = min(FIRST, most), (1 << len(part)) - 1
    while True:
        masks, nexts, keys, values = enumerate_ideals(tables, room)
        if int(masks[-1]) == everything:
            break
        if room >= most:
            return None
        room = min(4 * room, most)
    if part.alone:
        g = sweep_alone(tables, masks, nexts, keys, values)
    else:
        g = sweep_paths(masks, np.array(longest_paths(part), np.int64))
    rest = np.array([everything & ~mask for mask in part.above], np.uint64)
    sizes = np.bitwise_count(masks)
    levels = np.searchsorted(sizes, np.arange(len(part) + 2)).astype(np.int64)
    return Ideals(masks, nexts, levels, g, g[places(rest, keys, values)])
