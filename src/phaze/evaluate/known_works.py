"""What works take on a set of chips, each distinct one costed once however many passes have it.

The passes of a plan's choices have most of their works in common: sharding experts changes no
attention, and what recomputing runs again is a part of the forward pass.
"""

from collections.abc import Sequence

import numpy as np

from phaze.cost.chip_set import ChipSet
from phaze.cost.work import Work
from phaze.evaluate.lowered_pass import WorkTimes, work_times
from phaze.hardware.calibration import Constants
from phaze.schedule.rules import Rule


class KnownWorks:
    """Seconds of works under a rule (:func:`phaze.evaluate.lowered_pass.work_times`); they are kept
    with this value."""

    def __init__(self, chips: ChipSet, constants: Constants, rule: Rule) -> None:
        self._chips, self._constants, self._rule = chips, constants, rule
        self._rows: dict[Work, int] = {}
        # The row of a value that was requested before; the value is kept, so that no other takes
        # its place in memory.
        self._seen: dict[int, tuple[int, Work]] = {}
        nothing = np.zeros((0, len(chips)))
        self._times = WorkTimes(nothing, nothing, nothing)

    def times(self, works: Sequence[Work]) -> WorkTimes:
        """Those of some works, in their order."""
        rows, new = list[int](), list[Work]()
        for work in works:
            seen = self._seen.get(id(work))
            if seen is None:
                row = self._rows.setdefault(work, len(self._rows))
                if row == len(self._times.spread_s) + len(new):
                    new.append(work)
                seen = self._seen[id(work)] = row, work
            rows.append(seen[0])
        if new:
            self._times = self._times.with_more(
                work_times(new, self._chips, self._constants, self._rule)
            )
        return self._times.of_works(rows)
