"""What layer times depend on beside the chip."""

from dataclasses import dataclass

from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import Cluster
from phaze.hardware.formats import PLAIN, RECIPES, WIDE, Precision, Recipe
from phaze.hardware.stack import Stack

# The exponent of the soft maximum of device and host: a host as slow as the device costs a quarter
# more.
SOFTNESS = 3


@dataclass(frozen=True, slots=True)
class Machine:
    """What a pass depends on beside the chip: the network, the software, and how far their figures
    are measured.

    ``residency``: what is still in the global buffer spares a trip to HBM. ``precision`` by its
    full name. ``host_bytes_per_s``: between a device and the memory of its host, one way; None
    where nothing is known of it.
    """

    cluster: Cluster
    stack: Stack
    basis: Basis = "calibrated"
    residency: bool = True
    precision: Precision = PLAIN
    host_bytes_per_s: float | None = None

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of low precision that products run in, None in 16 bits."""
        return RECIPES.get(self.precision)

    @property
    def wide(self) -> bool:
        """Whether everything is in 32 bits."""
        return self.precision == WIDE
