r"""Which ranks of a stage hold the same weights, where replicas are not all there is: context and
expert parallelism.

A stage is t c devices wide: t tensor-parallel ranks times c that share a sequence. Its replicas are
d. Experts are sharded over p ranks and each over x, of the t c d ranks of a stage:

    dense weights     held alike by c d ranks        experts     held alike by e = t c d / (p x)
                      ranks

Both reduce gradients, and shard the optimizer's state under ZeRO 1, over these. p x must divide
t c d, and where stages of a replica are neighbours t c (:class:`phaze.cost.ranks.Degrees` numbers
the ranks).

*Hybrid sharding*: state is sharded over n of the c d ranks only, the nearest, and what each of
these holds is reduced over the c d / n groups. n divides c d; where stages of a replica are
neighbours it divides c or is a multiple of it.
"""

from dataclasses import dataclass

from phaze.cost.ranks import Axis, members_by_level
from phaze.errors import InputError
from phaze.hardware.cluster import Cluster
from phaze.placement.layout import Shape


@dataclass(frozen=True, slots=True)
class Sharing:
    """Context, expert and expert-tensor degree of all plans of a problem; ``shard``: how many of
    the ranks with the same dense weights shard state, 0: all."""

    context: int = 1
    expert: int = 1
    expert_tensor: int = 1
    shard: int = 0

    def __post_init__(self) -> None:
        for name in ("context", "expert", "expert_tensor"):
            if getattr(self, name) < 1:
                raise InputError(
                    name, f"{getattr(self, name)} is out of range", "it must be at least 1"
                )
        if self.shard < 0 or self.shard == 1:
            raise InputError(
                "shard", f"{self.shard} is out of range", "give 2 ranks or more, or leave it out"
            )
        if self.shard and self.expert > 1:
            raise InputError(
                "shard",
                f"{self.shard} with expert {self.expert} is not priced",
                "leave it out, or use expert 1",
            )

    @property
    def group(self) -> int:
        """Ranks that hold one set of all experts."""
        return self.expert * self.expert_tensor

    def allows(self, shape: Shape) -> bool:
        """Whether the ranks of a stage can shard the experts, and state over groups."""
        if shape.tensor * shape.data % self.group:
            return False
        if self.shard and (self.context * shape.data % self.shard or not self._nests(shape)):
            return False
        return shape.order != "pipeline" or shape.stages == 1 or shape.tensor % self.group == 0

    def _nests(self, shape: Shape) -> bool:
        """Whether the ranks of a shard are the nearest of those with the same weights."""
        apart = shape.order == "pipeline" and shape.stages > 1
        return not apart or self.context % self.shard == 0 or self.shard % self.context == 0

    def sharers(self, data: int) -> int:
        """Ranks that shard the state of dense parameters when there are so many replicas."""
        return min(self.shard or self.context * data, self.context * data)

    def experts_share(self, width: int, data: int) -> float:
        """e, or what it would be if the degrees divided."""
        return max(1.0, width * data / self.group)

    def _axes(self, shape: Shape, stride: int) -> tuple[Axis, ...]:
        if shape.order == "pipeline" and shape.stages > 1:
            return (stride, shape.tensor // stride), (shape.tensor * shape.stages, shape.data)
        return ((stride, shape.tensor * shape.data // stride),)

    def dense_by_level(self, cluster: Cluster, shape: Shape) -> tuple[int, ...]:
        """How many ranks with the same dense weights meet at each level; their product is at least
        that."""
        if (
            len(cluster.levels) == 1
        ):  # stages of unequal width have no stride, and all of them meet there
            return (self.context * shape.data,)
        return members_by_level(cluster, self._axes(shape, shape.tensor // self.context))

    def shard_by_level(self, cluster: Cluster, shape: Shape) -> tuple[int, ...]:
        """How many ranks that shard dense state meet at each level."""
        if not self.shard:
            return self.dense_by_level(cluster, shape)
        if len(cluster.levels) == 1:
            return (self.sharers(shape.data),)
        return members_by_level(cluster, self._sharded(shape)[0])

    def shards_by_level(self, cluster: Cluster, shape: Shape) -> tuple[int, ...]:
        """The same of the ranks that hold the same part of the state, one in every group that
        shares it out."""
        if not self.shard:
            return (1,) * len(cluster.levels)
        if len(cluster.levels) == 1:
            return (self.context * shape.data // self.sharers(shape.data),)
        return members_by_level(cluster, self._sharded(shape)[1])

    def _sharded(self, shape: Shape) -> tuple[tuple[Axis, ...], tuple[Axis, ...]]:
        """The axes inside a group that shards state, and across the groups."""
        stride, many = shape.tensor // self.context, self.context * shape.data
        if shape.order != "pipeline" or shape.stages == 1:
            return ((stride, self.shard),), ((stride * self.shard, many // self.shard),)
        apart = shape.tensor * shape.stages
        if self.shard <= self.context:
            inner = (stride * self.shard, self.context // self.shard)
            return ((stride, self.shard),), (inner, (apart, shape.data))
        replicas = self.shard // self.context
        return ((stride, self.context), (apart, replicas)), (
            (apart * replicas, shape.data // replicas),
        )

    def experts_by_level(self, cluster: Cluster, shape: Shape) -> tuple[int, ...]:
        """The same of ranks that hold the same experts."""
        if len(cluster.levels) == 1:
            return (shape.tensor * shape.data // self.group,)
        return members_by_level(cluster, self._axes(shape, self.group))


REPLICAS = Sharing()
"""Nothing is shared but by replicas."""
