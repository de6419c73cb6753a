"""Up to which batch time of a model the bounds of chips matter."""

import numpy as np
from numpy.typing import NDArray

from phaze.search.state import SearchState

Integers = NDArray[np.int64]


def last_times(state: SearchState, index: Integers, best: float) -> list[float]:
    """For each model a batch time with which no chip of ``index`` has a score of ``best``: (rate T) T^p above what that
    leaves it.

    Among several models, averaged geometrically, the others count with their least bounds on these chips.
    """
    models = len(state.job.models)
    rate = float(state.rates.rate[:, index].min(initial=np.inf))
    if not 0 < rate < np.inf or not best < np.inf or (models > 1 and state.scale.objective.mean != "geometric"):
        return [float("inf")] * models
    least = [float(state.values(model, index).min(initial=np.inf)) for model in range(models)]
    times = []
    for model in range(models):
        last = best
        if models > 1:
            scale = state.scale
            ratios = [(least[o] / scale.baseline[o]) ** scale.weights[o] for o in range(models) if o != model]
            last = scale.baseline[model] * (best / float(np.prod(ratios))) ** (1 / scale.weights[model])
        times.append((last / rate) ** (1 / (1 + state.rates.delays)) * (1 + 1e-6))
    return times
