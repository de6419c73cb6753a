"""Schedules under the rule links (docs/schedule.md): one queue of operators with cores, collectives
beside it in turn.

What runs at a moment is at most one operator with cores and one collective, neither of which must
precede the other; what holds cores and network runs alone. So of a set of collectives A and all
operators that stand before or after every one of A, no two run at once, and for each A that is what
no schedule undercuts (:meth:`Queues.least`). Operators that all precede all others run in series,
and bounds of such components add.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .orders import UnitOrder
from .reading import listed, number
from .slots import KINDS, RULES, Run, Runs, length_of

Floats = NDArray[np.float64]
MOST_COLLECTIVES = 10
"""Of a component whose sets are all tried, 1,024 of them; further ones count nothing, and the bound
is lower."""


@dataclass(frozen=True, slots=True)
class Queues:
    """The units of a pass in one queue with the network beside it."""

    order: UnitOrder

    def _sets(self, part: Sequence[int]) -> list[list[int]]:
        """Sets of units of a component of which no two run at once."""
        order = self.order
        both = [unit for unit in part if order.kinds[unit] and order.network[unit]]
        sent = [unit for unit in part if not order.kinds[unit]][:MOST_COLLECTIVES]
        queue = [unit for unit in part if not order.network[unit]]
        sets = []
        for chosen in range(1 << len(sent)):
            some = [unit for bit, unit in enumerate(sent) if chosen >> bit & 1]
            rest = [unit for unit in queue if all(order.ordered(unit, other) for other in some)]
            sets.append([*both, *some, *rest])
        return sets

    def least(self, seconds: Floats) -> Floats:
        """What no schedule undercuts, from the seconds of units [units, chips]."""
        total = np.zeros(seconds.shape[1])
        for part in self.order.components():
            sums = [seconds[members].sum(axis=0) for members in self._sets(part)]
            total = total + np.max(sums, axis=0)
        return total

    def makespan(self, starts: Any, seconds: Floats, where: str) -> float:
        """The length of a schedule on one chip, from the start of every unit, after every rule has
        been checked."""
        order, runs = self.order, list[Run]()
        for unit, row in enumerate(listed(starts, where, len(order.kinds))):
            start, length = number(row, f"{where}[{unit}]"), float(seconds[unit])
            uses = KINDS if order.kinds[unit] else ()
            runs.append(
                Run(
                    str(unit),
                    uses,
                    order.network[unit],
                    length,
                    length,
                    start,
                    start + length,
                    True,
                )
            )
        return length_of(Runs(RULES["links"], {}, runs, order.edges()), where)
