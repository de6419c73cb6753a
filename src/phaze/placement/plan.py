"""A plan as a value: its stages, what each takes and holds, and where the batch time goes."""

from dataclasses import dataclass

from phaze.placement.rules import Mode, Order
from phaze.placement.sharing import REPLICAS, Sharing


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes on one device of a stage, by term."""

    parameters: float
    gradients: float
    optimizer: float
    activations: float
    in_flight: float
    reserve: float = 0.0

    @property
    def total_bytes(self) -> float:
        return (
            self.parameters
            + self.gradients
            + self.optimizer
            + self.activations
            + self.in_flight
            + self.reserve
        )


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a plan and what it costs; ``forward_s`` and ``backward_s`` include waiting and
    recomputing.

    Of ``backward_s`` the gradients of weights take ``weight_s``, where a family runs them apart
    from those of inputs. Overlapped transfers are apart from both passes: ``forward_transfer_s``
    across the entry of the stage, ``backward_transfer_s`` across its exit. ``time_s`` is what it
    takes at the pace of the pipeline; ``beside_s`` what its exchanges of experts add to that where
    they have no other microbatch beside them.
    """

    layers: tuple[int, ...]
    devices: int
    recompute: Mode
    forward_s: float
    backward_s: float
    time_s: float
    memory: Memory
    weight_s: float = 0.0
    forward_transfer_s: float = 0.0
    backward_transfer_s: float = 0.0
    beside_s: float = 0.0

    @property
    def blocking_s(self) -> float:
        """What it takes with every transfer and exchange waited for."""
        transfers_s = self.forward_transfer_s + self.backward_transfer_s
        return self.forward_s + self.backward_s + transfers_s + self.beside_s


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Where the batch time goes; the terms sum to it.

    Terms of a microbatch are those of the slowest stage, times the microbatches of a replica;
    ``bubble_s`` is the time of the other stages and of waiting for them. ``synchronisation_s``
    holds what is exposed of all collectives over replicas, ``tied_s`` the reductions of parameters
    that layers of several stages share.
    """

    forward_s: float
    backward_s: float
    recompute_s: float
    transfer_s: float
    bubble_s: float
    synchronisation_s: float
    optimizer_s: float = 0.0
    tied_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Plan:
    """A priced split under the named rules: ``tensor`` wide, ``data`` replicas of a pipeline of
    ``stages``.

    ``order`` says what lies next to each other beyond tensor groups where a network has levels: the
    stages of a replica (``pipeline``) or the replicas of a stage (``data``). ``chunks`` of a stage
    take turns (interleaved 1F1B). With ranks that share a sequence ``tensor`` counts these too: it
    is the devices of a stage in one replica. ``family`` is the name of its pipeline schedule.
    """

    rules: str
    tensor: int
    data: int
    stages: tuple[Stage, ...]
    batch_s: float
    lower_bound_s: float
    simulated_s: float
    breakdown: Breakdown
    order: Order = ""
    chunks: int = 1
    family: str = "1f1b"
    sharing: Sharing = REPLICAS
