"""The first designs before the bounds of all chips are there, for a front whose time is limited.

Of every k-th chip the layers are bounded; the one whose device-seconds are least, all models
together, is evaluated with every memory that it may have. Such designs are exact and within the
limits, so a front that stops before it has evaluated a unit of its own answers with them; of all
other chips nothing is known then, and they are open. A front that does not stop forgets them.
"""

from collections.abc import Sequence

import numpy as np

from phaze.front.metrics import RequestedMetrics
from phaze.front.state import FrontState, front_state
from phaze.search.bounds.chip_times import layer_times_on
from phaze.search.bounds.model_bounds import CHEAP, device_floors, model_floors
from phaze.search.dual_bounds import bounds_on
from phaze.search.evaluated import LEAST
from phaze.search.objective import Scale
from phaze.search.run import Evaluate
from phaze.search.state import SearchState

# Chips, spread over the space, of which the most promising is evaluated.
PILOTS = 128


def first_designs(
    start: SearchState, metrics: RequestedMetrics, scales: Sequence[Scale], engine: Evaluate
) -> FrontState:
    """A front of one chip of a state that has no bound yet; nothing is known of the others."""
    job, count = start.job, len(start.chips)
    index = np.arange(0, count, max(1, count // PILOTS))
    times = layer_times_on(job, start.chips, start.networks, start.arrays, index, CHEAP)
    least_s = [
        device_floors(task, layers).min(axis=0)
        for task, layers in zip(job.models, times, strict=True)
    ]
    nearest = np.array([np.argmin(start.scale.score(np.stack(least_s)))])
    chips, near = index[nearest], [[layers.taken(nearest) for layers in model] for model in times]
    nothing, floors = start.bounds, start.floors
    start.set_bounds([np.full_like(bound, LEAST) for bound in nothing])
    start.put_bounds(chips, bounds_on(start, chips, near, [np.inf] * len(near)))
    if start.energy is not None:
        start.floors = [np.zeros_like(floor) for floor in floors]
        for joules, task, time in zip(start.floors, job.models, near, strict=True):
            joules[:, chips] = model_floors(task, time)
    state = front_state(start, metrics, scales)
    units = (np.arange(len(start.memories))[:, None] * count + chips[None, :]).ravel()
    for result in engine(
        state, [int(unit) for unit in units if state.alive[:, unit].any()], state.cut
    ):
        state.evaluated[result.chip] = result
        state.take(result)
    start.set_bounds(nothing)
    start.floors, start.evaluated = floors, {}
    return state
