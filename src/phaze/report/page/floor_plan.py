"""The chip drawn to scale by area: every rectangle has the area of its component, a core is one
rectangle.

Components are laid out by a squarified treemap: rows of rectangles are filled along the shorter
side of what is left as long as that brings them nearer to squares (:func:`treemap`). Cores of a
kind then share their rectangle in rows whose heights go by how many cores a row has, so that all
cores have the same area (:func:`cells`). Where components really lie is not modelled, and the die
is drawn as a square.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

from phaze.hardware.area import Areas
from phaze.hardware.chip import Chip
from phaze.hardware.chip_parts import on_die
from phaze.hardware.chip_record import states_clusters
from phaze.hardware.clocked import chip_areas, die_mm2
from phaze.report.drawings import Colour, FloorPlan, Outline, Shape
from phaze.report.sections import Cell, Swatch, Table
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
class FloorComponent:
    """A component: its area, its colour, how many equal cells it has, and what is in one."""

    name: str
    area_mm2: float
    colour: Colour
    count: int
    about: str

    @property
    def title(self) -> str:
        """Its name, with how many there are."""
        return f"{self.count} {self.name}" if self.count > 1 else self.name


@dataclass(frozen=True, slots=True)
class OtherDie:
    """Another area to draw a chip's against; ``variant`` is the baseline whose die it is."""

    name: str
    area_mm2: float
    variant: str = ""


def _worst(row: Sequence[float], side: float) -> float:
    """The longest aspect of rectangles of these areas in one row along ``side``."""
    total = sum(row)
    return max(max(side**2 * area / total**2, total**2 / (side**2 * area)) for area in row)


def treemap(areas: Sequence[float], box: Box) -> list[Box]:
    """A rectangle for each area, in order; the areas, in any unit, fill the box in proportion."""
    factor = box.area / sum(areas)
    left = [area * factor for area in areas]
    boxes: list[Box] = []
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
            boxes.append(
                Box(box.x, box.y + along, depth, length)
                if upright
                else Box(box.x + along, box.y, length, depth)
            )
            along += length
        if box.width >= box.height:
            box = Box(box.x + depth, box.y, max(0.0, box.width - depth), box.height)
        else:
            box = Box(box.x, box.y + depth, box.width, max(0.0, box.height - depth))
    return boxes


def cells(box: Box, count: int) -> list[Box]:
    """``count`` rectangles of equal area that fill the box."""
    rows = max(1, min(count, round(sqrt(count * box.height / max(box.width, 1e-9)))))
    boxes, y = list[Box](), box.y
    for row in range(rows):
        here = count // rows + (row < count % rows)
        height, width = box.height * here / count, box.width / here
        boxes += [Box(box.x + width * column, y, width, height) for column in range(here)]
        y += height
    return boxes


def _cluster_components(chip: Chip, areas: Areas[float]) -> list[FloorComponent]:
    """The components of a chip of clusters: spare clusters are built, and a die may be larger than
    its parts."""
    cluster, units, (built, _) = chip.clusters, chip.vectors, chip.built.clusters
    ports = f"ports of {cluster.port_bytes_per_cycle:g} bytes a cycle"
    links = f"{show(chip.links.bandwidth_bytes_per_s, 'B/s')} one way"
    lanes = f"{units.lanes} lanes, registers {show(units.register_bytes, 'B')}"
    empty, sites = (
        (die_mm2(chip) or 0.0) - areas.total,
        round(on_die(chip.hbm.stacks, chip.built.hbm)),
    )
    stacks, memory = (
        f"{chip.hbm.stacks} stacks, {show(chip.hbm.size_bytes, 'B')}",
        chip.hbm.bandwidth_bytes_per_s,
    )
    components = [
        FloorComponent(
            "arrays",
            areas.arrays,
            "tensor",
            built * cluster.arrays,
            f"{cluster.rows} x {cluster.columns}",
        ),
        FloorComponent("lanes and control of a cluster", areas.vector, "vector", built, lanes),
        FloorComponent(
            "buffers of a cluster", areas.buffers, "buffer", built, show(cluster.operand_bytes, "B")
        ),
        FloorComponent(
            "global buffer",
            areas.global_buffer,
            "buffer",
            1,
            show(chip.global_buffer.size_bytes, "B"),
        ),
        FloorComponent("on-chip network", areas.network, "network", 1, ports),
        FloorComponent(
            "HBM interface", areas.hbm, "hbm", max(1, sites), f"{stacks} at {show(memory, 'B/s')}"
        ),
        FloorComponent("link interface", areas.links, "links", 1, links),
        FloorComponent("uncore", areas.uncore, "other", 1, "host interface, clocks, test"),
        FloorComponent("empty", empty, "other", 1, "so that the HBM stacks have die edge"),
    ]
    return sorted(
        (part for part in components if part.area_mm2 > 1e-9), key=lambda part: -part.area_mm2
    )


def components_of(chip: Chip) -> list[FloorComponent]:
    """The components of a chip that names a technology, largest first; cores have their buffers
    with them."""
    areas, tensor, vector = chip_areas(chip), chip.clusters, chip.vectors
    if chip.process is None or areas is None:
        raise AssertionError(f"{chip.name} names no technology")
    if states_clusters(chip):
        return _cluster_components(chip, areas)
    buffer_mm2 = float(chip.process.area.core_buffer.at(tensor.operand_bytes))
    tensor_buffers = on_die(float(tensor.count), chip.built.clusters) * buffer_mm2
    vector_buffers = areas.buffers - tensor_buffers
    components = [
        FloorComponent(
            "tensor cores",
            areas.arrays + tensor_buffers,
            "tensor",
            tensor.count,
            f"{tensor.rows} x {tensor.columns}, buffer {show(tensor.operand_bytes, 'B')}",
        ),
        FloorComponent(
            "vector cores",
            areas.vector + vector_buffers,
            "vector",
            vector.count,
            f"{vector.lanes} lanes, buffer {show(vector.register_bytes, 'B')}",
        ),
        FloorComponent(
            "global buffer",
            areas.global_buffer,
            "buffer",
            1,
            f"{show(chip.global_buffer.size_bytes, 'B')} at {show(chip.global_bytes_per_s, 'B/s')}",
        ),
        FloorComponent(
            "on-chip network", areas.network, "network", 1, "joins cores and global buffer"
        ),
        FloorComponent(
            "HBM interface",
            areas.hbm,
            "hbm",
            1,
            f"{show(chip.hbm.size_bytes, 'B')} at {show(chip.hbm.bandwidth_bytes_per_s, 'B/s')}",
        ),
        FloorComponent(
            "link interface",
            areas.links,
            "links",
            1,
            f"{show(chip.links.bandwidth_bytes_per_s, 'B/s')} one way",
        ),
        FloorComponent("other", areas.uncore, "other", 1, "control, clocks, test, spare"),
    ]
    return sorted(
        (part for part in components if part.area_mm2 > 0), key=lambda part: -part.area_mm2
    )


def _shape(box: Box, component: FloorComponent, text: str, factor: float, moved: float) -> Shape:
    gap = min(0.25, box.width / 10, box.height / 10)
    x, y = (box.x + gap / 2) * factor, (box.y + gap / 2) * factor + moved
    return Shape(
        x, y, (box.width - gap) * factor, (box.height - gap) * factor, component.colour, text
    )


def floor_plan(chip: Chip, others: Sequence[OtherDie]) -> FloorPlan:
    """A chip to scale within the outlines of other areas; those that would dwarf it are not
    drawn."""
    components = components_of(chip)
    total = sum(component.area_mm2 for component in components)
    drawn = [die for die in others if total / MOST_BESIDE <= die.area_mm2 <= total * MOST_BESIDE]
    most = max([total, *(die.area_mm2 for die in drawn)])
    factor = sqrt(total / most)
    boxes = treemap([component.area_mm2 for component in components], Box(0, 0, SIDE, SIDE))
    shapes = []
    for component, box in zip(components, boxes, strict=True):
        count = component.count if component.count <= MOST_CELLS else 1
        each = f"{component.area_mm2 / count:.3g} mm² each, " if count > 1 else ""
        text = f"{component.name}: {each}{component.area_mm2:.4g} mm² in all; {component.about}"
        shapes += [
            _shape(cell, component, text, factor, SIDE * (1 - factor)) for cell in cells(box, count)
        ]
    outlines = [
        Outline(
            f"{die.name} {die.area_mm2:.0f} mm²",
            SIDE * sqrt(die.area_mm2 / most),
            bool(die.variant),
            die.variant,
        )
        for die in drawn
    ]
    text = ", ".join(f"{component.name} {component.area_mm2:.3g} mm²" for component in components)
    legend = [(part.colour, f"{part.title} {part.area_mm2:.3g} mm²") for part in components]
    return FloorPlan(shapes, SIDE * factor, outlines, text, legend, "baseline")


def components_table(chip: Chip) -> Table:
    """Every component with its area and share."""
    components = components_of(chip)
    total = sum(component.area_mm2 for component in components)
    rows: list[Sequence[Cell]] = [
        (
            Swatch(part.title, part.colour),
            part.about,
            f"{part.area_mm2:.3g}",
            f"{part.area_mm2 / total:.0%}",
        )
        for part in components
    ]
    return Table(("Component", "One of them", "mm²", "Share"), rows, texts=2)
