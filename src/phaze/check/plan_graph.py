"""The layers of a model as a plan sees them: parameters and bytes of each, calls in order, bytes
between calls, ties.

Seconds of layers stand apart (:class:`LayerSeconds`): from operators on a chip, or as a document
states them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class ModeBytes(Protocol):
    """A mode of recompute: bytes that every microbatch in flight keeps, and bytes beside them in
    the backward pass."""

    @property
    def kept(self) -> float: ...
    @property
    def live(self) -> float: ...


@dataclass(frozen=True, slots=True)
class StatedMode:
    """A mode as a document states it."""

    kept: float
    live: float = 0.0


@dataclass(frozen=True, slots=True)
class LayerBytes:
    """A distinct layer: bytes in each mode, of which the first keeps all; parameters; bytes of
    logits and of gradient buffers; parameters of experts; weights that are not trained, and those
    of experts among them.

    ``buffer_kind``: a stage has the buffers of layers of one kind once; None: of this layer alone.
    ``sharded``: whether tensor parallelism splits it.
    """

    modes: tuple[ModeBytes, ...]
    parameters: float
    logit_bytes: float = 0.0
    buffer_bytes: float = 0.0
    experts: float = 0.0
    frozen: float = 0.0
    frozen_experts: float = 0.0
    buffer_kind: int | None = None
    sharded: bool = True


@dataclass(frozen=True, slots=True)
class Tie:
    """Elements that several calls share."""

    calls: tuple[int, ...]
    elements: float


@dataclass(frozen=True, slots=True)
class PlanGraph:
    """A model at one width and microbatch: layers, the modes of recompute, calls, which of them are
    blocks, bytes between calls, ties. ``equal``: the blocks stand in a row and are one like the
    other; ``context``: ranks that share a sequence, ``group``: that share out experts; ``low``:
    what is sent of a gathered weight; ``still``: ties that are not trained; ``every_mode``: all
    calls recompute, not the blocks alone."""

    tensor: int
    microbatch: int
    names: tuple[str, ...]
    layers: tuple[LayerBytes, ...]
    calls: tuple[int, ...]
    block: tuple[bool, ...]
    equal: bool
    edges: tuple[tuple[int, int, float], ...]
    ties: tuple[Tie, ...] = ()
    context: int = 1
    group: int = 1
    low: float = 1.0
    still: tuple[Tie, ...] = ()
    every_mode: bool = False

    @property
    def width(self) -> int:
        """Devices of a stage."""
        return self.tensor * self.context

    def recomputes(self, call: int) -> bool:
        """Whether a call runs again what its stage's mode says."""
        return self.every_mode or self.block[call]


@dataclass(frozen=True, slots=True)
class LayerSeconds:
    """Seconds of the layers of a graph on every chip, [layers, chips]; of modes [modes, layers,
    chips]; of ``backward`` those of gradients of weights. ``exact``: no bounds. ``unmet``: what both
    passes take more with no other microbatch behind which tokens are exchanged; None: nothing."""

    forward: Floats
    backward: Floats
    again: Floats
    weight: Floats
    exact: bool
    unmet: Floats | None = None

    def taken(self, index: NDArray[np.int64]) -> "LayerSeconds":
        """On some of the chips."""
        own = (
            self.forward[:, index],
            self.backward[:, index],
            self.again[:, :, index],
            self.weight[:, index],
        )
        unmet = None if self.unmet is None else self.unmet[:, index]
        return LayerSeconds(*own, self.exact, unmet)

    @property
    def waited(self) -> Floats:
        """What is unmet, or zeros."""
        return np.zeros_like(self.forward) if self.unmet is None else self.unmet
