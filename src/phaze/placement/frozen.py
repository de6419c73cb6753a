r"""Weights that are not trained: every stage holds and gathers them like others; they have no
gradient and no optimizer state, and nothing of them is reduced or stepped.

    memory    F weight / d3 + f weight (1 - 1/d3)          beside the trained parameters of a stage
              (frozen)
    gather    v = sum of gather_d(h (w_l + z_l)),  u = v + sum of gather_d(g w_l)
              (z = 3)

with F the frozen parameters of a stage, those that its layers share counted once, z_l the bytes of
a layer's, and f those of the layer that has most, of two such layers where gathers run a layer
ahead, at most F. Of experts that ranks shard e stands for d, as it does for trained ones.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from phaze.cost.memory import ParameterState

Floats = npt.NDArray[np.float64]
Held = tuple[ParameterState, ParameterState, ParameterState, ParameterState]


@dataclass(frozen=True, slots=True)
class Frozen:
    """Bytes of the frozen weights of a layer, and of experts among them; ``tied_bytes`` of them it
    shares with all layers that name the same ``tied``."""

    bytes: float = 0.0
    expert_bytes: float = 0.0
    tied: str | None = None
    tied_bytes: float = 0.0

    @property
    def is_sound(self) -> bool:
        """Whether its sizes can be those of a layer."""
        parts = max(self.expert_bytes, self.tied_bytes)
        return min(self.expert_bytes, self.tied_bytes) >= 0 and parts <= self.bytes < np.inf


NO_FROZEN = Frozen()


@dataclass(frozen=True, slots=True)
class FrozenSums:
    """Bytes of the frozen weights of a stage: of all dense ones, of the dense ones that are held
    whole at once, of experts that ranks shard, and of the most of them in a layer; of one stage
    or of many."""

    dense: float | Floats = 0.0
    largest: float | Floats = 0.0
    experts: float | Floats = 0.0
    most_experts: float | Floats = 0.0

    def held_bytes(self, held_kinds: Held, sent_bytes: float) -> float | Floats:
        """Bytes of weights on a device, of which it holds ``held_kinds`` for a parameter of each
        kind."""
        parts = zip(
            (self.dense, self.largest, self.experts, self.most_experts), held_kinds, strict=True
        )
        return sum(size * each.weight for size, each in parts) / sent_bytes


NO_FROZEN_SUMS = FrozenSums()


def _apart(layers: Sequence[Frozen], apart: bool) -> tuple[list[float], list[float]]:
    """Dense and expert bytes by layer."""
    experts = [layer.expert_bytes if apart else 0.0 for layer in layers]
    return [layer.bytes - more for layer, more in zip(layers, experts, strict=True)], experts


def frozen_sums(layers: Sequence[Frozen], apart: bool, pairs: bool) -> FrozenSums:
    """Those of the layers of one stage; ``apart``: experts are sharded over ranks of their own,
    ``pairs``: two layers are gathered at once."""
    if not any(layer.bytes for layer in layers):
        return NO_FROZEN_SUMS
    dense, experts = _apart(layers, apart)
    names = {layer.tied: layer.tied_bytes for layer in layers if layer.tied is not None}
    twice = sum(layer.tied_bytes for layer in layers if layer.tied is not None) - sum(
        names.values()
    )
    whole = sum(dense) - twice
    return FrozenSums(
        whole, min((2 if pairs else 1) * max(dense), whole), sum(experts), max(experts)
    )


def frozen_stages(
    layers: Sequence[Frozen], apart: bool, pairs: bool, of_stages: Callable[[Floats], Floats]
) -> FrozenSums:
    """The same of many stages; ``of_stages`` sums an amount of each layer over the layers of every
    stage."""
    dense, experts = (np.array(sizes) for sizes in _apart(layers, apart))

    def most(amounts: Floats) -> Floats:
        largest = np.zeros_like(whole)
        for size in np.unique(amounts):  # ascending: the last that a stage has is its largest
            largest[of_stages((amounts == size).astype(np.float64)) > 0.5] = size
        return largest

    whole = of_stages(dense)
    for name in sorted({layer.tied for layer in layers if layer.tied is not None}):
        holders = np.array([float(layer.tied == name) for layer in layers])
        size = next(layer.tied_bytes for layer in layers if layer.tied == name)
        whole = whole - size * np.maximum(0.0, np.round(of_stages(holders)) - 1)
    largest = np.minimum((2 if pairs else 1) * most(dense), whole)
    return FrozenSums(whole, largest, of_stages(experts), most(experts))
