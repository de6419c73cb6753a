r"""What a search minimises: one score for a chip, from the batch times of all models on it.

With t_m the batch time of model m, n_m its sequences a batch, w_m its weight (weights sum to 1) and t0_m its batch time
on the baseline chip,

    geometric    tau = prod over m of (t_m / t0_m)^w_m               the default; one model: its batch time itself
    arithmetic   tau = 1 / sum over m of w_m n_m / t_m               the paper's mean of raw throughput
    score        = tau^p * factor(chip, HBM)

    throughput              p = 1   factor 1
    throughput_per_watt     p = 1   design power of the chip (:mod:`phaze.hardware.power`)
    throughput_per_usd      p = 1   its price and energy over its life (:mod:`phaze.hardware.ownership`)
    throughput_per_kgco2e   p = 1   its carbon, made and run
    energy_delay            p = 2   design power: joules of a batch x seconds of a batch

The score rises with every t_m, so lower bounds on batch times give a lower bound on it.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError

Kind = Literal["throughput", "throughput_per_watt", "throughput_per_usd", "throughput_per_kgco2e", "energy_delay"]
Mean = Literal["geometric", "arithmetic"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Objective:
    """What counts, how models are averaged, and the chip that they are compared on."""

    kind: Kind = "throughput"
    mean: Mean = "geometric"
    baseline: str = "tpu-v4-paper"

    @property
    def power(self) -> int:
        """The exponent of time."""
        return 2 if self.kind == "energy_delay" else 1

    @property
    def needs_factor(self) -> bool:
        """Whether anything but time counts."""
        return self.kind != "throughput"

    @property
    def needs_hbm(self) -> bool:
        """Whether the factor depends on how much HBM a chip has."""
        return self.kind in ("throughput_per_usd", "throughput_per_kgco2e")


@dataclass(frozen=True, slots=True)
class Scale:
    """An objective with its models' numbers in place: weights that sum to 1, sequences, baseline batch times."""

    objective: Objective
    weights: tuple[float, ...]
    batches: tuple[float, ...]
    baseline_s: tuple[float, ...]

    def tau(self, batch_s: Floats) -> Floats:
        """The averaged time of models' batch times [models, ...]."""
        if len(self.weights) == 1:
            return np.asarray(batch_s[0])
        shape = (-1,) + (1,) * (batch_s.ndim - 1)
        weights = np.array(self.weights).reshape(shape)
        with np.errstate(divide="ignore"):
            if self.objective.mean == "arithmetic":
                rate = (weights * np.array(self.batches).reshape(shape) / batch_s).sum(axis=0)
                return np.asarray(np.where(np.isinf(batch_s).any(axis=0), np.inf, 1.0 / rate))
            ratio = batch_s / np.array(self.baseline_s).reshape(shape)
            return np.asarray(np.exp((weights * np.log(ratio)).sum(axis=0)))

    def score(self, batch_s: Floats, factor: Floats | float) -> Floats:
        """The score of models' batch times [models, ...] on chips with that factor."""
        return np.asarray(self.tau(batch_s) ** self.objective.power * factor)


def scale_of(objective: Objective, weights: list[float], batches: list[float], baseline_s: list[float]) -> Scale:
    """Weights made to sum to 1."""
    total = sum(weights)
    if not total > 0:
        raise InputError("models.weight", "all weights are 0", "give at least one model a positive weight")
    return Scale(objective, tuple(w / total for w in weights), tuple(batches), tuple(baseline_s))
