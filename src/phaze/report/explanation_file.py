"""``phaze.explanation/1`` as a page reads it back from a run's folder: marginal values and neighbours."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from phaze.documents import check, parse
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


class ExplanationTable(Loose):
    """What a page shows of an explanation."""

    chip: str
    score: Annotated[float, Field(allow_inf_nan=False)]
    neighbours: list[NeighbourTable]
    marginals: list[MarginalTable]


def explanation_in(folder: Path, chip: str, score: float) -> ExplanationTable | None:
    """The explanation that a run's folder keeps, if it is one of this answer."""
    path = folder / EXPLANATION
    if not path.is_file():
        return None
    text, where = read_text(str(path))
    found = check(ExplanationTable, parse(text, "json", where), where)
    return found if found.chip == chip and abs(found.score - score) <= 1e-9 * abs(score) else None
