"""Memory that is left free when a plan is chosen, and how far an estimate of memory may be off.

A plan that fills a device to the last byte runs out of it: fragments, workspaces and other kernels are not counted.
A choice may fill

    H (1 - headroom)

of a device with H bytes. A plan that is given is judged by H. How far estimates of memory were off, and the chance
that a plan fits, are those of measured runs (:mod:`phaze.evaluate.bands`).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.bands import fits_probability, memory_band_of
from phaze.hardware.stack import Saves

# Nearly 5 GiB of an 80 GiB device: fragments and workspaces beyond the stack's own reserve.
USUAL_HEADROOM = 0.06
# A plan that may use less than a tenth of memory is a slip of the pen.
MOST_HEADROOM = 0.9


def require_headroom(share: float, where: str) -> float:
    """The share, or a refusal."""
    if not 0 <= share <= MOST_HEADROOM:
        raise InputError(where, f"{share!r} is out of range", "give a share such as 6% or 0.06, at most 90%")
    return share


def parse_headroom(text: str, where: str) -> float:
    """``6%`` or ``0.06`` as a share."""
    number, percent = (text.strip().removesuffix("%"), text.strip().endswith("%"))
    try:
        share = float(number) / (100 if percent else 1)
    except ValueError:
        raise InputError(where, f"'{text}' is not a share", "give one such as 6% or 0.06") from None
    return require_headroom(share, where)


def memory_left(
    stages: Sequence[Mapping[str, Any]], hbm_bytes: float, headroom: float, saves: Saves | None = None
) -> dict[str, Any]:
    """What the fullest stage of a plan leaves of a device, how far that may be off, and the chance that it fits, as
    plain values; ``saves`` is what the stack keeps between passes."""
    fullest = max(stage["memory_bytes"] for stage in stages)
    band = memory_band_of(saves)
    return {
        "available_bytes": hbm_bytes,
        "left_bytes": hbm_bytes - fullest,
        "left_share": 1 - fullest / hbm_bytes,
        "headroom": headroom,
        "fits_probability": fits_probability(hbm_bytes, fullest, band.ratios),
        "band": {"median": band.median, "ninetieth": band.ninetieth, "rows": f"{band.rows} measured runs"},
    }
