"""The chip drawn to scale by area: every rectangle has the area of its component, a core is one rectangle.

Components are laid out by a squarified treemap: rows of rectangles are filled along the shorter side of what is left as
long as that brings them nearer to squares (:func:`treemap`). Cores of a kind then share their rectangle in rows whose
heights go by how many cores a row has, so that all cores have the same area (:func:`cells`). Where components really
lie is not modelled, and the die is drawn as a square.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from phaze.hardware.area import Areas
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import on_die
from phaze.hardware.clocked import chip_areas, die_mm2
from phaze.units import show

SIDE = 100.0
"""Units of a drawing: percent."""
MOST_CELLS = 600
"""Rectangles of one kind of part; more would be a solid area, at a cost in bytes."""
# An outline that is so many times larger or smaller says nothing beside the die.
MOST_BESIDE = 6.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle of a drawing that is SIDE wide."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        return self.width * self.height


@dataclass(frozen=True, slots=True)
class Part:
    """A component: its area, its colour, how many equal cells it has, and what is in one."""

    name: str
    area_mm2: float
    colour: str
    count: int
    about: str


def _worst(row: Sequence[float], side: float) -> float:
    """The longest aspect of rectangles of these areas in one row along ``side``."""
    total = sum(row)
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) for area in row)


def treemap(areas: Sequence[float], box: Box) -> list[Box]:
    """A rectangle for each area, in order; the areas, in any unit, fill the box in proportion."""
    factor = box.area / sum(areas)
    left = [area * factor for area in areas]
    found: list[Box] = []
    while left:
        side, count = min(box.width, box.height), 1
        while count < len(left) and _worst(left[: count + 1], side) <= _worst(left[:count], side):
            count += 1
        row, left = left[:count], left[count:]
        depth = sum(row) / side
        along = 0.0
        for area in row:
            length = area / depth
            upright = box.width >= box.height
            found.append(
                Box(box.x, box.y + along, depth, length) if upright else Box(box.x + along, box.y, length, depth)
            )
            along += length
        if box.width >= box.height:
            box = Box(box.x + depth, box.y, max(0.0, box.width - depth), box.height)
        else:
            box = Box(box.x, box.y + depth, box.width, max(0.0, box.height - depth))
    return found


def cells(box: Box, count: int) -> list[Box]:
    """``count`` rectangles of equal area that fill the box."""
    rows = max(1, min(count, round(sqrt(count * box.height / max(box.width, 1e-9)))))
    found, y = [], box.y
    for row in range(rows):
        here = count // rows + (row < count % rows)
        height, width = box.height * here / count, box.width / here
        found += [Box(box.x + width * at, y, width, height) for at in range(here)]
        y += height
    return found


def _cluster_parts(chip: Chip, areas: Areas[float]) -> list[Part]:
    """The components of a chip of clusters: spare clusters are built, and a die may be larger than its parts."""
    of, units, (built, _) = chip.clusters, chip.vectors, chip.built.clusters
    lanes = f"{units.lanes} lanes, registers {show(units.register_bytes, 'B')}"
    empty, sites = (die_mm2(chip) or 0.0) - areas.total, round(on_die(chip.hbm.stacks, chip.built.hbm))
    stacks, memory = f"{chip.hbm.stacks} stacks, {show(chip.hbm.size_bytes, 'B')}", chip.hbm.bandwidth_bytes_per_s
    found = [
        Part("arrays", areas.arrays, "tensor", built * of.arrays, f"{of.rows} x {of.columns}"),
        Part("lanes and control of a cluster", areas.vector, "vector", built, lanes),
        Part("buffers of a cluster", areas.buffers, "buffer", built, show(of.operand_bytes, "B")),
        Part("global buffer", areas.global_buffer, "buffer", 1, show(chip.global_buffer.size_bytes, "B")),
        Part("on-chip network", areas.network, "network", 1, f"ports of {of.port_bytes_per_cycle:g} bytes a cycle"),
        Part("HBM interface", areas.hbm, "hbm", max(1, sites), f"{stacks} at {show(memory, 'B/s')}"),
        Part("link interface", areas.links, "links", 1, f"{show(chip.links.bandwidth_bytes_per_s, 'B/s')} one way"),
        Part("uncore", areas.uncore, "other", 1, "host interface, clocks, test"),
        Part("empty", empty, "other", 1, "so that the HBM stacks have die edge"),
    ]
    return sorted((part for part in found if part.area_mm2 > 1e-9), key=lambda part: -part.area_mm2)


def parts_of(chip: Chip) -> list[Part]:
    """The components of a chip that names a technology, largest first; cores have their buffers with them."""
    areas, tensor, vector = chip_areas(chip), chip.clusters, chip.vectors
    if chip.process is None or areas is None:
        raise AssertionError(f"{chip.name} names no technology")
    if chip.of_clusters:
        return _cluster_parts(chip, areas)
    buffer_mm2 = float(chip.process.area.core_buffer.at(tensor.operand_bytes))
    tensor_buffers = on_die(float(tensor.count), chip.built.clusters) * buffer_mm2
    vector_buffers = areas.buffers - tensor_buffers
    found = [
        Part(
            "tensor cores",
            areas.arrays + tensor_buffers,
            "tensor",
            tensor.count,
            f"{tensor.rows} x {tensor.columns}, buffer {show(tensor.operand_bytes, 'B')}",
        ),
        Part(
            "vector cores",
            areas.vector + vector_buffers,
            "vector",
            vector.count,
            f"{vector.lanes} lanes, buffer {show(vector.register_bytes, 'B')}",
        ),
        Part(
            "global buffer",
            areas.global_buffer,
            "buffer",
            1,
            f"{show(chip.global_buffer.size_bytes, 'B')} at {show(chip.global_bytes_per_s, 'B/s')}",
        ),
        Part("on-chip network", areas.network, "network", 1, "joins cores and global buffer"),
        Part(
            "HBM interface",
            areas.hbm,
            "hbm",
            1,
            f"{show(chip.hbm.size_bytes, 'B')} at {show(chip.hbm.bandwidth_bytes_per_s, 'B/s')}",
        ),
        Part(
            "link interface",
            areas.links,
            "links",
            1,
            f"{show(chip.links.bandwidth_bytes_per_s, 'B/s')} one way",
        ),
        Part("other", areas.uncore, "other", 1, "control, clocks, test, spare"),
    ]
    return sorted((part for part in found if part.area_mm2 > 0), key=lambda part: -part.area_mm2)


@dataclass(frozen=True, slots=True)
class Shape:
    """A rectangle of the drawing, its colour, and what it is."""

    x: float
    y: float
    width: float
    height: float
    colour: str
    words: str


@dataclass(frozen=True, slots=True)
class Outline:
    """A square of another area, drawn to the same scale from the same corner."""

    name: str
    side: float
    known: bool


@dataclass(frozen=True, slots=True)
class DieRow:
    """A component in the table."""

    colour: str
    name: str
    about: str
    area: str
    share: str


@dataclass(frozen=True, slots=True)
class DieView:
    """A chip to scale: everything in a square of SIDE, the die from its lower left corner."""

    shapes: tuple[Shape, ...]
    side: float
    outlines: tuple[Outline, ...]
    label: str
    rows: tuple[DieRow, ...]
    total: str


def _shape(box: Box, part: Part, words: str, factor: float, moved: float) -> Shape:
    gap = min(0.25, box.width / 10, box.height / 10)
    at = ((box.x + gap / 2) * factor, (box.y + gap / 2) * factor + moved)
    return Shape(*at, (box.width - gap) * factor, (box.height - gap) * factor, part.colour, words)


def die_view(chip: Chip, others: Sequence[tuple[str, float, bool]] = ()) -> DieView:
    """A chip to scale beside the outlines of other areas: (name, mm2, whether it is a die that was built)."""
    parts = parts_of(chip)
    total = sum(part.area_mm2 for part in parts)
    beside = [(name, area, known) for name, area, known in others if total / MOST_BESIDE <= area <= total * MOST_BESIDE]
    most = max([total, *(area for _, area, _ in beside)])
    factor = sqrt(total / most)
    moved = SIDE * (1 - factor)
    shapes = []
    for part, box in zip(parts, treemap([p.area_mm2 for p in parts], Box(0, 0, SIDE, SIDE)), strict=True):
        count = part.count if part.count <= MOST_CELLS else 1
        each = f"{part.area_mm2 / count:.3g} mm² each, " if count > 1 else ""
        words = f"{part.name}: {each}{part.area_mm2:.4g} mm² in all; {part.about}"
        shapes += [_shape(cell, part, words, factor, moved) for cell in cells(box, count)]
    rows = [
        DieRow(
            part.colour,
            f"{f'{part.count} ' if part.count > 1 else ''}{part.name}",
            part.about,
            f"{part.area_mm2:.3g}",
            f"{part.area_mm2 / total:.0%}",
        )
        for part in parts
    ]
    outlines = tuple(Outline(f"{name} {area:.0f} mm²", SIDE * sqrt(area / most), known) for name, area, known in beside)
    label = ", ".join(f"{part.name} {part.area_mm2:.3g} mm²" for part in parts)
    return DieView(tuple(shapes), SIDE * factor, outlines, label, tuple(rows), f"{total:.0f} mm²")
