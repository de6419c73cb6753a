"""Area, power and the clock that its power limit lets one chip hold (:mod:`phaze.hardware.area`,
``power``).

A chip of clusters runs at the clock held; one without a process, or whose process does not set the
clock, at the rated.
"""

from dataclasses import dataclass, fields

from phaze.hardware.area import Areas, areas_of, edge_areas, first_chip
from phaze.hardware.chip import Chip
from phaze.hardware.columns import columns_of
from phaze.hardware.power import (
    LEAST_SHARE,
    ClockPower,
    FullRate,
    clock_power,
    cycle_energy,
    first_power,
    full_rate,
    held_clocks,
    power_at,
)
from phaze.values import replace


@dataclass(frozen=True, slots=True)
class ClockedChip:
    """Area, power and clock of one chip of clusters; ``held_w``: the greater of a large product and
    a vector operator, ``parts_w``: of a large product, both at the clock held."""

    areas: Areas[float]
    power: ClockPower[float]
    held_hz: float
    held_w: float
    parts_w: dict[str, float]


def clocked(chip: Chip) -> ClockedChip | None:
    """Its power and the clock that it holds; None where no process sets its clock."""
    node = chip.process
    if node is None or not node.sets_clock:
        return None
    columns = columns_of([chip])
    areas = areas_of(columns, node, chip.built, chip.base_process)
    power = clock_power(columns, node, areas)
    held = held_clocks(power, node, columns.clock_hz, columns.limit_w)
    clock, volts, cycle = (
        float(held[0]),
        float(node.voltage.at(held)[0]),
        cycle_energy(columns, node, areas),
    )
    scale, each = clock * volts * volts, first_power(power)
    parts = {field.name: scale * float(getattr(cycle, field.name)[0]) for field in fields(cycle)}
    parts |= {"hbm": each.product_fixed_w - each.idle_w, "idle": each.idle_w}
    return ClockedChip(first_chip(areas), each, clock, float(power_at(power, node, held)[0]), parts)


def at_held_clock(chip: Chip) -> Chip:
    """The chip at the clock that its power limit allows; at the rated one where nothing sets it."""
    figures = clocked(chip)
    return chip if figures is None else replace(chip, clock_hz=figures.held_hz)


def refusal(chip: Chip) -> str | None:
    """Why the chip cannot run under its power limit; None where it can."""
    figures, limit = clocked(chip), chip.sustained_w
    if figures is None:
        return None
    fixed = max(figures.power.product_fixed_w, figures.power.vector_fixed_w)
    if limit is not None and fixed > limit:
        return f"leakage, HBM and links alone draw {fixed:.0f} W of {limit:.0f} W"
    if figures.held_hz < LEAST_SHARE * chip.rated_clock_hz:
        return (
            f"it would hold {figures.held_hz / 1e9:.2f} of {chip.rated_clock_hz / 1e9:.2f} "
            "GHz, below half"
        )
    return None


def chip_areas(chip: Chip) -> Areas[float] | None:
    """Area by part; None where no process was read with it."""
    if chip.process is None:
        return None
    return first_chip(areas_of(columns_of([chip]), chip.process, chip.built, chip.base_process))


def die_mm2(chip: Chip) -> float | None:
    """All dies, with what stays empty so that the stacks have edge; dies that exist have the edge
    they need."""
    areas, built, stacks = chip_areas(chip), chip.built, chip.hbm.stacks
    if areas is None:
        return None
    # HBM and link interfaces lie on the base dies, or on all.
    alone = (built.base_dies or built.dies) == 1
    return max(areas.total, float(edge_areas(stacks))) if alone and stacks else areas.total


def full_rate_power(chip: Chip) -> FullRate[float]:
    """Every component of a chip of cores at its full rate."""
    if chip.process is None:
        raise AssertionError(f"{chip.name} names no process")
    columns = columns_of([chip])
    watts = full_rate(columns, chip.process, areas_of(columns, chip.process).total)
    return FullRate(*(float(getattr(watts, field.name)[0]) for field in fields(watts)))
