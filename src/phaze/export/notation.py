"""How launch files are written and read: shell flags, TOML tables, flat YAML, JSON."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from phaze.errors import InputError


def aligned(lines: Sequence[tuple[str, str]]) -> str:
    """Lines with their comments in one column; the comment of a long line stands above it."""
    column = min(44, max(len(line) for line, _ in lines)) + 2
    return "\n".join(_commented(line, comment, column) for line, comment in lines)


def _commented(line: str, comment: str, column: int) -> str:
    if len(line) < column:
        return f"{line:<{column}}# {comment}"
    indent = " " * (len(line) - len(line.lstrip()))
    return f"{indent}# {comment}\n{line}"


def not_as_planned(deviations: Sequence[str]) -> str:
    """Comments that say what will be otherwise than planned."""
    return "".join(f"# Not as planned: {text}.\n" for text in deviations)


def shell_value(value: Any) -> str:
    """A value behind a flag; nothing behind a switch."""
    return "" if value is True else str(value)


def toml_value(value: Any) -> str:
    """A TOML value; a list of lists has one a line."""
    if isinstance(value, list) and value and isinstance(value[0], list):
        rows = ",\n".join(f"    {json.dumps(row)}" for row in value)
        return f"[\n{rows},\n]"
    return json.dumps(value)


def yaml_value(value: Any) -> str:
    """A YAML value, texts without quotes."""
    return value if isinstance(value, str) else json.dumps(value)


def flat_yaml(text: str, where: str) -> dict[str, Any]:
    """The keys of a flat YAML file; anything deeper is refused with its line."""
    values: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        content = re.sub(r"(^|\s)#.*$", "", line).rstrip()
        if not content or content == "---":
            continue
        match = re.fullmatch(r"([A-Za-z_]\w*):\s+(\S.*)", content)
        if match is None or match[1] in values:
            problem = "it is there twice" if match else "it is not a key with a plain value"
            raise InputError(
                f"{where}: line {number}", problem, "phaze reads flat files of MaxText, key: value"
            )
        values[match[1]] = _scalar(match[2])
    return values


def _scalar(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        return json.loads(text.replace("_", "") if re.fullmatch(r"[\d_.]+", text) else text)
    except (ValueError, RecursionError):
        return text.strip("'\"")


def tables_of(names: Collection[str]) -> set[str]:
    """The tables that dotted names stand in."""
    return {name.rpartition(".")[0] for name in names if "." in name}


def dotted(
    raw: Mapping[str, Any], tables: Collection[str], where: str, form: str
) -> dict[str, Any]:
    """The keys of a document with those of ``tables`` by dotted names; ``form`` shows how a table
    is written."""
    values: dict[str, Any] = {}
    for name, value in raw.items():
        if name not in tables:
            values[name] = value
        elif not isinstance(value, Mapping):
            raise InputError(f"{where}: {name}", "it is not a table", f"write {form.format(name)}")
        else:
            values |= {f"{name}.{key}": inner for key, inner in value.items()}
    return values
