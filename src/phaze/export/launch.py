"""What a launch file says of its job, whichever framework it is for."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from phaze.errors import InputError


@dataclass(frozen=True, slots=True)
class Launch:
    """A launch file: ``plan`` as in ``phaze.run/1`` but for ``data``, which follows from the
    devices.

    ``model`` is one of the keys ``model``, ``gpt``, ``llama``, ``moe`` of a run, or empty if the
    file does not say; ``sizes`` are those that it states, to be held against a model that is named
    otherwise. ``shards`` are groups that each hold the whole state. ``not_read`` lists flags that
    price nothing here, ``assumed`` what was taken for granted.
    """

    framework: str
    plan: Mapping[str, Any]
    stack: str
    batch: int | None = None
    sequence: int | None = None
    devices: int | None = None
    model: Mapping[str, Any] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)
    precision: str | None = None
    shards: int = 1
    optimizer: str | None = None
    attention: str | None = None
    not_read: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def group(self) -> int:
        """Devices of one replica."""
        return (
            int(self.plan["tensor"]) * int(self.plan["pipeline"]) * int(self.plan.get("context", 1))
        )


JOB = frozenset(item.name for item in fields(Launch)) - {"framework", "plan", "sizes", "not_read"}
"""Fields of a launch that are none of its plan."""


# Fields that say nothing where a degree is 1.
IDLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "context": ("context", "context_way"),
        "expert": ("expert", "expert_tensor"),
        "pipeline": ("family",),
    }
)


def launch_of(
    framework: str, stack: str, stated: Mapping[str, Any], not_read: tuple[str, ...]
) -> Launch:
    """The launch of the fields that a file states: those of its job, ``sizes.*``, and the rest,
    which is its plan."""
    idle = {name for degree, names in IDLE.items() if stated.get(degree, 1) == 1 for name in names}
    useful = {
        name: value for name, value in stated.items() if value is not None and name not in idle
    }
    job = {"stack": stack} | {name: value for name, value in useful.items() if name in JOB}
    sizes = {
        name.removeprefix("sizes."): value
        for name, value in useful.items()
        if name.startswith("sizes.")
    }
    plan = {
        name: value
        for name, value in useful.items()
        if name not in JOB and not name.startswith("sizes.")
    }
    return Launch(framework=framework, plan=plan, sizes=sizes, not_read=not_read, **job)


def stages_of(parts: list[int], pipeline: int, where: str) -> tuple[list[int], int]:
    """Blocks of every stage and its chunks, from those of every virtual stage, the first of every
    rank first.

    Every chunk of a stage must have as many blocks as its others: what phaze prices as
    interleaving.
    """
    if not parts or len(parts) % pipeline:
        raise InputError(
            where,
            f"{len(parts)} parts for a pipeline of {pipeline}",
            "give each rank as many parts",
        )
    chunks = len(parts) // pipeline
    for rank in range(pipeline):
        blocks = parts[rank::pipeline]
        if len(set(blocks)) > 1:
            seen = f"the {chunks} chunks of rank {rank} have {', '.join(map(str, blocks))} blocks"
            raise InputError(where, seen, "phaze prices chunks of equal size; even them out")
    return [sum(parts[rank::pipeline]) for rank in range(pipeline)], chunks
