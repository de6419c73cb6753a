"""A chip of clusters as every command takes it: a :class:`phaze.hardware.chip.Chip` that carries its design.

The chip's plain fields (cores, buffers, bandwidths) are those of :func:`phaze.hardware.silicon.chip.chip_of` at the
clock that its power limit lets it hold, so what asks for a peak, a memory or a link finds it. Cost, area, power and
price come from the design: the accelerator and the nodes of its dies.
"""

from dataclasses import dataclass, fields, replace
from typing import Any

from phaze.documents import Reader
from phaze.errors import InputError
from phaze.files import is_path, read_text
from phaze.hardware.area import Areas, areas_of, edge_areas, first_chip
from phaze.hardware.chip import Chip
from phaze.hardware.columns import columns_of
from phaze.hardware.power import ClockPower, clock_power, cycle_energy, first_power, held_clocks, power_at, refusal
from phaze.hardware.silicon.chip import UNMEASURED, Accelerator, accelerator_of, chip_of
from phaze.hardware.silicon.files import CLUSTERS_FIRST, AcceleratorFile, read_chip
from phaze.hardware.technology import EnergyTable, Technology
from phaze.hardware.technology_files import load_node, node_names


@dataclass(frozen=True, slots=True)
class ClusterDesign:
    """An accelerator and the nodes of its dies; None where it names no technology.

    ``software_of``: the process whose generation of chips a stack's software share is taken from; None: its own.
    """

    accelerator: Accelerator
    node: Technology | None
    base_node: Technology | None = None
    software_of: str | None = None

    @property
    def areas(self) -> Areas[float] | None:
        """Area by part."""
        if self.node is None:
            return None
        chips = columns_of([self.accelerator], self.node)
        return first_chip(areas_of(chips, self.node, self.accelerator.built, self.base_node))

    @property
    def clocked(self) -> "ClockedChip | None":
        """Its power and the clock that it holds; None where it names no technology."""
        return None if self.node is None else _clocked(self.accelerator, self.node, self.base_node)

    @property
    def power(self) -> ClockPower[float] | None:
        """What sets the clock."""
        clocked = self.clocked
        return None if clocked is None else clocked.power

    @property
    def held_hz(self) -> float:
        """The clock that the power limit allows; without a node the rated one."""
        clocked = self.clocked
        return self.accelerator.clock_hz if clocked is None else clocked.held_hz

    @property
    def held_w(self) -> float | None:
        """Watts at the clock held, the greater of a large product and a vector operator."""
        clocked = self.clocked
        return None if clocked is None else clocked.held_w

    @property
    def held_parts_w(self) -> dict[str, float]:
        """Watts of a large product at the clock held, by part; none where there is no node."""
        clocked = self.clocked
        return {} if clocked is None else clocked.parts_w

    @property
    def die_mm2(self) -> float | None:
        """All dies, with what stays empty so that the stacks have edge; dies that exist have the edge they need."""
        areas, built, stacks = self.areas, self.accelerator.built, self.accelerator.hbm.stacks
        if areas is None:
            return None
        # HBM and link interfaces lie on the base dies, or on all.
        alone = (built.base_dies or built.dies) == 1
        return max(areas.total, float(edge_areas(stacks))) if alone and stacks else areas.total


@dataclass(frozen=True, slots=True)
class ClockedChip:
    """Area, power and clock of one chip of clusters; ``parts_w``: of a large product at the clock held."""

    areas: Areas[float]
    power: ClockPower[float]
    held_hz: float
    held_w: float
    parts_w: dict[str, float]


def _clocked(chip: Accelerator, node: Technology, base_node: Technology | None) -> ClockedChip:
    columns = columns_of([chip], node)
    areas = areas_of(columns, node, chip.built, base_node)
    power = clock_power(columns, node, areas)
    held = held_clocks(power, node, columns.clock_hz, columns.limit_w)
    clock, volts, cycle = float(held[0]), float(node.voltage.at(held)[0]), cycle_energy(columns, node, areas)
    scale, each = clock * volts * volts, first_power(power)
    parts = {field.name: scale * float(getattr(cycle, field.name)[0]) for field in fields(cycle)}
    parts |= {"hbm": each.product_fixed_w - each.idle_w, "idle": each.idle_w}
    return ClockedChip(first_chip(areas), each, clock, float(power_at(power, node, held)[0]), parts)


@dataclass(frozen=True, slots=True)
class NodeEnergy:
    """The energies of a node as a search asks for them; links are in the idle power, for SerDes never sleep."""

    node: Technology

    @property
    def hbm_j_per_byte(self) -> float:
        return self.node.energy.hbm_j_per_byte

    @property
    def link_j_per_byte(self) -> float:
        return 0.0


EnergyModel = EnergyTable | NodeEnergy


def designed(accelerator: Accelerator, node: Technology | None, base_node: Technology | None = None) -> Chip:
    """The chip of a design, at the clock that it holds."""
    design = ClusterDesign(accelerator, node, base_node)
    return replace(chip_of(accelerator, design.held_hz), technology=accelerator.technology, clusters=design)


def changed_chip(
    chip: Chip,
    hbm_bytes: int | None = None,
    hbm_bytes_per_s: float | None = None,
    global_bytes_per_s: float | None = None,
    link_bytes_per_s: float | None = None,
    clock_hz: float | None = None,
) -> Chip:
    """The chip with another memory, bandwidth or clock, of cores or of clusters; area and limits stay as they were."""
    clock, hbm, links = clock_hz or chip.clock_hz, chip.hbm, chip.links
    size, rate = hbm_bytes or hbm.size_bytes, hbm_bytes_per_s or hbm.bandwidth_bytes_per_s
    shared_s = global_bytes_per_s or chip.global_buffer.bandwidth_bytes_per_s
    links_s, design = link_bytes_per_s or links.bandwidth_bytes_per_s, chip.clusters
    if design is not None:
        own = design.accelerator
        width = own.global_buffer.bytes_per_cycle if global_bytes_per_s is None else shared_s / clock
        own = replace(
            own,
            hbm=replace(own.hbm, size_bytes=size, bandwidth_bytes_per_s=rate),
            global_buffer=replace(own.global_buffer, bytes_per_cycle=width),
            links=replace(own.links, bandwidth_bytes_per_s=links_s),
        )
        shared_s, design = width * clock, replace(design, accelerator=own)
    return replace(
        chip,
        clock_hz=clock,
        hbm=replace(hbm, size_bytes=size, bandwidth_bytes_per_s=rate),
        global_buffer=replace(chip.global_buffer, bandwidth_bytes_per_s=shared_s),
        links=replace(links, bandwidth_bytes_per_s=links_s),
        clusters=design,
    )


def clusters_document(design: ClusterDesign) -> dict[str, Any]:
    """What a chip of clusters has beside the fields of a chip of cores; ``clock_hz`` is the most that it may run."""
    chip, own = design.accelerator, design.accelerator.clusters
    return {
        "count": own.count,
        "arrays": own.arrays,
        "operand_bytes": own.operand_bytes,
        "register_bytes": own.register_bytes,
        "port_bytes_per_cycle": own.port_bytes_per_cycle,
        "global_bytes_per_cycle": chip.global_buffer.bytes_per_cycle,
        "hbm_stacks": chip.hbm.stacks,
        "built": chip.built.clusters,
        "die_mm2": design.die_mm2,
        "clock_hz": chip.clock_hz,
        "sustained_w": chip.sustained_w,
    }


def _node(name: str | None, reader: Reader) -> Technology | None:
    """The node that a chip names, where there is one of this model."""
    return load_node(name, reader) if name is not None and (is_path(name) or name in node_names()) else None


def load_cluster_chip(text: str, reader: Reader = read_text) -> Chip:
    """A chip by preset name or path as a chip of clusters; one of version 1 becomes clusters."""
    file = read_chip(text, reader, CLUSTERS_FIRST)
    if isinstance(file, AcceleratorFile):
        return chip_in(file, reader)
    found = accelerator_of(file.value())
    return replace(designed(found, _node(found.technology, reader)), rated_hz=found.clock_hz)


def without_measurements(chip: Chip) -> Chip:
    """The chip as a search prices it: nothing that was measured of it counts."""
    design = chip.clusters
    if design is not None:
        design = replace(design, accelerator=replace(design.accelerator, measured=UNMEASURED))
    return replace(chip, calibration=None, clusters=design)


def chip_in(file: AcceleratorFile, reader: Reader = read_text) -> Chip:
    """The chip of a checked file, with what was measured of it."""
    own, names = file.value(), (file.technology, file.silicon.base_technology)
    node, base_node = (None if name is None else load_node(name, reader) for name in names)
    own = own if node is None else replace(own, technology=node.name)  # a file's process by its name
    design = ClusterDesign(own, node, base_node)
    held_hz, power = design.held_hz, design.power
    refused = None if power is None else refusal(power, own, held_hz)
    if refused is not None:
        raise InputError(f"{own.name}: power.sustained", refused, "allow more power or make it smaller")
    chip = replace(chip_of(own, held_hz), technology=own.technology, clusters=design, rated_hz=own.clock_hz)
    return replace(chip, calibration=own.measured.calibration)
