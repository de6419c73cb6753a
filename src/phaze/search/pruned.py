"""The list of closed chips as arrays, 10 bytes a chip, read one by one or in batches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np
from numpy.typing import NDArray

from phaze.search.journal import PrunedChip

# In the order of the rows' numbers; the journal and the exports write the words.
REASONS = ("area", "power", "cost", "memory", "bound", "evaluated", "failed", "open")
STEPS = ("cheap", "dual", "exact", "cut")
# Rows that become Python values at a time: some MB, whatever the size of the space.
BATCH = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class PrunedChips(Sequence[PrunedChip]):
    """Every chip in order: the numbers of its reason and its step, and its bound, infinite where
    there is none; ``numbers`` are what documents call them where that is not their place."""

    reasons: NDArray[np.uint8]
    bounds: NDArray[np.float64]
    steps: NDArray[np.uint8]
    numbers: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.bounds)

    def _some(self, start: int, end: int) -> Iterator[PrunedChip]:
        last = min(end, len(self))
        named = range(start, last) if self.numbers is None else self.numbers[start:last].tolist()
        reasons, steps = (
            map(words.__getitem__, codes[start:last].tolist())
            for words, codes in ((REASONS, self.reasons), (STEPS, self.steps))
        )
        bounds = [
            None if bound == float("inf") else bound for bound in self.bounds[start:last].tolist()
        ]
        return map(PrunedChip._make, zip(named, reasons, bounds, steps, strict=True))

    def counts(self) -> dict[str, int]:
        """Chips by reason."""
        every = np.bincount(self.reasons, minlength=len(REASONS)).tolist()
        return {reason: count for reason, count in zip(REASONS, every, strict=True) if count}

    def __iter__(self) -> Iterator[PrunedChip]:
        for start in range(0, len(self), BATCH):
            yield from self._some(start, start + BATCH)

    @overload
    def __getitem__(self, place: int) -> PrunedChip: ...
    @overload
    def __getitem__(self, place: slice) -> list[PrunedChip]: ...
    def __getitem__(self, place: int | slice) -> PrunedChip | list[PrunedChip]:
        if isinstance(place, slice):
            return [self[chip] for chip in range(*place.indices(len(self)))]
        chip = range(len(self))[place]
        return next(self._some(chip, chip + 1))
