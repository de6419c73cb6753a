"""Values of options as keys of files: each type is stated once, whichever file has the key.

An option names its type here (``value``, ``choices``), so that a command that reads no file needs
none of them.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from phaze.documents import BatchSize, Count, Length, Positive, TokenCount
from phaze.errors import InputError
from phaze.graph.ir import Attention
from phaze.graph.split_context import Way
from phaze.hardware.formats import Precision
from phaze.options.arguments import MOST_HEADROOM, share
from phaze.pipeline.names import PipelineFamily

__all__ = [
    "Attention", "AttentionChoice", "BatchSize", "Choices", "Count", "FamilyChoices", "Headroom",
    "Length",
    "PipelineFamily", "Place", "Positive", "Precision", "ShardChoices", "ShardRanks", "TokenCount",
    "Way", "WayChoices",
    "ZeroChoice", "ZeroStage",
]  # fmt: skip

Place = Annotated[str, Field(min_length=1, max_length=4096)]
# Degrees or sizes to choose from.
Choices = Annotated[list[Count], Field(min_length=1)]
ZeroStage = Annotated[int, Field(ge=0, le=3)]
ZeroChoice = ZeroStage | Literal["best"]
# Ranks that shard state; in a study a number of them, or all with the same weights.
ShardRanks = Annotated[
    int, Field(ge=2, description="ranks that shard state; without it all replicas")
]
ShardChoices = Annotated[
    list[Annotated[int, Field(ge=2, le=2**24)] | Literal["all"]], Field(min_length=1)
]
AttentionChoice = Literal["eager", "fused", "best"]
WayChoices = Annotated[list[Way], Field(min_length=1)]
FamilyChoices = Annotated[list[PipelineFamily], Field(min_length=1)] | Literal["best"]


def _share(value: Any) -> Any:
    """A text such as ``6%`` is a share."""
    if isinstance(value, str):
        try:
            return share("", value)
        except InputError as fault:
            raise ValueError(fault.remedy) from None
    return float(value) if type(value) is int else value


Headroom = Annotated[float, BeforeValidator(_share), Field(ge=0, le=MOST_HEADROOM)]
