"""What attention kernels were measured to reach: by family of chips, kernel generation, pass and head size.

    seconds = start + max((FLOP + extra keys x FLOP of one key for every query) / share, FLOP / most) / peak of the chip

with FLOP over the pairs that the mask leaves. ``start`` is the serial path of one block of queries, seen with few
heads; ``extra keys`` are what a query costs beside its pairs (filling and emptying a block, tiles that the mask cuts),
seen with short sequences; ``share`` is what they tend to; ``most`` is the greatest share of the peak that was
measured, which longer sequences than those are not thought to exceed. More pairs, or a lower peak, never take less.

Most were measured alone. In training a chip is warm and at its power limit, which the shares of products know
(:mod:`phaze.hardware.calibration`): a kernel's share falls by the same factor. Rows that stand in one series with the
products of training that such a share was fitted to (``training``) know it already
(:func:`phaze.hardware.attention_file.attention_rates`).

The rows lie in ``presets/attention/kernels.toml``, each with the measurements that it was fitted on, and are read by
:mod:`phaze.hardware.attention_file`.
"""

from dataclasses import dataclass
from math import log
from typing import Literal

Generation = Literal["eager", "fa1", "fa2", "fa3", "fa4", "cudnn"]
Pass = Literal["forward", "backward"]


@dataclass(frozen=True, slots=True)
class AttentionRate:
    """One kernel at one head size."""

    start_s: float
    extra_keys: float
    share: float
    most: float = 1.0


@dataclass(frozen=True, slots=True)
class AttentionRates:
    """A kernel generation on a family of chips: its rates by head size, for each pass."""

    forward: tuple[tuple[int, AttentionRate], ...]
    backward: tuple[tuple[int, AttentionRate], ...]

    def rate(self, backward: bool, width: int) -> AttentionRate:
        """The rate of the head size nearest (by ratio) to ``width``, the smaller of two."""
        rows = self.backward if backward else self.forward
        return min(rows, key=lambda row: (abs(log(row[0] / max(width, 1))), row[0]))[1]
