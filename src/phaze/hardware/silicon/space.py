"""A space of chips of clusters (``phaze.space/2``): every combination of the axes as arrays, with area and clock.

A space varies a base chip. Axes: clusters; arrays, rows, columns, lanes, operand_buffer (of an array), registers of a
cluster; global_buffer and global_width; hbm_stacks of the base's generation; links. For each combination

    built clusters = N + ceil(N / 12)             spare ones, so that most dies can be sold
    port           = the least power of two at least width / N
    clock          = what the power limit lets the base's clock be                          (power.held_clock_hz)

and a chip of the space is one with

    least_share most_area <= area,  die <= most_area <= a reticle,   die = max(area, the edge that its stacks need)
    watts at the clock held <= most_w_per_mm2 area                 accepted under sustained_power (power.refusal)

Chips stand in the order of the axes, the last running fastest; combinations are looked at in chunks.
"""

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from phaze.documents import Bytes, BytesPerSecond, Document, Format, Mm2, Positive, Reader, Share, Watts
from phaze.errors import InputError
from phaze.files import read_text
from phaze.hardware.files import Name, Sources, Text
from phaze.hardware.library import preset_names, read
from phaze.hardware.silicon.area import RETICLE_MM
from phaze.hardware.silicon.chip import GENERATIONS, Accelerator, Built, Hbm, SerialLinks, port_of
from phaze.hardware.silicon.columns import (
    ChipColumns,
    Flags,
    Floats,
    accepted,
    area_columns,
    edge_areas,
    held_clocks,
    power_columns,
    power_over,
)
from phaze.hardware.silicon.files import load_accelerator
from phaze.hardware.silicon.node import Node
from phaze.hardware.silicon.node_files import load_node

KIND = "silicon/spaces"
SPARES = 12
"""One spare cluster for every dozen in use: GA100 builds 128 of 108, GH100 144 of 132."""
MOST_COMBINATIONS = 10**8
CHUNK = 1 << 18
Whole = Annotated[int, Field(gt=0, le=2**24)]
Counts = Annotated[list[Whole], Field(min_length=1, max_length=1000)]
Sizes = Annotated[list[Bytes], Field(min_length=1, max_length=1000)]
Rates = Annotated[list[BytesPerSecond], Field(min_length=1, max_length=1000)]
Widths = Annotated[list[Positive], Field(min_length=1, max_length=1000)]
AXES = (
    "clusters", "arrays", "rows", "columns", "lanes", "operand_buffer", "registers", "global_buffer", "global_width",
    "hbm_stacks", "links",
)  # fmt: skip


class ClusterAxesTable(Document):
    """The values of each axis."""

    clusters: Counts
    arrays: Annotated[Counts, Field(description="of a cluster")]
    rows: Counts
    columns: Counts
    lanes: Annotated[Counts, Field(description="of a cluster")]
    operand_buffer: Annotated[Sizes, Field(description="of an array")]
    registers: Annotated[Sizes, Field(description="of a cluster, half of them for sums")]
    global_buffer: Sizes
    global_width: Annotated[Widths, Field(description="bytes a cycle")]
    hbm_stacks: Counts
    links: Rates


class ClusterKeepTable(Document):
    """Which combinations are chips; ``sustained_power`` lowers clocks."""

    most_area: Mm2
    least_share: Share = 0.0
    sustained_power: Watts
    most_w_per_mm2: Positive = 1.0

    @model_validator(mode="after")
    def _one_reticle(self) -> "ClusterKeepTable":
        if self.most_area > RETICLE_MM[0] * RETICLE_MM[1]:
            raise ValueError(f"let most_area be at most a reticle, {RETICLE_MM[0] * RETICLE_MM[1]:.0f} mm2")
        return self


class ClusterSpaceFile(Document):
    """A space of chips of clusters (``phaze.space/2``)."""

    schema_: Annotated[Literal["phaze.space/2"], Field(alias="schema")]
    name: Name
    title: Text
    base: Name
    axes: ClusterAxesTable
    keep: ClusterKeepTable
    sources: Sources = Field(default_factory=dict)


CLUSTER_SPACE = Format("phaze.space/2", ClusterSpaceFile, "chips of clusters, with area, power and clock")


@dataclass(frozen=True, slots=True)
class ClusterSpace:
    """A space with its base chip and node as values."""

    file: ClusterSpaceFile
    base: Accelerator
    node: Node

    def values(self) -> tuple[NDArray[Any], ...]:
        """The distinct values of each axis, ascending, in the order of :data:`AXES`."""
        return tuple(np.unique(np.array(getattr(self.file.axes, name), dtype=np.float64)) for name in AXES)

    def __len__(self) -> int:
        """Combinations, whether or not they are chips."""
        return prod(len(axis) for axis in self.values())


@dataclass(frozen=True, slots=True)
class SpaceColumns:
    """The chips of a space, and what was left out: how many for area, die edge, power. ``die_mm2`` is the area with
    what stays empty so that the stacks have edge."""

    chips: ChipColumns
    area_mm2: Floats
    die_mm2: Floats
    held_hz: Floats
    power_w: Floats
    combinations: int
    left_out: dict[str, int]

    def __len__(self) -> int:
        return len(self.chips)


def cluster_space_names() -> tuple[str, ...]:
    """The bundled spaces."""
    return preset_names(KIND)


def load_cluster_space(text: str, reader: Reader = read_text) -> ClusterSpace:
    """A space by preset name or path."""
    file = read(ClusterSpaceFile, KIND, text, reader)
    base = load_accelerator(file.base, reader)
    if base.technology is None:
        seen = f"the chip '{file.base}' names no technology"
        raise InputError(f"{file.name}: base", seen, "choose one that does")
    if base.hbm.generation is None:
        raise InputError(f"{file.name}: base", f"the chip '{file.base}' has no HBM", "choose one that does")
    return ClusterSpace(file, base, load_node(base.technology, reader))


def _combinations(space: ClusterSpace, values: tuple[NDArray[Any], ...], start: int, end: int) -> ChipColumns:
    places = np.unravel_index(np.arange(start, end), [len(axis) for axis in values])
    at = {name: axis[place] for name, axis, place in zip(AXES, values, places, strict=True)}
    base, each = space.base, np.ones(end - start)
    clusters, widths = at["clusters"], at["global_width"]
    # A power of two is exact in both forms: doubling while below the share, as port_of does.
    port = each.copy()
    while (narrow := port < widths / clusters).any():
        port = np.where(narrow, port * 2.0, port)
    generation = GENERATIONS[base.hbm.generation or ""]
    return ChipColumns(
        clusters=clusters,
        built=clusters + np.ceil(clusters / SPARES),
        arrays=at["arrays"],
        rows=at["rows"],
        columns=at["columns"],
        lanes=at["lanes"],
        operand_bytes=at["operand_buffer"] * at["arrays"],
        register_bytes=at["registers"],
        port=port,
        broadcast=np.full(end - start, base.clusters.broadcast),
        global_bytes=at["global_buffer"],
        global_built_bytes=at["global_buffer"],
        width=widths,
        fan_out=base.global_buffer.fan_out * each,
        cache=np.full(end - start, base.global_buffer.cache),
        stacks=at["hbm_stacks"],
        sites=at["hbm_stacks"],
        hbm_bytes_per_s=at["hbm_stacks"] * generation.bandwidth_bytes_per_s,
        link_bytes_per_s=at["links"],
        lane_bytes_per_s=(base.links.lane_bytes_per_s or space.node.area.lane_bytes_per_s) * each,
        clock_hz=base.clock_hz * each,
        limit_w=space.file.keep.sustained_power * each,
    )


def _kept(space: ClusterSpace, chips: ChipColumns) -> Iterator[tuple[str, Flags] | SpaceColumns]:
    """What each rule leaves out of a chunk, then the chips that are left."""
    keep, node = space.file.keep, space.node
    areas = area_columns(chips, node)
    total = areas.total
    sized = (total <= keep.most_area) & (total >= keep.least_share * keep.most_area)
    die = np.maximum(total, edge_areas(chips))
    edged = die <= keep.most_area
    power = power_columns(chips, node, areas)
    held = held_clocks(chips, node, power)
    watts = power_over(power, node, held)
    powered = accepted(chips, power, held) & (watts <= keep.most_w_per_mm2 * total)
    yield "area", ~sized
    yield "edge", sized & ~edged
    yield "power", sized & edged & ~powered
    stays = np.flatnonzero(sized & edged & powered)
    yield SpaceColumns(chips.taken(stays), total[stays], die[stays], held[stays], watts[stays], len(chips), {})


def space_columns(space: ClusterSpace) -> SpaceColumns:
    """Every chip of the space."""
    values, count = space.values(), len(space)
    if count > MOST_COMBINATIONS:
        raise InputError("axes", f"there are {count:.3g} combinations", f"give at most {MOST_COMBINATIONS:.0e}")
    left, parts = {"area": 0, "edge": 0, "power": 0}, list[SpaceColumns]()
    for start in range(0, count, CHUNK):
        for found in _kept(space, _combinations(space, values, start, min(count, start + CHUNK))):
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


def space_chip(space: ClusterSpace, found: SpaceColumns, index: int) -> Accelerator:
    """One chip of the space as a value, at its rated clock and under the space's limit."""
    chips, base = found.chips, space.base
    count, arrays, rows, columns = (int(x[index]) for x in (chips.clusters, chips.arrays, chips.rows, chips.columns))
    stacks, held = int(chips.stacks[index]), int(chips.global_bytes[index])
    width = float(chips.width[index])
    generation = GENERATIONS[base.hbm.generation or ""]
    clusters = replace(
        base.clusters,
        count=count,
        arrays=arrays,
        rows=rows,
        columns=columns,
        lanes=int(chips.lanes[index]),
        operand_bytes=int(chips.operand_bytes[index]),
        register_bytes=int(chips.register_bytes[index]),
        port_bytes_per_cycle=port_of(width, count),
    )
    rate = stacks * generation.bandwidth_bytes_per_s
    return replace(
        base,
        name=f"{count}x{arrays}x{rows}x{columns}-l{clusters.lanes}-{held >> 20}MiB-s{stacks}",
        title=f"chip {index} of the space {space.file.name}",
        clusters=clusters,
        global_buffer=replace(base.global_buffer, size_bytes=held, bytes_per_cycle=width),
        hbm=Hbm(stacks, base.hbm.generation, stacks * generation.size_bytes, rate),
        links=SerialLinks(float(chips.link_bytes_per_s[index]), base.links.lane_bytes_per_s),
        built=Built(int(chips.built[index]), held, stacks),
        sustained_w=space.file.keep.sustained_power,
    )
