"""Chips that were shipped, and how dense they are: what a searched chip is held against before it
is believed.

    compute = dense 16-bit peak / die area        power = TDP / die area        efficiency = dense
                                                  16-bit peak / TDP

A die that is only known to be smaller than a figure is denser than these say.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from pydantic import Field

from phaze import documents
from phaze.documents import BytesPerSecond, Document, FlopPerSecond, Hertz, Mm2, Watts
from phaze.hardware.keys import Name, Sources, Text

# What is true of every technology here: no term for it.
UNKNOWN = "the model of area and power sets no limit to clock, wires and heat"


class ShippedChip(Document):
    """One chip that can be or could be bought; without ``hbm`` it has none."""

    name: Name
    title: Text
    process: Name
    peak: FlopPerSecond
    die: Mm2
    die_is_upper_bound: bool = False
    power: Watts
    clock: Hertz
    hbm: BytesPerSecond | None = None
    sources: Sources

    @property
    def flops_per_mm2(self) -> float:
        return self.peak / self.die

    @property
    def flops_per_w(self) -> float:
        return self.peak / self.power

    @property
    def watts_per_mm2(self) -> float:
        return self.power / self.die


class BesideTable(Document):
    """The process whose shipped chips a technology is held against, why that one if it is another,
    and what makes the model of a technology kind to chips."""

    process: Name
    note: Text = ""
    reason: Text


class ShippedFile(Document):
    """All of them, and by technology what to look at."""

    beside: dict[Name, BesideTable]
    chips: list[ShippedChip] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Shipped:
    """The chips to hold one against: of its process, or of the nearest, as ``note`` then says; and
    all there are."""

    process: str
    note: str
    reason: str
    near: tuple[ShippedChip, ...]
    every: tuple[ShippedChip, ...]


@cache
def shipped_file() -> ShippedFile:
    """The figures that are bundled."""
    where = "data/shipped.toml"
    text = (files("phaze.hardware") / "data" / "shipped.toml").read_text(encoding="utf-8")
    return documents.check(ShippedFile, documents.parse(text, "toml", where), where)


def shipped_beside(technology: str) -> Shipped:
    """What to hold a chip of a technology against."""
    file = shipped_file()
    beside, every = file.beside.get(technology), tuple(file.chips)
    if beside is None:
        note = f"no shipped chip of {technology} is listed: compared with every process"
        return Shipped("any", note, UNKNOWN, every, every)
    near = tuple(chip for chip in every if chip.process == beside.process)
    return Shipped(beside.process, beside.note, beside.reason, near, every)
