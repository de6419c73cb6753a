"""Every leaf of a document, and another value for it."""

import copy
from collections.abc import Iterator
from typing import Any

Path = tuple[Any, ...]


def leaves(value: Any, path: Path = ()) -> Iterator[Path]:
    """Where values stand; of long lists of numbers the first one."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list) and value:
        plain = not any(isinstance(inner, dict | list) for inner in value)
        for at, inner in enumerate(value[:1] if plain else value):
            yield from leaves(inner, (*path, at))
    else:
        yield path


def other(value: Any) -> Any:
    """Another value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 1.5 + 1e-3
    if isinstance(value, str):
        return f"{value}x"
    return 1 if value is None else [1] if isinstance(value, list) else {"x": 1}


def changed(document: Any, path: Path) -> Any:
    """The document with another value at a leaf."""
    found = copy.deepcopy(document)
    place = found
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = other(place[path[-1]])
    return found
