"""What is swept: ``key=low..high`` or ``key=a,b,c``, a key of the study and the values that it
takes.

The n values of a range from low to high are spaced evenly on a logarithmic scale, both ends
included:

    v_i = low * (high / low)^(i / (n - 1)),   i = 0 .. n-1

rounded to whole numbers (each once) when both ends are whole. Ends may carry a unit, the same for
both: ``16 GiB..128 GiB``. Where the study wants a list, a value stands for the list of it alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from phaze import units
from phaze.errors import InputError
from phaze.study.load import study_of
from phaze.study.raw import with_settings

_END = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([A-Za-z/]\S*)?\s*")
MOST_POINTS = 1000
"""Each is a search; more is a slip."""
BASES: tuple[units.Unit, ...] = ("B", "B/s", "Hz", "s", "W")


@dataclass(frozen=True, slots=True)
class SweepValue:
    """One value of a sweep: as a number for plots, as it is shown, and as the setting that puts it
    in."""

    number: float
    shown: str
    setting: str


@dataclass(frozen=True, slots=True)
class SweepAxis:
    """A key and its values, ascending, each once."""

    key: str
    points: tuple[SweepValue, ...]


def _factor(unit: str) -> float:
    """What one of ``unit`` is in its base unit, so that ``64 MiB`` lies below ``1 GiB``."""
    for base in BASES:
        try:
            return units.parse(f"1 {unit}", base)
        except ValueError:
            continue
    return 1.0


def _end(text: str, where: str) -> tuple[float, bool, str]:
    """A number, whether it is whole, and its unit."""
    matched = _END.fullmatch(text)
    if matched is None:
        raise InputError(
            where, f"'{text.strip()}' is not a number", "e.g. 1e9..1e12 or 16 GiB..128 GiB or 1,2,4"
        )
    number = float(matched[1])
    return number, number.is_integer(), matched[2] or ""


def _range(text: str, count: int, where: str) -> list[tuple[float, bool, str]]:
    low_text, _, high_text = text.partition("..")
    (low, low_whole, low_unit), (high, high_whole, unit) = (
        _end(low_text, where),
        _end(high_text, where),
    )
    if low_unit not in ("", unit):
        raise InputError(
            where,
            f"the ends have the units {low_unit} and {unit or 'none'}",
            "give both the same unit",
        )
    if not 0 < low < high:
        raise InputError(
            where, f"a range runs from a positive number upwards, not {text}", "e.g. 1e9..1e12"
        )
    whole = low_whole and high_whole
    values = [low * (high / low) ** (i / (count - 1)) for i in range(1, count - 1)]
    rounded = dict.fromkeys(float(round(v)) if whole else v for v in [low, *values, high])
    return [(value, whole, unit) for value in rounded]


def _exact(value: float, whole: bool, unit: str) -> str:
    """The value as the study is given it."""
    return " ".join(
        filter(None, (f"{int(value)}" if whole and abs(value) < 1e18 else repr(value), unit))
    )


def _shown(value: float, unit: str) -> str:
    return " ".join(filter(None, (f"{value:.6g}", unit)))


def shown_value(value: Any) -> tuple[float, str] | None:
    """The number and the label of a value that a study has of the key that is swept; None where it
    is no value of a sweep."""
    (only,) = value if isinstance(value, list) and len(value) == 1 else [value]
    matched = (
        None
        if isinstance(only, bool) or not isinstance(only, int | float | str)
        else _END.fullmatch(str(only))
    )
    if matched is None:
        return None
    number, unit = float(matched[1]), matched[2] or ""
    return number * _factor(unit), _shown(number, unit)


def _setting(raw: Mapping[str, Any], where: str, key: str, value: str) -> str:
    """The setting that the study takes: the value itself, or a list of it."""
    plain = f"{key}={value}"
    try:
        study_of(with_settings(raw, [plain]), where)
    except InputError as fault:
        listed = f"{key}=[{value}]"
        try:
            study_of(with_settings(raw, [listed]), where)
        except InputError:
            raise fault from None
        return listed
    return plain


def over_of(text: str, raw: Mapping[str, Any], where: str, count: int = 9) -> SweepAxis:
    """The axis that ``--over TEXT`` names, every value of it checked against the study."""
    key, equals, values_text = (part.strip() for part in text.partition("="))
    named = f"--over {text}"
    if not equals or not key or not values_text:
        raise InputError(
            named,
            "this is not of the form key=low..high",
            "e.g. cluster.link_bytes_per_s=1e9..1e12",
        )
    if not 2 <= count <= MOST_POINTS:
        raise InputError("--points", f"{count} points", f"give 2 to {MOST_POINTS}")
    values = (
        _range(values_text, count, named)
        if ".." in values_text
        else [_end(part, named) for part in values_text.split(",")]
    )
    points = []
    for value, whole, unit in values:
        exact = _exact(value, whole, unit)
        setting = _setting(raw, where, key, f'"{exact}"' if unit else exact)
        points.append(SweepValue(value * _factor(unit), _shown(value, unit), setting))
    return SweepAxis(
        key,
        tuple(sorted({point.number: point for point in points}.values(), key=lambda p: p.number)),
    )
