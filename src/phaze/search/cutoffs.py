"""Up to which batch time of a model the bounds of chips matter."""

import numpy as np
from numpy.typing import NDArray

from phaze.search.objective import Rates
from phaze.search.state import SearchState

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# How far above the last batch time that matters bounds are still computed: beyond the rounding of
# scores.
CAREFUL = 1e-6


def last_times(state: SearchState, index: Integers, best: float) -> list[Floats]:
    """For each model and chip of ``index`` a batch time from which on the chip has no score of
    ``best``, whatever its memory: the other models at their least bounds on the chip, and its own
    joules at their least."""
    models, count = len(state.job.models), len(index)
    if not best < np.inf:
        return [np.full(count, np.inf)] * models
    alone = np.zeros((1, count))
    least = (
        alone
        if models == 1
        else np.stack([state.values(m, index).min(axis=(0, 1)) for m in range(models)])
    )
    rates = Rates(state.rates.rate[:, index].min(axis=0), state.rates.weight, state.rates.delays)
    times = []
    for model in range(models):
        last = state.scale.last(least, model, np.full(count, best))
        times.append(rates.last_s(last, state.floors[model][:, index].min(axis=0)) * (1 + CAREFUL))
    return times
