"""What layer times depend on beside the chip."""

from dataclasses import dataclass

from phaze.hardware.calibration import Basis
from phaze.hardware.cluster import Cluster
from phaze.hardware.formats import PLAIN, RECIPES, Precision, Recipe
from phaze.hardware.stack import Stack

# The exponent of the soft maximum of device and host: a host as slow as the device costs a quarter more.
SOFTNESS = 3


@dataclass(frozen=True, slots=True)
class Machine:
    """What a pass depends on beside the chip: the network, the software, and how far their figures are measured.

    ``residency``: what is still in the global buffer spares a trip to HBM. ``precision`` by its full name.
    """

    cluster: Cluster
    stack: Stack
    basis: Basis = "calibrated"
    residency: bool = True
    precision: Precision = PLAIN

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of low precision that products run in, None in 16 bits."""
        return RECIPES.get(self.precision)
