r"""Several models, several metrics of a run: the combinations of their ways that none beats.

Model m has ways of values v_km in the metrics k of a run. A combination takes one way of each model and is worth
score_k(v_k1 .. v_kM) in metric k, and every mean of :mod:`phaze.search.objective` rises with each v. So a way that
another way of its model beats in all metrics is in no design; neither is a combination of the first models that
another of the same models beats, since each mean over the models is one over the first of them and the rest:

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
        scale, weights=scale.weights[:models], batches=scale.batches[:models], baseline=scale.baseline[:models]
    )


def combined(values: Sequence[Floats], scales: Sequence[Scale]) -> tuple[Integers, Floats]:
    """The combinations that none beats: ways [models, designs] by position, and scores [metrics, designs].

    ``values`` are by model [metrics, ways]; ``scales`` by metric.
    """
    ways, kept = np.empty((0, 1), np.int64), np.empty((len(scales), 0, 1))
    scores = np.empty((len(scales), 1))
    for at, own in enumerate(values):
        count, alone = ways.shape[1], undominated(own, np.arange(own.shape[1]))
        left, right = np.repeat(np.arange(count), len(alone)), np.tile(alone, count)
        ways = np.concatenate([ways[:, left], right[None]])
        kept = np.concatenate([kept[:, :, left], own[:, None, right]], axis=1)
        firsts = [_of_first(scale, at + 1) for scale in scales]
        scores = np.stack([first.score(rows) for first, rows in zip(firsts, kept, strict=True)])
        best = undominated(scores, np.arange(scores.shape[1]))
        ways, kept, scores = ways[:, best], kept[:, :, best], scores[:, best]
    return ways, scores
