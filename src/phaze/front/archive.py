"""The designs of a front so far: those that none of the others beats."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.front.order import beaten, steps

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(slots=True)
class Archive:
    """Designs that none of those seen so far beats: numbers (unit * span + position) and values
    [metrics, designs].

    The first ``weighed`` metrics count.
    """

    weighed: int
    numbers: Integers
    values: Floats

    def add(self, number: int, values: Floats) -> bool:
        """Put a design in, unless one beats it; those that it beats go."""
        designs, design, name = (
            steps(self.values[: self.weighed]),
            steps(values[: self.weighed])[:, None],
            np.array([number]),
        )
        if beaten(designs, self.numbers, design, name)[0]:
            return False
        unbeaten = ~beaten(design, name, designs, self.numbers)
        self.numbers = np.append(self.numbers[unbeaten], number)
        self.values = np.concatenate([self.values[:, unbeaten], values[:, None]], axis=1)
        return True


def no_designs(weighed: int, measured: int) -> Archive:
    """An archive of so many metrics that count, of so many."""
    return Archive(weighed, np.empty(0, np.int64), np.empty((measured, 0)))
