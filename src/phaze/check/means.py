"""How the batch times of several models count together (docs/search.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .reading import cover, positive

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Mean:
    """How batch times of models count together: one model's own, or a weighted mean over several.

    geometric: product of times to the power of weights (of times relative to a baseline only the
    unit is another); arithmetic: 1 / (sum of weight x sequences / time). Weights sum to 1. regret:
    the greatest time relative to the ``bests``, the least times of the space for each model alone.
    """

    kind: str
    weights: tuple[float, ...]
    batches: tuple[float, ...]
    bests: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether the score is one model's own batch time."""
        return len(self.weights) == 1

    def score(self, values: Floats) -> Floats:
        """The score of batch times [models, chips]."""
        if self.plain:
            return np.asarray(values[0])
        if self.kind == "regret":
            return np.asarray((values / np.array(self.bests)[:, None]).max(axis=0))
        weights = np.array(self.weights)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "arithmetic":
                rates = weights * np.array(self.batches)[:, None] / values
                mean = 1.0 / rates.sum(axis=0)
            else:
                mean = np.exp((weights * np.log(values)).sum(axis=0))
        never, nothing = np.isinf(values).any(axis=0), (values == 0).any(axis=0)
        return np.where(never, np.inf, np.where(nothing, 0.0, mean))

    def threshold(self, values: Floats, model: int, goal: Floats) -> Floats:
        """The time of a model with which the score is ``goal`` [..., chips] when the others take
        ``values``; infinite for never."""
        if self.plain:
            return goal
        if self.kind == "regret":
            return np.asarray(goal * self.bests[model])
        others = [other for other in range(len(self.weights)) if other != model]
        weights = np.array(self.weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "arithmetic":
                batches = np.array(self.batches)
                rates = (weights * batches)[others, None] / values[others]
                left = 1.0 / goal - rates.sum(axis=0)
                time = np.where(left > 0, weights[model] * batches[model] / left, np.inf)
            else:
                rest = (weights[others, None] * np.log(values[others])).sum(axis=0)
                time = np.exp((np.log(goal) - rest) / weights[model])
        return np.asarray(np.nan_to_num(time, nan=np.inf, posinf=np.inf))


def mean_of(problem: Mapping[str, Any]) -> Mean:
    """How the models of a problem count together."""
    kind, models = str(problem["objective"]["mean"]), problem["models"]
    cover(kind in ("geometric", "arithmetic", "regret"), f"the mean {kind[:40]}")
    weights = [positive(model["weight"], "weight") for model in models]
    batches = [positive(model["training"]["batch"], "batch") for model in models]
    return Mean(kind, tuple(weight / sum(weights) for weight in weights), tuple(batches))
