"""``phaze.explanation/1`` as a page reads it back from a run's folder: marginal values, neighbours,
the chips that are as good, and the constants that decide."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Field

from phaze.documents import check, parse
from phaze.errors import InputError
from phaze.evaluate.plan_tables import Loose, Number
from phaze.files import read_text

EXPLANATION = "explanation.json"


class MarginalTable(Loose):
    """A resource, how much there is and is added, what that buys, and the chip that is best
    then."""

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
    over: Number = 0.0
    here: Number | None = None


class NearTable(Loose):
    """A chip that is nearly as good: what it loses, and its area, power and price."""

    chip: str
    loss: Number
    area_mm2: Number
    power_w: Number
    usd: Number


class CountTable(Loose):
    """How many chips are within a share of the answer."""

    within: Number
    count: Annotated[int, Field(ge=1)]


class FlatnessTable(CountTable):
    """How many chips are within a share of the answer, exactly, what they have in common, and the
    smallest of them."""

    smallest: NearTable
    counts: list[CountTable] = Field(default_factory=list)
    words: str = ""


class SideTable(Loose):
    """The first change of a constant at which another chip wins, None where none that was tried
    does, and that chip."""

    changes: Number | None
    chip: str | None


class DecidingTable(Loose):
    """A constant of area or energy, and how far it must fall or rise."""

    constant: str
    less: SideTable
    more: SideTable


class StepTable(Loose):
    """A row of a waterfall."""

    name: str
    seconds: Number


class BesideModelTable(Loose):
    """A model on a chip that exists: None where it does not fit, and where its time goes."""

    name: str
    throughput_per_s: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    steps: list[StepTable]


class ExistingChipTable(Loose):
    """A chip that exists, priced as the search priced its own."""

    chip: str
    title: str
    band: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    die_mm2: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None
    models: list[BesideModelTable]


class HeldOutTable(Loose):
    """A model that was not searched for on the chip of the answer; None where it does not fit."""

    name: str
    throughput_per_s: Number | None
    tokens_per_s_per_device: Number | None
    mfu: Number | None
    batch_s: Number | None
    energy_j: Number | None
    power_w: Number | None
    batch: Annotated[int, Field(ge=1)]
    sequence: Annotated[int, Field(ge=1)]
    plan: str | None


class AloneTable(Loose):
    """The best chip for one model alone, how far that is proved, and what the answer loses to
    it."""

    name: str
    chip: str
    regret: Number
    gap: Number


class ExplanationTable(Loose):
    """What a page shows of an explanation."""

    chip: str
    score: Annotated[float, Field(allow_inf_nan=False)]
    neighbours: list[NeighbourTable]
    marginals: list[MarginalTable]
    flatness: FlatnessTable | None = None
    deciding: list[DecidingTable] = Field(default_factory=list)
    near_misses: list[NeighbourTable] = Field(default_factory=list)
    beside: list[ExistingChipTable] = Field(default_factory=list)
    held_out: list[HeldOutTable] = Field(default_factory=list)
    alone: list[AloneTable] = Field(default_factory=list)


# What an explanation has only where it was asked for, and the keys that tell rows of one list
# apart: rows of earlier explanations are kept beside newer ones.
ASKED_FOR = ("instead", "deciding", "ranges", "worst_case", "beside", "held_out", "alone")
JOINED = MappingProxyType(
    {"instead": ("axis", "value"), "beside": ("chip",), "held_out": ("name",), "alone": ("name",)}
)


def kept_with(folder: Path, said: Mapping[str, Any]) -> dict[str, Any]:
    """An explanation to be kept in a run's folder, with what one that lies there was asked for
    beside it, if that is of the same answer: other values of axes, models and chips are joined, of
    anything else the newer counts."""
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
    for key, names in JOINED.items():
        if key in said and isinstance(before.get(key), list):
            asked = [tuple(one[name] for name in names) for one in said[key]]
            others = [one for one in before[key] if isinstance(one, dict)]
            rest = [one for one in others if tuple(one.get(name) for name in names) not in asked]
            found[key] = [*rest, *said[key]]
    return found


def explanation_in(folder: Path, chip: str, score: float) -> ExplanationTable | None:
    """The explanation that a run's folder keeps, if it is one of this answer."""
    path = folder / EXPLANATION
    if not path.is_file():
        return None
    text, where = read_text(str(path))
    found = check(ExplanationTable, parse(text, "json", where), where)
    return found if found.chip == chip and abs(found.score - score) <= 1e-9 * abs(score) else None
