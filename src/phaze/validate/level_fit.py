"""Constants of a network level, fitted to measured collectives.

A curve is one kind of collective over one group, at many sizes from 64 KiB up. The constants x of a
level minimise

    loss(x) = mean over curves of mean over sizes of | ln(predicted(x) / measured) |

so that curves weigh alike, however many sizes each has. Constants are scaled by one factor up and
down, one after the other; where none helps, the factor falls from 2 to its square root, until it is
below 1.005 (:func:`fit_level`). From each of :data:`BEGINNINGS`; the least loss counts, the first
of equal ones. Nothing is drawn at random.

Levels are fitted from the inside out: those within on curves that stay inside, which the next ones
then take as they are. Cross-validation: curve i belongs to fold i mod 5, each predicted with what
the other four say.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from math import prod
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from phaze.cost.collective import Kind, collective_seconds
from phaze.cost.exchange import seen_by
from phaze.hardware.calibration import LINK_FIELDS
from phaze.hardware.cluster import Cluster, Level
from phaze.values import replace

Floats = NDArray[np.float64]
LEAST_BYTES = 2**16
"""Below, a time is mostly the launch of a kernel and says nothing of a network."""
FOLDS = 5
"""Curves that are held back in turn: a fifth each time."""
WIDEST, NEAR, FINEST = 2.0, 1.2, 1.005
"""Factors of the first step, of the first one where rows are held back (from what all say), and of
the last: constants are rounded to three digits, and finer steps hardly change them."""
BOUNDS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "share": (0.05, 1.0),
        "start_s": (1e-6, 2e-3),
        "latency_s": (1e-7, 1e-4),
        "piece_s": (1e-8, 1e-3),
        "small_start_s": (1e-6, 1e-3),
        "small_step_s": (1e-7, 1e-4),
        "small_share": (0.01, 1.0),
        "in_switch_share": (0.05, 1.0),
        "local_bytes_per_s": (1e11, 1e13),
    }
)
"""Between what no network was ever seen to leave, and what none exceeds."""
RING = ("share", "start_s", "latency_s", "piece_s")
"""Constants of every level; those of small messages and of reduction in switches are of a level
alone."""
BEGINNINGS: tuple[Mapping[str, float], ...] = (
    MappingProxyType({
        "share": 0.75, "start_s": 4e-5, "latency_s": 1.5e-6, "piece_s": 3e-6,
        "small_start_s": 1.5e-5,
        "small_step_s": 5e-6, "small_share": 0.3, "in_switch_share": 0.55,
        "local_bytes_per_s": 6e11,
    }),
    MappingProxyType({
        "share": 0.9, "start_s": 1e-4, "latency_s": 5e-6, "piece_s": 1e-5, "small_start_s": 3e-5,
        "small_step_s": 1e-5, "small_share": 0.15, "in_switch_share": 0.5,
        "local_bytes_per_s": 2e12,
    }),
)  # fmt: skip
"""Near what curves of NVLink and of InfiniBand suggest."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A collective over a group at several sizes; ``bandwidths`` of the levels where they are not
    the cluster's."""

    kind: Kind
    members: tuple[int, ...]
    sizes_bytes: Floats
    seconds: Floats
    bandwidths: tuple[float, ...] = ()

    @property
    def outermost(self) -> int:
        """The outermost level where members meet."""
        return max(level for level, count in enumerate(self.members) if count > 1)


@dataclass(frozen=True, slots=True)
class LevelFit:
    """Fitted constants of a level, by field, and absolute errors of every point: with what the
    cluster had, fitted, and held back."""

    level: str
    curves: int
    constants: Mapping[str, float]
    before: tuple[float, ...]
    fitted: tuple[float, ...]
    held_back: tuple[float, ...]


def predicted(curve: Curve, cluster: Cluster) -> Floats:
    """Our seconds of a curve."""
    levels = cluster.levels
    if curve.bandwidths:
        pairs = zip(levels, curve.bandwidths, strict=True)
        levels = tuple(replace(level, bandwidth_bytes_per_s=rate) for level, rate in pairs)
    seen = seen_by(replace(cluster, levels=levels), curve.members)
    return collective_seconds(curve.kind, curve.sizes_bytes, prod(curve.members), seen)


def errors(curves: Sequence[Curve], cluster: Cluster) -> list[Floats]:
    """Predicted over measured, less 1, of each curve."""
    return [predicted(curve, cluster) / curve.seconds - 1 for curve in curves]


def with_constants(cluster: Cluster, index: int, constants: Mapping[str, float]) -> Cluster:
    """The cluster with these constants of a level."""
    level = cluster.levels[index]
    measured = {name: value for name, value in constants.items() if name != "latency_s"}
    new = replace(
        level,
        latency_s=constants.get("latency_s", level.latency_s),
        **measured,
    )
    return replace(cluster, levels=(*cluster.levels[:index], new, *cluster.levels[index + 1 :]))


def _loss(curves: Sequence[Curve], cluster: Cluster) -> float:
    return float(np.mean([np.mean(np.abs(np.log1p(error))) for error in errors(curves, cluster)]))


def _descend(
    curves: Sequence[Curve],
    cluster: Cluster,
    index: int,
    begun: Mapping[str, float],
    factor: float = WIDEST,
) -> tuple[float, dict[str, float]]:
    best = dict(begun)
    least = _loss(curves, with_constants(cluster, index, best))
    while factor > FINEST:
        helped = False
        for name in tuple(best):
            low, high = BOUNDS[name]
            for value in (best[name] / factor, best[name] * factor):
                tried = {**best, name: float(np.clip(value, low, high))}
                found = _loss(curves, with_constants(cluster, index, tried))
                if found < least * (1 - 1e-9):
                    best, least, helped = tried, found, True
        if not helped:
            factor = float(np.sqrt(factor))
    return least, best


def _names(curves: Sequence[Curve], level: Level, index: int) -> tuple[str, ...]:
    reduces = any(curve.kind == "all_reduce" for curve in curves)
    if index or not reduces:
        return RING
    adds = ("in_switch_share" if level.in_switch_share is not None else "local_bytes_per_s",)
    return (*RING, "small_start_s", "small_step_s", "small_share", *adds)


def _best(curves: Sequence[Curve], cluster: Cluster, index: int) -> dict[str, float]:
    names = _names(curves, cluster.levels[index], index)
    found = [
        _descend(curves, cluster, index, {name: begun[name] for name in names})
        for begun in BEGINNINGS
    ]
    return min(found, key=lambda pair: pair[0])[1]


def _flat(found: Sequence[Floats]) -> tuple[float, ...]:
    return tuple(float(abs(error)) for error in chain.from_iterable(found))


def fit_level(curves: Sequence[Curve], cluster: Cluster, index: int) -> LevelFit:
    """The constants of level ``index`` that fit curves which reach it best; where switches add,
    local copies count as sent bytes."""
    level = cluster.levels[index]
    bare = replace(level, **{name: None for name in LINK_FIELDS if name != "in_switch_share"})
    plain = replace(cluster, levels=(*cluster.levels[:index], bare, *cluster.levels[index + 1 :]))
    constants = {name: float(f"{value:.3g}") for name, value in _best(curves, plain, index).items()}
    held: list[Floats] = []
    for fold in range(min(FOLDS, len(curves)) if len(curves) > 1 else 0):
        rest = [curve for i, curve in enumerate(curves) if i % FOLDS != fold]
        learnt = with_constants(plain, index, _descend(rest, plain, index, constants, NEAR)[1])
        held += errors([curve for i, curve in enumerate(curves) if i % FOLDS == fold], learnt)
    fitted = errors(curves, with_constants(plain, index, constants))
    return LevelFit(
        level.name,
        len(curves),
        constants,
        _flat(errors(curves, cluster)),
        _flat(fitted),
        _flat(held),
    )
