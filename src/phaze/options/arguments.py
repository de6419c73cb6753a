"""What functions are given: values, or the texts that the options of their commands take, read in
one place.

What cannot be used is refused in the command's words, and a parameter is named as its option is:
``--batch``.
"""

from collections.abc import Callable, Iterable, Sequence
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from phaze.errors import InputError, unknown_name

T = TypeVar("T")
Reader = Callable[[str, Any], Any]
# How much of a path a sentence repeats: a system refuses names from 256 characters on, some of
# thousands.
LONGEST_NAME = 200
# Arrays hold whole numbers of 64 bits; no text that is one has more digits, and Python reads none
# of thousands.
BEYOND = 2**63
DIGITS = 20
# A plan that may use less than a tenth of memory is a slip of the pen.
MOST_HEADROOM = 0.9


def whole(option: str, value: Any) -> int:
    """A whole number of 64 bits, or a text that is one."""
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.removeprefix("-").isdigit()):
        raise InputError(option, f"'{value}' is not a whole number", "give digits alone")
    if len(text) > DIGITS or abs(int(text)) >= BEYOND:
        raise InputError(
            option, f"'{text[:DIGITS]}' is out of range", f"give a number below {BEYOND:,}"
        )
    return int(text)


def workers(option: str, value: Any) -> int:
    """A number of worker processes; 0 is one for each core."""
    count = whole(option, value)
    if count < 0:
        raise InputError(option, f"{count} is not a number of workers", "give 0 or more")
    return count


def number(option: str, value: Any) -> float:
    """A finite number, or a text that is one."""
    try:
        number = (
            value
            if isinstance(value, int | float) and not isinstance(value, bool)
            else float(str(value))
        )
        finite = isfinite(number)
    except (ValueError, OverflowError):
        finite = False
    if not finite:
        raise InputError(option, f"'{value}' is not a number", "give one such as 0.5")
    return number


def place(option: str, value: Any) -> str:
    """A path or a name."""
    if not isinstance(value, str | Path):
        raise InputError(option, f"'{value}' is not a name or path", "give a text")
    return str(value)


def chosen(choices: tuple[str, ...]) -> Reader:
    """What takes one of some names."""

    def read(option: str, value: Any) -> str:
        if value not in choices:
            raise unknown_name(option, option.strip("-").replace("-", " "), str(value), choices)
        return str(value)

    return read


def parsed(option: str, value: Any, parse: Callable[[str], T]) -> T:
    """What ``parse`` makes of a text, or an error that names the option; a number as it is."""
    if not isinstance(value, str):
        return value  # type: ignore[no-any-return]
    try:
        return parse(value)
    except ValueError as fault:
        raise InputError(option, f"'{value}' cannot be used", str(fault)) from None


def parts(value: str | int | Iterable[Any]) -> list[str]:
    """The parts of a text with commas, or of a list; one number is a list of it."""
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return [str(part) for part in value] if isinstance(value, Iterable) else [str(value)]


def share(option: str, value: str | float) -> float:
    """A share of memory to leave free: ``6%`` or ``0.06``."""
    text = str(value).strip()
    try:
        memory_share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        raise InputError(
            option, f"'{value}' is not a share", "give one such as 6% or 0.06"
        ) from None
    if not 0 <= memory_share <= MOST_HEADROOM:
        raise InputError(
            option,
            f"{memory_share!r} is out of range",
            "give a share such as 6% or 0.06, at most 90%",
        )
    return memory_share


def names(option: str, value: str | Iterable[str]) -> tuple[str, ...]:
    """Names in a text with commas, or in a list."""
    return tuple(parts(value))


def numbers(option: str, value: str | int | Iterable[int]) -> tuple[int, ...]:
    """Whole numbers above 0, ascending, each once."""
    texts, seen = parts(value), value if isinstance(value, str) else ",".join(parts(value))
    try:
        values = tuple(sorted({int(part) if len(part) < DIGITS else BEYOND for part in texts}))
    except ValueError:
        raise InputError(
            option, f"'{seen}' is not a list of numbers", "give whole numbers such as 1,2,4"
        ) from None
    if not values or values[0] < 1 or values[-1] >= BEYOND:
        raise InputError(
            option, f"'{seen[:LONGEST_NAME]}' is out of range", "give numbers above 0 of 64 bits"
        )
    return values


def shards(option: str, value: str | int | Iterable[int]) -> tuple[int, ...]:
    """Ranks that share state, ascending; 0 of a list, ``all`` of a text, is all ranks with the same
    weights."""
    texts, seen = parts(value), value if isinstance(value, str) else ",".join(parts(value))
    try:
        ranks = {0 if part == "all" else int(part) for part in texts}
    except ValueError:
        raise InputError(
            option, f"'{seen}' is not a list of ranks", "give numbers such as 8,16 or 8,all"
        ) from None
    if isinstance(value, str) and "0" in texts:
        raise InputError(option, "0 is out of range", "give 2 ranks or more, or all")
    return tuple(sorted(ranks))


def reader_of(annotation: Any) -> Reader | None:
    """What reads a parameter of this type; None where it is taken as it is."""
    either = get_origin(annotation) in (UnionType, Union)
    kinds = [
        kind for kind in (get_args(annotation) if either else (annotation,)) if kind is not NoneType
    ]
    if kinds == [str, int, Sequence[int]]:
        return numbers
    if kinds == [int]:
        return whole
    if kinds == [float]:
        return number
    if set(kinds) <= {str, Path} and Path in kinds:
        return place
    if len(kinds) == 1 and get_origin(kinds[0]) is Literal:
        return chosen(get_args(kinds[0]))
    return None
