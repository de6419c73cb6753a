"""Quantities with units: the only place that knows prefixes.

Inside phaze every value is SI (bytes, seconds, hertz, watts, joules) or mm2, with the unit in its
name. Files may say ``"32 GiB"`` or a plain number in the base unit; people are shown ``32 GiB``.

    value = number * prefix(text),   prefix decimal (k, M, G, T, P, m, u, n, p) or binary (Ki, Mi,
                                     Gi, Ti)
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType
from typing import Literal

Unit = Literal["B", "B/s", "Hz", "s", "W", "J", "mm2", "FLOP/s", "USD", "kgCO2e"]

DECIMAL: Mapping[str, float] = MappingProxyType(
    {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
)
SMALL: Mapping[str, float] = MappingProxyType({"m": 1e-3, "u": 1e-6, "n": 1e-9, "p": 1e-12})
BINARY: Mapping[str, float] = MappingProxyType(
    {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
)
EXAMPLES: Mapping[str, str] = MappingProxyType(
    {"B": "32 GiB", "B/s": "1200 GB/s", "Hz": "1.05 GHz", "s": "2 us", "mm2": "814 mm2"}
)

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\s].*?)?\s*")


def _spellings(unit: Unit) -> dict[str, float]:
    """Every way to write a multiple of ``unit``, with its factor; bits of a rate count an eighth of
    a byte."""
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
    """``value`` with the prefix that keeps it readable: bytes in binary prefixes, all else in
    decimal ones."""
    if unit == "B":
        return _scaled(value, "B", {"": 1.0, **BINARY})
    if unit in ("mm2", "USD", "kgCO2e"):
        return f"{value:.4g} {unit}"
    if unit in ("s", "J"):
        return _scaled(value, unit, {**SMALL, **DECIMAL})
    return _scaled(value, unit, DECIMAL)


def digits(value: float) -> str:
    """A number with three digits: no estimate here is known to more."""
    return f"{float(f'{value:.3g}'):,.0f}" if abs(value) >= 100 else f"{value:.3g}"


# Lengths count in powers of two, as the field says 32k for 32,768; tokens of data and of a batch in
# powers of ten.
LENGTHS: Mapping[str, int] = MappingProxyType(
    {"": 1, "k": 2**10, "K": 2**10, "Ki": 2**10, "M": 2**20, "Mi": 2**20}
)
TOKENS: Mapping[str, int] = MappingProxyType(
    {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "G": 10**9, "T": 10**12, "P": 10**15}
    | {prefix: int(factor) for prefix, factor in BINARY.items()}
)
# A batch in tokens is rounded to a round number of sequences within this share of it: 4M tokens of
# 4,096 are 1,024 sequences, as people run them, and not 977.
BATCH_TOLERANCE = 0.05
_COUNTED = re.compile(r"\s*(\d+\.?\d*(?:[eE]\+?\d+)?)\s*([A-Za-z]*?)\s*(-?\s*tokens?)?\s*")


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """A batch that is stated in tokens; :func:`sequences_in` says how many sequences that is."""

    tokens: int

    def __str__(self) -> str:
        return f"{show_count(self.tokens)} tokens"


Batch = int | TokenBatch


def _counted(text: str, steps: Mapping[str, int], example: str) -> tuple[int, bool]:
    """A whole number with a prefix of ``steps``, and whether it is said to be of tokens."""
    match = _COUNTED.fullmatch(text)
    if match is None or match[2] not in steps:
        raise ValueError(
            f"give a number such as {example}, with one of {', '.join(p for p in steps if p)}"
        )
    value = Decimal(match[1]) * steps[match[2]]
    if not 0 < value < 2**63 or value != int(value):
        raise ValueError(f"give a whole number above 0 such as {example}")
    return int(value), match[3] is not None


def parse_length(text: str) -> int:
    """Positions of a sequence: ``4096``, or ``32k`` for 32 x 1024; raises ValueError with what
    would be right."""
    return _counted(text, LENGTHS, "4096 or 32k (k = 1024)")[0]


def parse_tokens(text: str) -> int:
    """Tokens of data: ``15T`` for 15 x 10^12, ``2e12``; raises ValueError with what would be
    right."""
    return _counted(text, TOKENS, "15T or 300B (T = 10^12, B = 10^9)")[0]


def parse_batch(text: str) -> Batch:
    """A batch: ``1024`` sequences, or ``4M-tokens``; raises ValueError with what would be right."""
    remedy = (
        "give sequences as a whole number such as 1024, or tokens such as 4M-tokens (M = "
        "10^6) or 4Mi-tokens"
    )
    try:
        count, of_tokens = _counted(text, TOKENS, "4M-tokens")
    except ValueError:
        raise ValueError(remedy) from None
    if of_tokens:
        return TokenBatch(count)
    if not text.strip().isdigit():
        raise ValueError(remedy)
    return count


def sequences_in(batch: Batch, sequence: int) -> int:
    """How many sequences of a length a batch has.

    In tokens, T / sequence is rounded to the nearest multiple of the greatest power of two that
    stays within ``BATCH_TOLERANCE`` of it; a batch of less than one sequence raises ValueError.
    """
    if isinstance(batch, int):
        return batch
    exact = Fraction(batch.tokens, sequence)
    if exact < 1:
        raise ValueError(f"{batch} are less than one sequence of {sequence:,} tokens")
    for exponent in range(exact.__floor__().bit_length() + 1, -1, -1):
        step = 1 << exponent
        rounded = round(exact / step) * step
        if rounded and abs(rounded - exact) <= Fraction(BATCH_TOLERANCE) * exact:
            return rounded
    return max(1, round(exact))


def show_count(value: float) -> str:
    """A count with a decimal prefix as people say it: 4M, 15T."""
    for prefix in ("T", "B", "M"):
        if value >= TOKENS[prefix]:
            return f"{value / TOKENS[prefix]:.4g}{prefix}"
    return f"{value:,.6g}"
