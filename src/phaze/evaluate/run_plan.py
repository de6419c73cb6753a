"""The plan of a run (``phaze.run/1``): how the job was split, recomputed and sharded."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from phaze.documents import Count
from phaze.evaluate.parallel_rank import Parallel
from phaze.evaluate.recomputing import KNOWN, mode_given, with_offload
from phaze.evaluate.stated_overlap import OverlapKeys
from phaze.graph.saved.modes import OFFLOAD
from phaze.options.keys import RunPlanKeys
from phaze.pipeline.families import named_family
from phaze.pipeline.family import Family
from phaze.placement.rules import MODES

PARTS = (*KNOWN, *MODES, OFFLOAD)
RecomputeName = Annotated[
    str,
    BeforeValidator(mode_given),
    WithJsonSchema(
        {
            "anyOf": [
                {"enum": list(MODES)},
                {"type": "array", "items": {"enum": list(PARTS)}, "minItems": 1},
            ],
            "default": "none",
        }
    ),
]


class RunPlanTable(RunPlanKeys, OverlapKeys):
    """How the job was split; ``blocks`` of each stage, first to last, where they are not even."""

    pipeline: Count
    data: Count
    recompute: RecomputeName = "none"
    offload: bool = False
    sequence_parallel: bool = False
    expert_tensor: Count | None = None
    blocks: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None

    @property
    def mode(self) -> str:
        """How activations are kept: the mode of recompute, with offload beside it where that is
        said."""
        return with_offload(self.recompute) if self.offload else self.recompute

    @property
    def parallel(self) -> Parallel:
        """Degrees of one rank."""
        return Parallel(
            self.tensor, self.context, self.expert, self.expert_tensor, self.context_way
        )

    @property
    def schedule(self) -> Family:
        """The pipeline family, with its chunks."""
        return named_family(self.family, self.chunks)

    @model_validator(mode="after")
    def _cut(self) -> "RunPlanTable":
        assert self.schedule
        if self.shard is not None and self.zero == 0:
            raise ValueError(f"shard {self.shard} and zero 0: only ZeRO 1, 2 and 3 shard state")
        if self.shard is not None and self.data * self.context % self.shard:
            alike = self.data * self.context
            raise ValueError(
                f"shard {self.shard} does not divide the {alike} ranks with the same weights"
            )
        if self.blocks is not None and len(self.blocks) != self.pipeline:
            raise ValueError(
                f"give blocks for each of the {self.pipeline} stages, not for {len(self.blocks)}"
            )
        return self
