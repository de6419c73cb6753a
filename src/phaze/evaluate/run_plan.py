"""The plan of a run (``phaze.run/1``): how the job was split, recomputed and sharded."""

from typing import Annotated

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from phaze.documents import Count
from phaze.errors import InputError
from phaze.evaluate.parallel_rank import Parallel
from phaze.evaluate.recomputing import KNOWN, mode_given, with_offload
from phaze.graph.saved.modes import OFFLOAD
from phaze.hardware.gradients import Gradients
from phaze.hardware.overlap import Dispatcher, Exchange, Runs
from phaze.hardware.stack import Stack
from phaze.options.keys import RunPlanKeys
from phaze.pipeline.families import named_family
from phaze.pipeline.family import Family
from phaze.placement.rules import MODES
from phaze.values import replace

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


class RunPlanTable(RunPlanKeys):
    """How the job was split; ``blocks`` of each stage, first to last, where they are not even."""

    pipeline: Count
    data: Count
    recompute: RecomputeName = "none"
    offload: bool = False
    sequence_parallel: bool = False
    expert_tensor: Count | None = None
    expert_overlap: Annotated[
        bool | None, Field(description="experts are exchanged behind another microbatch")
    ] = None
    tensor_overlap: Annotated[
        bool | None, Field(description="gathers and scatters of tensor groups run piece by piece")
    ] = None
    gradients: Annotated[
        Gradients | None, Field(description="width of gradients, held, sent and added")
    ] = None
    dispatcher: Annotated[Dispatcher | None, Field(description="how experts' tokens are sent")] = (
        None
    )
    blocks: Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)] | None = None

    def stated(self, stack: Stack) -> Stack:
        """The stack as the run used it."""
        changed = {
            "tensor": None if self.tensor_overlap is None else Runs(runs=self.tensor_overlap),
            "dispatcher": self.dispatcher,
            "exchange": self._exchange(stack),
        }
        said = {key: value for key, value in changed.items() if value is not None}
        if said:
            stack = replace(stack, overlap=stack.overlap.model_copy(update=said))
        return stack if self.gradients is None else stack.with_gradients(self.gradients)

    def _exchange(self, stack: Stack) -> Exchange | None:
        if self.expert_overlap is None:
            return None
        own = stack.overlap.exchange
        if self.expert_overlap and not own.offered:
            raise InputError(
                "plan.expert_overlap",
                f"the stack {stack.name} exchanges experts behind no other microbatch",
                "leave it out, or name a stack that does, with overlap.exchange offered",
            )
        return own.model_copy(update={"runs": self.expert_overlap})

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
