"""Types of keys that files of hardware have in common."""

from typing import Annotated

from pydantic import AfterValidator, Field

from phaze.documents import Seconds, Share
from phaze.values import FrozenTable

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=64)]
# A preset's name, or a path: it holds a slash or ends in .toml or .json.
Place = Annotated[
    str, Field(pattern=r"^([a-z0-9][a-z0-9._-]*|.*/.*|.*\.(toml|json))$", max_length=400)
]
Text = Annotated[str, Field(min_length=1, max_length=400)]
Units = Annotated[int, Field(gt=0, le=10**6, strict=True)]
Sources = Annotated[dict[str, Text], AfterValidator(FrozenTable)]
"""For the path of a number, where the number comes from."""
ShareByName = Annotated[dict[Name, Share], AfterValidator(FrozenTable)]
SecondsByName = Annotated[dict[Name, Seconds], AfterValidator(FrozenTable)]
