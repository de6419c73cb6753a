r"""Ranks and groups of a parallel job: two grids over the same ranks, and how a group lies in the
levels of a cluster.

Degrees: t tensor, c context, S stages, d replicas; p experts, x expert tensor. Attention and all
that is no expert runs on the *dense* grid, experts on the *expert* grid, each rank in both:

    order data       dense   rank = ((stage d + replica) c + context) t + tensor
                     expert  rank = ((stage e + sharer) p + expert) x + slice         e = t c d / (p
                             x)
    order pipeline   dense   rank = ((replica S + stage) c + context) t + tensor
                     expert  the same ranks of a stage and replica, t c of them: p x divides t c, e
                             = d (t c / (p x))

A group is what one coordinate, or two that follow each other, run through: *axes* (stride, count),
innermost first.

    tensor (1, t)   context (t, c)   expert (x, p)   expert tensor (1, x)
    dense sync      (t, c d)         order pipeline  (t, c) and (t c S, d)
    expert sync     (p x, e)         order pipeline  (p x, t c / (p x)) and (t c S, d)

U_l ranks, the first level's innermost, share a group of level l. Of the group's members

    I_l = product over its axes of min(count, max(1, floor(U_l / stride)))

share one of them, so I_l / I_(l-1), rounded up, meet at level l (:func:`members_by_level`). That is
exact where strides and sizes divide each other; elsewhere groups lie differently and it is a mean.
"""

from dataclasses import dataclass
from itertools import accumulate
from operator import mul
from typing import Literal

from phaze.errors import InputError
from phaze.hardware.cluster import Cluster

Axis = tuple[int, int]
GridOrder = Literal["data", "pipeline"]


@dataclass(frozen=True, slots=True)
class Degrees:
    """How a job is divided; ``order``: the replicas of a stage or the stages of a replica are
    neighbours."""

    tensor: int = 1
    context: int = 1
    stages: int = 1
    data: int = 1
    expert: int = 1
    expert_tensor: int = 1
    order: GridOrder = "data"

    def __post_init__(self) -> None:
        for name in ("tensor", "context", "stages", "data", "expert", "expert_tensor"):
            if getattr(self, name) < 1:
                raise InputError(
                    name, f"{getattr(self, name)} is out of range", "it must be at least 1"
                )
        whole, part = self.width * self.data, self.expert * self.expert_tensor
        if whole % part:
            raise InputError(
                "expert",
                f"{self.expert} x expert tensor {self.expert_tensor} = {part} does not "
                f"divide tensor {self.tensor} x "
                f"context {self.context} x data {self.data} = {whole}",
                "experts are exchanged among the ranks of a stage: choose degrees that divide them",
            )
        if self.order == "pipeline" and self.width % part:
            raise InputError(
                "expert",
                f"{part} ranks with order pipeline do not divide tensor {self.tensor} x "
                f"context {self.context} = "
                f"{self.width}",
                "use order data, which makes the replicas of a stage adjacent",
            )

    @property
    def width(self) -> int:
        """Devices of a stage in one replica, t c."""
        return self.tensor * self.context


def members_by_level(cluster: Cluster, axes: tuple[Axis, ...]) -> tuple[int, ...]:
    """How many members of a group meet at each level; their product is at least the group."""
    met, found = 1, []
    for size in accumulate((level.size for level in cluster.levels), mul):
        inside = 1
        for stride, count in axes:
            inside *= min(count, max(1, size // stride))
        found.append(-(-inside // met))
        met = max(met, inside)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Divided:
    """What degrees must divide in a model; 0 where it has no experts, no fixed keys or nothing is
    known."""

    sequence: int
    heads: int = 0
    kv_heads: int = 0
    experts: int = 0
    expert_mlp: int = 0


def require_divided(
    degrees: Degrees, model: Divided, sequence_parallel: bool, way: str = "ring"
) -> None:
    """Refuse degrees that a model cannot be divided by, with the one that is wrong and those that
    are right."""
    t, c, p, x = degrees.tensor, degrees.context, degrees.expert, degrees.expert_tensor
    if p * x > 1 and not model.experts:
        raise InputError(
            "expert", f"{p} ranks are to share experts and the model has none", "use 1"
        )
    if p > 1 and model.experts % p:
        raise InputError(
            "expert",
            f"{model.experts} experts do not divide by {p}",
            f"use {_divisors(model.experts)}",
        )
    if x > 1 and model.expert_mlp % x:
        raise InputError(
            "expert_tensor",
            f"an expert's width {model.expert_mlp} does not divide by {x}",
            "use 1 or a divisor",
        )
    if p > 1 and t > 1 and not sequence_parallel:
        raise InputError(
            "sequence_parallel",
            (
                f"expert parallel {p} with tensor parallel {t} needs it: each rank routes "
                "tokens of its own"
            ),
            "switch it on, or use tensor 1",
        )
    if c == 1:
        return
    if model.sequence % (2 * c):
        raise InputError(
            "context",
            (
                f"a sequence of {model.sequence} does not divide into {2 * c} chunks, two "
                f"for each of {c} ranks"
            ),
            "use a degree whose double divides it",
        )
    if sequence_parallel and model.sequence // c % t:
        raise InputError(
            "context",
            f"{model.sequence // c} positions of a rank do not divide by tensor {t}",
            "use another degree",
        )
    if way == "ulysses" and model.heads and model.heads // t % c:
        raise InputError(
            "context",
            f"{model.heads // t} heads of a rank do not divide by {c}",
            "use the ring or another degree",
        )


def _divisors(number: int) -> str:
    return ", ".join(str(n) for n in range(1, number + 1) if number % n == 0)
