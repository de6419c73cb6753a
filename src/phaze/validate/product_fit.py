"""Constants of a chip of clusters, fitted to measured products of 16 and of 8 bits.

Products alone of 16 bits give its clock, the share of HBM that they reach and their start-up
(:func:`phaze.cost.fitting.fit_chip`). Those of 8 bits are compared with what follows from these and
from the gain that the chip's file has; where there are no others they give the gain, the share and
the start-up, at the clock that the file has. Products of training give what a stack leaves of the
rate of single ones: the median over products of more than 0.1 TFLOP of our seconds at the full rate
over theirs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from phaze.cost.chip_set import chip_set
from phaze.cost.fitting import (
    CLUSTER_BOUNDS,
    FOLDS,
    Measured,
    descend,
    errors_of,
    fit_chip,
    loss_of,
    low_product,
    measured_product,
    predicted_s,
)
from phaze.cost.mapping import product
from phaze.cost.measured_clock import chip_constants
from phaze.cost.work import Work
from phaze.hardware.calibration import Constants, format_rates
from phaze.hardware.chip import Chip
from phaze.hardware.formats import RECIPES
from phaze.validate.row_file import ProductRows

LARGE_FLOP = 1e11
"""Products of training that software leaves a share of; smaller ones start up longer than they
run."""
GAINS = tuple(round(1.0 + 0.05 * i, 2) for i in range(21))
"""Gains of 8 over 16 bits that are tried: what arrays of any chip have is from 1 to 2."""
FINEST = 0.01
"""Of the range of a constant: the last step where gains are compared."""


@dataclass(frozen=True, slots=True)
class ProductFit:
    """Constants by field, and absolute errors of every row: before, fitted, held back."""

    constants: Mapping[str, float]
    before: tuple[float, ...]
    fitted: tuple[float, ...]
    held_back: tuple[float, ...]


def measured_rows(table: ProductRows) -> list[Measured]:
    """The rows of a table."""
    found = []
    for *sizes, seconds in table.rows:
        batch, m, n, k = map(int, sizes)
        if table.precision == "bf16":
            found.append(measured_product(product(batch, m, n, k), seconds))
        else:
            found.append(
                Measured(
                    Work("tensor", (low_product(batch, m, n, k),)), seconds, f"{batch}x{m}x{n}x{k}"
                )
            )
    return found


def constants_in(chip: Chip, precision: str) -> Constants:
    """What products alone of a precision are priced with."""
    recipe = RECIPES["fp8-tensorwise"] if precision == "fp8" else None
    rates = format_rates(chip.calibration, chip.formats, "calibrated", recipe)
    return replace(chip_constants(chip), rates=rates)


def _absolute(rows: Sequence[Measured], chip: Chip, constants: Constants) -> tuple[float, ...]:
    return tuple(abs(error) for error in errors_of(rows, chip, constants))


def fit_plain(rows: Sequence[Measured], chip: Chip) -> ProductFit:
    """Products of 16 bits."""
    found = fit_chip(rows, chip)
    said = found.calibration
    constants = {
        "clock_hz": found.clock_hz,
        "hbm_share": said.hbm_share,
        "start_up_s": said.start_up_s,
    }
    values = {name: value for name, value in constants.items() if value is not None}
    before = chip_constants(chip)
    fitted = replace(
        before,
        clock_hz=found.clock_hz,
        hbm_share=values.get("hbm_share", before.hbm_share),
        start_up_s=values.get("start_up_s", before.start_up_s),
    )
    return ProductFit(
        values, _absolute(rows, chip, before), _absolute(rows, chip, fitted), found.held_back
    )


def _low(rows: Sequence[Measured], chip: Chip, begun: Constants) -> Constants:
    """The best gain, each with its own share of HBM and start-up."""
    chips, found = chip_set([chip]), list[tuple[float, Constants]]()
    for gain in GAINS:
        best = descend(
            lambda c: loss_of(rows, chips, c),
            replace(begun, rates=((8, gain),)),
            CLUSTER_BOUNDS,
            FINEST,
        )
        found.append((loss_of(rows, chips, best), best))
    return min(found, key=lambda pair: pair[0])[1]


def fit_low(rows: Sequence[Measured], chip: Chip) -> ProductFit:
    """Products of 8 bits of a chip without rows of 16."""
    begun = constants_in(chip, "fp8")
    best = _low(rows, chip, begun)
    constants = {
        "fp8_gain": float(f"{best.rates[0][1]:.3g}"),
        "hbm_share": float(f"{best.hbm_share:.3g}"),
        "start_up_s": float(f"{best.start_up_s:.3g}"),
    }
    held: list[float] = []
    for fold in range(FOLDS):
        rest = [row for i, row in enumerate(rows) if i % FOLDS != fold]
        out = [row for i, row in enumerate(rows) if i % FOLDS == fold]
        held += _absolute(out, chip, _low(rest, chip, begun)) if out and rest else ()
    return ProductFit(
        constants, _absolute(rows, chip, begun), _absolute(rows, chip, best), tuple(held)
    )


def fit_share(rows: Sequence[Measured], chip: Chip) -> float:
    """What the stack of products of training leaves of the rate of single ones."""
    large = [row for row in rows if row.work.flops > LARGE_FLOP]
    ours = predicted_s(large, chip_set([chip]), chip_constants(chip, load="training"))
    return float(f"{median(a / row.seconds for a, row in zip(ours, large, strict=True)):.2g}")
