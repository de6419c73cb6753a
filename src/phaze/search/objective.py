r"""What a search minimises: one score for a chip, from what a batch of each model takes on it.

For a model on K devices a batch takes T seconds, and D joules beyond static power, which is s watts
a chip, always on:

    energy of a batch   E = D + K s T
    throughput              v = T                                          seconds of a batch
    throughput_per_watt     v = E                                          joules of a batch:
                            sequences per joule
    throughput_per_usd      v = K m T / life + E price PUE                 dollars of a batch
    throughput_per_kgco2e   v = K c T / life + E grid PUE                  kilograms of a batch
    energy_delay            v = E T

with m and c the cost and the carbon of manufacturing a chip with its HBM, and life the seconds it
serves. All are

    v = (rate T + weight D) T^p

with rate and weight of the chip and its memory (:class:`Rates`), so v rises with T and with D:
lower bounds on both give a lower bound on v. T and D are those of the fastest plan of a
configuration of the model; of all the one with the least v counts. Several models, of weights w_m
that sum to 1, n_m sequences a batch and v0_m on the baseline chip:

    geometric    score = prod over m of (v_m / v0_m)^w_m              the default; one model: its v
                 itself
    arithmetic   score = 1 / sum over m of w_m n_m / v_m              the paper's mean of raw
                 throughput
    regret       score = max over m of v_m / v1_m                     v1_m the best of the space for
                 m alone
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.options.values import Kind, Mean

KINDS: tuple[Kind, ...] = get_args(Kind)
UNITS: Mapping[Kind, str] = MappingProxyType(
    {
        "throughput": "s",
        "throughput_per_watt": "J",
        "throughput_per_usd": "USD",
        "throughput_per_kgco2e": "kgCO2e",
        "energy_delay": "J s",
    }
)
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Objective:
    """What counts, how models are averaged, and the chip that they are compared on."""

    kind: Kind = "throughput"
    mean: Mean = "geometric"
    baseline: str = "tpu-v4-paper"

    @property
    def delays(self) -> int:
        """The power p of the extra factor T."""
        return 1 if self.kind == "energy_delay" else 0

    @property
    def needs_energy(self) -> bool:
        """Whether anything but time counts."""
        return self.kind != "throughput"

    @property
    def needs_hbm(self) -> bool:
        """Whether it counts how much HBM a chip has."""
        return self.kind in ("throughput_per_usd", "throughput_per_kgco2e")


@dataclass(frozen=True, slots=True)
class Rates:
    """``rate`` [memories, chips] for one device count and ``weight``, as the module's docstring has
    them.

    ``rate`` is infinite where a chip may not have that memory.
    """

    rate: Floats
    weight: float
    delays: int

    def value(self, batch_s: Floats, dynamic_j: Floats | float) -> Floats:
        """v of batch times [..., memories, chips] and dynamic energies that go with them."""
        with np.errstate(
            invalid="ignore"
        ):  # a bound of 0 where a chip may not have that memory: never, not nothing
            timed = np.where(np.isinf(self.rate), np.inf, self.rate * batch_s)
            if self.weight == 0.0:
                return timed
            energy_value = (timed + self.weight * dynamic_j) * batch_s**self.delays
            return np.where(np.isinf(self.rate), np.inf, energy_value)

    def last_s(self, value: Floats | float, dynamic_j: Floats | float) -> Floats:
        """The batch time whose v is ``value``: none above it has less; nothing where a chip may not
        have that memory, infinite where v is nothing whatever the time."""
        rest = self.weight * dynamic_j
        with np.errstate(divide="ignore", invalid="ignore"):
            seconds = (value - rest) / self.rate
            if self.delays:
                seconds = (np.sqrt(rest * rest + 4 * self.rate * value) - rest) / (2 * self.rate)
            seconds = np.where(self.rate > 0, np.maximum(seconds, 0.0), np.inf)
        return np.where(self.rate < np.inf, seconds, 0.0)

    def at(self, memory: int, chip: int) -> "Rates":
        """Those of one memory and chip, without axes."""
        return Rates(np.asarray(self.rate[memory, chip]), self.weight, self.delays)


@dataclass(frozen=True, slots=True)
class Scale:
    """An objective with its models' numbers in place: weights that sum to 1, sequences, values on
    the baseline chip.

    For least regret the baseline of a model is its own best in the space, and ``bests`` are the
    answers that show these, as a certificate has an answer.
    """

    objective: Objective
    weights: tuple[float, ...]
    batches: tuple[float, ...]
    baseline: tuple[float, ...]
    bests: tuple[Mapping[str, Any] | None, ...] = ()

    def score(self, values: Floats) -> Floats:
        """The score of models' values [models, ...]."""
        if len(self.weights) == 1:
            return np.asarray(values[0])
        shape = (-1,) + (1,) * (values.ndim - 1)
        weights = np.array(self.weights).reshape(shape)
        with np.errstate(divide="ignore"):
            if self.objective.mean == "arithmetic":
                rate = (weights * np.array(self.batches).reshape(shape) / values).sum(axis=0)
                return np.asarray(np.where(np.isinf(values).any(axis=0), np.inf, 1.0 / rate))
            ratio = values / np.array(self.baseline).reshape(shape)
            if self.objective.mean == "regret":
                return np.asarray(ratio.max(axis=0))
            return np.asarray(np.exp((weights * np.log(ratio)).sum(axis=0)))

    def last(self, values: Floats, model: int, score: Floats) -> Floats:
        """The value of a model from which on no score is below ``score``, all others at ``values``
        [models, ...]; infinite where none is.

            geometric   v0 (score / prod over others of (v / v0)^w)^(1 / w)
            arithmetic  w n / (1 / score - sum over others of w n / v)
            regret      v1 score
        """
        if len(self.weights) == 1:
            return np.asarray(score, np.float64)
        weight, base = self.weights[model], self.baseline[model]
        if self.objective.mean == "regret":
            return np.asarray(base * score)
        if weight == 0.0:
            return np.full(np.shape(score), np.inf)
        others = [other for other in range(len(self.weights)) if other != model]
        rest = np.zeros(np.shape(score))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for other in others:
                value = np.asarray(values[other])
                if self.objective.mean == "arithmetic":
                    rest = rest + self.weights[other] * self.batches[other] / value
                elif self.weights[other] > 0:
                    rest = rest + self.weights[other] * np.log(value / self.baseline[other])
            if self.objective.mean == "arithmetic":
                left = 1.0 / score - rest
                return np.asarray(np.where(left > 0, weight * self.batches[model] / left, np.inf))
            last = base * np.exp((np.log(score) - rest) / weight)
            return np.asarray(np.where(np.isnan(last), np.inf, last))


def scale_of(
    objective: Objective, weights: list[float], batches: list[float], baseline: list[float]
) -> Scale:
    """Weights made to sum to 1."""
    total = sum(weights)
    if not total > 0:
        raise InputError(
            "models.weight", "all weights are 0", "give at least one model a positive weight"
        )
    return Scale(objective, tuple(w / total for w in weights), tuple(batches), tuple(baseline))
