"""The type of an argument as plain values: what the library was compiled for, and whether a call
has it.

A type is a list that JSON can hold::

    ["int64"]  ["float64"]  ["bool"]                              a scalar
    ["array", "float64", 2, "C", true]          elements, axes, layout (C, F or A), whether writable
    ["tuple", type, ...]                                          a tuple
    ["named", "phaze.schedule.part", "Tables", type, ...]         a named tuple by the module and name of its class

Object code reads memory as it was told, so a call must have exactly these types: an array of other
elements or strides would be read wrongly, not refused.
"""

from typing import Any, Final

import numpy as np

# Bits of ``ndarray.flags.num``: C contiguous, Fortran contiguous, aligned, writable.
C_ORDER: Final = 0x1
F_ORDER: Final = 0x2
ALIGNED: Final = 0x100
WRITABLE: Final = 0x400
FLAGS: Final = C_ORDER | F_ORDER | ALIGNED | WRITABLE


def _scalars(kind: str) -> tuple[type, ...]:
    """The types of Python's values that are passed as a scalar."""
    if kind == "int64":
        return int, np.int64
    if kind == "float64":
        return float, np.float64
    return (bool, np.bool_) if kind == "bool" else (np.dtype(kind).type,)


def key_of(value: object) -> object:
    """What decides whether a value can be handed to object code: equal keys, equal types."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype, value.ndim, value.flags.num & FLAGS  # type: ignore[attr-defined]
    if isinstance(value, tuple):
        return kind, *map(key_of, value)
    return kind


def fits(value: Any, declared: list[Any]) -> bool:
    """Whether a value has a declared type."""
    kind, *rest = declared
    if kind == "array":
        return type(value) is np.ndarray and _array_fits(value, *rest)
    if kind in {"tuple", "named"}:
        names, parts = (rest[:2], rest[2:]) if kind == "named" else (None, rest)
        value_type = type(value)
        same = (
            value_type is tuple
            if names is None
            else [value_type.__module__, value_type.__qualname__] == names
        )
        return same and len(value) == len(parts) and all(map(fits, value, parts))
    return type(value) in _scalars(kind)


def _array_fits(
    value: np.ndarray[Any, Any], elements: str, axes: int, layout: str, writable: bool
) -> bool:
    flags = value.flags.num
    ordered = layout == "A" or bool(flags & (C_ORDER if layout == "C" else F_ORDER))
    return (
        value.dtype == np.dtype(elements)
        and value.ndim == axes
        and ordered
        and bool(flags & ALIGNED)
        and bool(flags & WRITABLE) == writable
    )
