"""How flat the optimum is: exactly which chips come within a share w of the answer, and what they
have in common.

A run has a lower bound of every chip; only those with bound <= (1 + w) score can be that near.
Their bounds are tightened by the best cuts up to that reach, and what is left is evaluated to the
end:

    near = { chips of the space whose exact score is at most (1 + w) times that of the answer }

Nothing is sampled. What near chips share is counted axis by axis (:mod:`phaze.explain.near_chips`
says it in a sentence); beside it stand the smallest of them, the one that draws least and the
cheapest, for the best chip is rarely the one to build where a tenth of a percent is all it gains.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.errors import InputError
from phaze.explain.near_chips import AxisCounts, Span, near_words
from phaze.explain.question import ExplainedRun, gain
from phaze.search.boxes.opening import box_question, chips_numbered, left_chips
from phaze.search.chips import SpaceChips
from phaze.search.cutoffs import last_times
from phaze.search.deadline import NEVER
from phaze.search.dual_bounds import bounds_on
from phaze.search.engine import workers
from phaze.search.evaluated import Evaluated
from phaze.search.run import begin
from phaze.search.state import SearchState

Integers = NDArray[np.int64]
# The default share, about what models of chips are off by at best; beyond a quarter nobody calls
# chips equal.
USUAL, MOST = 0.01, 0.25
ROUND = 64
"""Chips evaluated at a time: enough for every worker, few enough to stop soon."""
FEW = 500
"""Chips of a space in boxes up to which a wider share is counted: each is evaluated exactly."""
LISTED = 20
"""Rows that a page shows."""
NEARER = (0.001, 0.01, 0.02, 0.03, 0.05, 0.1)
"""Shares that are counted too where they lie below the one that was requested."""


@dataclass(frozen=True, slots=True)
class NearChip:
    """A chip within reach: what it loses against the answer, and what it takes."""

    chip: str
    loss: float
    area_mm2: float
    power_w: float
    usd: float


@dataclass(frozen=True, slots=True)
class Flatness:
    """Exactly ``count`` chips of ``chips`` are within ``within`` of the answer, itself among them.

    ``failed`` could not be evaluated and would be more. ``nearest`` are the first of them, best
    first. ``counts`` are exact counts within lesser shares and within this one, ``spans`` the least
    and the most that they have of what is no axis (MACs, area, TDP), ``words`` what they have in
    common.
    """

    within: float
    count: int
    chips: int
    evaluated: int
    failed: int
    counts: tuple[tuple[float, int], ...]
    axes: tuple[AxisCounts, ...]
    spans: tuple[Span, ...]
    nearest: tuple[NearChip, ...]
    smallest: NearChip
    coolest: NearChip
    cheapest: NearChip

    def document(self) -> dict[str, Any]:
        """Plain values."""
        document = asdict(self)
        document["axes"] = [
            {
                "axis": shared.axis,
                "values": [{"value": value, "chips": chips} for value, chips in shared.values],
                "of": shared.of,
            }
            for shared in self.axes
        ]
        document["counts"] = [{"within": share, "count": count} for share, count in self.counts]
        return {**document, "words": near_words(self.within, self.count, self.axes, self.spans)}


def share_of(text: str) -> float:
    """``1%`` or ``0.01`` as a share."""
    percent = text.strip().endswith("%")
    try:
        share = float(text.strip().removesuffix("%")) / (100 if percent else 1)
    except ValueError:
        share = float("nan")
    if not 0 < share <= MOST:
        raise InputError(
            "--flatness",
            f"'{text}' is not a share of at most {MOST:.0%}",
            "give one such as 1% or 0.03",
        )
    return share


def _candidates(question: ExplainedRun, reach: float) -> SpaceChips:
    """The chips whose bound is within reach, the answer among them; of a space in boxes those that
    another walk over them leaves."""
    if question.boxed:
        boxes = box_question(question.job, question.scale, NEVER)
        left = left_chips(boxes, reach, reach, question.chips.number(question.number))
        return chips_numbered(question.job.space, np.array(left.numbers, np.int64), counted=False)
    index = np.flatnonzero(question.bounds <= reach)
    return question.chips.taken(np.union1d(index, [question.number]).astype(np.int64))


def _within_reach(question: ExplainedRun, within: float) -> tuple[float, SpaceChips]:
    """The share that is considered and its candidates; of a space in boxes, which may have millions
    as good, the largest of within / 64, within / 32 ... before which no more than ``FEW`` were
    left."""
    share = within / 64 if question.boxed else within
    candidates = _candidates(question, question.score * (1 + share))
    while share < within and len(candidates) <= FEW:
        share *= 2
        candidates = _candidates(question, question.score * (1 + share))
    return share, candidates


def _tightened(question: ExplainedRun, chips: SpaceChips, reach: float) -> SearchState:
    """Chips bounded as finely as a search bounds those that may win."""
    state = begin(question.job, chips, question.scale)
    every = np.arange(len(chips))
    if len(question.job.models) > 1:  # the others' bounds say how long one may take
        state.set_bounds(bounds_on(state, every, state.times, [np.inf] * len(question.job.models)))
    state.set_bounds(
        bounds_on(state, every, state.times, last_times(state, every, reach), general=True)
    )
    return state


def _evaluated(
    state: SearchState, reach: float, processes: int, tell: Callable[[str], None]
) -> list[Evaluated]:
    """Every chip whose bound is within reach, evaluated against it."""
    scores, engine, evaluated = state.scores(), workers(processes), list[Evaluated]()
    order = np.flatnonzero(scores <= reach)
    order = order[np.lexsort((order, scores[order]))]
    for start in range(0, len(order), ROUND):
        tell(f"chips that may be as good: {start:,} of {len(order):,}")
        evaluated += engine(state, order[start : start + ROUND].tolist(), reach)
    return evaluated


def _axes(
    question: ExplainedRun, space_chips: SpaceChips, chips: Integers
) -> tuple[AxisCounts, ...]:
    """The values that near chips have of every axis that has more than one in the space."""
    values = space_chips.axis_values()
    return tuple(
        AxisCounts(
            name,
            tuple(sorted(Counter(values[name][chips].astype(float).tolist()).items())),
            len(points),
        )
        for name, points in question.job.space.axis_points().items()
        if len(points) > 1
    )


def _spans(
    space_chips: SpaceChips, chips: Integers, watts: NDArray[np.float64]
) -> tuple[Span, ...]:
    """The least and the most that near chips have of what is no axis."""
    macs = space_chips.chips.clusters * space_chips.chips.macs
    columns = {"MACs": macs, "area, mm2": space_chips.area_mm2, "TDP, W": watts}
    return tuple(
        Span(name, float(column[chips].min()), float(column[chips].max()))
        for name, column in columns.items()
    )


def flatness(
    question: ExplainedRun, within: float, processes: int, tell: Callable[[str], None]
) -> Flatness:
    """The chips within a share of the answer, counted exactly."""
    within, near_chips = _within_reach(question, within)
    reach = question.score * (1 + within)
    state = _tightened(question, near_chips, reach)
    done = _evaluated(state, reach, processes, tell)
    near = sorted(
        (result for result in done if result.ran and result.score <= reach),
        key=lambda result: (result.score, result.chip),
    )
    space_chips, most = state.chips, question.job.hbm_bytes[-1]
    chips = np.array([result.chip for result in near], np.int64)
    watts, usd = space_chips.design_w(), space_chips.making_usd(most)
    rows = [
        NearChip(
            space_chips.name(result.chip),
            -gain(question.score, result.score),
            float(space_chips.area_mm2[result.chip]),
            float(watts[result.chip]),
            float(usd[result.chip]),
        )
        for result in near
    ]
    if not rows:
        raise AssertionError("the answer is within reach of itself")
    shares = [*(share for share in NEARER if share < within), within]
    return Flatness(
        within,
        len(rows),
        question.chips.total,
        len(done),
        sum(bool(result.error) for result in done),
        tuple(
            (share, sum(result.score <= question.score * (1 + share) for result in near))
            for share in shares
        ),
        _axes(question, space_chips, chips),
        _spans(space_chips, chips, watts),
        tuple(rows[:LISTED]),
        # Of equals, to a millionth, the best: most chips draw all that the space allows.
        min(rows, key=lambda row: (round(row.area_mm2, 6), row.loss)),
        min(rows, key=lambda row: (round(row.power_w, 6), row.loss)),
        min(rows, key=lambda row: (round(row.usd, 6), row.loss)),
    )
