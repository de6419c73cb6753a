"""How far an answer may be off: bands by the kind of an answer, from measured runs that were held
back.

The kind of an answer is, in this order,

    chip       measured (its arrays, or more), or unmeasured: from its data sheet or at the clock
               its power allows
    layout     what shares the work beyond replicas, the first that is there: experts, context (long
               context: of sequences of 65,536 tokens and more, where attention is nearly all),
               pipeline, tensor, data
    bits       of the operands of its products: 16, 8 or 4; 32 has no measured runs and counts as
               none
    trait      of the job, what is harder to price: a sequence of 16,384 tokens and more (long), or
               else at most two microbatches a replica (few), which leave what happens once a step
               nothing to hide behind
    stack      its family: a name without its release (megatron-core-24.07 is megatron-core)

A kind that too few runs speak for has no band of its own, and the next wider one's holds: without
the stack, with the bits and the trait, with the trait alone, without it, with the layout alone,
with the bits alone, then of the chip alone (:func:`wider_kinds`, :func:`band_of`). No band is wider
than ``MOST``: beyond, a time is a guess. ``band`` is the b with which eight of ten held-back runs
took between 1 - b and 1 + b times what was predicted; ``ratios`` of memory are quantiles of
measured over predicted, from which follows the chance that a plan fits (:func:`fits_probability`):

    P(fits) = share of held-back runs whose measured / predicted is at most H / M,    H bytes there, M predicted

The bands are data, ``data/bands.json``, made by ``python -m tools.fits bands --write FILE``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import Field

from phaze.documents import Count, Document, NonNegative, Positive, check, parse
from phaze.hardware.calibration import Trusted
from phaze.hardware.formats import PLAIN, RECIPES, WIDE, Precision
from phaze.hardware.stack import Saves, Stack

ChipKind = Literal["measured", "unmeasured"]
Layout = Literal["experts", "long context", "context", "pipeline", "tensor", "data"]
Bits = Literal["4", "8", "16"]
Trait = Literal["long", "few"]
MOST = 0.6
"""The widest band that is said."""
SHARE = 0.8
"""Of held-back runs that lie inside their band."""
RELEASE = re.compile(r"-\d[\d.]*$")
LONG = 65536
"""Tokens of a sequence from which attention is nearly all of a run that shares it out."""
LONG_TRAIT, FEW_ROUNDS = 16384, 2
"""Tokens of a sequence from which attention counts as products do, and microbatches of a replica up
to which the end of a batch does."""
LOW_BITS: Mapping[int, Bits] = MappingProxyType({4: "4", 8: "8"})
# The chance that is said at most, and its complement at least: quantiles end there.
SUREST = 0.99


TRAITS: Mapping[Trait, str] = MappingProxyType(
    {"long": "long sequences", "few": "few microbatches"}
)
"""A trait in words."""


@dataclass(frozen=True, slots=True)
class BandKind:
    """A kind of answer; None: any."""

    chip: ChipKind
    layout: Layout | None = None
    bits: Bits | None = None
    stack: str | None = None
    trait: Trait | None = None

    @property
    def words(self) -> str:
        """As a reader would say it."""
        bits = None if self.bits is None else f"{self.bits} bits"
        trait = None if self.trait is None else TRAITS[self.trait]
        parts = (self.layout, bits, trait, self.stack)
        return ", ".join([f"chip {self.chip}", *(word for word in parts if word is not None)])


def chip_kind(basis: Trusted, assumed: bool = False) -> ChipKind:
    """Whether anything of the chip was measured; not where what the stack leaves of its rate is
    ``assumed``, as on another generation."""
    return "measured" if basis in ("calibrated", "fitted") and not assumed else "unmeasured"


def share_is_assumed(stack: Stack, generation: Sequence[str | None]) -> bool:
    """Whether a stack says that its software share on a generation of chips is assumed."""
    named = [name for name in (*generation, "any") if name in stack.software_share]
    said = stack.sources.get(f"software_share.{named[0]}", "") if named else ""
    return said.startswith("assumed")


def bits_of(precision: Precision) -> Bits | None:
    """The kind of a precision."""
    if precision == PLAIN:
        return "16"
    if precision == WIDE or precision not in RECIPES:
        return "8" if precision == "fp8" else None
    return LOW_BITS[RECIPES[precision].bits]


def trait_of(sequence: int, rounds: float) -> Trait | None:
    """What is hard to price of a job of so many tokens a sequence and microbatches a replica."""
    if sequence >= LONG_TRAIT:
        return "long"
    return "few" if rounds <= FEW_ROUNDS else None


def layout_of(
    sequence: int, tensor: int, pipeline: int, context: int = 1, expert: int = 1
) -> Layout:
    """The kind of a split; ``tensor`` are the ranks that share a weight."""
    shared: Layout = "long context" if sequence >= LONG else "context"
    degrees: list[tuple[int, Layout]] = [
        (expert, "experts"),
        (context, shared),
        (pipeline, "pipeline"),
    ]
    return next((name for degree, name in [*degrees, (tensor, "tensor")] if degree > 1), "data")


def family_of(stack: str) -> str:
    """A stack's name without its release."""
    return RELEASE.sub("", stack)


def wider_kinds(kind: BandKind) -> Iterator[BandKind]:
    """A kind and those that it falls back to, narrow to wide."""
    layout, bits = BandKind(kind.chip, kind.layout), BandKind(kind.chip, bits=kind.bits)
    plain = replace(kind, trait=None)
    nearest = list[BandKind]()
    if kind.trait is not None:
        alone = BandKind(kind.chip, trait=kind.trait)
        nearest = [kind, replace(kind, stack=None), replace(alone, bits=kind.bits), alone]
    rest = [plain, replace(plain, stack=None), layout, bits, BandKind(kind.chip)]
    yield from dict.fromkeys([*nearest, *rest])


Counted = Annotated[int, Field(ge=0)]
Level = Annotated[float, Field(gt=0, lt=1)]


class KindTable(Document):
    """A kind in the file."""

    chip: ChipKind
    layout: Layout | None = None
    bits: Bits | None = None
    stack: str | None = None
    trait: Trait | None = None

    @property
    def kind(self) -> BandKind:
        return BandKind(self.chip, self.layout, self.bits, self.stack, self.trait)


class TimeBand(KindTable):
    """The band of a kind, the quantile that it is, and how many runs of how many sources speak for
    it; ``held_back``: runs of the kind that a band made without their source was tried on, and
    ``inside``: those of them that it holds."""

    band: NonNegative
    level: Level
    rows: Count
    sources: Count
    held_back: Counted
    inside: Counted


class MemoryBand(Document):
    """Memory under a rule of what is kept between passes (None: all): quantiles of the absolute
    error, and of measured over predicted; ``inside_by_job``: runs inside ``band`` when held back by
    model, devices and batch; ``inside``: inside ``band_elsewhere``, for laboratories that did not
    speak, when held back by source."""

    saves: Saves | None = None
    band: NonNegative
    band_elsewhere: NonNegative
    level: Level
    median: NonNegative
    ninetieth: NonNegative
    rows: Count
    sources: Count
    held_back: Counted
    inside: Counted
    inside_by_job: Counted
    ratios: Annotated[list[Positive], Field(min_length=3)]


class FittedRuns(Document):
    """Runs that are known to have fitted their device, and those of them that come out above what
    the usual headroom leaves of it, or above all of it."""

    runs: Counted
    above_headroom: Counted
    too_large: Counted


class BandsFile(Document):
    """The bands (``phaze.bands/1``), and what they rest on."""

    schema_: Annotated[Literal["phaze.bands/1"], Field(alias="schema")]
    command: str
    rows_digest: str
    fitted: FittedRuns
    time: Annotated[list[TimeBand], Field(min_length=1)]
    memory: Annotated[list[MemoryBand], Field(min_length=1)]


@cache
def bundled_bands() -> BandsFile:
    """The bundled bands."""
    where = "data/bands.json"
    text = (files("phaze.evaluate") / where).read_text(encoding="utf-8")
    return check(BandsFile, parse(text, "json", where), where)


def band_of(kind: BandKind, bands: BandsFile | None = None) -> TimeBand:
    """The band of the narrowest kind that has one."""
    by_kind = {entry.kind: entry for entry in (bands or bundled_bands()).time}
    return next(by_kind[each] for each in wider_kinds(kind) if each in by_kind)


def band_document(
    basis: Trusted,
    stack: str,
    precision: Precision,
    layout: Layout | None = None,
    trait: Trait | None = None,
    assumed: bool = False,
) -> dict[str, Any]:
    """The band of an answer and what it rests on, as plain values; ideal times are bounds and have
    none."""
    if basis == "ideal":
        return {"band": 0.0}
    kind = BandKind(chip_kind(basis, assumed), layout, bits_of(precision), family_of(stack), trait)
    time_band = band_of(kind)
    return {
        "band": time_band.band,
        "band_of": {
            "kind": time_band.kind.words,
            "runs": time_band.rows,
            "sources": time_band.sources,
        },
    }


def memory_band_of(saves: Saves | None, bands: BandsFile | None = None) -> MemoryBand:
    """The band of memory under a rule of what is kept, or of all."""
    by_saves = {entry.saves: entry for entry in (bands or bundled_bands()).memory}
    return by_saves.get(saves) or by_saves[None]


def fits_probability(
    available_bytes: float, predicted_bytes: float, ratios: Sequence[float]
) -> float:
    """The chance that what is predicted to take so many bytes takes at most those available,
    between 0.01 and 0.99.

    ``ratios`` are the n quantiles of measured / predicted at i / (n + 1), i from 1; between them it
    is linear.
    """
    if predicted_bytes <= 0:
        return SUREST
    ratio, count = available_bytes / predicted_bytes, len(ratios) + 1
    if ratio < ratios[0]:
        return 1 - SUREST
    if ratio >= ratios[-1]:
        return SUREST
    above = next(i for i, value in enumerate(ratios) if value > ratio)
    low, high = ratios[above - 1], ratios[above]
    return min(SUREST, max(1 - SUREST, (above + (ratio - low) / (high - low)) / count))
