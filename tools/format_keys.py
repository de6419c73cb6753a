"""``python -m tools.format_keys`` writes ``docs/keys.md``: every key of every file format with its
type, range and default, from the schemas that files are checked against."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from phaze.cli.schema import formats
from phaze.options.key_fields import UNSTATED

PAGE = Path(__file__).parents[1] / "docs" / "keys.md"
HEAD = """# Every key of every file

What people write, from the schemas that files are checked against: `phaze schema NAME` prints them, and
`python -m tools.format_keys` writes this page. [formats.md](formats.md) says what the keys mean. A key of a table is
named after it, `[]` is each entry of a list, `*` any name. A quantity is a number in its unit, or a text with one
(`"32 GiB"`).
"""
# Answers, and graphs as they are traced, are not written by hand.
WRITTEN_BY_PHAZE = ("phaze.front/1", "phaze.graph/1", "phaze.sweep/1")
Schema = dict[str, Any]
# Bounds that only keep numbers within 64 bits tell a reader nothing.
LARGE = 2**31


def _range(schema: Schema) -> str:
    least, above = schema.get("minimum"), schema.get("exclusiveMinimum")
    most, below = schema.get("maximum"), schema.get("exclusiveMaximum")
    words = (
        [f"from {least:,}"]
        if least is not None
        else [f"above {above:,}"]
        if above is not None
        else []
    )
    if most is not None and most < LARGE:
        words.append(f"to {most:,}")
    if below is not None and below < LARGE:
        words.append(f"below {below:,}")
    return " ".join(words)


def _resolved(schema: Schema, tables: Schema) -> Schema:
    """A schema in place of the reference to it."""
    if "$ref" in schema:
        resolved: Schema = tables[schema["$ref"].rsplit("/", 1)[1]]
        return resolved
    return schema


def value_words(schema: Schema, tables: Schema) -> str:
    """What a key may hold."""
    schema = _resolved(schema, tables)
    described = str(schema.get("description", ""))
    if described.startswith("a number in"):
        return "quantity in " + described.removeprefix("a number in ").partition(",")[0]
    if described.startswith(("positions of", "tokens, or", "sequences of")):
        return described
    if "anyOf" in schema:
        kinds = [
            value_words(kind, tables) for kind in schema["anyOf"] if kind.get("type") != "null"
        ]
        return " or ".join(dict.fromkeys(kinds))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        items = schema.get("items") or {}
        return f"list of {value_words(items, tables)}" if items else "list"
    names = {
        "integer": "whole number",
        "number": "number",
        "string": "text",
        "boolean": "true or false",
    }
    named = names.get(str(schema.get("type")), "table")
    return f"{named} {_range(schema)}".rstrip()


def _inner(schema: Schema, tables: Schema) -> Iterator[tuple[str, Schema]]:
    """The tables that a key may hold, each with what stands between its keys and the key."""
    schema = _resolved(schema, tables)
    for kind in schema.get("anyOf", []):
        yield from _inner(kind, tables)
    if schema.get("type") == "array":
        yield from (
            (f"[]{rest}", table) for rest, table in _inner(schema.get("items") or {}, tables)
        )
    named = schema.get("additionalProperties")
    for kind in [
        *([named] if isinstance(named, dict) else []),
        *schema.get("patternProperties", {}).values(),
    ]:
        yield from ((f".*{rest}", table) for rest, table in _inner(kind, tables))
    if "properties" in schema:
        yield "", schema


def key_rows(
    schema: Schema, tables: Schema, prefix: str = ""
) -> Iterator[tuple[str, str, str, str]]:
    """Key, value, default and meaning of every key of a table, then of the tables in it."""
    for key, field in schema["properties"].items():
        if key == "schema":
            continue
        default = "required" if key in schema.get("required", ()) else _default(field)
        yield f"{prefix}{key}", value_words(field, tables), default, meaning(field, tables)
        for between, table in _inner(field, tables):
            yield from key_rows(table, tables, f"{prefix}{key}{between}.")


def _default(field: Schema) -> str:
    """A default as a file would state it; in words where it follows from something else."""
    stated = field.get("default")
    if stated is None or isinstance(stated, dict):
        return str(field.get(UNSTATED, ""))
    return f"`{json.dumps(stated)}`"


def meaning(field: Schema, tables: Schema) -> str:
    """The sentence of a key, where its schema has one."""
    text = str(field.get("description", ""))
    of_type = text == value_words(field, tables) or text.startswith("a number in")
    return "" if of_type else text


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for name, form in formats().items():
        if name in WRITTEN_BY_PHAZE:
            continue
        schema = form.model.model_json_schema(by_alias=True)
        rows = ["| key | value | default | |", "|---|---|---|---|"]
        for key, value, default, meaning in key_rows(schema, schema.get("$defs", {})):
            cells = (f"`{key}`", value, default, meaning)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        parts.append(f"## {name}\n\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
