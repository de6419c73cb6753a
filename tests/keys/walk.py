"""The keys of file formats, enumerated from their models, and documents with one of them
changed."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, get_args

from phaze.documents import Document


def nested(annotation: Any) -> list[type[Document]]:
    """The document models that a field may hold, through lists, dicts and unions."""
    if isinstance(annotation, type) and issubclass(annotation, Document):
        return [annotation]
    return [model for inner in get_args(annotation) for model in nested(inner)]


def is_format(model: type[Document]) -> bool:
    """Whether a model is a format of its own, whose keys are walked on their own."""
    return any(field.alias == "schema" for field in model.model_fields.values())


def keys_of(model: type[Document], prefix: str = "") -> Iterator[str]:
    """The path of every key that a format knows, a table's keys after their table's, but for
    ``schema``."""
    for name, field in model.model_fields.items():
        path = f"{prefix}{field.alias or name}"
        if path == "schema":
            continue
        inner = [one for one in nested(field.annotation) if not is_format(one)]
        if not inner:
            yield path
        for one in inner:
            yield from keys_of(one, f"{path}.")


def _put(place: Any, steps: list[str], value: Any) -> None:
    step, *rest = steps
    at: Any = int(step) if isinstance(place, list) else step
    if rest:
        if isinstance(place, dict):
            place.setdefault(at, {})
        _put(place[at], rest, value)
    elif value is None:
        place.pop(at, None)
    else:
        place[at] = value


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy with the value at ``path`` (numbers choose from lists) put in; None takes the key
    away."""
    found = deepcopy(document)
    _put(found, path.split("/"), value)
    return found
