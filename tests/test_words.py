"""What people read is in the field's words: documents, help texts, terminal answers, error
sentences and pages.

Names of file formats (in backticks or as keys) keep the spelling that files have.
"""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import phaze
from phaze import api
from phaze.cli.main import app
from tests.conftest import Ran

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "phaze"
# A word of our own and what the field says instead.
PRIVATE = {
    "copies": "replicas",
    "handed on": "sent downstream",
    "handing on": "pipeline transfer",
    "run again": "recomputed",
    "computed again": "recomputed",
    "in the open": "exposed",
    "not hidden": "exposed",
    "side by side": "overlapped, adjacent, compared",
    "opened": "evaluated",
    "come along": "bundled",
    "comes along": "bundled",
    "unlike stages": "stage imbalance",
    "array edges": "tile quantisation",
    "share of peak": "utilisation",
    "design power": "TDP",
    "price of making": "manufacturing cost",
    "making a chip": "manufacturing cost",
    "doubt us": "verify",
    "take along": "export",
    "hang on": "depend on",
    "hangs on": "depends on",
    "share out": "shard, distribute",
    "shares out": "shards, distributes",
    "shared out": "sharded, distributed",
    "works out": "computes",
    "worked out": "computed",
    "looked at": "considered, evaluated, checked",
    "plain path": "reference path",
    "usual cluster": "default cluster",
    "batch time": "step time",
    "tensor width": "TP degree",
    "tensor widths": "TP degrees",
    "few bits": "low precision",
    "like for like": "on an equal basis",
    "as they stand": "unchanged",
    "may be given again": "repeatable",
    "if nothing is said": "default",
    "asked for": "requested",
    "goes on with": "resumes with",
    "is no number": "is not a number",
    "is no file": "is not a file",
}
FOUND = re.compile(
    r"\b(" + "|".join(word.replace(" ", r"\s+") for word in PRIVATE) + r")\b", re.IGNORECASE
)
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def private_words(text: str) -> list[str]:
    """The private words of a text, with what to say instead."""
    plain = re.sub(r"`[^`\n]*`", "", text)
    return [
        f"{word}: say {PRIVATE[' '.join(word.lower().split())]}" for word in FOUND.findall(plain)
    ]


def _sentences(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Texts of a module that may be shown: literals with a blank that are no docstrings."""
    told = {
        id(node.body[0].value)
        for node in ast.walk(module)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(module):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in told
            and " " in node.value
        ):
            yield node.lineno, node.value


def test_a_private_word_is_seen() -> None:
    assert private_words("Its copies are handed\non.") == [
        "copies: say replicas",
        "handed\non: say sent downstream",
    ]
    assert private_words("`copies` is a key; replicas") == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_document_has_no_private_word(page: Path) -> None:
    assert private_words(page.read_text(encoding="utf-8")) == []


def test_no_answer_or_error_has_a_private_word() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)}:{line}: {words}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in _sentences(ast.parse(path.read_text(encoding="utf-8")))
        if (words := private_words(text))
    ]
    assert wrong == []


def test_no_page_has_a_private_word() -> None:
    for path in sorted(SOURCE.rglob("*.html")):
        shown = re.sub(
            r"{[{%#].*?[}%#]}|<[^>]*>", " ", path.read_text(encoding="utf-8"), flags=re.DOTALL
        )
        assert private_words(shown) == [], path
    for path in sorted(SOURCE.rglob("*.toml")):
        assert private_words(path.read_text(encoding="utf-8")) == [], path


def test_no_page_of_the_reference_has_a_private_word() -> None:
    """Docstrings of public functions and values, which docs/reference.md shows."""
    for name in phaze.__all__:
        value = getattr(api, name, None)
        members = vars(value).items() if isinstance(value, type) else ()
        for part in (value, *(one for key, one in members if not key.startswith("_"))):
            assert private_words(re.sub(r"``[^`]*``", "", inspect.getdoc(part) or "")) == [], (
                f"{name}: {part}"
            )


def _commands() -> list[str]:
    return [name for name, one in get_command(app).commands.items() if not one.hidden]  # type: ignore[attr-defined]


@pytest.mark.parametrize("command", _commands())
def test_no_help_text_has_a_private_word(command: str, phaze: Callable[..., Ran]) -> None:
    assert private_words(phaze(command, "--help").out) == []
