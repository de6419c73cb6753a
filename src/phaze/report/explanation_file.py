"""``phaze.explanation/1`` as a page reads it back from a run's folder: marginal values, neighbours, the chips that
are as good, and the constants that decide."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from phaze.documents import check, parse
from phaze.errors import InputError
from phaze.evaluate.plan_tables import Loose, Number
from phaze.files import read_text

EXPLANATION = "explanation.json"


class MarginalTable(Loose):
    """A resource, how much there is and is added, what that buys, and the chip that is best then."""

    resource: str
    unit: str
    now: Number
    more: Number
    gain: Number
    chip: str


class NeighbourTable(Loose):
    """A chip one step away along an axis, what it gains, and why it is not in the space, if so."""

    axis: str
    value: Number
    chip: str
    refused: str | None
    gain: Number


class NearTable(Loose):
    """A chip that is nearly as good: what it loses, and its area, power and price."""

    chip: str
    loss: Number
    area_mm2: Number
    power_w: Number
    usd: Number


class FlatnessTable(Loose):
    """How many chips are within a share of the answer, exactly, and the smallest of them."""

    within: Number
    count: Annotated[int, Field(ge=1)]
    smallest: NearTable


class SideTable(Loose):
    """The first change of a constant at which another chip wins, None where none that was tried does, and that chip."""

    changes: Number | None
    chip: str | None


class DecidingTable(Loose):
    """A constant of area or energy, and how far it must fall or rise."""

    constant: str
    less: SideTable
    more: SideTable


class ExplanationTable(Loose):
    """What a page shows of an explanation."""

    chip: str
    score: Annotated[float, Field(allow_inf_nan=False)]
    neighbours: list[NeighbourTable]
    marginals: list[MarginalTable]
    flatness: FlatnessTable | None = None
    deciding: list[DecidingTable] = Field(default_factory=list)


# What an explanation has only where it was asked for.
ASKED_FOR = ("instead", "deciding", "ranges", "worst_case")


def kept_with(folder: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """An explanation to be kept in a run's folder, with what one that lies there was asked for beside it, if that is of
    the same answer: other values of axes are joined, of anything else the newer counts."""
    path, found = folder / EXPLANATION, dict(said)
    try:
        text, where = read_text(str(path))
        check(ExplanationTable, before := parse(text, "json", where), where)
    except InputError:  # none lies there, or none that can be read
        return found
    if any(before.get(key) != said[key] for key in ("schema", "chip", "objective", "plans")):
        return found
    if abs(before["score"] - said["score"]) > 1e-9 * abs(said["score"]):
        return found
    for key in ASKED_FOR:
        if key in before and key not in said:
            found[key] = before[key]
    if "instead" in said and isinstance(before.get("instead"), list):
        asked = [(one["axis"], one["value"]) for one in said["instead"]]
        others = [one for one in before["instead"] if isinstance(one, dict)]
        rest = [one for one in others if (one.get("axis"), one.get("value")) not in asked]
        found["instead"] = [*rest, *said["instead"]]
    return found


def explanation_in(folder: Path, chip: str, score: float) -> ExplanationTable | None:
    """The explanation that a run's folder keeps, if it is one of this answer."""
    path = folder / EXPLANATION
    if not path.is_file():
        return None
    text, where = read_text(str(path))
    found = check(ExplanationTable, parse(text, "json", where), where)
    return found if found.chip == chip and abs(found.score - score) <= 1e-9 * abs(score) else None
