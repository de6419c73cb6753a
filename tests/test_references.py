"""What docstrings name is there: modules, classes and functions that one refers to, and every file
that is linked."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src"
FILES = sorted(SOURCE.rglob("*.py"))
NAMED = re.compile(r":(?:mod|func|class|meth|data):`~?([\w.]+)`")
LINKED = re.compile(r"\]\(([\w./-]+\.(?:py|md|toml|json|svg))(?:#[\w-]+)?\)")


@cache
def _names(path: Path) -> frozenset[str]:
    """What a module defines or imports at its top, and the members of its classes as
    Class.member."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {
                f"{node.name}.{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)
            }
            fields = (one.target for one in node.body if isinstance(one, ast.AnnAssign))
            found |= {f"{node.name}.{one.id}" for one in fields if isinstance(one, ast.Name)}
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {one.asname or one.name for one in node.names}
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {one.id for one in targets if isinstance(one, ast.Name)}
            if (
                any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets)
                and node.value is not None
            ):
                found |= set(ast.literal_eval(node.value))
    return frozenset(found)


def _is_there(name: str, path: Path) -> bool:
    """Whether a dotted path names a package, a module, or something at the top of one; without a
    package something of the module that says it, or a member of one of its classes."""
    if name.startswith("."):
        name = ".".join(("phaze", path.relative_to(SOURCE).parts[1], name[1:]))
    if not name.startswith("phaze"):
        own = _names(path)
        return name in own or any(one.endswith(f".{name}") for one in own)
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        place = SOURCE.joinpath(*parts[:count])
        module = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        if module.is_file():
            rest = ".".join(parts[count:])
            return not rest or rest in _names(module)
    return False


@pytest.mark.parametrize("room", sorted({path.relative_to(SOURCE).parts[1] for path in FILES}))
def test_docstrings_refer_to_what_is_there(room: str) -> None:
    own = [path for path in FILES if path.relative_to(SOURCE).parts[1] == room]
    wrong = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in own
        for name in NAMED.findall(path.read_text(encoding="utf-8"))
        if not _is_there(name, path)
    ]
    assert not wrong


def test_documents_link_to_files_that_are_there() -> None:
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    links = [
        (page, link) for page in pages for link in LINKED.findall(page.read_text(encoding="utf-8"))
    ]
    assert len(links) > 50
    assert not [f"{page.name}: {link}" for page, link in links if not (page.parent / link).exists()]
