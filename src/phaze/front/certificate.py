r"""The certificate of a front: how every unit was closed, the gap that is left, and what is proved
of each design.

    area, power, cost   combinations of the axes that the space's rules leave out
    within     a unit that is above a limit, by what is known of it or by its bound
    memory     no configuration of running some model fits
    bound      a design of the front closes all its lanes (:mod:`phaze.front.order`)
    evaluated  opened: its designs are exact, and what was left out of it is closed
    failed     opened, and its evaluation raised an error: its bounds stay
    open       only in a front that was stopped early

The gap of a front is the least g with which its designs close every lane of every unit with what
was proved of it. Of a design p and one metric k of the front, the first that comes with a run: its
rivals are all lanes that may be no worse in the others, and with l the least bound of them in k

    gap of p = 1 - l_k / p_k

so that nothing at least as good in the other metrics (in those of a run: by the front's gap) has
less than l_k. Where two metrics come with a run there is no such proof of a single design, and the
gap is the one requested, or 1 where anything was left open, failed or was not proved.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.front.measures import Listed
from phaze.front.order import shortfall, steps
from phaze.front.state import FrontState
from phaze.schedule.problem import ROUNDING
from phaze.search.evaluated import LEAST, Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.state import BoxedChips

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
NO_BOXES = BoxedChips()
REASONS = ("area", "power", "cost", "within", "memory", "bound", "evaluated", "failed", "open")


def closed_units(state: FrontState) -> list[PrunedChip]:
    """How each unit stands, by number; its bound is in the first metric of a run."""
    with np.errstate(invalid="ignore"):
        inside: Flags = np.asarray(
            (state.lower <= state.limits[:, None, None]).all(axis=0).any(axis=0) & state.allowed
        )
    bounds = state.scored()
    alive: Flags = np.asarray(state.alive.any(axis=0))
    units = []
    for unit, bound in enumerate(bounds.tolist()):
        result = state.evaluated.get(unit)
        step = "dual" if state.tightened[unit % len(state.chips)] else "cheap"
        if result is not None and result.error:
            reason, step = "failed", "dual"
        elif not np.isfinite(bound):
            reason = "memory"
        elif result is not None:
            reason, step = "evaluated", "exact"
        elif not inside[unit]:
            reason = "within"
        else:
            reason = "open" if alive[unit] else "bound"
        units.append(PrunedChip(unit, reason, bound if np.isfinite(bound) else None, step))
    return units


def listed_of(state: FrontState) -> Listed:
    """The bounds of a front under way."""
    metrics, points = state.metrics, state.archive.values
    return Listed(metrics, state.job.gap, state.lower, state.limits, state.allowed, points)


def gap_of(listed: Listed) -> float:
    """The least gap with which the front closes everything that is within the limits."""
    lower, points = listed.bounds, listed.points[: listed.weighed]
    designs, raised = steps(points), steps(lower)
    left = np.ones(lower.shape[1], np.bool_)
    for design in range(points.shape[1]):
        left &= ~(designs[:, design][:, None] <= raised).all(axis=0)
    return shortfall(points, lower[:, left], listed.run_metrics)


def gap_of_ways(
    closed: Sequence[PrunedChip], evaluated: Sequence[Evaluated], asked_gap: float
) -> float:
    """The gap where two metrics come with a run: what was requested, or 1 where anything is left.

    The bounds of every configuration are not in the list, so nothing finer could be derived from
    it.
    """
    left = any(result.reason in ("open", "failed") for result in closed)
    unproved = any(
        ran.lower < ran.value * (1 - ROUNDING) for result in evaluated for ran in result.ran
    )
    return 1.0 if left or unproved else asked_gap


@dataclass(frozen=True, slots=True)
class DesignProof:
    """What is proved of one design: how many lanes may be no worse in the other metrics, and their
    least bound."""

    rivals: int
    lower: float
    gap: float


def watched(listed: Listed) -> int:
    """The metric of the front in which designs are proved: the first that comes with a run, or the
    first."""
    runs = np.flatnonzero(listed.run_metrics)
    return int(runs[0]) if len(runs) else 0


def proofs(listed: Listed, values: Floats, boxed: BoxedChips = NO_BOXES) -> list[DesignProof]:
    """What is proved of designs of the front, ``values`` [metrics, designs].

    What boxes hold was closed by designs, so a chip of theirs that is no worse elsewhere takes no
    less than the design, but for the gap; rivals among them are not counted. Nothing is known of
    boxes that were not considered.
    """
    share = 1.0 if not boxed.chips else (1 - listed.gap if boxed.pruned else LEAST)
    row, lower = watched(listed), listed.bounds
    others = [index for index in range(listed.weighed) if index != row]
    room = np.where(listed.run_metrics[others], 1 - listed.gap, 1.0)
    bounds, limits = steps(lower[others]), steps(values[others] * room[:, None])
    proved = []
    for index in range(values.shape[1]):
        rivals = (bounds <= limits[:, index][:, None]).all(axis=0)
        least = min(
            float(lower[row, rivals].min(initial=np.inf)), float(values[row, index]) * share
        )
        proved.append(
            DesignProof(int(rivals.sum()), least, max(0.0, 1.0 - least / float(values[row, index])))
        )
    return proved


def counts_of(closed: Sequence[PrunedChip], left_out: Mapping[str, int]) -> dict[str, int]:
    """Units by how they were closed; combinations that the space's rules left out."""
    counts = Counter(unit.reason for unit in closed)
    return {reason: counts.get(reason, 0) + left_out.get(reason, 0) for reason in REASONS}


def certificate_document(
    gap: float,
    asked_gap: float,
    closed: Sequence[PrunedChip],
    left_out: Mapping[str, int],
    boxed: BoxedChips = NO_BOXES,
    memories: int = 1,
) -> dict[str, Any]:
    """The certificate of the whole front; ``boxed`` are chips that are in no list, each with so
    many ``memories``."""
    counts, others = counts_of(closed, left_out), boxed.chips * memories
    counts["bound" if boxed.pruned else "open"] += others
    if others:
        gap = max(gap, asked_gap) if boxed.pruned else 1.0
    return {
        "gap": gap,
        "asked_gap": asked_gap,
        "closed": counts,
        "units": len(closed) + others,
    }
