"""Values that are files: frozen documents whose fields are in SI units, changed one by one, hashed
and written.

A field's name has its unit (``host_s``), its alias is the key of the file (``host_time``). What no
file states, such as whether a cluster may grow, is a private attribute with a property of its name;
:func:`replace` sets both kinds.
"""

import dataclasses
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, Field

V = TypeVar("V")
K = TypeVar("K")


class FrozenTable(dict[str, K]):
    """A table of a file by key that can be hashed; nothing changes it."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


T = TypeVar("T")
Listed = Annotated[tuple[T, ...], Field(strict=False)]
"""A list of a file, which a value holds as a tuple."""


def replace(value: V, **changes: Any) -> V:
    """The value with other fields, as ``dataclasses.replace`` has it; ``value`` is a dataclass or a
    document.

    A document is not checked again: what a file may state is checked where it is read.
    """
    if not isinstance(value, BaseModel):
        replaced: V = dataclasses.replace(value, **changes)  # type: ignore[type-var]
        return replaced
    derived = {
        f"_{name}": new
        for name, new in changes.items()
        if f"_{name}" in value.__private_attributes__
    }
    stated = {name: new for name, new in changes.items() if f"_{name}" not in derived}
    unknown = stated.keys() - type(value).model_fields.keys()
    if unknown:
        raise TypeError(f"{type(value).__name__} has no field {min(unknown)}")
    copied = value.model_copy(update=stated)
    for name, new in derived.items():
        setattr(copied, name, new)
    return copied
