"""The frame of a page: head, style, script, sections, and the small pieces that all parts are made of."""

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

from phaze.documents import dumps

# The colours of page.css that marks and drawings take by class: f-NAME fills, b-NAME is a background.
COLOURS = (
    *("tensor", "vector", "buffer", "network", "hbm", "links", "other", "good", "bad"),
    *("forward", "backward", "sync", "ink", "soft", "paper", "band", "peak", "room", "over", "groove", "front"),
)


def policy(style: str, script: str = "") -> str:
    """The element by which a browser refuses to load anything, and to run or obey all but this style and script.

    Both are allowed by their hash, so that markup that got into a page by mistake stays without effect.
    """
    allowed = [f"{kind}-src {_hash(text)}" for kind, text in (("style", style), ("script", script)) if text]
    rules = "; ".join(["default-src 'none'", *allowed, "base-uri 'none'", "form-action 'none'"])
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">'


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def style() -> str:
    """The style of all pages."""
    tints = "".join(f".f-{name}{{fill:var(--{name})}}.b-{name}{{background:var(--{name})}}" for name in COLOURS)
    return asset("page.css") + tints


def asset(name: str) -> str:
    """The text of a file that lies beside this one."""
    return (files("phaze.report.page") / name).read_text(encoding="utf-8")


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and what there is to say of each, as tiles."""
    cells = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(fact)}</dd></div>" for name, fact in pairs)
    return f'<dl class="facts">{cells}</dl>'


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table whose first ``left`` columns are text and whose others are numbers; cells are HTML."""
    kinds = ["" if at < left else ' class="n"' for at in range(len(columns))]
    head = "".join(f"<th{kind}>{escape(name)}</th>" for name, kind in zip(columns, kinds, strict=True))
    body = "".join(
        f"<tr>{''.join(f'<td{kind}>{cell}</td>' for cell, kind in zip(row, kinds, strict=True))}</tr>" for row in rows
    )
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def swatch(colour: str) -> str:
    """A small square of a colour of the style."""
    return f'<i class="swatch b-{colour}"></i>'


def bar(left: float, width: float, colour: str, more: str = "") -> str:
    """A piece of a bar, by shares of its length; ``more`` are attributes."""
    return f'<rect x="{left:.3%}" width="{max(width, 1e-3):.3%}" height="100%" class="f-{colour}"{more}/>'


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Colours and what they stand for."""
    items = "".join(f"<span>{swatch(colour)}{escape(name)}</span>" for colour, name in entries)
    return f'<p class="legend">{items}</p>'


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def said(hint: str) -> str:
    """The line in which a section says what is pointed at."""
    return f'<output class="say">{escape(hint)}</output>'


def section(key: str, title: str, body: str, note: str = "") -> str:
    """A part of the page; ``body`` and ``note`` are HTML."""
    about = f'<p class="soft">{note}</p>' if note else ""
    return f'<section id="{escape(key)}"><h2>{escape(title)}</h2>{about}{body}</section>'


def copyable(key: str, text: str) -> str:
    """Text with a button that copies it."""
    button = f'<button type="button" data-copies="{escape(key)}">copy</button>'
    return f'<div class="copy">{button}<pre id="{escape(key)}">{escape(text)}</pre></div>'


def framed(title: str, head: str, sections: Sequence[tuple[str, str, str]], foot: str, chips: Any = None) -> str:
    """The whole page from (key, name in the menu if any, HTML) of its sections and the numbers of all chips."""
    menu = "".join(f'<a href="#{escape(key)}">{escape(name)}</a>' for key, name, _ in sections if name)
    numbers = ""
    if chips is not None:
        numbers = f'<script type="application/json" id="chips">{in_script(chips)}</script>'
    looks, script = style(), asset("page.js")
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">{policy(looks, script)}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{looks}</style></head>"
        f"<body><header>{head}<nav>{menu}</nav></header><main>{''.join(body for _, _, body in sections)}</main>"
        f"<footer>{foot}</footer>{numbers}<script>{script}</script></body></html>\n"
    )


def in_script(document: Mapping[str, Any]) -> str:
    """JSON that may stand inside a script element: no text in it can end the element."""
    return dumps(document).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
