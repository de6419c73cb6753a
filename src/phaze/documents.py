"""Documents in and out: JSON or TOML text becomes a checked value, or one sentence with the path to
the fault.

A file format is a pydantic model (:class:`Document`: strict types, no unknown keys) under a name
such as ``phaze.chip/1``. Reading goes text -> plain values (:func:`parse`) -> model
(:func:`check`); writing goes through :func:`dumps`, whose bytes depend on the value alone.
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from math import isfinite, isnan
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    ValidationError,
    WithJsonSchema,
)
from pydantic_core import PydanticKnownError

from phaze import units
from phaze.document_faults import first_fault, spell_path
from phaze.errors import InputError
from phaze.files import read_text

Notation = Literal["json", "toml"]
# How a path becomes the text there and the name to call it by: from disk, or from copies that were
# kept of it.
Reader = Callable[[str], tuple[str, str]]
# A text without these has no number without end: NaN, infinity, or a number too large for 64 bits
# ("1e999").
ENDLESS = re.compile(r"nan|inf|e\+?\d[\d_]{2}|[\d_]{200}", re.IGNORECASE)
# Escapes of half a character (a whole one is two of them in a row) and of characters that a
# terminal obeys, or those.
ESCAPES = re.compile(
    r"\\u(?:0000)?(?:d[89a-f]|00[01]|007f|00[89])|\\[bf]|[\x7f-\x9f]", re.IGNORECASE
)
HALF = re.compile("[\ud800-\udfff]")
ORDER = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# Formats here are nested about ten deep. TOML's parser takes time with the square of a dotted key's
# length.
MOST_DOTS = 64
DOTTED = re.compile(
    rf"(?<![\w-])(?:(?:[\w-]+|\"[^\"\n]*\"|'[^'\n]*')[ \t]*\.[ \t]*){{{MOST_DOTS}}}"
)
# TOML is written by people; a megabyte of it takes a second to parse.
MOST_TOML = 4 << 20


class Document(BaseModel):
    """Base of every file format: immutable, strict about types, unknown keys refused."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, allow_inf_nan=False, defer_build=True
    )


@dataclass(frozen=True, slots=True)
class Format:
    """A named file format: what ``schema = "name"`` in a file refers to."""

    name: str
    model: type[Document]
    summary: str


M = TypeVar("M", bound=Document)


def _quantity(unit: units.Unit, whole: bool = False) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if isinstance(value, str):
            value = units.parse(value, unit)
        if whole:
            return int(value) if isinstance(value, float) and value.is_integer() else value
        return _real(value)

    return read


def _real(value: Any) -> Any:
    """Whole numbers stand for real ones; all else is left to the type check."""
    return float(value) if type(value) is int and abs(value) < 2**1023 else value


def _shape(unit: units.Unit) -> WithJsonSchema:
    text = f"a number in {unit}, or a text with a unit of that kind"
    return WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}], "description": text})


# Nothing real is slower or smaller than this; what divides by much less leaves the numbers of 64
# bits.
LEAST_RATE, LEAST = 1e-3, 1e-15
Bytes = Annotated[
    int, BeforeValidator(_quantity("B", whole=True)), _shape("B"), Field(gt=0, le=2**60)
]
BytesPerSecond = Annotated[
    float, BeforeValidator(_quantity("B/s")), _shape("B/s"), Field(ge=LEAST_RATE, le=1e18)
]
Hertz = Annotated[
    float, BeforeValidator(_quantity("Hz")), _shape("Hz"), Field(ge=LEAST_RATE, le=1e15)
]
Seconds = Annotated[float, BeforeValidator(_quantity("s")), _shape("s"), Field(ge=0, le=1e9)]
Watts = Annotated[float, BeforeValidator(_quantity("W")), _shape("W"), Field(ge=LEAST, le=1e9)]
Mm2 = Annotated[float, BeforeValidator(_quantity("mm2")), _shape("mm2"), Field(ge=LEAST, le=1e9)]
FlopPerSecond = Annotated[
    float, BeforeValidator(_quantity("FLOP/s")), _shape("FLOP/s"), Field(ge=LEAST_RATE, le=1e24)
]
Count = Annotated[int, Field(gt=0, le=2**40)]
Share = Annotated[float, BeforeValidator(_real), Field(ge=0, le=1)]
NonNegative = Annotated[float, BeforeValidator(_real), Field(ge=0, le=1e15)]
Positive = Annotated[float, BeforeValidator(_real), Field(ge=LEAST, le=1e15)]


MOST_COUNT = 2**40
"""A trillion of anything countable is a slip, and products of two such counts stay exact."""


def _parsed(read: Callable[[str], int]) -> Callable[[Any], Any]:
    """A text as ``read`` has it; all else is left to the type check."""
    return lambda value: read(value) if isinstance(value, str) else value


def _batch(value: Any) -> units.Batch:
    batch = units.parse_batch(value) if isinstance(value, str) else value
    if isinstance(batch, units.TokenBatch):
        return batch
    if type(batch) is not int:
        raise PydanticKnownError("int_type")
    if batch < 1:
        raise PydanticKnownError("greater_than", {"gt": 0})
    if batch > MOST_COUNT:
        raise PydanticKnownError("less_than_equal", {"le": MOST_COUNT})
    return batch


def _or_text(text: str) -> WithJsonSchema:
    return WithJsonSchema(
        {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}], "description": text}
    )


Length = Annotated[
    int,
    BeforeValidator(_parsed(units.parse_length)),
    _or_text("positions of a sequence, or a text such as 32k (k = 1024)"),
    Field(gt=0, le=2**31),
]
TokenCount = Annotated[
    int,
    BeforeValidator(_parsed(units.parse_tokens)),
    _or_text("tokens, or a text such as 15T (10^12)"),
    Field(gt=0, le=2**62),
]
BatchSize = Annotated[
    units.Batch,
    PlainValidator(_batch),
    _or_text("sequences of a batch, or a text such as 4M-tokens"),
]


def notation_of(path: str, text: str) -> Notation:
    """TOML by the ending ``.toml``; on standard input whatever does not begin like JSON; JSON
    otherwise."""
    if path == "-":
        return "json" if text.lstrip()[:1] in ("{", "[", "") else "toml"
    return "toml" if path.endswith(".toml") else "json"


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for key, value in pairs:
        if key in seen:
            raise ValueError(f"the key '{key}' appears twice")
        seen[key] = value
    return seen


def _unprintable(text: str) -> str:
    """What a text has that is no character to print: half of one, or an order to a terminal; empty
    where nothing is."""
    if HALF.search(text):
        return "half a character (a lone surrogate)"
    control = ORDER.search(text)
    return f"the control character U+{ord(control[0]):04X}" if control else ""


def require_printable(text: str, where: str) -> None:
    """Refuse a text, such as a table of cells, that has what cannot be printed."""
    for number, line in enumerate(text.splitlines(), start=1):
        if bad := _unprintable(line):
            raise InputError(
                f"{where}: line {number}", f"this text has {bad}", "give whole characters"
            )


def _unusable(
    value: Any, steps: tuple[int | str, ...] = ()
) -> tuple[tuple[int | str, ...], str] | None:
    """Where the first NaN, infinity, half a character or control character stands, and what it
    is."""
    if isinstance(value, float):
        if isfinite(value):
            return None
        return steps, "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, str):
        bad = _unprintable(value)
        return (steps, bad) if bad else None
    rows: Iterable[tuple[int | str, Any]] = ()
    if isinstance(value, dict):
        bad = next(filter(None, map(_unprintable, value)), "")
        if bad:
            return steps, bad
        rows = value.items()
    elif isinstance(value, list):
        rows = enumerate(value)
    return next(
        (fault for key, item in rows if (fault := _unusable(item, (*steps, key))) is not None), None
    )


def _plain(text: str, notation: Notation, where: str) -> Any:
    if notation == "json":
        return json.loads(text, object_pairs_hook=_unique)
    if len(text) > MOST_TOML:
        raise InputError(where, f"there is more than {MOST_TOML >> 20} MiB of TOML", "give JSON")
    if DOTTED.search(text):
        raise InputError(where, "the document is nested too deeply")
    return tomllib.loads(text)


def parse(text: str, notation: Notation, where: str) -> dict[str, Any]:
    """Plain values from JSON or TOML; duplicate keys, NaN, infinities and what cannot be printed
    are faults."""
    if notation == "json" and not text.strip():
        raise InputError(where, "there is nothing in it", "give an object with keys")
    try:
        raw = _plain(text, notation, where)
        unusable = _unusable(raw) if ENDLESS.search(text) or ESCAPES.search(text) else None
    except RecursionError:
        raise InputError(where, "the document is nested too deeply") from None
    except ValueError as fault:
        raise InputError(where, f"this is not {notation.upper()}: {fault}") from None
    if not isinstance(raw, dict):
        raise InputError(where, f"the document is {type(raw).__name__}", "give an object with keys")
    if unusable is not None:
        steps, what = unusable
        place = f"{where}: {spell_path(steps)}"
        if "character" in what:
            raise InputError(
                place, f"this text has {what}", "give whole characters that can be printed"
            )
        raise InputError(place, f"{what} is not a number that can be used", "give a finite number")
    return raw


def check(model: type[M], raw: Mapping[str, Any], where: str) -> M:
    """``raw`` as a value of ``model``, or an :class:`InputError` for the first fault, with its
    path."""
    try:
        return model.model_validate(dict(raw))
    except ValidationError as fault:
        raise first_fault(model, fault, where) from None
    except RecursionError:
        raise InputError(where, "the document is nested too deeply") from None


def load(model: type[M], path: str, reader: Reader = read_text) -> M:
    """Read, parse and check the file at ``path``."""
    text, where = reader(path)
    return check(model, parse(text, notation_of(path, text), where), where)


class MissingKeyError(InputError, KeyError):
    """An answer that is read back lacks a key: a sentence, and still what a failed lookup
    raises."""

    __str__ = InputError.__str__  # a KeyError puts its text in quotes


class AnswerTable(dict[str, Any]):
    """A table of an answer that is read back. It may lack what the pages and sheets that show it
    look up: then the lookup is refused with the table's place."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        super().__init__(values)
        self.where = where

    def __missing__(self, key: str) -> Any:
        raise MissingKeyError(
            self.where, f"the key '{key}' is missing", "make it again with this version"
        )


def _answer_value(value: Any, where: str, steps: tuple[int | str, ...] = ()) -> Any:
    if isinstance(value, dict):
        place = f"{where}: {spell_path(steps)}" if steps else where
        return AnswerTable(
            {key: _answer_value(inner, where, (*steps, key)) for key, inner in value.items()}, place
        )
    if isinstance(value, list):
        return [_answer_value(inner, where, (*steps, index)) for index, inner in enumerate(value)]
    return value


def read_answer(path: str) -> tuple[dict[str, Any], str, str]:
    """An answer that phaze wrote, read back: its tables, its text, and the name to call it by."""
    text, where = read_text(path)
    return _answer_value(parse(text, "json", where), where), text, where


# What a file's name has in place of bytes that are no UTF-8; as they are they cannot be written.
SURROGATES = re.compile("[\\ud800-\\udfff]")


def dumps(value: Any, pretty: bool = False) -> str:
    """One JSON document: compact on one line, or indented; the same value always gives the same
    bytes."""
    if pretty:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    else:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return SURROGATES.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def compact(value: Any) -> bytes:
    """Compact JSON with sorted keys."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode()


def digest(value: Any) -> str:
    """SHA-256 of the compact JSON of ``value`` with sorted keys."""
    return hashlib.sha256(compact(value)).hexdigest()


def plain_value(value: Any) -> Any:
    """A value of frozen dataclasses and documents, tuples and plain ones as JSON has it."""
    # A value that two formats describe says itself which of them it was read from.
    as_read = getattr(value, "as_read", None)
    if as_read is not None:
        return plain_value(as_read())
    if isinstance(value, BaseModel):
        return {name: plain_value(inner) for name, inner in value}
    if is_dataclass(value):
        return {field.name: plain_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain_value(inner) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [plain_value(inner) for inner in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"a document cannot state a {type(value).__name__}")
