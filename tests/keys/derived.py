"""Other values of a key, from its type in the schema and its value in a document: nobody writes
them out."""

from collections.abc import Iterator
from typing import Any

from phaze.documents import Document, check
from phaze.errors import InputError
from tests.keys.walk import changed

Schema = dict[str, Any]
# Factors that an answer notices; what leaves the range of a key is left out.
FACTORS = (10, 0.1, 2, 0.5, 100, 0.01)
# Of keys that a document does not state.
WHOLE, REAL = (2, 1, 8, 99), (0.5, 0.9, 0.01, 9.0, 999.0, 0.0)


def _kinds(schema: Schema, tables: Schema) -> Iterator[Schema]:
    """The plain types that a schema allows."""
    if "$ref" in schema:
        yield from _kinds(tables[schema["$ref"].rsplit("/", 1)[1]], tables)
    elif "anyOf" in schema and "properties" not in schema:
        for kind in schema["anyOf"]:
            yield from _kinds(kind, tables)
    else:
        yield schema


def field_kinds(schema: Schema, tables: Schema, key: str) -> list[Schema]:
    """The types of a key by its path: through tables, their names and lists."""
    places = list(_kinds(schema, tables))
    for step in key.split("."):
        inner: list[Schema] = []
        for outer in places:
            place = next(_kinds(outer["items"], tables)) if "items" in outer else outer
            named = [*place.get("patternProperties", {}).values()]
            named += (
                [place["additionalProperties"]]
                if isinstance(place.get("additionalProperties"), dict)
                else []
            )
            for found in (
                [place["properties"][step]] if step in place.get("properties", {}) else named
            ):
                inner += list(_kinds(found, tables))
        places = inner
    return places


def _place(document: Any, steps: list[str]) -> tuple[str, Any]:
    """Where a key stands in a document, the first of a list that has it, and its value there, None
    if nowhere."""
    path: list[str] = []
    inside = document
    for step in steps:
        if isinstance(inside, list):
            number = next(
                (at for at, row in enumerate(inside) if isinstance(row, dict) and step in row), 0
            )
            path, inside = [*path, str(number)], inside[number]
        path.append(step)
        inside = inside.get(step) if isinstance(inside, dict) else None
    return "/".join(path), inside


def _others(kinds: list[Schema], value: Any) -> Iterator[Any]:
    """Values of the types of a key other than its own, those first that an answer notices
    soonest."""
    for kind in kinds:
        if kind.get("type") == "boolean":
            yield from (choice for choice in (True, False) if choice is not value)
        for choice in [*kind.get("enum", []), *([kind["const"]] if "const" in kind else [])]:
            if choice != value:
                yield choice
    types = {kind.get("type") for kind in kinds}
    if isinstance(value, str) and value[:1].isdigit() and " " in value:
        number, unit = value.split(" ", 1)
        yield from (f"{float(number) * factor:.12g} {unit}" for factor in FACTORS)
    elif isinstance(value, int) and not isinstance(value, bool) and "integer" in types:
        yield from (
            round(value * factor) for factor in (2, 0.5, 4, 10) if round(value * factor) != value
        )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from (value * factor for factor in FACTORS)
    if value is None or value == 0:
        yield from WHOLE if "integer" in types else ()
        yield from REAL if "number" in types else ()


def derived(model: type[Document], document: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    """Copies of a document with other values of a key, as far as its type has them."""
    schema = model.model_json_schema(by_alias=True)
    place, value = _place(document, key.split("."))
    for other in _others(field_kinds(schema, schema.get("$defs", {}), key), value):
        copy = changed(document, place, other)
        try:
            check(model, copy, "file")
        except InputError:
            continue
        yield copy
