"""What accuracy was aimed at and what is reached, on runs that constants were fitted on and on the
same held back.

A mark is a statistic (median or mean of |ours / measured - 1|) over the stated runs of some sets,
all or those in 16 bits, without those whose network broke down. ``fitted``: priced with the bundled
constants. ``held_back``: with those of all runs but the ones of the same source and model
(:mod:`tools.fits.share_fit`); a run that nothing was fitted on is the same in both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp
from statistics import fmean, median
from typing import Any, Literal

from phaze.evaluate.memo import Memo
from phaze.hardware.library import load_stack
from phaze.validate.predict import predict
from phaze.validate.rows import MeasuredRun
from phaze.validate.sets import SETS, rows_of
from tools.fits.share_curves import Curve
from tools.fits.share_fit import Constants, Fits, Key
from tools.fits.sources import OPEN, left_out

Statistic = Literal["median", "mean"]


@dataclass(frozen=True, slots=True)
class Mark:
    """Runs, the statistic of their errors and what it should be at most; ``bias`` likewise, None:
    no aim."""

    name: str
    sets: tuple[str, ...]
    statistic: Statistic
    target: float
    bias: float | None = None
    free: bool = False


PLAIN_SETS = (
    "sc21", "korthikanti", "vtrain-multi", "vtrain-single", "mosaic-mpt", "megatron-b200",
    "nemo-h100", "nanotron-h100",
    "torchtitan", "maxtext-v5e", "maxtext-v5p", "maxtext-v5e-32b", "nemo-dense-h100", "grok-h100",
    "maxtext-h100",
    "mpt-h100", "torchtitan-h100",
)  # fmt: skip
"""Sets in 16 bits whose rows state their plan; of mpt-h100 four runs are in 8."""
MARKS = (
    Mark("Megatron-LM, SC 2021", ("sc21",), "mean", 0.015, free=True),
    Mark("Korthikanti, Table 5", ("korthikanti",), "mean", 0.011),
    Mark("vTrain over nodes", ("vtrain-multi",), "mean", 0.065),
    Mark("vTrain in a node", ("vtrain-single",), "mean", 0.07),
    Mark("MPT on H100", ("mpt-h100",), "median", 0.06),
    Mark("NeMo on H100, BF16", ("nemo-h100", "nemo-dense-h100"), "mean", 0.10),
    Mark("torchtitan", ("torchtitan", "torchtitan-h100", "torchtitan-h100-fp8"), "mean", 0.10),
    Mark("MaxText on v5e", ("maxtext-v5e", "maxtext-v5e-32b"), "median", 0.06),
    Mark("MaxText on v5p", ("maxtext-v5p",), "median", 0.06),
    Mark("all in BF16", PLAIN_SETS, "median", 0.06, bias=0.02),
)


@dataclass(frozen=True, slots=True)
class Spread:
    """Errors of some runs: median and mean of their absolute values, and their mean."""

    median: float
    mean: float
    bias: float


def spread(errors: Sequence[float]) -> Spread:
    """The figures of some errors."""
    off = [abs(error) for error in errors]
    return Spread(median(off), fmean(off), fmean(errors))


@dataclass(frozen=True, slots=True)
class Reached:
    """A mark and its runs: how many, how many of them constants were fitted on, and both errors."""

    mark: Mark
    runs: int
    speaking: int
    fitted: Spread
    held_back: Spread


@dataclass(frozen=True, slots=True)
class Fitted:
    """A stack on a generation: the bundled share, what its runs give, and both errors of them;
    ``at``: their bias at other shares."""

    stack: str
    generation: str
    bundled: float
    bundled_host_s: float
    constants: Constants
    fitted: Spread
    held_back: Spread
    at: tuple[tuple[float, float], ...]


AT = (0.72, 0.80, 0.88, 0.96)
"""Shares at which the bias of a stack's runs is shown."""


def errors_at(curves: Sequence[Curve], found: Constants) -> list[float]:
    """ours / measured - 1 of runs with some constants."""
    return [exp(curve.error(found.share, found.host_s)) - 1 for curve in curves]


def held_back_error(curve: Curve, fits: Fits) -> float:
    """The error of a run without those of its source and model."""
    return errors_at(
        [curve], fits.held_back((curve.stack, curve.generation), frozenset([curve.group]))
    )[0]


def fitted_stacks(fits: Fits, bundled: Mapping[Key, tuple[float, float]]) -> list[Fitted]:
    """Every stack that runs speak for; ``bundled``: its share and host time."""
    found = []
    for key, own in fits.speaking.items():
        constants = fits.of(key)
        assert constants is not None
        held = [held_back_error(curve, fits) for curve in own.curves]
        at = tuple((s, fmean(errors_at(own.curves, Constants(s, constants.host_s)))) for s in AT)
        errors = errors_at(own.curves, constants)
        found.append(Fitted(*key, *bundled[key], constants, spread(errors), spread(held), at))
    return found


def by_weight(curves: Sequence[Curve], family: str, weights: Sequence[float]) -> dict[float, float]:
    """The mean held-back error of a family's dated releases by what the release before counts
    for."""
    found = {}
    for weight in weights:
        fits = Fits(curves, weight)
        own = [
            c
            for (stack, _), each in fits.speaking.items()
            if stack.startswith(f"{family}-2")
            for c in each.curves
        ]
        dated = [curve for curve in own if "." in curve.stack]
        found[weight] = fmean(abs(held_back_error(curve, fits)) for curve in dated)
    return found


def _judged(mark: Mark) -> list[tuple[str, MeasuredRun]]:
    chosen = [(one.name, row) for one in SETS if one.name in mark.sets for row in rows_of(one)]
    plain = len(mark.sets) > len(SETS) // 2
    return [
        (name, row)
        for name, row in chosen
        if left_out(row) in ("", OPEN)
        and (mark.free or not row.free)
        and not (plain and row.run.get("precision", "bf16") != "bf16")
    ]


def reached(fits: Fits, bundled: Mapping[Key, tuple[float, float]], memo: Memo) -> list[Reached]:
    """Every mark, fitted and held back."""
    curves = {(c.of, c.id): c for own in fits.speaking.values() for c in own.curves}
    alone: dict[tuple[str, str], float] = {}
    found = []
    for mark in MARKS:
        fitted, held, speaking = [], [], 0
        for name, row in _judged(mark):
            curve = curves.get((name, row.id))
            if curve is not None:
                share, host_s = bundled[curve.stack, curve.generation]
                fitted += errors_at([curve], Constants(share, host_s))
                held.append(held_back_error(curve, fits))
                speaking += 1
                continue
            if (name, row.id) not in alone:
                alone[name, row.id] = predict(row, "calibrated", memo).error or 0.0
            fitted.append(alone[name, row.id])
            held.append(alone[name, row.id])
        found.append(Reached(mark, len(fitted), speaking, spread(fitted), spread(held)))
    return found


def bundled_constants(fits: Fits) -> dict[Key, tuple[float, float]]:
    """Share and host time of every stack that runs speak for, as its file has them."""
    return {
        key: (load_stack(key[0]).software_share[key[1]], load_stack(key[0]).host_s)
        for key in sorted(fits.speaking)
    }


def held_back_document(
    stacks: Sequence[Fitted], marks: Sequence[Reached], weights: Mapping[float, float]
) -> dict[str, Any]:
    """All of it as plain values."""
    return {
        "stacks": [asdict(one) for one in stacks],
        "marks": [asdict(one) for one in marks],
        "release_before": [
            {"models": weight, "mean_error": error} for weight, error in weights.items()
        ],
    }
