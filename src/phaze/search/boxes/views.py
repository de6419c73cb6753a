"""Spaces in boxes, of chips of cores or of clusters: the one place where the walk asks which of them it has."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.search.boxes.box_costs import BoxChips
from phaze.search.boxes.box_grid import Boxes, BoxGrid, Corners, box_grid
from phaze.search.boxes.cluster_grid import ClusterCorners, ClusterGrid, cluster_grid
from phaze.search.boxes.cluster_making import BoxMaking
from phaze.search.chips import SpaceChips
from phaze.search.factors import AS_THEY_ARE, Factors
from phaze.search.space import Space

Floats = NDArray[np.float64]
AnyGrid = BoxGrid | ClusterGrid


def grid_for(space: Space, factors: Factors = AS_THEY_ARE) -> AnyGrid:
    """A space as its boxes have it."""
    return cluster_grid(space, factors) if space.of_clusters else box_grid(space, factors)


@dataclass(frozen=True, slots=True)
class _CoreCorners:
    view: BoxGrid
    own: Corners

    def taken(self, index: NDArray[Any]) -> "_CoreCorners":
        return _CoreCorners(self.view, self.own.taken(index))

    def boxes(self) -> BoxChips:
        return self.view.boxes(self.own)

    def links(self) -> Floats:
        return self.view.links(self.own)

    def kept(self) -> NDArray[np.bool_]:
        return self.view.kept(self.own)

    def rated(self) -> SpaceChips:
        return self.view.rated(self.own)

    def least_mm2(self) -> Floats:
        return self.own.area_mm2

    def least_w(self) -> Floats:
        return self.rated().design_w()


@dataclass(frozen=True, slots=True)
class _ClusterCorners:
    view: ClusterGrid
    own: ClusterCorners

    def taken(self, index: NDArray[Any]) -> "_ClusterCorners":
        return _ClusterCorners(self.view, self.own.taken(index))

    def boxes(self) -> BoxChips:
        return self.view.boxes(self.own)

    def links(self) -> Floats:
        return self.view.links(self.own)

    def kept(self) -> NDArray[np.bool_]:
        return self.view.kept(self.own)

    def rated(self) -> BoxMaking:
        return BoxMaking(self.view, self.own)

    def least_mm2(self) -> Floats:
        return self.own.area_mm2

    def least_w(self) -> Floats:
        return self.own.least_w


AnyCorners = _CoreCorners | _ClusterCorners


def corners_of(view: AnyGrid, boxes: Boxes) -> AnyCorners:
    """The virtual chips of boxes."""
    if isinstance(view, ClusterGrid):
        return _ClusterCorners(view, view.corners(boxes))
    return _CoreCorners(view, view.corners(boxes))


def kept_boxes(view: AnyGrid, boxes: Boxes) -> NDArray[np.bool_]:
    """Boxes that may hold a chip of the space."""
    return corners_of(view, boxes).kept()
