"""What an evaluated chip came to: its score, its bound and how each model runs, as a value and as
plain numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True)
class ModelRun:
    """The best plan of a model on a chip: which configuration, its batch, its value, and what no
    configuration can undercut."""

    configuration: int
    batch_s: float
    dynamic_j: float
    value: float
    lower: float


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A chip's score with its best memory, and its lower bound; ``ran`` is empty where it was
    closed before the end."""

    chip: int
    hbm: int
    score: float
    lower: float
    ran: tuple[ModelRun, ...]
    error: str = ""

    def document(self) -> dict[str, Any]:
        """Plain values, for the journal; infinities as null."""
        ran = [[r.configuration, r.batch_s, r.dynamic_j, r.value, r.lower] for r in self.ran]
        return {
            "hbm": self.hbm,
            "score": _plain(self.score),
            "lower": _plain(self.lower),
            "ran": ran,
            "error": self.error,
        }


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


# No batch takes less or costs more; what divides by less leaves the numbers of 64 bits.
LEAST, MOST = 1e-30, 1e30


def _number(value: Any, least: float = 0.0) -> float:
    if type(value) not in (int, float) or not least <= value <= MOST:  # NaN is not
        raise ValueError(f"{str(value)[:40]!r} is not a number from {least:g} to {MOST:g}")
    return float(value)


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{str(value)[:40]!r} is not a whole number")
    return value


def evaluated_from(chip: int, raw: dict[str, Any]) -> Evaluated:
    """The value of :meth:`Evaluated.document`; raises ValueError, TypeError or KeyError where it is
    none."""
    if type(raw["error"]) is not str:
        raise ValueError("an error is not text")
    raw["error"].encode()  # raises ValueError for half a character, which no file can hold
    ran = tuple(
        ModelRun(_whole(configuration), *map(_number, rest)) for configuration, *rest in raw["ran"]
    )
    score = float("inf") if raw["score"] is None else _number(raw["score"], LEAST)
    lower = float("inf") if raw["lower"] is None else _number(raw["lower"])
    for run in ran:
        _number(run.batch_s, LEAST)
    return Evaluated(chip, _whole(raw["hbm"]), score, lower, ran, raw["error"])
