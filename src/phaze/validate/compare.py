"""A set of measured runs beside ours: predictions, and the figures that sum them up.

Rows that leave choices open are scored apart from those that state their plan: a best choice that
nobody made says little about the accuracy of a time. Rows of a precision that is not priced yet are
left out and counted.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from phaze.evaluate.memo import Memo
from phaze.hardware.calibration import Basis
from phaze.hardware.formats import NotPricedError
from phaze.validate.predict import Prediction, predict
from phaze.validate.rows import MeasuredRun
from phaze.validate.statistics import Score, score, within

Quantity = Literal["seconds", "memory_bytes"]
QUANTITIES: tuple[Quantity, ...] = ("seconds", "memory_bytes")


@dataclass(frozen=True, slots=True)
class ScoredSet:
    """One set; ``scores`` by quantity and whether the rows leave choices open; ``left_out`` has
    rows and why."""

    name: str
    title: str
    predictions: tuple[Prediction, ...]
    scores: Mapping[tuple[Quantity, bool], Score]
    left_out: tuple[tuple[MeasuredRun, str], ...] = ()


def _score(predictions: Sequence[Prediction], quantity: Quantity) -> Score:
    return score(
        [getattr(prediction.row, quantity) for prediction in predictions],
        [getattr(prediction, quantity) for prediction in predictions],
        [prediction.row.group for prediction in predictions],
    )


@dataclass(frozen=True, slots=True)
class WrongChoice:
    """A group of equal job whose fastest plan is not the one that is predicted best: rows, and what
    that one loses."""

    rows: int
    chosen: str
    best: str
    lost: float
    chosen_error: float
    best_error: float


def wrong_choices(predictions: Sequence[Prediction]) -> tuple[WrongChoice, ...]:
    """Where the plan predicted best was measured slower than another of its group, the greatest
    loss first."""
    groups: dict[Hashable, list[Prediction]] = {}
    for prediction in predictions:
        if not prediction.row.free and prediction.row.seconds is not None:
            groups.setdefault(prediction.row.group, []).append(prediction)
    wrong = []
    for group in groups.values():
        chosen, best = min(group, key=lambda p: p.seconds), min(group, key=_measured)
        if _measured(chosen) > _measured(best):
            lost = _measured(chosen) / _measured(best) - 1
            wrong.append(
                WrongChoice(
                    len(group),
                    chosen.row.id,
                    best.row.id,
                    lost,
                    chosen.error or 0.0,
                    best.error or 0.0,
                )
            )
    return tuple(sorted(wrong, key=lambda choice: -choice.lost))


def _measured(prediction: Prediction) -> float:
    return prediction.row.seconds or 0.0


def within_jobs(predictions: Sequence[Prediction]) -> float | None:
    """How far errors of plans of one job lie from each other: the median over jobs (rows of a source
    and group) of their deviation, so that one job whose network broke down says little."""
    groups: dict[Hashable, list[Prediction]] = {}
    for prediction in predictions:
        key = (prediction.row.source.split(maxsplit=1)[0], prediction.row.group)
        groups.setdefault(key, []).append(prediction)
    pairs = [([_measured(p) for p in own], [p.seconds for p in own]) for own in groups.values()]
    each = [deviation for deviation in (within([pair]) for pair in pairs) if deviation is not None]
    return median(each) if each else None


def scores_of(predictions: Sequence[Prediction]) -> dict[tuple[Quantity, bool], Score]:
    """The scores of each quantity that was measured, stated and free rows apart."""
    scores = {}
    for quantity in QUANTITIES:
        for free in (False, True):
            measured = [
                p
                for p in predictions
                if bool(p.row.free) == free and getattr(p.row, quantity) is not None
            ]
            if measured:
                scores[quantity, free] = _score(measured, quantity)
    return scores


def compare(
    name: str, title: str, rows: Sequence[MeasuredRun], basis: Basis, memo: Memo
) -> ScoredSet:
    """Every row of a set predicted, and the set scored."""
    predictions: list[Prediction] = []
    left_out: list[tuple[MeasuredRun, str]] = []
    for row in rows:
        try:
            predictions.append(predict(row, basis, memo))
        except NotPricedError as fault:
            left_out.append((row, fault.problem))
    return ScoredSet(name, title, tuple(predictions), scores_of(predictions), tuple(left_out))


def _row_document(prediction: Prediction) -> dict[str, Any]:
    return {
        "id": prediction.row.id,
        "plan": {**prediction.row.run["plan"], **prediction.chosen},
        "free": list(prediction.row.free),
        "measured_s": prediction.row.seconds,
        "predicted_s": prediction.seconds,
        "error": prediction.error,
        "measured_memory_bytes": prediction.row.memory_bytes,
        "predicted_memory_bytes": prediction.memory_bytes,
        "memory_error": prediction.memory_error,
        "fits": prediction.fits,
        "fitted_in_bytes": prediction.row.fits_bytes,
        "source": prediction.row.source,
    }


def document_of(compared: Sequence[ScoredSet], basis: Basis) -> dict[str, Any]:
    """All sets as plain values."""
    return {
        "basis": basis,
        "sets": [
            {
                "name": run_set.name,
                "title": run_set.title,
                "scores": [
                    {"quantity": quantity, "free": free, **asdict(run_score)}
                    for (quantity, free), run_score in run_set.scores.items()
                ],
                "wrong_choices": [asdict(wrong) for wrong in wrong_choices(run_set.predictions)],
                "rows": [_row_document(prediction) for prediction in run_set.predictions],
                "left_out": [{"id": row.id, "reason": reason} for row, reason in run_set.left_out],
            }
            for run_set in compared
        ],
    }
