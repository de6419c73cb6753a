"""The chips of a space, from its axes and rules alone (docs/formats.md, phaze.space/1 and /2;
docs/technology.md).

A combination of the axes, the last axis running fastest, is a chip if the rules of the space keep
it (:mod:`.limits`). Of phaze.space/1 some fields follow from others: tied ones, and buffers of
cores by a rule; the rest is that of the base chip. Of phaze.space/2 the port of a cluster follows
from the width of the global buffer, and HBM from its stacks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .chips import Chips, alone, cluster_chips, core_chips, core_fields
from .limits import KEEP, KEEP_CLUSTERS, Limits, limits_of
from .reading import cover, listed, number, only, positive, require
from .silicon import areas_of, port_of
from .technology import Technology, known_keys, process_of, technology_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
AXES = (
    "tensor_cores", "rows", "columns", "vector_cores", "lanes", "global_buffer", "tensor_buffer",
    "vector_buffer",
    "global_bandwidth", "hbm_bandwidth", "links", "clock",
)  # fmt: skip
CLUSTER_AXES = (
    "clusters", "arrays", "rows", "columns", "lanes", "operand_buffer", "registers",
    "global_buffer", "global_width",
    "hbm_stacks", "links",
)  # fmt: skip
REAL = frozenset({"global_bandwidth", "hbm_bandwidth", "links", "clock", "global_width"})
TIES = frozenset({("vector_cores", "tensor_cores"), ("lanes", "columns")})
KEYS = frozenset({"name", "axes", "keep", "base", "area_chip"})
CHUNK = 1 << 18
"""Combinations built at a time: tens of MB."""


@dataclass(frozen=True, slots=True)
class Space:
    """The chips of a space, how many combinations its axes have, for each chip the place of the
    largest memory that it may have (-1: none), and its number."""

    chips: Chips
    combinations: int
    memory: Integers
    number: Integers

    def with_every_memory(self, memories: int) -> "Space":
        """Each chip with each of so many memories up to its largest."""
        chips = [np.flatnonzero(self.memory >= place) for place in range(memories)]
        index = np.concatenate(chips)
        places = np.repeat(np.arange(memories), [len(row) for row in chips])
        return Space(self.chips.taken(index), self.combinations, places, self.number[index])


def numbered(chips: Chips, combinations: int, memory: Integers) -> Space:
    """The space of some chips, numbered as they stand."""
    return Space(chips, combinations, memory, np.arange(len(chips)))


@dataclass(frozen=True, slots=True)
class Grid:
    """A space as axes: values by name, ascending, and what its chips are made from and may have;
    ``named``: the fields that name a chip, ``chips_of``: chips from their values."""

    axes: dict[str, Floats]
    tied: Mapping[str, str]
    buffers: Mapping[str, Any] | None
    fixed: Mapping[str, float]
    limits: Limits
    named: tuple[str, ...]
    chips_of: Callable[[dict[str, Floats], Technology], Chips]

    @property
    def made(self) -> Technology:
        """What its chips are made in."""
        return self.limits.made

    @property
    def combinations(self) -> int:
        """Of all axis values."""
        return prod(len(values) for values in self.axes.values())

    def stated(self, index: Integers) -> dict[str, Floats]:
        """By the fields that an answer names, the combinations of places [chips, axes]."""
        values = {
            name: axis[index[:, place]] for place, (name, axis) in enumerate(self.axes.items())
        }
        for name, other in self.tied.items():
            values[name] = values[other]
        if self.buffers is not None:
            least = positive(self.buffers["least"], "core_buffers.least")
            each = positive(self.buffers["bytes_per_unit"], "core_buffers.bytes_per_unit")
            for name, units in (
                ("tensor_buffer", values["rows"] * values["columns"]),
                ("vector_buffer", values["lanes"]),
            ):
                if name not in values:
                    values[name] = np.floor(np.maximum(least, each * units))
        for name, value in self.fixed.items():
            values.setdefault(name, np.full(len(index), value))
        return values

    def corner(self, index: Integers) -> Chips:
        """The combinations of places [chips, axes], at the rated clock and without their areas."""
        return self.chips_of(self.stated(index), self.made)

    def numbered(self, start: int, end: int) -> Integers:
        """The places of combinations by their numbers."""
        return np.stack(
            np.unravel_index(np.arange(start, end), [len(axis) for axis in self.axes.values()]),
            axis=1,
        )


def _axes_of(space: Mapping[str, Any], names: Sequence[str]) -> dict[str, Floats]:
    """The values of every axis, in the fixed order of axes."""
    more = [name for name in space["axes"] if name not in names]
    require(not more, f"axes: {more[0] if more else ''} is not an axis")
    axes = {}
    for name in (name for name in names if name in space["axes"]):
        values = [
            positive(value, f"axes.{name}") for value in listed(space["axes"][name], f"axes.{name}")
        ]
        exact = name in REAL or all(value == int(value) for value in values)
        require(bool(values) and exact, f"axes.{name}: a value is not whole")
        require(all(a < b for a, b in pairwise(values)), f"axes.{name}: values do not ascend")
        axes[name] = np.array(values)
    return axes


def _budget_of(space: Mapping[str, Any]) -> float:
    """mm2 that a chip may have: as many as another chip, or as the space says."""
    chip = space["area_chip"]
    if chip is None:
        return positive(space["keep"]["most_area"], "keep.most_area")
    of_cores = chip.get("clusters") is None and space["base"].get("clusters") is None
    require(of_cores, "area_chip: the budget of a chip of clusters is in mm2")
    return float(
        areas_of(
            core_chips(alone(core_fields(chip))), process_of(chip, space["base"]["process"])
        ).total[0]
    )


def _chips_of_cores(values: dict[str, Floats], made: Technology) -> Chips:
    """Chips by the fields of phaze.space/1."""
    return core_chips(values)


def _chips_of_clusters(values: dict[str, Floats], made: Technology) -> Chips:
    """Chips by the fields of phaze.space/2, with what follows from them."""
    port = port_of(values["global_width"], values["clusters"])
    hbm_bandwidth = values["hbm_stacks"] * made.stack_rate
    clock = np.full(len(port), made.clock_hz)
    return cluster_chips({**values, "port": port, "hbm_bandwidth": hbm_bandwidth, "clock": clock})


def _grid_of_clusters(space: Mapping[str, Any], terms: Mapping[str, Any]) -> Grid:
    """A phaze.space/2."""
    known_keys(space, KEYS, "space")
    axes, made = _axes_of(space, CLUSTER_AXES), technology_of(space["base"])
    require(
        list(space["axes"]) == list(CLUSTER_AXES), f"axes: they are not {', '.join(CLUSTER_AXES)}"
    )
    for key in ("sustained_power", "most_w_per_mm2"):
        positive(space["keep"][key], f"keep.{key}")
    limits = limits_of(space["keep"], KEEP_CLUSTERS, made, _budget_of(space), terms)
    return Grid(axes, {}, None, {}, limits, CLUSTER_AXES, _chips_of_clusters)


def _grid_of_cores(space: Mapping[str, Any], terms: Mapping[str, Any]) -> Grid:
    """A phaze.space/1."""
    known_keys(space, KEYS | {"tied", "core_buffers"}, "space")
    axes, tied, made = _axes_of(space, AXES), dict(space["tied"]), technology_of(space["base"])
    require(
        set(tied.items()) <= TIES and not set(tied) & set(axes),
        "tied: not one of the two ties that there are",
    )
    require(
        set(AXES[:6]) <= set(axes) | set(tied),
        "axes: one of the six that every space has is missing",
    )
    base = core_fields(space["base"])
    fixed = {name: base[name] for name in AXES[8:]}
    limits = limits_of(space["keep"], KEEP, made, _budget_of(space), terms)
    return Grid(axes, tied, space["core_buffers"], fixed, limits, AXES, _chips_of_cores)


def grid_of(space: Mapping[str, Any], terms: Mapping[str, Any]) -> Grid:
    """A space of either schema, with the terms of ownership that prices depend on."""
    cover("axes" in space, "a space without axes")
    read = _grid_of_cores if space["base"].get("clusters") is None else _grid_of_clusters
    return read(space, terms)


def chips_of(grid: Grid) -> Iterator[Chips]:
    """The chips of a space in the order of their combinations, some at a time."""
    count = grid.combinations
    for start in range(0, count, CHUNK):
        chips, _ = grid.limits.kept(grid.corner(grid.numbered(start, min(start + CHUNK, count))))
        yield chips


def space_of(grid: Grid, memories: Sequence[int]) -> Space:
    """All chips of a space, with the memories of a problem, ascending."""
    require(all(a < b for a, b in pairwise(memories)), "hbm_bytes: memories do not ascend")
    pieces = list(chips_of(grid))
    chips = Chips(
        *(
            np.concatenate([getattr(piece, field.name) for piece in pieces])
            for field in fields(Chips)
        )
    )
    require(len(chips) > 0, "the space has no chip")
    return numbered(chips, grid.combinations, grid.limits.memory(chips, memories))


def memories_of(grid: Grid, memories: Sequence[int]) -> list[int]:
    """The memories that chips of a space may have: those of their stacks, or these."""
    if not grid.made.stack_bytes:
        return list(memories)
    return [int(stacks) * grid.made.stack_bytes for stacks in grid.axes["hbm_stacks"]]


def chip_named(grid: Grid, memories: Sequence[int], stated: Any) -> Space:
    """The one chip that an answer names by its fields."""
    require(all(a < b for a, b in pairwise(memories)), "hbm_bytes: memories do not ascend")
    named = only(stated, "answer.chip", grid.named)
    places = []
    for name, axis in grid.axes.items():
        place = np.flatnonzero(axis == positive(named[name], f"answer.chip.{name}"))
        require(len(place) == 1, "answer.chip: the space has no such chip")
        places.append(int(place[0]))
    index = np.array([places])
    fields_stated = {name: number(value, f"answer.chip.{name}") for name, value in named.items()}
    same = fields_stated == {name: float(values[0]) for name, values in grid.stated(index).items()}
    chips, _ = grid.limits.kept(grid.corner(index))
    require(same and len(chips) == 1, "answer.chip: the space has no such chip")
    return numbered(chips, grid.combinations, grid.limits.memory(chips, memories))
