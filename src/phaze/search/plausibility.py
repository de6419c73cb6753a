"""Whether a chip that was found could be built, as far as shipped chips tell.

A certificate says that nothing in the space is better; it does not say that the model of area and
power is right. So an answer stands beside the densest chips that were shipped in its process: peak
and TDP a mm2, peak a W; and beside all shipped chips its clock and HBM bandwidth. Above
them it is called what it is.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from phaze.hardware.chip import Chip
from phaze.hardware.chip_estimates import estimates_of
from phaze.hardware.shipped import Shipped, ShippedChip, shipped_beside
from phaze.search.chips import SpaceChips

# Figures of shipped chips are rounded; a chip that is alike is no warning.
ALIKE = 1.02


def _figure(
    value: float,
    chips: Sequence[ShippedChip],
    of: Callable[[ShippedChip], float],
    dense: bool = False,
) -> dict[str, Any]:
    """A figure beside the most that was shipped; ``dense``: it is one a mm2, and grows as a die
    turns out smaller."""
    most = max(chips, key=of)
    return {
        "value": value,
        "shipped": of(most),
        "shipped_chip": most.title,
        "shipped_is_lower_bound": dense and most.die_is_upper_bound,
        "ratio": value / of(most),
    }


def _figures(
    chip: Chip, area_mm2: float, design_w: float, shipped: Shipped
) -> dict[str, dict[str, Any]]:
    return {
        "peak_flops_per_mm2": _figure(
            chip.peak_flops / area_mm2, shipped.near, lambda product: product.flops_per_mm2, True
        ),
        "peak_flops_per_w": _figure(
            chip.peak_flops / design_w, shipped.near, lambda product: product.flops_per_w
        ),
        "design_w_per_mm2": _figure(
            design_w / area_mm2, shipped.near, lambda product: product.watts_per_mm2, True
        ),
        "clock_hz": _figure(chip.clock_hz, shipped.every, lambda product: product.clock),
        "hbm_bytes_per_s": _figure(
            chip.hbm.bandwidth_bytes_per_s, shipped.every, lambda product: product.hbm or 0.0
        ),
    }


WORDS: Mapping[str, tuple[str, str, float]] = MappingProxyType(
    {
        "peak_flops_per_mm2": ("{value:.2f} TFLOP/s a mm2", "{shipped:.2f}", 1e12),
        "peak_flops_per_w": ("{value:.2f} TFLOP/s a W", "{shipped:.2f}", 1e12),
        "design_w_per_mm2": ("{value:.2f} W a mm2", "{shipped:.2f}", 1.0),
        "clock_hz": ("a clock of {value:.3g} GHz", "{shipped:.3g}", 1e9),
        "hbm_bytes_per_s": ("{value:.3g} TB/s of HBM", "{shipped:.3g}", 1e12),
    }
)


def _warning(name: str, figure: dict[str, Any]) -> str:
    value, shipped, scale = WORDS[name]
    texts = (
        value.format(value=figure["value"] / scale),
        shipped.format(shipped=figure["shipped"] / scale),
    )
    most, least = ("up to ", "at least ") if figure["shipped_is_lower_bound"] else ("", "")
    times = f"{most}{figure['ratio']:.1f} times the most shipped"
    return f"{texts[0]} is {times} ({figure['shipped_chip']}, {least}{texts[1]})"


def plausibility_of(chip: Chip) -> dict[str, Any]:
    """A chip of a space beside shipped ones, and what to be warned of."""
    figures = estimates_of(chip)
    if figures is None:
        raise AssertionError(f"{chip.name}: a chip of a space names a process")
    process, area_mm2, design_w = figures.process, figures.area_mm2, figures.design_w
    shipped = shipped_beside(process)
    beside = _figures(chip, area_mm2, design_w, shipped)
    warnings = [
        _warning(name, figure) for name, figure in beside.items() if figure["ratio"] > ALIKE
    ]
    return {
        "process": process,
        "beside_process": shipped.process,
        "note": shipped.note,
        "reason": figures.technology.open_question or shipped.reason,
        **beside,
        "warnings": warnings,
    }


def axis_ends(chips: SpaceChips, number: int) -> list[dict[str, Any]]:
    """Axes at whose end a chip stands: a space that goes further may have a better one."""
    values, ends = chips.axis_values(), list[dict[str, Any]]()
    for name, points in chips.space.axis_points().items():
        value = values[name][number]
        if len(points) > 1 and value in (points[0], points[-1]):
            ends.append(
                {
                    "axis": name,
                    "value": float(value),
                    "end": "least" if value == points[0] else "most",
                }
            )
    return ends
