"""The constants of one chip, with the clock that was measured on it.

    clock = rate x cycles(m, n, k) / (2 m n k), at most the rated clock

for a measured rate of a product m x n x k, with its cycles on arrays, ports and global buffer and
HBM infinitely fast (:mod:`phaze.cost.gemm`): the least clock at which the arrays reach that rate;
rates are measured over many products in a row, whose launches overlap. A product alone is priced at
the measured ``clock`` where the file has one, work queued in training at that of the rate; each
takes the other's where it has none, and without both the clock is the one that the power limit
allows. A search asks for none of this (:func:`phaze.hardware.converted.without_measurements`).
"""

from dataclasses import replace
from math import inf

from phaze.cost.mapped import part_of
from phaze.cost.mapping import product
from phaze.cost.products import map_product
from phaze.hardware.calibration import IDEAL, Basis, Constants, Load, constants_of
from phaze.hardware.chip import Chip


def rate_clock_hz(chip: Chip) -> float | None:
    """The clock at which the chip reaches its measured rate, None where none was measured."""
    said, rated = chip.measured, chip.rated_clock_hz
    if said.rate_flops is None or said.rate_shape is None:
        return None
    p = product(1, *said.rate_shape)
    part = part_of(chip, replace(IDEAL, clock_hz=rated))
    cycles = map_product(p, replace(part, hbm_bytes_per_s=inf)).time_s
    return min(rated, said.rate_flops * cycles / (2.0 * p.macs))


def measured_clock_hz(chip: Chip, load: Load) -> float | None:
    """The clock that was measured of operators alone or in training, None where nothing was."""
    if load == "alone" and chip.measured.clock_hz is not None:
        return chip.measured.clock_hz
    return rate_clock_hz(chip) or chip.measured.clock_hz


def chip_constants(chip: Chip, basis: Basis = "calibrated", load: Load = "alone") -> Constants:
    """The constants of a chip: measured ones where there are any and the basis asks for them."""
    constants = constants_of(chip.calibration, basis, load)
    if basis != "calibrated":
        return constants
    return replace(constants, clock_hz=measured_clock_hz(chip, load))
