"""A set of measured runs beside ours: predictions, and the figures that sum them up.

Rows that leave choices open are scored apart from those that state their plan: a best choice that nobody made says
little about the accuracy of a time. Rows of a precision that is not priced yet are left out and counted.
"""

from collections.abc import Mapping, Sequence
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
    """One set; ``scores`` by quantity and whether the rows leave choices open; ``left_out`` has rows and why."""

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


def scores_of(found: Sequence[Prediction]) -> dict[tuple[Quantity, bool], Score]:
    """The scores of each quantity that was measured, stated and free rows apart."""
    scores = {}
    for quantity in QUANTITIES:
        for free in (False, True):
            own = [p for p in found if bool(p.row.free) == free and getattr(p.row, quantity) is not None]
            if own:
                scores[quantity, free] = _score(own, quantity)
    return scores


def compare(name: str, title: str, rows: Sequence[MeasuredRun], basis: Basis, memo: Memo) -> Compared:
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
                "rows": [_row_document(prediction) for prediction in one.predictions],
                "left_out": [{"id": row.id, "reason": reason} for row, reason in one.left_out],
            }
            for one in compared
        ],
    }
