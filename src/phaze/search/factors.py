"""Constants of all chips of a space times factors; areas and what is in the space stay."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ConstantFactors:
    """What constants of all chips are multiplied by: clock held, bandwidths of HBM, global buffer
    and links."""

    clock: float = 1.0
    hbm: float = 1.0
    shared: float = 1.0
    links: float = 1.0


AS_THEY_ARE = ConstantFactors()
