"""A set of measured runs beside ours: predictions, and the figures that sum them up.

Rows that leave choices open are scored apart from those that state their plan: a best choice that
nobody made says little about the accuracy of a time. Rows of a precision that is not priced yet are
left out and counted.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from phaze.evaluate.memo import Memo
from phaze.hardware.calibration import Basis
from phaze.hardware.formats import NotPricedError
from phaze.validate.predict import Prediction, predict
from phaze.validate.rows import MeasuredRun
from phaze.validate.statistics import Score, score

Quantity = Literal["seconds", "memory_bytes"]
QUANTITIES: tuple[Quantity, ...] = ("seconds", "memory_bytes")


@dataclass(frozen=True, slots=True)
class Compared:
    """One set; ``scores`` by quantity and whether the rows leave choices open; ``left_out`` has
    rows and why."""

    name: str
    title: str
    predictions: tuple[Prediction, ...]
    scores: Mapping[tuple[Quantity, bool], Score]
    left_out: tuple[tuple[MeasuredRun, str], ...] = ()


def _score(found: Sequence[Prediction], quantity: Quantity) -> Score:
    return score(
        [getattr(one.row, quantity) for one in found],
        [getattr(one, quantity) for one in found],
        [one.row.group for one in found],
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


def wrong_choices(found: Sequence[Prediction]) -> tuple[WrongChoice, ...]:
    """Where the plan predicted best was measured slower than another of its group, the greatest
    loss first."""
    groups: dict[Hashable, list[Prediction]] = {}
    for one in found:
        if not one.row.free and one.row.seconds is not None:
            groups.setdefault(one.row.group, []).append(one)
    wrong = []
    for own in groups.values():
        chosen, best = min(own, key=lambda p: p.seconds), min(own, key=_measured)
        if _measured(chosen) > _measured(best):
            lost = _measured(chosen) / _measured(best) - 1
            wrong.append(
                WrongChoice(
                    len(own),
                    chosen.row.id,
                    best.row.id,
                    lost,
                    chosen.error or 0.0,
                    best.error or 0.0,
                )
            )
    return tuple(sorted(wrong, key=lambda one: -one.lost))


def _measured(one: Prediction) -> float:
    return one.row.seconds or 0.0


def scores_of(found: Sequence[Prediction]) -> dict[tuple[Quantity, bool], Score]:
    """The scores of each quantity that was measured, stated and free rows apart."""
    scores = {}
    for quantity in QUANTITIES:
        for free in (False, True):
            own = [
                p
                for p in found
                if bool(p.row.free) == free and getattr(p.row, quantity) is not None
            ]
            if own:
                scores[quantity, free] = _score(own, quantity)
    return scores


def compare(
    name: str, title: str, rows: Sequence[MeasuredRun], basis: Basis, memo: Memo
) -> Compared:
    """Every row of a set predicted, and the set scored."""
    found: list[Prediction] = []
    left_out: list[tuple[MeasuredRun, str]] = []
    for row in rows:
        try:
            found.append(predict(row, basis, memo))
        except NotPricedError as fault:
            left_out.append((row, fault.problem))
    return Compared(name, title, tuple(found), scores_of(found), tuple(left_out))


def _row_document(one: Prediction) -> dict[str, Any]:
    return {
        "id": one.row.id,
        "plan": {**one.row.run["plan"], **one.chosen},
        "free": list(one.row.free),
        "measured_s": one.row.seconds,
        "predicted_s": one.seconds,
        "error": one.error,
        "measured_memory_bytes": one.row.memory_bytes,
        "predicted_memory_bytes": one.memory_bytes,
        "memory_error": one.memory_error,
        "fits": one.fits,
        "fitted_in_bytes": one.row.fits_bytes,
        "source": one.row.source,
    }


def document_of(compared: Sequence[Compared], basis: Basis) -> dict[str, Any]:
    """All sets as plain values."""
    return {
        "basis": basis,
        "sets": [
            {
                "name": one.name,
                "title": one.title,
                "scores": [
                    {"quantity": quantity, "free": free, **asdict(found)}
                    for (quantity, free), found in one.scores.items()
                ],
                "wrong_choices": [asdict(wrong) for wrong in wrong_choices(one.predictions)],
                "rows": [_row_document(prediction) for prediction in one.predictions],
                "left_out": [{"id": row.id, "reason": reason} for row, reason in one.left_out],
            }
            for one in compared
        ],
    }
