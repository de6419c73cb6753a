"""Up to which batch time of a model the bounds of chips matter."""

import numpy as np
from numpy.typing import NDArray

from phaze.search.state import SearchState

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def last_times(state: SearchState, index: Integers, best: float) -> list[Floats]:
    """For each model and chip of ``index`` a batch time with which the chip has no score of ``best``: (rate T) T^p
    above what that leaves it.

    Among several models, averaged geometrically, the others count with their least bounds on the chip.
    """
    models, scale = len(state.job.models), state.scale
    if not best < np.inf or (models > 1 and scale.objective.mean != "geometric"):
        return [np.full(len(index), np.inf)] * models
    rate = state.rates.rate[:, index].min(axis=0)
    ratios = [
        (state.values(model, index).min(axis=(0, 1)) / scale.baseline[model]) ** scale.weights[model]
        if models > 1
        else np.ones(len(index))
        for model in range(models)
    ]
    times = []
    for model in range(models):
        last: Floats | float = best
        if models > 1:
            others = np.prod([ratio for other, ratio in enumerate(ratios) if other != model], axis=0)
            last = scale.baseline[model] * (best / others) ** (1 / scale.weights[model])
        with np.errstate(divide="ignore", invalid="ignore"):
            longest = (last / rate) ** (1 / (1 + state.rates.delays)) * (1 + 1e-6)
        times.append(np.where((rate > 0) & (rate < np.inf), longest, np.inf))
    return times
