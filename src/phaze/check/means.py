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
                found = 1.0 / (weights * np.array(self.batches)[:, None] / values).sum(axis=0)
            else:
                found = np.exp((weights * np.log(values)).sum(axis=0))
        return np.where(
            np.isinf(values).any(axis=0), np.inf, np.where((values == 0).any(axis=0), 0.0, found)
        )

    def threshold(self, values: Floats, model: int, goal: Floats) -> Floats:
        """The time of a model with which the score is ``goal`` when the others take ``values``;
        infinite for never."""
        if self.plain:
            return np.full(values.shape[1], goal)
        if self.kind == "regret":
            return np.full(values.shape[1], goal * self.bests[model])
        others = [at for at in range(len(self.weights)) if at != model]
        weights = np.array(self.weights)
        with np.errstate(divide="ignore", invalid="ignore"):
            if self.kind == "arithmetic":
                rest = (
                    weights[others, None] * np.array(self.batches)[others, None] / values[others]
                ).sum(axis=0)
                left = 1.0 / goal - rest
                found = np.where(left > 0, weights[model] * self.batches[model] / left, np.inf)
            else:
                rest = (weights[others, None] * np.log(values[others])).sum(axis=0)
                found = np.exp((np.log(goal) - rest) / weights[model])
        return np.asarray(np.nan_to_num(found, nan=np.inf, posinf=np.inf))


def mean_of(problem: Mapping[str, Any]) -> Mean:
    """How the models of a problem count together."""
    kind, models = str(problem["objective"]["mean"]), problem["models"]
    cover(kind in ("geometric", "arithmetic", "regret"), f"the mean {kind[:40]}")
    weights = [positive(model["weight"], "weight") for model in models]
    batches = [positive(model["training"]["batch"], "batch") for model in models]
    return Mean(kind, tuple(weight / sum(weights) for weight in weights), tuple(batches))
