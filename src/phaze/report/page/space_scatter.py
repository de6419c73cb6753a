"""The figures of every chip of a finished search, for the scatter: what is known of its score, area, power and cost.

Scores are those of the journal: of every chip its bound, of evaluated ones what they score. Far from the best bounds
are loose (a search works them out only as far as they matter), but nothing is bounded again for the picture.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from phaze.report.page.chip_scatter import ChipScatter, Field, Scale
from phaze.search.chips import SpaceChips
from phaze.search.evaluated import LEAST, MOST, Evaluated
from phaze.search.journal import PrunedChip
from phaze.search.pruned import REASONS
from phaze.search.task import SearchJob
from phaze.units import Unit, show

Floats = NDArray[np.float64]


def _plain(job: SearchJob) -> bool:
    """Whether the score is the batch time of one model."""
    return len(job.models) == 1 and job.objective.kind == "throughput"


def _scores(closed: Sequence[PrunedChip], evaluated: Sequence[Evaluated]) -> tuple[Floats, NDArray[np.bool_]]:
    """The least score that each chip can have, and where it is exact; infinite where nothing fits."""
    least = np.array([np.inf if one.bound is None else one.bound for one in closed])
    exact = np.zeros(len(least), bool)
    for one in evaluated:
        if np.isfinite(one.score) and not one.error:
            least[one.chip], exact[one.chip] = one.score, True
    return least, exact


def _field(name: str, values: NDArray[Any], unit: Unit | None) -> Field:
    distinct, which = np.unique(values, return_inverse=True)
    words = tuple(str(value) if unit is None else show(float(value), unit) for value in distinct)
    return Field(name, words, which.astype(np.int64))


def _fields(opened: SpaceChips) -> list[Field]:
    """Every part that differs between chips."""
    fields = [_field(*one) for one in opened.described()]
    return [field for field in fields if 1 < len(field.values) < 2**16]


def space_scatter(
    job: SearchJob,
    opened: SpaceChips,
    result: Mapping[str, Any],
    closed: Sequence[PrunedChip],
    evaluated: Sequence[Evaluated],
) -> ChipScatter:
    """The scatter of a run; money is reckoned with the HBM of the answer."""
    scores, exact = _scores(closed, evaluated)
    best, score = opened.index_of(int(result["chip"]["number"])) or 0, float(result["objective"]["score"])
    scores[best], exact[best] = score, True
    there = np.flatnonzero((scores >= LEAST) & (scores <= MOST))
    if _plain(job):
        heights = Scale("throughput", "sequences/s", job.models[0].training.batch / scores[there])
    else:
        kind = job.objective.kind.replace("_", " ")
        heights = Scale(kind, "% of the answer", 100 * score / scores[there])
    hbm_bytes = int(result["chip"]["hbm_bytes"])
    watts, usd = opened.design_w(), opened.making_usd(hbm_bytes)
    axes = (
        Scale("area", "mm²", opened.area_mm2[there]),
        Scale("TDP", "W", watts[there]),
        Scale("manufacturing cost", "USD", usd[there]),
    )
    reasons = np.array([REASONS.index(one.reason) for one in closed])
    return ChipScatter(
        height=heights,
        axes=tuple(axis for axis in axes if np.isfinite(axis.values).all()),
        fields=tuple(Field(one.name, one.values, one.which[there]) for one in _fields(opened)),
        numbers=there if opened.numbers is None else opened.numbers[there],
        closed=reasons[there],
        reasons=REASONS,
        exact=exact[there],
        best=int(np.searchsorted(there, best)),
        name=lambda at: opened.name(int(there[at])),
        left_out=len(scores) - len(there),
        others=opened.total - len(opened),
    )
