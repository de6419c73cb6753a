"""Fit a chip's few constants to measured operators, with cross-validated errors.

Measurements are products and vector operators with seconds. The constants x minimise

    loss(x) = mean over rows of | ln(predicted(x) / measured) |

by descent over one constant after the other on a grid that is halved around the best value
(:func:`descend`). Products fit ``matrix_share``, ``hbm_share``, ``start_up_s``, ``block_cycles``,
on a chip of clusters, whose arrays have no share and no block cycles of their own, ``clock_hz``,
``hbm_share``, ``start_up_s``; vector operators ``vector_hbm_share``, ``vector_start_up_s``,
``kept_row_bytes``. Cross-validation: row i belongs to fold i mod 5; every fold is predicted with
constants fitted on the other four, so no row helps to predict itself.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from phaze.cost.chip_set import ChipSet, chip_set
from phaze.cost.estimate import vector_work
from phaze.cost.mapping import Product
from phaze.cost.measured_clock import chip_constants
from phaze.cost.table import cost_works
from phaze.cost.vector import VectorWork
from phaze.cost.work import Work
from phaze.errors import InputError
from phaze.hardware.calibration import DATASHEET, Calibration, Constants, constants_of
from phaze.hardware.chip import Chip
from phaze.values import replace

FOLDS = 5
"""Rows that are held back in turn: a fifth each time."""
LEAST_ROWS = 4
"""With fewer rows than constants a fit says nothing."""
Bounds = tuple[float, float]
PRODUCT_BOUNDS: tuple[tuple[str, Bounds], ...] = (
    ("matrix_share", (0.05, 1.0)),
    ("hbm_share", (0.05, 1.0)),
    ("start_up_s", (0.0, 1e-4)),
    ("block_cycles", (0.0, 400.0)),
)
CLUSTER_BOUNDS = tuple(pair for pair in PRODUCT_BOUNDS if pair[0] in ("hbm_share", "start_up_s"))
LEAST_CLOCK = 0.3
"""Of its rated clock that a chip of clusters is thought to hold."""
VECTOR_BOUNDS: tuple[tuple[str, Bounds], ...] = (
    ("vector_hbm_share", (0.05, 1.0)),
    ("vector_start_up_s", (0.0, 1e-4)),
)


@dataclass(frozen=True, slots=True)
class Measured:
    """One measured operator: a product, or a vector operator by kind."""

    work: Work
    seconds: float
    label: str


def measured_product(p: Product, seconds: float) -> Measured:
    """A measured product."""
    return Measured(Work("tensor", (p,)), seconds, f"gemm {p.batch}x{p.m}x{p.n}x{p.k}")


def low_product(batch: int, m: int, n: int, k: int) -> Product:
    """A product of operands of 8 bits with results of 16."""
    moved = (1.0 * batch * m * k, 1.0 * batch * k * n, 2.0 * batch * m * n)
    return Product(batch, m, n, k, 2, *moved, bits=8)


def measured_vector(kind: str, elements: int, rows: int, seconds: float) -> Measured:
    """A measured vector operator."""
    work: VectorWork = vector_work(kind, elements, rows)
    return Measured(Work("vector", vector=work), seconds, f"{kind} {elements}:{rows}")


@dataclass(frozen=True, slots=True)
class ChipFit:
    """Fitted constants, and median absolute errors: with the constants before, with these, and
    cross-validated.

    ``clock_hz``: of a chip of clusters whose products were measured; ``held_back``: absolute errors
    of those rows."""

    calibration: Calibration
    clock_hz: float | None
    rows: int
    before: float
    fitted: float
    validated: float
    held_back: tuple[float, ...] = ()


def predicted_s(rows: Sequence[Measured], chips: ChipSet, constants: Constants) -> list[float]:
    """Seconds of every row on the one chip of ``chips``."""
    return [
        float(x) for x in cost_works([row.work for row in rows], chips, constants).times_s()[:, 0]
    ]


def errors_of(rows: Sequence[Measured], chip: Chip, constants: Constants) -> list[float]:
    """Predicted over measured, less 1, for every row."""
    seconds = predicted_s(rows, chip_set([chip]), constants)
    return [p / row.seconds - 1 for p, row in zip(seconds, rows, strict=True)]


def loss_of(rows: Sequence[Measured], chips: ChipSet, constants: Constants) -> float:
    """The mean over rows of |ln(predicted / measured)|."""
    seconds = np.array(predicted_s(rows, chips, constants))
    return float(np.mean(np.abs(np.log(seconds / [row.seconds for row in rows]))))


def descend(
    loss: Callable[[Constants], float],
    start: Constants,
    bounds: Sequence[tuple[str, Bounds]],
    finest: float = 1e-3,
) -> Constants:
    """Coordinate descent: seven values around the best one of each constant, the reach halved after
    every round."""
    best, least, reach = start, loss(start), 1.0
    while reach > finest:
        for name, (low, high) in bounds:
            centre = getattr(best, name)
            for step in np.linspace(-0.5, 0.5, 7):
                value = float(np.clip(centre + reach * step * (high - low), low, high))
                changed: dict[str, Any] = {name: value}
                tried = replace(best, **changed)
                found = loss(tried)
                if found < least * (1 - 1e-12):
                    best, least = tried, found
        reach *= 0.5
    return best


def _fit_products(rows: Sequence[Measured], chip: Chip, start: Constants) -> Constants:
    chips, rated_hz = chip_set([chip]), chip.rated_clock_hz
    begun = replace(start, matrix_share=0.9, hbm_share=0.9, start_up_s=2e-5, block_cycles=60.0)
    bounds = PRODUCT_BOUNDS
    if not chip.lumped_share:
        begun = replace(begun, clock_hz=0.9 * rated_hz)
        bounds = (("clock_hz", (LEAST_CLOCK * rated_hz, rated_hz)), *CLUSTER_BOUNDS)
    return descend(lambda c: loss_of(rows, chips, c), begun, bounds)


def _fit_vectors(rows: Sequence[Measured], chip: Chip, start: Constants) -> Constants:
    chips = chip_set([chip])
    half = 0.5 * chip.vectors.register_bytes
    kept = [float(2**power) for power in range(10, 31, 2) if 2**power <= half] or [half]
    found = []
    for bytes_kept in (*kept, half):
        begun = replace(start, kept_row_bytes=bytes_kept, vector_start_up_s=1e-5)
        found.append(descend(lambda c: loss_of(rows, chips, c), begun, VECTOR_BOUNDS, finest=0.1))
    best = min(found, key=lambda c: loss_of(rows, chips, c))
    return descend(lambda c: loss_of(rows, chips, c), best, VECTOR_BOUNDS)


def _fit_all(rows: Sequence[Measured], chip: Chip, start: Constants) -> Constants:
    products = [row for row in rows if row.work.products]
    vectors = [row for row in rows if not row.work.products]
    found = replace(start, basis="calibrated")
    if len(products) >= LEAST_ROWS:
        found = _fit_products(products, chip, found)
    if len(vectors) >= LEAST_ROWS:
        found = _fit_vectors(vectors, chip, found)
    return found


def _rounded(value: float, digits: int = 3) -> float:
    return float(f"{value:.{digits}g}")


def _calibration(found: Constants, rows: Sequence[Measured], chip: Chip) -> Calibration:
    old = chip.calibration or Calibration()
    if sum(bool(row.work.products) for row in rows) >= LEAST_ROWS:
        old = replace(
            old, hbm_share=_rounded(found.hbm_share), start_up_s=_rounded(found.start_up_s)
        )
        if chip.lumped_share:
            share, cycles = _rounded(found.matrix_share), _rounded(found.block_cycles)
            old = replace(old, matrix_share=share, block_cycles=cycles)
    if sum(not row.work.products for row in rows) >= LEAST_ROWS:
        kept = found.kept_row_bytes
        old = replace(
            old,
            vector_hbm_share=_rounded(found.vector_hbm_share),
            vector_start_up_s=_rounded(found.vector_start_up_s),
            kept_row_bytes=None if kept is None else float(int(kept)),
        )
    return old


def fit_chip(rows: Sequence[Measured], chip: Chip) -> ChipFit:
    """The constants of ``chip`` that fit ``rows`` best, and how far they are off on rows they have
    not seen."""
    kinds = [
        sum(bool(row.work.products) for row in rows),
        sum(not row.work.products for row in rows),
    ]
    if max(kinds, default=0) < LEAST_ROWS:
        raise InputError(
            "measurements",
            f"{kinds[0]} products and {kinds[1]} vector operators",
            f"give {LEAST_ROWS} rows of a kind",
        )
    before = [abs(e) for e in errors_of(rows, chip, chip_constants(chip))]
    best = _fit_all(rows, chip, DATASHEET)
    calibration = _calibration(best, rows, chip)
    clock_hz = None if best.clock_hz is None else _rounded(best.clock_hz, 4)
    fitted = [
        abs(e) for e in errors_of(rows, chip, replace(constants_of(calibration), clock_hz=clock_hz))
    ]
    unseen: list[float] = []
    for fold in range(min(FOLDS, len(rows))):
        held = [row for i, row in enumerate(rows) if i % FOLDS == fold]
        rest = [row for i, row in enumerate(rows) if i % FOLDS != fold]
        unseen += [abs(e) for e in errors_of(held, chip, _fit_all(rest, chip, DATASHEET))]
    return ChipFit(
        calibration,
        clock_hz,
        len(rows),
        median(before),
        median(fitted),
        median(unseen),
        tuple(unseen),
    )
