"""What a stage of a plan adds up to, and the bytes that its devices hold: memory as the problem
states it."""

from dataclasses import dataclass
from operator import sub

from phaze.cost.memory import ParameterState
from phaze.placement.frozen import NO_FROZEN_SUMS, Frozen, FrozenSums
from phaze.placement.layout import Shape
from phaze.placement.plan import Memory
from phaze.placement.problem import PlacementProblem


@dataclass(frozen=True, slots=True)
class StageSums:
    """What a stage adds up to, apart from its place in a plan; ``waiting_s`` is what edges that
    arrive inside it add to its passes. ``layer_bytes`` and ``layer_experts`` are parameters by
    layer, and experts among them, ``layer_s`` the seconds of each forward and backward, with what
    it runs again, ``layer_frozen`` its weights that are not trained. ``beside_s``: what its exchanges of experts add
    with no other microbatch beside them."""

    forward_s: float
    backward_s: float
    again_s: float
    waiting_s: tuple[float, float]
    parameter_bytes: float
    kept_bytes: float
    live_bytes: float
    buffer_bytes: float
    layer_bytes: tuple[float, ...]
    layer_experts: tuple[float, ...]
    weight_s: float
    layer_s: tuple[tuple[float, float], ...]
    layer_frozen: tuple[Frozen, ...] = ()
    frozen: FrozenSums = NO_FROZEN_SUMS
    beside_s: float = 0.0

    @property
    def expert_bytes(self) -> float:
        """Bytes of experts that ranks shard."""
        return sum(self.layer_experts)

    def largest_bytes(self, pairs: bool) -> tuple[float, float]:
        """The most dense parameters of a layer, or of a pair of layers in a row, and the most
        experts of a layer."""
        sizes = list(map(sub, self.layer_bytes, self.layer_experts))
        if pairs:
            sizes = [size + after for size, after in zip(sizes, [*sizes[1:], 0.0], strict=True)]
        return max(sizes), max(self.layer_experts)


@dataclass(frozen=True, slots=True)
class HeldBytes:
    """Bytes that a device holds for a parameter in plans of a shape: of all dense ones, of those of
    the largest layer beside them, of experts, and of the most experts of a layer."""

    each: tuple[ParameterState, ParameterState, ParameterState, ParameterState]

    @staticmethod
    def of(problem: PlacementProblem, shape: Shape) -> "HeldBytes":
        """Those of a problem."""
        return HeldBytes.of_degrees(problem, shape.tensor, shape.data)

    @staticmethod
    def of_degrees(problem: PlacementProblem, width: int, data: int) -> "HeldBytes":
        """Those of stages of a width in so many replicas."""
        dense = problem.resident(data), problem.working(data)
        return HeldBytes(
            (*dense, problem.held_experts(width, data), problem.working_experts(width, data))
        )


def memory_of(
    problem: PlacementProblem, state: HeldBytes, sums: StageSums, in_flight: float
) -> Memory:
    """Bytes on a device of a stage, by term."""
    sent = problem.sent_bytes
    experts = sums.expert_bytes / sent
    largest, most = (size / sent for size in sums.largest_bytes(problem.gathers_pairs))
    count, (dense, working, of_experts, rest) = sums.parameter_bytes / sent - experts, state.each
    weights = (
        count * dense.weight
        + largest * working.weight
        + experts * of_experts.weight
        + most * rest.weight
    )
    weights += float(sums.frozen.held_bytes(state.each, sent))
    gradients = (
        count * dense.gradient
        + largest * working.gradient
        + experts * of_experts.gradient
        + most * rest.gradient
    )
    return Memory(
        weights,
        gradients + sums.buffer_bytes,
        count * dense.optimizer + experts * of_experts.optimizer,
        sums.kept_bytes + sums.live_bytes,
        (in_flight - 1) * sums.kept_bytes,
        problem.reserve_bytes,
    )
