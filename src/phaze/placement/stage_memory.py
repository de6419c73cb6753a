"""What a stage of a plan adds up to, and the bytes that its devices hold: memory as the problem states it."""

from dataclasses import dataclass

from phaze.placement.layout import Shape
from phaze.placement.plan import Memory
from phaze.placement.problem import Problem


@dataclass(frozen=True, slots=True)
class StageSums:
    """What a stage adds up to, apart from its place in a plan; ``waiting_s`` is what edges that arrive inside it add to
    its passes. ``layer_bytes`` and ``layer_experts`` are parameters by layer, and experts among them."""

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

    @property
    def expert_bytes(self) -> float:
        """Bytes of experts that ranks share out."""
        return sum(self.layer_experts)

    @property
    def largest_bytes(self) -> tuple[float, float]:
        """The most dense parameters of a layer, and the most experts."""
        sizes = zip(self.layer_bytes, self.layer_experts, strict=True)
        return max(whole - experts for whole, experts in sizes), max(self.layer_experts)


def memory_of(problem: Problem, shape: Shape, sums: StageSums, in_flight: float) -> Memory:
    """Bytes on a device of a stage, by term."""
    at, sent = (shape.tensor, shape.data), problem.sent_bytes
    experts, (largest, most) = sums.expert_bytes / sent, (size / sent for size in sums.largest_bytes)
    held, working = problem.held(shape.data), problem.working(shape.data)
    own, own_working = problem.held_experts(*at), problem.working_experts(*at)
    counts = (sums.parameter_bytes / sent - experts, largest, experts, most)

    def whole(*each: float) -> float:
        return sum(count * size for count, size in zip(counts, each, strict=True))

    return Memory(
        parameters=whole(held.weight, working.weight, own.weight, own_working.weight),
        gradients=whole(held.gradient, working.gradient, own.gradient, own_working.gradient) + sums.buffer_bytes,
        optimizer=whole(held.optimizer, 0.0, own.optimizer, 0.0),
        activations=sums.kept_bytes + sums.live_bytes,
        in_flight=(in_flight - 1) * sums.kept_bytes,
        reserve=problem.reserve_bytes,
    )
