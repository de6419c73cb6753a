"""What attention kernels were measured to reach: by family of chips, kernel generation, pass and
head size.

    seconds = start + max((FLOP + extra keys x FLOP of one key for every query) / share, FLOP /
    most) / peak of the chip

with FLOP over the pairs that the mask leaves. ``start`` is the serial path of one block of queries,
seen with few heads; ``extra keys`` are what a query costs beside its pairs (filling and emptying a
block, tiles that the mask cuts), seen with short sequences; ``share`` is what they tend to;
``most`` is the greatest share of the peak that was measured, which longer sequences than those are
not thought to exceed. More pairs, or a lower peak, never take less.

Most were measured alone. In training a chip is warm and at its power limit, which the shares of
products know (:mod:`phaze.hardware.calibration`): a kernel's share falls by the same factor. Rows
that stand in one series with the products of training that such a share was fitted to
(``training``) know it already (:func:`attention_rates`).

The rows lie in ``presets/attention/kernels.toml``, each with the measurements that it was fitted
on.
"""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import log
from typing import Annotated, Literal

from pydantic import Field

from phaze import documents
from phaze.documents import Document, NonNegative, Seconds, Share
from phaze.errors import unknown_name

Generation = Literal["eager", "fa1", "triton", "fa2", "fa3", "fa4", "cudnn"]
FusedGeneration = Literal["fa1", "triton", "fa2", "fa3", "fa4", "cudnn"]
Pass = Literal["forward", "backward"]


class AttentionRate(Document):
    """One kernel at one head size."""

    start_s: Annotated[Seconds, Field(alias="start")]
    extra_keys: NonNegative
    share: Share
    most: Share = 1.0


@dataclass(frozen=True, slots=True)
class AttentionRates:
    """A kernel generation on a family of chips: its rates by head size, for each pass."""

    forward: tuple[tuple[int, AttentionRate], ...]
    backward: tuple[tuple[int, AttentionRate], ...]

    def rate(self, backward: bool, width: int) -> AttentionRate:
        """The rate of the head size nearest (by ratio) to ``width``, the smaller of two."""
        rows = self.backward if backward else self.forward
        return min(rows, key=lambda row: (abs(log(row[0] / max(width, 1))), row[0]))[1]


class ChipKernel(AttentionRate):
    """One kernel as it was measured at one head size; ``training``: in one series with the products
    that a stack's share was fitted to."""

    kernel: Generation
    pass_: Annotated[Pass, Field(alias="pass")]
    head: Annotated[int, Field(gt=0)]
    training: bool = False

    def rate(self, factor: float) -> AttentionRate:
        """The rate, of one that was measured alone times ``factor``."""
        left = 1.0 if self.training else factor
        return attention_rate(self.start_s, self.extra_keys, self.share * left, self.most * left)


class MeasuredKernel(ChipKernel):
    """One row of the file, and what it was measured of."""

    family: str
    source: str


class AttentionFile(Document):
    """Measured attention kernels (``phaze.attention/1``)."""

    schema_: Annotated[Literal["phaze.attention/1"], Field(alias="schema")]
    title: str
    notes: str
    rates: list[MeasuredKernel]


def attention_rate(
    start_s: float, extra_keys: float, share: float, most: float = 1.0
) -> AttentionRate:
    """A rate that stands in no file."""
    return AttentionRate.model_construct(
        start_s=start_s, extra_keys=extra_keys, share=share, most=most
    )


@cache
def attention_file() -> AttentionFile:
    """The bundled file."""
    source = files("phaze.hardware") / "presets" / "attention" / "kernels.toml"
    where = "presets/attention/kernels.toml"
    return documents.check(
        AttentionFile, documents.parse(source.read_text(encoding="utf-8"), "toml", where), where
    )


def known_family(name: str, where: str) -> str:
    """The family, or an InputError with the known ones."""
    names = list(dict.fromkeys(row.family for row in attention_file().rates))
    if name not in names:
        raise unknown_name(where, "family of chips with measured attention kernels", name, names)
    return name


@cache
def attention_rates(
    family: str | None,
    kernel: Generation | None,
    factor: float = 1.0,
    own: tuple[ChipKernel, ...] = (),
) -> AttentionRates | None:
    """What a kernel reaches on a family of chips, of what was measured alone times ``factor``; None
    where nothing was measured. ``own``: what was measured on the chip itself, of a pass that it has
    instead of the family's."""
    if kernel is None:
        return None
    rows: list[ChipKernel] = [row for row in own if row.kernel == kernel]
    measured = {row.pass_ for row in rows}
    rows += [
        row
        for row in attention_file().rates
        if (row.family, row.kernel) == (family, kernel) and row.pass_ not in measured
    ]
    forward, backward = (
        tuple((row.head, row.rate(factor)) for row in rows if row.pass_ == name)
        for name in ("forward", "backward")
    )
    return AttentionRates(forward, backward) if forward and backward else None
