"""Chips for tests: bundled ones as their files state them, and their figures in a given process."""

from dataclasses import replace

from phaze.cost.mapped import part_of
from phaze.cost.mapping import TensorPart
from phaze.hardware.area import Areas
from phaze.hardware.calibration import IDEAL
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import chip_areas
from phaze.hardware.library import read_chip
from phaze.hardware.technology import Technology


def stated_chip(name: str) -> Chip:
    """A bundled chip or a file's at its rated clock, its process not read."""
    return read_chip(name).value()


def areas_in(technology: Technology, chip: Chip) -> Areas[float]:
    """The areas of a chip in a process."""
    areas = chip_areas(replace(chip, process=technology))
    assert areas is not None
    return areas


def part_at(chip: Chip, clock_hz: float, hbm_share: float = 1.0) -> TensorPart:
    """The tensor part of all of a chip at a clock."""
    return part_of(chip, replace(IDEAL, clock_hz=clock_hz, hbm_share=hbm_share))
