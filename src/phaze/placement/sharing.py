r"""Which ranks of a stage hold the same weights, where replicas are not all there is: context and expert parallelism.

A stage is t c devices wide: t tensor-parallel ranks times c that share a sequence. Its replicas are d. Experts are
shared out over p ranks and each over x, of the t c d ranks of a stage:

    dense weights     held alike by c d ranks        experts     held alike by e = t c d / (p x) ranks

Both reduce gradients, and share out the optimizer's state under ZeRO 1, over these. p x must divide t c d, and where
stages of a replica are neighbours t c (:class:`phaze.cost.ranks.Degrees` numbers the ranks).
"""

from dataclasses import dataclass

from phaze.cost.ranks import Axis, members_by_level
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster
from phaze.placement.layout import Shape


@dataclass(frozen=True, slots=True)
class Sharing:
    """Context, expert and expert-tensor degree of all plans of a problem."""

    context: int = 1
    expert: int = 1
    expert_tensor: int = 1

    def __post_init__(self) -> None:
        for name in ("context", "expert", "expert_tensor"):
            if getattr(self, name) < 1:
                raise InputError(name, f"{getattr(self, name)} is out of range", "it must be at least 1")

    @property
    def group(self) -> int:
        """Ranks that hold one set of all experts."""
        return self.expert * self.expert_tensor

    def allows(self, shape: Shape) -> bool:
        """Whether the ranks of a stage can share out the experts."""
        if shape.tensor * shape.data % self.group:
            return False
        return shape.order != "pipeline" or shape.stages == 1 or shape.tensor % self.group == 0

    def experts_share(self, width: int, data: int) -> float:
        """e, or what it would be if the degrees divided."""
        return max(1.0, width * data / self.group)

    def _axes(self, shape: Shape, stride: int) -> tuple[Axis, ...]:
        if shape.order == "pipeline" and shape.stages > 1:
            return (stride, shape.tensor // stride), (shape.tensor * shape.stages, shape.data)
        return ((stride, shape.tensor * shape.data // stride),)

    def dense_by_level(self, cluster: Cluster, shape: Shape) -> tuple[int, ...]:
        """How many ranks with the same dense weights meet at each level; their product is at least that."""
        if len(cluster.levels) == 1:  # stages of unequal width have no stride, and all of them meet there
            return (self.context * shape.data,)
        return members_by_level(cluster, self._axes(shape, shape.tensor // self.context))

    def experts_by_level(self, cluster: Cluster, shape: Shape) -> tuple[int, ...]:
        """The same of ranks that hold the same experts."""
        if len(cluster.levels) == 1:
            return (shape.tensor * shape.data // self.group,)
        return members_by_level(cluster, self._axes(shape, self.group))


REPLICAS = Sharing()
"""Nothing is shared but by replicas."""
