"""Attention kernels that were measured (docs/cost.md): seconds from FLOP, not from mappings of
their products.

    seconds = start + (FLOP + extra keys x FLOP of one key for every query) / (share x peak)

with FLOP over the pairs that the mask leaves, and start, extra keys and share by pass and head
size, those of the head size nearest by ratio, the smaller of two. The peak is that of all arrays at
the rated clock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

from .reading import listed, number, only, positive, whole

Rate = tuple[float, float, float, float]
"""Start in seconds, extra keys, share of the peak."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fused attention operator: its pass, the width of a head, FLOP of its pairs, and of one key
    for each query."""

    backward: bool
    width: int
    flops: float
    key_flops: float


@dataclass(frozen=True, slots=True)
class Kernels:
    """Measured rates by head size, for each pass."""

    forward: tuple[tuple[int, Rate], ...]
    backward: tuple[tuple[int, Rate], ...]

    def seconds(self, kernel: Kernel, peak: Any) -> Any:
        """Seconds on chips of these peaks."""
        rows = self.backward if kernel.backward else self.forward
        start, extra, share, most = min(
            rows, key=lambda row: (abs(log(row[0] / max(kernel.width, 1))), row[0])
        )[1]
        return (
            start
            + max((kernel.flops + extra * kernel.key_flops) / share, kernel.flops / most) / peak
        )


def _rows(table: Any, where: str) -> tuple[tuple[int, Rate], ...]:
    found = []
    for row in listed(table, where):
        head, rate = listed(row, where, 2)
        own = only(rate, where, ("start_s", "extra_keys", "share", "most"))
        begun = number(own["start_s"], where), number(own["extra_keys"], where)
        found.append(
            (
                whole(head, where, 1),
                (*begun, positive(own["share"], where), positive(own["most"], where)),
            )
        )
    return tuple(found)


def kernels_of(table: Mapping[str, Any] | None) -> Kernels | None:
    """What a problem states of them, if anything."""
    if table is None:
        return None
    own = only(table, "constants.attention", ("forward", "backward"))
    return Kernels(
        _rows(own["forward"], "attention.forward"), _rows(own["backward"], "attention.backward")
    )


def pairs(queries: int, keys: int, causal: bool, window: int) -> int:
    """Pairs of queries and keys that a mask leaves, of one head: position i of k sees min(i, w) of
    those before it and itself, and without a causal mask as many behind it; of some queries as many
    as they are of all positions."""
    masked = causal or 0 < window < keys
    if not keys or not queries or not masked:
        return queries * keys
    w = window if 0 < window < keys else keys
    before = keys * w - w * (w - 1) // 2
    return (queries * (before if causal else 2 * before - keys) + keys - 1) // keys


def kernel_of(kind: str, sizes: Mapping[str, int]) -> Kernel:
    """An attention operator as a kernel."""
    back, width, value = kind == "attention_backward", sizes["width"], sizes["value_width"]
    each = 2.0 * sizes["batch"] * (3 * width + 2 * value if back else width + value)
    found = pairs(
        sizes["queries"], sizes["keys"], bool(sizes.get("causal", 0)), sizes.get("window", 0)
    )
    return Kernel(back, width, each * found, each * sizes["queries"])


def alone(kinds: Sequence[str], matrix: frozenset[str], attention: frozenset[str]) -> int | None:
    """Where the one attention operator of a fused one stands, if no other product is in it."""
    places = [at for at, kind in enumerate(kinds) if kind in matrix or kind in attention]
    return places[0] if len(places) == 1 and kinds[places[0]] in attention else None
