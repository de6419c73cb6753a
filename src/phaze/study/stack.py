"""The software stack of a study as its table ``stack`` changes it: single keys of the one that it names.

    [stack]      keys of phaze.stack/1 as schedule = "links" or host_time = "10 us"; optimizer, precision and
                 attention are those of ``training``

So every rule of a setting is one key of a study.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import Field, model_validator

from phaze.documents import Document, NonNegative, Positive, Reader, Seconds, Share, check
from phaze.files import is_path
from phaze.hardware.files import Name
from phaze.hardware.library import read_stack
from phaze.hardware.stack import (
    Fusion,
    Pipeline,
    PipelineFamily,
    Prefetch,
    RecomputeModule,
    Saves,
    ScheduleRule,
    Selective,
    Stack,
    StageRule,
    Synchronisation,
    require_built,
)
from phaze.hardware.stack_file import Recipe, StackFile, StateTable


class StackTable(Document):
    """What a study changes of its software; the keys are those of ``phaze.stack/1``."""

    fusion: Fusion | None = None
    host_time: Seconds | None = None
    hides_tensor_collectives: bool | None = None
    hidden_synchronisation: Share | None = None
    scatter_gather: bool | None = None
    optimizer_traffic_bytes: NonNegative | None = None
    state_bytes: NonNegative | None = None
    reserve: NonNegative | None = None
    schedule: ScheduleRule | None = None
    piecewise_collectives: bool | None = None
    trims_recompute: bool | None = None
    gradient_bytes: NonNegative | None = None
    synchronisation: Synchronisation | None = None
    interleaves: bool | None = None
    families: Annotated[list[PipelineFamily], Field(min_length=1)] | None = None
    accumulation_inside: NonNegative | None = None
    accumulation_apart: NonNegative | None = None
    stages: StageRule | None = None
    pipeline: Pipeline | None = None
    saves: Saves | None = None
    logit_bytes: NonNegative | None = None
    selective: Selective | None = None
    gradient_buffer_bytes: NonNegative | None = None
    recompute_modules: list[RecomputeModule] | None = None
    recipes: list[Recipe] | None = None
    low_precision_weights: bool | None = None
    overlap_p2p: bool | None = None
    state: StateTable | None = None
    gradient_wire_bytes: Positive | None = None
    prefetch: Prefetch | None = None
    software_share: dict[Name, Share] | None = None
    grouped_share: dict[Name, Share] | None = None
    hidden_exchange: Share | None = None
    overlaps_shared_experts: bool | None = None
    deduplicated_exchange: bool | None = None

    @model_validator(mode="before")
    @classmethod
    def _older_names(cls, raw: Any) -> Any:
        return StackFile.renamed(raw)

    def changes(self) -> Mapping[str, Any]:
        """The keys that are given."""
        return self.model_dump(exclude_none=True)


def changed_stack(text: str, table: StackTable, reader: Reader) -> Stack:
    """The stack of a name or path with what the table says; its name says what was changed."""
    file, changes = read_stack(text, reader), table.changes()
    if not changes:
        return require_built(file.value(), text if is_path(text) else "")
    given = file.model_dump(by_alias=True, exclude={"base"}, exclude_none=True)
    stack = check(StackFile, {**given, **changes}, "stack").value()
    named = replace(stack, name=f"{stack.name} with other {', '.join(sorted(changes))}")
    return require_built(named, "stack")
