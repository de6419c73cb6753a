"""How far the bounds of a front's units matter: up to what designs that are no worse elsewhere
leave of them."""

import numpy as np
from numpy.typing import NDArray

from phaze.front.state import FrontState

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
# How far above the last batch time that matters bounds are still computed: beyond the rounding of
# scores.
CAREFUL = 1e-6


def last_times(state: FrontState, index: Integers) -> list[Floats]:
    """For each model and chip a batch time with which no unit of the chip is in the front: all
    other models at their least bounds, it is no better than designs that are no worse elsewhere;
    infinite where nothing is known."""
    limits_s = np.zeros((len(state.job.models), len(index)))
    rates, scale = state.front_rates[0], state.front_scales[0]
    if state.several or rates.weight or rates.delays:
        return list(np.full_like(limits_s, np.inf))
    values = [bounds.min(axis=0) for bounds in state.configuration_bounds(index)[0]]
    for memory in range(len(state.memories)):
        rate = rates.rate[state.memories[memory], index]
        there = np.flatnonzero(np.isfinite(rate))
        cuts = np.array(
            [state.cut_of(memory * len(state.chips) + int(chip)) for chip in index[there]]
        )
        least = np.stack([bounds[memory, there] for bounds in values])
        for model, model_limits_s in enumerate(limits_s):
            last = scale.last(least, model, cuts) / rate[there] * (1 + CAREFUL)
            model_limits_s[there] = np.maximum(model_limits_s[there], last)
    return list(np.where(limits_s > 0, limits_s, np.inf))
