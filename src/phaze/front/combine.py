r"""Several models, several metrics of a run: the combinations of their configurations that none
beats.

Model m has configurations of values v_km in the metrics k of a run. A combination takes one
configuration of each model and is worth score_k(v_k1 .. v_kM) in metric k, and every mean of
:mod:`phaze.search.objective` rises with each v. So a configuration that another configuration of
its model beats in all metrics is in no design; neither is a combination of the first models that
another of the same models beats, since each mean over the models is one over the first of them and
the rest:

    geometric    log score = sum over m of w_m log(v_m / v0_m)
    arithmetic   1 / score = sum over m of w_m n_m / v_m
    regret       score = max over m of v_m / v1_m

Combinations are made model by model, those beaten left out each time, so what is left is exact.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from phaze.front.order import undominated
from phaze.search.objective import Scale

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def _of_first(scale: Scale, models: int) -> Scale:
    """The mean over the first models alone, its weights as they are."""
    return replace(
        scale,
        weights=scale.weights[:models],
        batches=scale.batches[:models],
        baseline=scale.baseline[:models],
    )


def combined(values: Sequence[Floats], scales: Sequence[Scale]) -> tuple[Integers, Floats]:
    """The combinations that none beats: configurations [models, designs] by position, and scores
    [metrics, designs].

    ``values`` are by model [metrics, configurations]; ``scales`` by metric.
    """
    configurations, values_left = np.empty((0, 1), np.int64), np.empty((len(scales), 0, 1))
    scores = np.empty((len(scales), 1))
    for index, value in enumerate(values):
        count, alone = configurations.shape[1], undominated(value, np.arange(value.shape[1]))
        left, right = np.repeat(np.arange(count), len(alone)), np.tile(alone, count)
        configurations = np.concatenate([configurations[:, left], right[None]])
        values_left = np.concatenate([values_left[:, :, left], value[:, None, right]], axis=1)
        firsts = [_of_first(scale, index + 1) for scale in scales]
        scores = np.stack(
            [first.score(rows) for first, rows in zip(firsts, values_left, strict=True)]
        )
        best = undominated(scores, np.arange(scores.shape[1]))
        configurations, values_left, scores = (
            configurations[:, best],
            values_left[:, :, best],
            scores[:, best],
        )
    return configurations, scores
