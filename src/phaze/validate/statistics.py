"""How far predictions are from measurements, in one line of figures.

With e_i = predicted_i / measured_i - 1 over the rows i of a set:

    median      of |e_i|            nine_tenths   their 90th percentile (linear between ranks)
    bias        mean of e_i         worst         the e_i that is farthest from 0
    rank        mean over groups of at least three rows of Spearman's rank correlation of predicted
                and measured
    within      how far plans of one job lie from each other's error: with x_i = ln(predicted_i /
                measured_i), the root of sum (x_i - mean x of its group)^2 / sum (rows of a group -
                1) over groups of at least two rows, which no error common to a job changes
    regret      mean over groups of at least two rows of measured(the row predicted best) / min
                measured - 1

Intervals of rank and regret hold four fifths of the means over groups drawn with repetition, as
many as there are, from a stream with a fixed seed (:func:`interval`); one group has none.

A group holds the runs of one model, number of devices and batch. Equal values share the mean of
their ranks; a group whose rows all measured or all predicted the same has no correlation.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from statistics import mean, median

import numpy as np
from numpy.typing import NDArray

LEAST_RANKED = 3
"""Of two plans a rank correlation is 1 or -1."""
LEAST_CHOSEN = 2
"""Of one plan there is nothing to choose."""
SEED, DRAWS = 0, 2000
"""Of intervals: the same ones every time; more draws move their ends by less than a hundredth."""
TAILS = (0.1, 0.9)
"""Ends of an interval that holds four fifths."""
Interval = tuple[float, float]
WIDE = 0.9
"""The error that one row in ten exceeds."""


@dataclass(frozen=True, slots=True)
class Score:
    """The figures of a set; ``rank`` and ``regret`` are None where no group is large enough,
    ``jobs`` are the groups with a choice."""

    rows: int
    median: float
    nine_tenths: float
    bias: float
    worst: float
    groups: int
    rank: float | None
    regret: float | None
    jobs: int = 0
    rank_interval: Interval | None = None
    regret_interval: Interval | None = None
    within: float | None = None


def interval(values: Sequence[float]) -> Interval | None:
    """Where four fifths of the means of as many values lie, drawn with repetition; None of fewer
    than two."""
    if len(values) < LEAST_CHOSEN:
        return None
    drawn = np.random.default_rng(SEED).choice(np.asarray(values), size=(DRAWS, len(values)))
    low, high = np.quantile(drawn.mean(axis=1), TAILS)
    return float(low), float(high)


def ranks(values: Sequence[float]) -> NDArray[np.float64]:
    """The place of every value in ascending order, from 0; equal ones share the mean of their
    places."""
    numbers = np.asarray(values, dtype=np.float64)
    below = (numbers[None, :] < numbers[:, None]).sum(axis=1)
    same = (numbers[None, :] == numbers[:, None]).sum(axis=1)
    places: NDArray[np.float64] = below + (same - 1) / 2
    return places


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Spearman's: the correlation of the ranks; None where one side is constant."""
    a, b = (ranks(values) - (len(first) - 1) / 2 for values in (first, second))
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread else None


def regret(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """What is lost by running the row that is predicted best; of equals the first."""
    chosen = min(range(len(predicted)), key=lambda i: predicted[i])
    return measured[chosen] / min(measured) - 1


Pair = tuple[Sequence[float], Sequence[float]]
"""What was measured and what was predicted of the rows of a group."""


def within(groups: Sequence[Pair]) -> float | None:
    """The standard deviation of ln(predicted / measured) around the mean of its group; None where
    no group has two rows."""
    squares, freedom = 0.0, 0
    for measured, predicted in groups:
        logs = np.log(np.asarray(predicted) / np.asarray(measured))
        squares += float(np.sum((logs - logs.mean()) ** 2))
        freedom += len(logs) - 1
    return float(np.sqrt(squares / freedom)) if freedom else None


def score(
    measured: Sequence[float], predicted: Sequence[float], groups: Sequence[Hashable]
) -> Score:
    """The figures of some rows; ``groups`` says which are alternatives of each other."""
    errors = [p / m - 1 for m, p in zip(measured, predicted, strict=True)]
    members: dict[Hashable, list[int]] = {}
    for place, group in enumerate(groups):
        members.setdefault(group, []).append(place)
    pairs = [
        ([measured[i] for i in indices], [predicted[i] for i in indices])
        for indices in members.values()
    ]
    related = [rank_correlation(m, p) for m, p in pairs if len(m) >= LEAST_RANKED]
    rank_values = [value for value in related if value is not None]
    lost = [regret(m, p) for m, p in pairs if len(m) >= LEAST_CHOSEN]
    return Score(
        rows=len(errors),
        median=median(map(abs, errors)),
        nine_tenths=float(np.quantile(np.abs(errors), WIDE)),
        bias=mean(errors),
        worst=max(errors, key=abs),
        groups=len(members),
        rank=mean(rank_values) if rank_values else None,
        regret=mean(lost) if lost else None,
        jobs=len(lost),
        rank_interval=interval(rank_values),
        regret_interval=interval(lost),
        within=within(pairs),
    )
