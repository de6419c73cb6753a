"""Hardware files as TOML text: a checked document written back, so that it reads as the same
value."""

import json
from collections.abc import Mapping
from typing import Any


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Mapping):
        return (
            "{ "
            + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items() if v is not None)
            + " }"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(v) for v in value) + "]"
    return repr(value)


def _key(name: str) -> str:
    plain = name and all(c.isascii() and (c.isalnum() or c in "_-") for c in name)
    return name if plain else json.dumps(name, ensure_ascii=False)


def toml_text(document: Mapping[str, Any]) -> str:
    """``document`` as TOML: plain keys first, then one table for each nested mapping; None is left
    out."""
    plain = {k: v for k, v in document.items() if v is not None and not isinstance(v, Mapping)}
    lines = [f"{_key(k)} = {_value(v)}" for k, v in plain.items()]
    for name, table in document.items():
        if isinstance(table, Mapping):
            lines += ["", f"[{_key(name)}]"]
            lines += [f"{_key(k)} = {_value(v)}" for k, v in table.items() if v is not None]
    return "\n".join(lines) + "\n"
