"""A training job, whatever its model: what runs it, and which plans of it may be chosen."""

from dataclasses import dataclass

from phaze.hardware.formats import Precision
from phaze.hardware.stack import Optimizer
from phaze.placement.machine import Machine
from phaze.placement.problem import RecomputeChoice


@dataclass(frozen=True, slots=True)
class TrainingJob:
    """Network and software, devices, sequences of a batch; plans, estimates and searches share it.

    ``zeros`` are the stages of ZeRO that plans are chosen from, ``shards`` how many of the ranks
    with the same weights may shard state, 0: all; a placement problem stands at the first of
    each. ``chunks`` that interleaving may use beside 1; None: all that divide the blocks.
    ``headroom``: the share of memory that a plan leaves free.
    """

    machine: Machine
    devices: int
    batch: int
    optimizer: Optimizer
    zeros: tuple[int, ...] = (0,)
    recompute: RecomputeChoice = "best"
    chunks: tuple[int, ...] | None = None
    headroom: float = 0.0
    shards: tuple[int, ...] = (0,)

    @property
    def zero(self) -> int:
        """The stage of ZeRO that a placement problem of the job stands at."""
        return self.zeros[0]

    @property
    def shard(self) -> int:
        """How many of the ranks with the same weights shard state there."""
        return self.shards[0]

    @property
    def precision(self) -> Precision:
        """The precision of products."""
        return self.machine.precision

    @property
    def link_bytes_per_s(self) -> float:
        """Bandwidth of the innermost level."""
        return self.machine.cluster.levels[0].bandwidth_bytes_per_s

    def microbatches(self, microbatch: int) -> int:
        """Microbatches of a batch, the last one full."""
        return -(-self.batch // microbatch)
