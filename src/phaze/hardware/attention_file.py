"""Measured attention kernels as they stand in ``presets/attention/kernels.toml``."""

from functools import cache
from importlib.resources import files
from typing import Annotated, Literal

from pydantic import Field

from phaze import documents
from phaze.documents import Document, NonNegative, Seconds, Share
from phaze.errors import unknown_name
from phaze.hardware.attention import AttentionRate, AttentionRates, Generation, Pass


class RateTable(Document):
    """One row of the file."""

    family: str
    kernel: Generation
    pass_: Annotated[Pass, Field(alias="pass")]
    head: Annotated[int, Field(gt=0)]
    start: Seconds
    extra_keys: NonNegative
    share: Share
    most: Share = 1.0
    training: bool = False
    source: str


class AttentionFile(Document):
    """Measured attention kernels (``phaze.attention/1``)."""

    schema_: Annotated[Literal["phaze.attention/1"], Field(alias="schema")]
    title: str
    notes: str
    rates: list[RateTable]


@cache
def attention_file() -> AttentionFile:
    """The bundled file."""
    source = files("phaze.hardware") / "presets" / "attention" / "kernels.toml"
    where = "presets/attention/kernels.toml"
    return documents.check(AttentionFile, documents.parse(source.read_text(encoding="utf-8"), "toml", where), where)


def known_family(name: str, where: str) -> str:
    """The family, or an InputError with the known ones."""
    names = list(dict.fromkeys(row.family for row in attention_file().rates))
    if name not in names:
        raise unknown_name(where, "family of chips with measured attention kernels", name, names)
    return name


def _rate(row: RateTable, factor: float) -> AttentionRate:
    left = 1.0 if row.training else factor
    return AttentionRate(row.start, row.extra_keys, row.share * left, row.most * left)


@cache
def attention_rates(family: str | None, kernel: Generation | None, factor: float = 1.0) -> AttentionRates | None:
    """What a kernel reaches on a family of chips, of what was measured alone times ``factor``; None where nothing was
    measured."""
    if family is None or kernel is None:
        return None
    rows = [row for row in attention_file().rates if (row.family, row.kernel) == (family, kernel)]
    by: dict[Pass, tuple[tuple[int, AttentionRate], ...]] = {
        way: tuple((r.head, _rate(r, factor)) for r in rows if r.pass_ == way) for way in ("forward", "backward")
    }
    return AttentionRates(by["forward"], by["backward"]) if by["forward"] and by["backward"] else None
