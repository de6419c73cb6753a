"""Spaces in boxes, of chips of cores or of clusters: the one place where the walk asks which of them it has."""

from phaze.search.boxes.box_grid import BoxGrid, Corners, box_grid
from phaze.search.boxes.cluster_corners import ClusterCorners
from phaze.search.boxes.cluster_grid import ClusterGrid, cluster_grid
from phaze.search.factors import AS_THEY_ARE, Factors
from phaze.search.space import Space

AnyGrid = BoxGrid | ClusterGrid
AnyCorners = Corners | ClusterCorners


def grid_for(space: Space, factors: Factors = AS_THEY_ARE) -> AnyGrid:
    """A space as its boxes have it."""
    return cluster_grid(space, factors) if space.of_clusters else box_grid(space, factors)
