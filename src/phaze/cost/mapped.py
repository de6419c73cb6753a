"""One product on one chip: its best mapping, and what bounds its time.

time              units of time of the mapping / units a second / software share
                  (:func:`mapped`)
arrays_alone_s    the same with memories and ports infinitely fast
arrays_at_peak_s  that without what a chip or its software was measured to lose, at the rated clock
"""

from dataclasses import replace
from math import inf

from phaze.cost.chip_set import timed_set
from phaze.cost.mapping import Product, ProductCost, TensorPart
from phaze.cost.parts import tensor_parts
from phaze.cost.products import map_product
from phaze.hardware.calibration import IDEAL, Constants
from phaze.hardware.chip import Chip


def part_of(chip: Chip, constants: Constants) -> TensorPart:
    """The tensor part of one chip, all of its cores or clusters."""
    return tensor_parts(timed_set(chip), constants)[0].part(0)


def _fast(part: TensorPart) -> TensorPart:
    return replace(
        part, buffer_bytes_per_s=inf, port_bytes_per_s=inf, global_bytes_per_s=inf,
        hbm_bytes_per_s=inf
    )  # fmt: skip


def hbm_bytes_per_s(chip: Chip, constants: Constants) -> float:
    """Bytes a second that products get from HBM."""
    return chip.hbm.bandwidth_bytes_per_s * constants.hbm_share


def mapped(p: Product, chip: Chip, constants: Constants) -> ProductCost:
    """The best mapping of a product that is not empty, on all of a chip."""
    part = part_of(chip, constants)
    return map_product(p, part).in_seconds(part.units_per_s * constants.software_share)


def arrays_alone_s(p: Product, chip: Chip, constants: Constants) -> float:
    """Seconds with memories and ports infinitely fast."""
    part = part_of(chip, constants)
    return map_product(p, _fast(part)).time_s / part.units_per_s / constants.software_share


def arrays_at_peak_s(p: Product, chip: Chip) -> float:
    """Seconds with memories infinitely fast and arrays that lose nothing but what does not fill
    them."""
    part = part_of(chip, replace(IDEAL, clock_hz=chip.rated_clock_hz))
    return map_product(p, replace(_fast(part), sustained_share=1.0)).time_s / part.units_per_s
