"""Values as tables for notebooks: names with what there is to say of each, and columns."""

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

from phaze.units import Unit, show

# What the end of a key says its value is in.
UNITS: Mapping[str, Unit] = MappingProxyType(
    {
        "_bytes_per_s": "B/s",
        "_flops": "FLOP/s",
        "_bytes": "B",
        "_mm2": "mm2",
        "_usd": "USD",
        "_hz": "Hz",
        "_s": "s",
        "_j": "J",
        "_w": "W",
    }
)


def shown_pair(key: str, value: Any) -> tuple[str, str] | None:
    """A key and its value as a person reads them; None for what is no single value."""
    if isinstance(value, bool):
        return key.replace("_", " "), "yes" if value else "no"
    if isinstance(value, int | float):
        for ending, unit in UNITS.items():
            if key.endswith(ending):
                return key.removesuffix(ending).replace("_", " "), show(value, unit)
        return key.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
    if isinstance(value, str) and key != "schema":
        return key.replace("_", " "), value
    return None


def facts(document: Mapping[str, Any]) -> dict[str, str]:
    """The single values of a document, in its order."""
    return dict(
        row
        for row in (shown_pair(key, value) for key, value in document.items())
        if row is not None
    )


def table(rows: Mapping[str, str], title: str) -> str:
    """Names and what there is to say of each."""
    cells = "".join(
        f"<tr><th style='text-align:left'>{escape(k)}</th><td>{escape(v)}</td></tr>"
        for k, v in rows.items()
    )
    return f"<table><caption><b>{escape(title)}</b></caption>{cells}</table>"


def columns(rows: Sequence[Mapping[str, Any]], title: str) -> str:
    """Rows with the same keys, one column each."""
    shown = [
        dict(pair for pair in (shown_pair(k, v) for k, v in row.items()) if pair is not None)
        for row in rows
    ]
    head = "".join(f"<th>{escape(name)}</th>" for name in shown[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row.values()) + "</tr>"
        for row in shown
    )
    return f"<table><caption><b>{escape(title)}</b></caption><tr>{head}</tr>{body}</table>"
