"""A chip with single figures changed."""

from phaze.hardware.chip import Chip
from phaze.hardware.chip_measurements import UNMEASURED
from phaze.values import replace


def without_measurements(chip: Chip) -> Chip:
    """The chip as a search prices it: nothing that was measured of it counts."""
    return replace(chip, calibration=None, measured=UNMEASURED)


def changed_chip(
    chip: Chip,
    hbm_bytes: int | None = None,
    hbm_bytes_per_s: float | None = None,
    global_bytes_per_s: float | None = None,
    link_bytes_per_s: float | None = None,
    clock_hz: float | None = None,
) -> Chip:
    """The chip with another memory, bandwidth or clock; area and limits stay as they were."""
    clock, hbm, links, shared = clock_hz or chip.clock_hz, chip.hbm, chip.links, chip.global_buffer
    rated = chip.rated_hz if chip.power_sets_clock else clock
    if global_bytes_per_s is not None:
        # Stated at the clock that the chip runs at, kept at the rated one.
        at_rated = global_bytes_per_s if clock == rated else global_bytes_per_s / clock * rated
        shared = replace(shared, bandwidth_bytes_per_s=at_rated)
    return replace(
        chip,
        stated_hz=rated,
        clock_hz=clock,
        hbm=replace(
            hbm,
            size_bytes=hbm_bytes or hbm.size_bytes,
            bandwidth_bytes_per_s=hbm_bytes_per_s or hbm.bandwidth_bytes_per_s,
        ),
        global_buffer=shared,
        links=replace(links, bandwidth_bytes_per_s=link_bytes_per_s or links.bandwidth_bytes_per_s),
    )
