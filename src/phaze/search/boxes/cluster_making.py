"""What rates of an objective ask of chips, of boxes of chips of clusters: the least of everything, the most memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from phaze.hardware.ownership import GB, load_terms
from phaze.search.boxes.cluster_grid import ClusterCorners, ClusterGrid
from phaze.search.ownership_cost import die_kgco2e
from phaze.search.space import Space

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class BoxMaking:
    """What rates of an objective ask of chips, of boxes of them: the least of everything with the most memory."""

    view: ClusterGrid
    corners: ClusterCorners

    def __len__(self) -> int:
        return len(self.corners)

    @property
    def space(self) -> Space:
        return self.view.space

    def allowed(self, hbm_bytes: int) -> Flags:
        """Boxes whose chips have at most that memory: more never slows."""
        held = self.corners.high.stacks.astype(np.int64) * self.space.stack_bytes
        return np.asarray(held == hbm_bytes)

    def static_w(self) -> Floats:
        """Watts that every chip draws at the least."""
        return self.corners.idle_w

    def making_usd(self, hbm_bytes: int) -> Floats:
        """What making takes at the least, with the least memory."""
        return self.view.least_usd(self.corners, load_terms())

    def making_kgco2e(self, hbm_bytes: int) -> Floats:
        """The same in carbon."""
        terms = load_terms()
        held = self.corners.low.stacks * self.space.stack_bytes
        rest = held / GB * terms.hbm_kgco2e_per_gb + terms.package_kgco2e
        return np.asarray(die_kgco2e(self.corners.die_mm2, self.view.node.fab, terms) + rest)
