"""Modes of recompute and offload on one chip, reduced to their Pareto front in seconds and bytes.

A mode is dropped if another one takes, in every layer, no more seconds, keeps no more bytes and holds no more beside
them: the sums and maxima of a stage are then no greater in any of the three, whatever its layers and microbatches in
flight, so no plan needs the one that is dropped.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from phaze.evaluate.layers import LayerCost

# The place of the first mode between selective and full.
FIRST = 2


def efficient(costs: Sequence[LayerCost]) -> tuple[LayerCost, ...]:
    """The layers with the modes between selective and full that no other undercuts; of equals the first."""
    if not costs or not costs[0].more:
        return tuple(costs)
    names = ["none", "selective", *(mode.name for mode in costs[0].more)]
    rows = np.array([_rows(cost) for cost in costs])  # [layers, modes, what]
    kept = []
    for at in range(FIRST, len(names)):
        others = [other for other in range(len(names)) if other != at]
        no_worse = [(rows[:, other] <= rows[:, at]).all() for other in others]
        equal = [(rows[:, other] == rows[:, at]).all() for other in others]
        beaten = any(a and (not e or other < at) for other, a, e in zip(others, no_worse, equal, strict=True))
        if not beaten:
            kept.append(at - FIRST)
    return tuple(replace(cost, more=tuple(cost.more[place] for place in kept)) for cost in costs)


def _rows(cost: LayerCost) -> list[tuple[float, float, float]]:
    """Seconds again, bytes kept and bytes beside them of every mode of a layer but full, which keeps what enters."""
    whole, selective = float(cost.saved_bytes), float(min(cost.selective_bytes, cost.saved_bytes))
    found = [(0.0, whole, 0.0), (cost.selective_s, selective, whole - selective)]
    return [*found, *((mode.again_s, float(mode.saved_bytes), float(mode.live_bytes)) for mode in cost.more)]
