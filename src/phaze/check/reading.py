"""Documents read strictly, digests, and the two ways in which a check ends before it has proved
everything."""

import hashlib
import json
from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any

MOST_BYTES = 1 << 28
"""No document of a run is as large: a longer one is not read."""


class RefusedError(Exception):
    """The claim does not hold, or nothing shows that it does; the message is the first line that
    fails."""


class NotCoveredError(Exception):
    """The claim may hold, and this checker has no rules for its kind yet."""


def require(holds: bool, sentence: str) -> None:
    """Refuse with a sentence unless ``holds``."""
    if not holds:
        raise RefusedError(sentence)


def cover(covered: bool, sentence: str) -> None:
    """Say that a kind is not covered unless it is."""
    if not covered:
        raise NotCoveredError(sentence)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RefusedError("a document has a key twice")
    return found


def _no_constant(text: str) -> Any:
    raise RefusedError(f"a document holds {text}, which is not a number")


def text_of(path: Path) -> str:
    """The text of a file of the run."""
    try:
        if path.exists() and not path.is_file():
            raise RefusedError(f"{path.name}: it is not a file")
        if path.stat().st_size > MOST_BYTES:
            raise RefusedError(f"{path.name}: it is too large to be part of a run")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise RefusedError(f"{path.name}: it cannot be read ({type(fault).__name__})") from None


def parsed(text: str, name: str) -> dict[str, Any]:
    """A JSON object without repeated keys and without NaN."""
    try:
        found = json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except (ValueError, RecursionError) as fault:
        raise RefusedError(f"{name}: it is not JSON ({type(fault).__name__})") from None
    require(isinstance(found, dict), f"{name}: it is not a JSON object")
    return dict(found)


def sha256(text: str) -> str:
    """The digest of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def digest_of(value: Any) -> str:
    """The digest of plain values, however they were written: sorted keys, no spaces."""
    return sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def number(value: Any, where: str, least: float = 0.0, most: float = 1e300) -> float:
    """A number within limits."""
    fine = isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
    require(
        fine and least <= value <= most,
        f"{where}: {str(value)[:40]} is not a number from {least:g} to {most:g}",
    )
    return float(value)


def positive(value: Any, where: str) -> float:
    """A number above 0."""
    found = number(value, where)
    require(found > 0, f"{where}: {found!r} is not above 0")
    return found


def whole(value: Any, where: str, least: int = 0, most: int = 1 << 62) -> int:
    """A whole number within limits."""
    fine = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    require(fine, f"{where}: {str(value)[:40]} is not a whole number from {least} to {most}")
    return int(value)


def listed(value: Any, where: str, length: int | None = None) -> Sequence[Any]:
    """A list, of a given length if any."""
    require(isinstance(value, list), f"{where}: it is not a list")
    require(
        length is None or len(value) == length,
        f"{where}: it has {len(value)} entries, not {length}",
    )
    return list(value)


def only(value: Any, where: str, keys: Sequence[str]) -> dict[str, Any]:
    """A table with exactly these keys."""
    require(
        isinstance(value, dict) and set(value) == set(keys),
        f"{where}: its keys are not {', '.join(keys)}",
    )
    return dict(value)
