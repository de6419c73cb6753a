"""Values of options as keys of files: each type is stated once, whichever file has the key."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from phaze.documents import Count
from phaze.errors import InputError
from phaze.options.arguments import MOST_HEADROOM, share

ZeroStage = Annotated[int, Field(ge=0, le=3)]
# Degrees or sizes to choose from.
Choices = Annotated[list[Count], Field(min_length=1)]
# Ranks that shard state: a number of them, or all with the same weights.
ShardRanks = Annotated[int, Field(ge=2, le=2**24)] | Literal["all"]
AttentionChoice = Literal["eager", "fused", "best"]


def _share(value: Any) -> Any:
    """A text such as ``6%`` is a share."""
    if isinstance(value, str):
        try:
            return share("", value)
        except InputError as fault:
            raise ValueError(fault.remedy) from None
    return float(value) if type(value) is int else value


Headroom = Annotated[float, BeforeValidator(_share), Field(ge=0, le=MOST_HEADROOM)]
