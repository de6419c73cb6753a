"""What all placement problems of a training job have in common."""

from dataclasses import dataclass

from phaze.hardware.stack import Optimizer
from phaze.placement.machine import Machine
from phaze.placement.problem import RecomputeChoice


@dataclass(frozen=True, slots=True)
class PlacementJob:
    """What a placement problem asks for beside its layers and the devices' memory.

    ``chunks`` that interleaving may use beside 1; None: all that divide the blocks. ``headroom``:
    the share of memory that a plan leaves free. ``shard``: ranks that shard state, 0: all with
    the same weights.
    """

    machine: Machine
    devices: int
    batch: int
    optimizer: Optimizer
    zero: int = 0
    recompute: RecomputeChoice = "best"
    chunks: tuple[int, ...] | None = None
    headroom: float = 0.0
    shard: int = 0
