"""Chips for tests: bundled ones as their files state them, and their figures in a given process."""

from phaze.cost.mapped import part_of
from phaze.cost.mapping import TensorPart
from phaze.hardware.area import Areas
from phaze.hardware.calibration import IDEAL
from phaze.hardware.chip import Chip
from phaze.hardware.clocked import chip_areas
from phaze.hardware.library import chip_keys
from phaze.hardware.library import stated_chip as chip_stated_in
from phaze.hardware.technology import Technology
from phaze.values import replace


def stated_chip(name: str) -> Chip:
    """A bundled chip or a file's at its rated clock, its process not read."""
    return chip_stated_in(*chip_keys(name))


def areas_in(technology: Technology, chip: Chip) -> Areas[float]:
    """The areas of a chip in a process."""
    areas = chip_areas(replace(chip, process=technology))
    assert areas is not None
    return areas


def part_at(chip: Chip, clock_hz: float, hbm_share: float = 1.0) -> TensorPart:
    """The tensor part of all of a chip at a clock."""
    return part_of(chip, replace(IDEAL, clock_hz=clock_hz, hbm_share=hbm_share))
