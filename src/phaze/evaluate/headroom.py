"""Memory that is left free when a plan is chosen, and how far an estimate of memory may be off.

A plan that fills a device to the last byte runs out of it: fragments, workspaces and other kernels
are not counted. A choice may fill

    H (1 - headroom)

of a device with H bytes. A plan that is given is judged by H. How far estimates of memory were off,
and the chance that a plan fits, are those of measured runs (:mod:`phaze.evaluate.bands`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.evaluate.bands import fits_probability, memory_band_of
from phaze.hardware.stack import Saves
from phaze.options.key_fields import rule_default

USUAL_HEADROOM: float = rule_default("training.headroom", "cluster")


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """The memory of a device, and the share of it that a plan leaves free."""

    hbm_bytes: float
    headroom: float

    @property
    def kept_free_bytes(self) -> float:
        """What a plan leaves free."""
        return self.hbm_bytes * self.headroom


def memory_left(
    stages: Sequence[Mapping[str, Any]], memory: DeviceMemory, saves: Saves | None = None
) -> dict[str, Any]:
    """What the fullest stage of a plan leaves of a device, how far that may be off, and the chance
    that it fits, as plain values; ``saves`` is what the stack keeps between passes."""
    fullest, hbm_bytes = max(stage["memory_bytes"] for stage in stages), memory.hbm_bytes
    band = memory_band_of(saves)
    return {
        "available_bytes": hbm_bytes,
        "left_bytes": hbm_bytes - fullest,
        "left_share": 1 - fullest / hbm_bytes,
        "headroom": memory.headroom,
        "fits_probability": fits_probability(hbm_bytes, fullest, band.ratios),
        "band": {
            "median": band.median,
            "ninetieth": band.ninetieth,
            "rows": f"{band.rows} measured runs",
        },
    }
