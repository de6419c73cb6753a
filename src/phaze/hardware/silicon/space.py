"""A space of chips of clusters (``phaze.space/2``): every combination of the axes as arrays, with area and clock.

A space varies a base chip. Axes: clusters; arrays, rows, columns, lanes, operand_buffer (of an array), registers of a
cluster; global_buffer and global_width; hbm_stacks, each as those of the base; links. For each combination

    built clusters = N + ceil(N / 12)             spare ones, so that most dies can be sold
    port           = the least power of two at least width / N
    clock          = what the power limit lets the base's clock be                          (power.held_clocks)

and a chip of the space is one with

    least_share most_area <= area,  die <= most_area <= a reticle,   die = max(area, the edge that its stacks need)
    watts at the clock held <= most_w_per_mm2 area                 accepted under sustained_power (power.refusal)
    manufacturing cost <= most_usd                                 (price.making_columns)

Chips stand in the order of the axes, the last running fastest; combinations are looked at in chunks.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.documents import Reader
from phaze.errors import InputError
from phaze.files import read_text
from phaze.hardware.area import areas_of, edge_areas
from phaze.hardware.columns import ChipColumns, Flags, Floats
from phaze.hardware.library import preset_names, read
from phaze.hardware.ownership import load_terms
from phaze.hardware.power import accepted, clock_power, held_clocks, power_at
from phaze.hardware.silicon.chip import UNMEASURED, Accelerator
from phaze.hardware.silicon.files import load_accelerator
from phaze.hardware.silicon.price import making_columns
from phaze.hardware.silicon.space_file import AXES, ClusterSpaceFile
from phaze.hardware.technology import Technology
from phaze.hardware.technology_files import load_node

KIND = "silicon/spaces"
SPARES = 12
"""One spare cluster for every dozen in use: GA100 builds 128 of 108, GH100 144 of 132."""
MOST_COMBINATIONS = 10**8
"""Beyond it columns of all combinations take more memory than a small machine has."""
CHUNK = 1 << 18
"""Combinations built at a time: tens of MB."""


@dataclass(frozen=True, slots=True)
class ClusterSpace:
    """A space with its base chip and node as values."""

    file: ClusterSpaceFile
    base: Accelerator
    node: Technology

    @property
    def stack_bytes(self) -> int:
        """The memory of one HBM stack of the base."""
        return self.base.hbm.size_bytes // self.base.hbm.stacks

    @property
    def stack_bytes_per_s(self) -> float:
        """Its bandwidth."""
        return self.base.hbm.bandwidth_bytes_per_s / self.base.hbm.stacks

    def values(self) -> tuple[NDArray[Any], ...]:
        """The distinct values of each axis, ascending, in the order of :data:`AXES`."""
        return tuple(np.unique(np.array(getattr(self.file.axes, name), dtype=np.float64)) for name in AXES)

    def __len__(self) -> int:
        """Combinations, whether or not they are chips."""
        return prod(len(axis) for axis in self.values())


@dataclass(frozen=True, slots=True)
class SpaceColumns:
    """The chips of a space, and how many were left out for area, die edge, power, cost. ``die_mm2`` is the area with
    what stays empty so that the stacks have edge."""

    chips: ChipColumns
    area_mm2: Floats
    die_mm2: Floats
    held_hz: Floats
    power_w: Floats
    combinations: int
    left_out: Mapping[str, int]

    def __len__(self) -> int:
        return len(self.chips)

    def taken(self, index: NDArray[Any]) -> "SpaceColumns":
        """The chips of ``index``, nothing left out."""
        area, die, held, watts = (one[index] for one in (self.area_mm2, self.die_mm2, self.held_hz, self.power_w))
        return SpaceColumns(self.chips.taken(index), area, die, held, watts, len(index), NOTHING_LEFT_OUT)


NOTHING_LEFT_OUT: Mapping[str, int] = MappingProxyType({"area": 0, "edge": 0, "power": 0, "cost": 0})


def cluster_space_names() -> tuple[str, ...]:
    """The bundled spaces."""
    return preset_names(KIND)


def load_cluster_space(text: str, reader: Reader = read_text) -> ClusterSpace:
    """A space by preset name or path."""
    return cluster_space_of(read(ClusterSpaceFile, KIND, text, reader), reader)


def cluster_space_of(file: ClusterSpaceFile, reader: Reader = read_text) -> ClusterSpace:
    """The space of a checked file, its base and node read."""
    # What was measured of a base is not of the chips that vary it.
    base = replace(load_accelerator(file.base, reader), measured=UNMEASURED)
    if base.technology is None:
        seen = f"the chip '{file.base}' names no technology"
        raise InputError(f"{file.name}: base", seen, "choose one that does")
    if base.built.dies > 1 or base.built.base_dies:
        seen = f"the chip '{file.base}' has {base.built.dies + base.built.base_dies} dies"
        raise InputError(f"{file.name}: base", seen, "choose one of a single die: so are the chips of a space")
    if base.hbm.generation is None:
        raise InputError(f"{file.name}: base", f"the chip '{file.base}' has no HBM", "choose one that does")
    node = load_node(base.technology, reader)
    return ClusterSpace(file, replace(base, technology=node.name), node)


def ports_over(widths: Floats, clusters: Floats | float) -> Floats:
    """The port of every width and number of clusters: the least power of two at least width / N."""
    # A power of two is exact in both forms: doubling while below the share, as port_of does.
    port = np.ones(len(widths))
    while (narrow := port < widths / clusters).any():
        port = np.where(narrow, port * 2.0, port)
    return port


def combinations_numbered(space: ClusterSpace, numbers: NDArray[np.int64]) -> ChipColumns:
    """Combinations by number, the last axis running fastest."""
    return _combinations(space, space.values(), numbers)


def _combinations(space: ClusterSpace, values: tuple[NDArray[Any], ...], numbers: NDArray[np.int64]) -> ChipColumns:
    places = np.unravel_index(numbers, [len(axis) for axis in values])
    at = {name: axis[place] for name, axis, place in zip(AXES, values, places, strict=True)}
    return combinations_of(space, at)


def combinations_of(space: ClusterSpace, at: Mapping[str, Floats]) -> ChipColumns:
    """Combinations by their value of every axis."""
    base, clusters, widths = space.base, at["clusters"], at["global_width"]
    each, built, rate = np.ones(len(clusters)), clusters + np.ceil(clusters / SPARES), space.stack_bytes_per_s
    feed = at["arrays"] * (2 * at["rows"] + 6 * at["columns"])
    return ChipColumns(
        clusters=clusters,
        built=built,
        arrays=at["arrays"],
        rows=at["rows"],
        columns=at["columns"],
        vectors=clusters,
        vectors_built=built,
        lanes=at["lanes"],
        operand_bytes=at["operand_buffer"] * at["arrays"],
        operand_bytes_per_s=feed * base.clock_hz,
        register_bytes=at["registers"],
        register_bytes_per_s=6 * at["lanes"] * base.clock_hz,
        port=ports_over(widths, clusters),
        broadcast=np.full(len(clusters), base.clusters.broadcast),
        global_bytes=at["global_buffer"],
        global_built_bytes=at["global_buffer"],
        width=widths,
        global_bytes_per_s=widths * base.clock_hz,
        fan_out=base.global_buffer.fan_out * each,
        cache=np.full(len(clusters), base.global_buffer.cache),
        stacks=at["hbm_stacks"],
        sites=at["hbm_stacks"],
        hbm_bytes_per_s=at["hbm_stacks"] * rate,
        hbm_built_bytes_per_s=at["hbm_stacks"] * rate,
        link_bytes_per_s=at["links"],
        lane_bytes_per_s=(base.links.lane_bytes_per_s or space.node.area.lane_bytes_per_s) * each,
        clock_hz=base.clock_hz * each,
        limit_w=space.file.keep.sustained_power * each,
    )


@dataclass(frozen=True, slots=True)
class _Ruled:
    """Combinations with their figures, and which of them each rule lets pass."""

    columns: SpaceColumns
    sized: Flags
    edged: Flags
    powered: Flags
    priced: Flags

    @property
    def rules(self) -> dict[str, Flags]:
        """Which combinations pass each rule, by its name, in the order in which rules are held."""
        return {"area": self.sized, "edge": self.edged, "power": self.powered, "cost": self.priced}


def rules_of(space: ClusterSpace, chips: ChipColumns) -> dict[str, Flags]:
    """Which of some combinations pass each rule."""
    return _ruled(space, chips).rules


def _ruled(space: ClusterSpace, chips: ChipColumns) -> _Ruled:
    keep, node = space.file.keep, space.node
    areas = areas_of(chips, node)
    total = areas.total
    die = np.maximum(total, edge_areas(chips.stacks))
    power = clock_power(chips, node, areas)
    held = held_clocks(power, node, chips.clock_hz, chips.limit_w)
    watts = power_at(power, node, held)
    priced = np.ones(len(chips), np.bool_)
    if keep.most_usd is not None:
        made = np.flatnonzero(die <= keep.most_area)
        usd = making_columns(chips.taken(made), die[made], space.base.hbm.generation or "", load_terms(), node)
        priced[made] = usd <= keep.most_usd * (1 + 1e-12)
    return _Ruled(
        SpaceColumns(chips, total, die, held, watts, len(chips), NOTHING_LEFT_OUT),
        (total <= keep.most_area) & (total >= keep.least_share * keep.most_area),
        die <= keep.most_area,
        accepted(chips, power, held) & (watts <= keep.most_w_per_mm2 * total),
        priced,
    )


def _kept(space: ClusterSpace, chips: ChipColumns) -> Iterator[tuple[str, Flags] | SpaceColumns]:
    """What each rule leaves out of a chunk, then the chips that are left."""
    found, stays = _ruled(space, chips), np.ones(len(chips), np.bool_)
    for name, passes in found.rules.items():
        yield name, stays & ~passes
        stays = stays & passes
    yield found.columns.taken(np.flatnonzero(stays))


def kept_at(space: ClusterSpace, numbers: NDArray[np.int64]) -> tuple[NDArray[np.int64], SpaceColumns]:
    """Of combinations by number those that the space keeps."""
    ruled = _ruled(space, _combinations(space, space.values(), numbers))
    stays = np.flatnonzero(ruled.sized & ruled.edged & ruled.powered & ruled.priced)
    return numbers[stays], ruled.columns.taken(stays)


def columns_at(space: ClusterSpace, numbers: NDArray[np.int64]) -> SpaceColumns:
    """Combinations by number, whether or not the space keeps them."""
    return _ruled(space, _combinations(space, space.values(), numbers)).columns


def refusals_of(space: ClusterSpace, found: SpaceColumns) -> list[str | None]:
    """Why the space does not keep each of these combinations, or None where it does."""
    keep, ruled, said = space.file.keep, _ruled(space, found.chips), list[str | None]()
    for at in range(len(found)):
        area, die = float(found.area_mm2[at]), float(found.die_mm2[at])
        if not ruled.sized[at] and area > keep.most_area:
            said.append(f"{area:.1f} of {keep.most_area:.1f} mm2")
        elif not ruled.sized[at]:
            said.append(f"{area:.1f} mm2, below {keep.least_share * keep.most_area:.1f}")
        elif not ruled.edged[at]:
            said.append(f"{int(found.chips.stacks[at])} stacks need a die of {die:.0f} of {keep.most_area:.0f} mm2")
        elif not ruled.powered[at]:
            said.append(f"{found.power_w[at]:.0f} W at {found.held_hz[at] / 1e9:.2f} GHz, the clock it would hold")
        else:
            said.append(None if ruled.priced[at] else f"more than {keep.most_usd or 0.0:,.0f} USD with its HBM")
    return said


def space_columns(space: ClusterSpace) -> SpaceColumns:
    """Every chip of the space."""
    values, count = space.values(), len(space)
    if count > MOST_COMBINATIONS:
        raise InputError("axes", f"there are {count:.3g} combinations", f"give at most {MOST_COMBINATIONS:.0e}")
    left, parts = dict(NOTHING_LEFT_OUT), list[SpaceColumns]()
    for start in range(0, count, CHUNK):
        for found in _kept(space, _combinations(space, values, np.arange(start, min(count, start + CHUNK)))):
            if isinstance(found, SpaceColumns):
                parts.append(found)
            else:
                left[found[0]] += int(found[1].sum())
    names = [f.name for f in fields(ChipColumns)]
    chips = ChipColumns(*(np.concatenate([getattr(part.chips, name) for part in parts]) for name in names))
    area, die, held, watts = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("area_mm2", "die_mm2", "held_hz", "power_w")
    )
    return SpaceColumns(chips, area, die, held, watts, count, left)
