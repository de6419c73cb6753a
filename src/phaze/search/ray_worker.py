"""What runs on a machine of a Ray cluster: one process that opens chips, its kernels compiled and
loaded beforehand."""

import os
import socket
from typing import Any

from phaze.search.exact_layers import ScheduleMemo, SolvedPass
from phaze.search.work_item import Common, WorkItem, evaluate_item

Answered = tuple[dict[str, Any], list[tuple[bytes, SolvedPass]], int, int]


class Worker:
    """An actor; ``known`` are the schedules of the search that it has found or was told."""

    def __init__(self) -> None:
        self.common: Common | None = None
        self.memo = ScheduleMemo()

    def warm(self) -> None:
        """Load the kernels; a machine that has none compiled compiles them now."""
        from phaze.cost import kernels as cost
        from phaze.placement import kernels as placement
        from phaze.schedule import kernels as schedule

        for module in (cost, placement, schedule):
            module.warm()

    def about(self) -> tuple[str, int, str]:
        """The machine, the process, the code."""
        from phaze.search.code import code_digest

        return socket.gethostname(), os.getpid(), code_digest()

    def begin(self, common: Common) -> None:
        """Another search."""
        self.common, self.memo = common, ScheduleMemo()

    def learn(self, *news: list[tuple[bytes, SolvedPass]]) -> None:
        """Schedules that others have found."""
        for new in news:
            self.memo.schedules.update(new)

    def open(self, item: WorkItem, cut: float) -> Answered:
        """One chip: its document, its fresh schedules, and counts of the work."""
        if self.common is None:
            raise AssertionError("a search begins first")
        memo = self.memo
        before, requests, placements = len(memo.schedules), memo.requests, memo.placements
        evaluated = evaluate_item(self.common, item, cut, memo)
        fresh = list(memo.schedules.items())[before:]
        return evaluated.document(), fresh, memo.requests - requests, memo.placements - placements
