"""Values of options as keys of files: each type is stated once, whichever file has the key.

An option names its type here (``value``, ``choices``), so that a command that reads no file needs
none of them.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from phaze.documents import BatchSize, Bytes, Count, Length, Positive, Share, TokenCount
from phaze.errors import InputError
from phaze.graph.ir import Attention
from phaze.graph.split_context import Way
from phaze.hardware.calibration import Basis
from phaze.hardware.formats import Precision
from phaze.hardware.stack import Optimizer
from phaze.options.arguments import MOST_HEADROOM, share
from phaze.pipeline.names import PipelineFamily

__all__ = [
    "Attention", "AttentionChoice", "Basis", "BatchSize", "Choices", "Count", "FamilyChoices",
    "Headroom", "Kind", "Length", "Mean", "MemorySizes", "Optimizer", "PipelineFamily", "Place",
    "Positive", "Precision", "RoundSize", "RuleName", "SequenceParallel", "ShardChoices",
    "ShardRanks", "Share", "TokenCount", "Way", "WayChoices", "YesOrNo", "ZeroChoice", "ZeroStage",
]  # fmt: skip

# The sets of defaults of a study.
RuleName = Literal["icml24", "cluster"]
# What a search minimises, and how several models are averaged.
Kind = Literal[
    "throughput",
    "throughput_per_watt",
    "throughput_per_usd",
    "throughput_per_kgco2e",
    "energy_delay",
]
Mean = Literal["geometric", "arithmetic", "regret"]
YesOrNo = bool
SequenceParallel = bool | Literal["best"]
MemorySizes = Annotated[list[Bytes], Field(min_length=1)]
RoundSize = Annotated[int, Field(ge=1, le=4096)]

Place = Annotated[str, Field(min_length=1, max_length=4096)]
# Degrees or sizes to choose from.
Choices = Annotated[list[Count], Field(min_length=1)]
ZeroStage = Annotated[int, Field(ge=0, le=3)]
ZeroChoice = ZeroStage | Literal["best"]
# Ranks that shard state; in a study a number of them, or all with the same weights.
ShardRanks = Annotated[int, Field(ge=2)]
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
