"""A space of chips of clusters (``phaze.space/2``) as a search sees it; its chips are in ``clustered_chips``.

Each chip has its own memory, stacks times the size of the generation, so the memories of a job are all that occur, and
a chip is allowed one of them. Its links are the innermost level of the cluster. What its rules leave out for area
counts dies without edge for their stacks too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from phaze.documents import Reader, check
from phaze.files import read_text
from phaze.hardware.chip import Chip
from phaze.hardware.files import ClusterFile
from phaze.hardware.library import read
from phaze.hardware.silicon.design import designed, load_cluster_chip
from phaze.hardware.silicon.space import ClusterSpace, cluster_space_of
from phaze.hardware.silicon.space_file import AXES, ClusterSpaceFile


@dataclass(frozen=True, slots=True)
class SpaceOfClusters:
    """A space and its base chip as values: nothing that it depends on is read again."""

    silicon: ClusterSpace
    base: Chip

    @property
    def file(self) -> ClusterSpaceFile:
        return self.silicon.file

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def own_links(self) -> bool:
        """Whether each chip has links of its own."""
        return True

    @property
    def area_within(self) -> Chip | None:
        """No chip's area is the budget: it is stated."""
        return None

    @property
    def usual_cluster(self) -> str | None:
        """The cluster of its base chip."""
        return self.silicon.base.cluster

    @property
    def usual_baseline(self) -> str | None:
        """The chip of that cluster."""
        cluster = self.usual_cluster
        return None if cluster is None else read(ClusterFile, "clusters", cluster).chip

    @property
    def memories(self) -> tuple[int, ...] | None:
        """The memories that its chips have, ascending."""
        return tuple(sorted({stacks * self.silicon.stack_bytes for stacks in self.file.axes.hbm_stacks}))

    @property
    def limits(self) -> Mapping[str, float | None]:
        """What its chips may take at most: mm2, W, USD."""
        keep = self.file.keep
        return {"area": keep.most_area, "power": keep.sustained_power, "usd": keep.most_usd}

    @property
    def memory_limited(self) -> bool:
        """Whether a chip may not have every memory of a job."""
        return True

    def within(self, limits: Mapping[str, float]) -> "SpaceOfClusters":
        """The space under other limits of area, power or usd."""
        names = {"area": "most_area", "power": "sustained_power", "usd": "most_usd"}
        # Checked again: a die beyond a reticle is refused here too.
        raw = self.file.keep.model_dump() | {names[name]: value for name, value in limits.items()}
        keep = check(type(self.file.keep), raw, f"{self.name}: keep")
        return replace(self, silicon=replace(self.silicon, file=self.file.model_copy(update={"keep": keep})))

    def with_axis(self, name: str, values: list[Any]) -> "SpaceOfClusters":
        """The space with other values of an axis."""
        axes = self.file.axes.model_copy(update={name: values})
        return replace(self, silicon=replace(self.silicon, file=self.file.model_copy(update={"axes": axes})))

    def chip_named(self, text: str, reader: Reader = read_text) -> Chip:
        """Another chip by name or path, priced as this space's chips are."""
        return load_cluster_chip(text, reader)

    def axis_points(self) -> dict[str, NDArray[Any]]:
        """The values of each axis, in order."""
        return dict(zip(AXES, self.silicon.values(), strict=True))

    def document(self) -> dict[str, Any]:
        """Everything that its chips depend on but its base."""
        axes = {name: values.tolist() for name, values in self.axis_points().items()}
        return {"name": self.name, "axes": axes, "keep": self.file.keep.model_dump()}


def cluster_space(file: ClusterSpaceFile, reader: Reader = read_text) -> SpaceOfClusters:
    """The space of a checked file, the chip and the node that it names read."""
    space = cluster_space_of(file, reader)
    return SpaceOfClusters(space, designed(space.base, space.node))
