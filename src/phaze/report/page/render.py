"""Pages from templates: every value is escaped by the template engine, style and scripts are
allowed by their hashes.

A page is one file. Its content policy loads nothing and obeys one style and one script, both by
SHA-256; numbers for the script stand in an element that no browser runs. Templates write no
``style`` attribute: lengths of bars are attributes of SVG, colours are classes.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from phaze import __version__
from phaze.documents import dumps
from phaze.report.sections import Cell
from phaze.units import show, show_count

# The colours of page.css that marks and drawings take by class: f-NAME fills, b-NAME is a
# background.
COLOURS = (
    *("tensor", "vector", "buffer", "network", "hbm", "links", "other", "good", "bad"),
    *("forward", "backward", "weight", "sync"),
    *("ink", "soft", "paper", "band", "peak", "room", "over", "groove", "front"),
)


def _policy(style: str, script: str, *, served: bool) -> str:
    """What a browser may do with the page; a served one may also ask its own server."""
    rules = ["default-src 'none'", f"style-src {_hash(style)}"]
    rules += [f"script-src {_hash(script)}"] if script else []
    rules += ["connect-src 'self'"] if served else []
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """The text of a style or script that lies beside this file."""
    return (files("phaze.report.page") / name).read_text(encoding="utf-8")


def style() -> str:
    """The style of all pages."""
    tints = "".join(
        f".f-{name}{{fill:var(--{name})}}.b-{name}{{background:var(--{name})}}" for name in COLOURS
    )
    return asset("page.css") + tints


def _share(value: float) -> str:
    """A share of a length, for an attribute of SVG."""
    return f"{max(0.0, value):.4%}"


def _cell_kind(cell: Cell) -> str:
    """What a cell of a table is: text, meter, number or link."""
    return "text" if isinstance(cell, str) else type(cell).__name__.lower()


def _environment() -> Environment:
    found = Environment(
        loader=PackageLoader("phaze.report.page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(show=show, count=show_count, share=_share, cell_kind=_cell_kind)
    found.globals["version"] = __version__
    return found


def in_script(document: Mapping[str, Any]) -> Markup:
    """JSON that may stand inside a script element: no text in it can end the element."""
    text = dumps(document).replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return Markup(text)


def rendered(
    template: str,
    context: Mapping[str, Any],
    scripts: Sequence[str],
    numbers: Mapping[str, Any] | None = None,
    *,
    served: bool = False,
) -> str:
    """A page from its template, what it tells, the scripts it needs and the numbers these draw
    from."""
    looks = style()
    program = '"use strict";\n' + "".join(
        f"{{\n{asset(name)}}}\n" for name in ("page.js", *scripts)
    )
    page = _environment().get_template(template)
    return page.render(
        **context,
        policy=_policy(looks, program, served=served),
        style=Markup(looks),
        script=Markup(program),
        numbers=None if numbers is None else in_script(numbers),
    )
