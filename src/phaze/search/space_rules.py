"""Which combinations of a space are chips: the ``[keep]`` table of each format.

A rule that one of the formats has no key for is stated by its table all the same, at the value that
leaves nothing out.
"""

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from phaze.documents import Document, Mm2, Positive, Share, Watts
from phaze.hardware.area import RETICLE_MM
from phaze.hardware.keys import Name


class CoreRules(Document):
    """Which combinations are chips of the space; an area budget is the area of a chip, or given."""

    area_of: Name | None = None
    most_area: Mm2 | None = None
    least_share: Share = 0.0
    smaller_with_one_core: bool = False
    most_power: Watts | None = None
    most_usd: Positive | None = None
    sustained_power: ClassVar[float] = float("inf")
    most_w_per_mm2: ClassVar[float] = float("inf")

    @model_validator(mode="after")
    def _one_budget(self) -> "CoreRules":
        if (self.area_of is None) == (self.most_area is None):
            raise ValueError("give either area_of or most_area")
        return self


class ClusterRules(Document):
    """Which combinations are chips; ``sustained_power`` lowers clocks."""

    most_area: Mm2
    least_share: Share = 0.0
    sustained_power: Watts
    most_w_per_mm2: Positive = 1.0
    most_usd: Annotated[
        Positive | None, Field(description="manufacturing cost of a chip with its HBM")
    ] = None
    area_of: ClassVar[str | None] = None
    smaller_with_one_core: ClassVar[bool] = False
    most_power: ClassVar[float | None] = None

    @model_validator(mode="after")
    def _one_reticle(self) -> "ClusterRules":
        if self.most_area > RETICLE_MM[0] * RETICLE_MM[1]:
            raise ValueError(
                f"let most_area be at most a reticle, {RETICLE_MM[0] * RETICLE_MM[1]:.0f} mm2"
            )
        return self
