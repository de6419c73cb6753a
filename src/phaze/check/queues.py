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

from .orders import in_series
from .reading import listed, number
from .slots import KINDS, RULES, Run, Runs, length_of

Floats = NDArray[np.float64]
MOST_COLLECTIVES = 10
"""Of a component whose sets are all tried, 1,024 of them; further ones count nothing, and the bound
is lower."""


@dataclass(frozen=True, slots=True)
class Queues:
    """The units of a pass: whether each holds cores and the network, and the bits of all that must
    end before it."""

    cores: tuple[bool, ...]
    network: tuple[bool, ...]
    before: tuple[int, ...]

    def _components(self) -> list[list[int]]:
        """Units that hold anything, all of one component before all of the next."""
        busy = [unit for unit in range(len(self.cores)) if self.cores[unit] or self.network[unit]]
        busy.sort(key=lambda unit: self.before[unit].bit_count())
        return in_series(busy, self.before)

    def _sets(self, part: Sequence[int]) -> list[list[int]]:
        """Sets of units of a component of which no two run at once."""
        alone = [unit for unit in part if self.cores[unit] and self.network[unit]]
        own = [unit for unit in part if self.network[unit] and not self.cores[unit]][
            :MOST_COLLECTIVES
        ]
        queue = [unit for unit in part if self.cores[unit] and not self.network[unit]]
        found = []
        for chosen in range(1 << len(own)):
            some = [unit for bit, unit in enumerate(own) if chosen >> bit & 1]
            apart = [unit for unit in queue if all(self._ordered(unit, other) for other in some)]
            found.append([*alone, *some, *apart])
        return found

    def _ordered(self, a: int, b: int) -> bool:
        return bool(self.before[a] >> b & 1 or self.before[b] >> a & 1)

    def least(self, seconds: Floats) -> Floats:
        """What no schedule undercuts, from the seconds of units [units, chips]."""
        total = np.zeros(seconds.shape[1])
        for part in self._components():
            total = total + np.max([seconds[own].sum(axis=0) for own in self._sets(part)], axis=0)
        return total

    def makespan(self, starts: Any, seconds: Floats, where: str) -> float:
        """The length of a schedule on one chip, from the start of every unit, after every rule has
        been checked."""
        runs = list[Run]()
        for unit, row in enumerate(listed(starts, where, len(self.cores))):
            start, length = number(row, f"{where}[{unit}]"), float(seconds[unit])
            uses = KINDS if self.cores[unit] else ()
            runs.append(
                Run(
                    str(unit), uses, self.network[unit], length, length, start, start + length, True
                )
            )
        count = len(runs)
        edges = [
            (other, unit)
            for unit in range(count)
            for other in range(count)
            if self.before[unit] >> other & 1
        ]
        return length_of(Runs(RULES["links"], {}, runs, edges), where)
