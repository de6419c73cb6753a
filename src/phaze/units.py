"""Quantities with units: the only place that knows prefixes.

Inside phaze every value is SI (bytes, seconds, hertz, watts, joules) or mm2, with the unit in its name.
Files may say ``"32 GiB"`` or a plain number in the base unit; people are shown ``32 GiB``.

    value = number * prefix(text),   prefix decimal (k, M, G, T, P, m, u, n, p) or binary (Ki, Mi, Gi, Ti)
"""

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

Unit = Literal["B", "B/s", "Hz", "s", "W", "J", "mm2", "FLOP/s", "USD", "kgCO2e"]

DECIMAL: Mapping[str, float] = MappingProxyType(
    {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
)
SMALL: Mapping[str, float] = MappingProxyType({"m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12})
BINARY: Mapping[str, float] = MappingProxyType({"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40})
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {"B": "32 GiB", "B/s": "1200 GB/s", "Hz": "1.05 GHz", "s": "2 us", "mm2": "814 mm2"}
)

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\s].*?)?\s*")


def _spellings(unit: Unit) -> dict[str, float]:
    """Every way to write a multiple of ``unit``, with its factor; bits of a rate count an eighth of a byte."""
    if unit == "B":
        return {p + "B": f for p, f in (*DECIMAL.items(), *BINARY.items())}
    if unit == "B/s":
        in_bytes = {p + "B/s": f for p, f in (*DECIMAL.items(), *BINARY.items())}
        return in_bytes | {p + "b/s": f / 8 for p, f in DECIMAL.items()}
    if unit in ("mm2", "USD", "kgCO2e"):
        return {unit: 1.0}
    return {p + unit: f for p, f in (*DECIMAL.items(), *SMALL.items())}


def parse(text: str, unit: Unit) -> float:
    """The value of ``text`` in ``unit``; raises ValueError with what would be right."""
    match = _QUANTITY.fullmatch(text)
    spellings = _spellings(unit)
    example = EXAMPLES.get(unit, f"1 {unit}")
    if match is None:
        raise ValueError(f"give a number in {unit} or a text such as '{example}'")
    number, suffix = match.groups()
    if suffix is None or suffix not in spellings:
        raise ValueError(f"give the unit as one of {', '.join(spellings)}, for example '{example}'")
    try:
        value = float(Decimal(number) * Decimal(repr(spellings[suffix])))
    except ArithmeticError:
        value = math.inf
    if not math.isfinite(value):
        raise ValueError(f"give a finite number such as '{example}'")
    return value


def _scaled(value: float, unit: str, steps: Mapping[str, float]) -> str:
    prefix, factor = "", 1.0
    for name, step in sorted(steps.items(), key=lambda item: item[1]):
        if abs(value) >= step:
            prefix, factor = name, step
    if 0 < abs(value) < min(steps.values()):
        prefix, factor = min(steps.items(), key=lambda item: item[1])
    return f"{value / factor:.4g} {prefix}{unit}"


def show(value: float, unit: Unit) -> str:
    """``value`` with the prefix that keeps it readable: bytes in binary prefixes, all else in decimal ones."""
    if unit == "B":
        return _scaled(value, "B", {"": 1.0, **BINARY})
    if unit in ("mm2", "USD", "kgCO2e"):
        return f"{value:.4g} {unit}"
    if unit in ("s", "J"):
        return _scaled(value, unit, {**SMALL, **DECIMAL})
    return _scaled(value, unit, DECIMAL)
