"""Keys of components: equal for problems that differ only in the numbering of operators and in the
unit of time.

The key is the digest of the component written in a canonical order: every time as a share of the
sum of all times (to 12 digits), what each way to run holds, the masks, and the cores as far as they
count. Equal keys therefore mean equal problems, to 1e-12 in their times. The order comes from
colour refinement: operators are distinguished by their times and by the colours below and above
them, until nothing changes. Where colours are left equal, one operator of the first such class is
singled out and refinement goes on, for each candidate in turn, and the least writing is taken;
operators with the same masks are exchangeable, so one candidate stands for them. After
``MOST_LEAVES`` writings only first candidates are followed: then equal problems may get different
keys, which costs a second solution and nothing else.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from phaze.documents import digest
from phaze.schedule.order import bits
from phaze.schedule.part import Component

# Symmetric graphs have factorially many writings; beyond so many a second solution is cheaper.
MOST_LEAVES = 64


@dataclass(slots=True)
class _Search:
    """One canonical order being sought."""

    part: Component
    shares: list[list[str]]
    leaves: int = 0
    best: list[Any] | None = None
    order: list[int] = field(default_factory=list)

    def refine(self, colours: Sequence[int]) -> list[int]:
        """The coarsest stable refinement of ``colours``, numbered in a way that no numbering of
        operators changes."""
        below = [bits(mask) for mask in self.part.order.below]
        above = [bits(mask) for mask in self.part.above]
        now = list(colours)
        while True:
            seen = [
                (now[i], sorted(now[k] for k in below[i]), sorted(now[k] for k in above[i]))
                for i in range(len(now))
            ]
            ranks = {
                repr(view): index
                for index, view in enumerate(sorted({repr(v): v for v in seen}.values()))
            }
            after = [ranks[repr(view)] for view in seen]
            if len(set(after)) == len(set(now)):
                return after
            now = after

    def descend(self, colours: list[int]) -> None:
        """Single out operators until all colours differ, and keep the least writing."""
        classes: dict[int, list[int]] = {}
        for i, colour in enumerate(colours):
            classes.setdefault(colour, []).append(i)
        tied = next(
            (classes[colour] for colour in sorted(classes) if len(classes[colour]) > 1), None
        )
        if tied is None:
            self.leaf(sorted(range(len(colours)), key=lambda i: colours[i]))
            return
        part = self.part
        distinct = {(part.order.below[i], part.above[i]): i for i in reversed(tied)}
        candidates = sorted(distinct.values())
        for i in candidates[: 1 if self.leaves >= MOST_LEAVES else None]:
            self.descend(self.refine([2 * colour + (k != i) for k, colour in enumerate(colours)]))

    def leaf(self, order: list[int]) -> None:
        """Write the component in ``order`` and keep it if it is the least so far."""
        self.leaves += 1
        place = {i: index for index, i in enumerate(order)}
        part = self.part
        text = [
            [self.shares[i], part.holds[i], sorted(place[k] for k in bits(part.order.below[i]))]
            for i in order
        ]
        if self.best is None or repr(text) < repr(self.best):
            self.best, self.order = text, order


def canonical(part: Component) -> tuple[str, list[int]]:
    """The key of a component, and its operators in the order that the key was written in."""
    total = part.total_s
    shares = [[f"{time / total:.11e}" for time in times] for times in part.times_s]
    search = _Search(part, shares)
    looks = sorted({repr((shares[i], part.holds[i])) for i in range(len(part))})
    first = [looks.index(repr((shares[i], part.holds[i]))) for i in range(len(part))]
    search.descend(search.refine(first))
    cores = [min(count, len(part)) for count in part.cores]
    return digest([part.alone, cores, f"{part.hbm_s / total:.11e}", search.best]), search.order
