"""Hooks of the documentation's site: CONTRIBUTING.md is a page of it, and links into the repository
lead to copies of the files as text, so that the site stands alone and every link in it is checked
when it is built."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = re.compile(r"\]\(\.\./(?P<path>[^)#\s]+?)/?(?P<anchor>#[^)]*)?\)")


def _place(path: str) -> str:
    """Where a file of the repository lies in the site."""
    return (
        "contributing.md"
        if path == "CONTRIBUTING.md"
        else f"source/{path}{'/index' if _folder(path) else ''}.txt"
    )


def _folder(path: str) -> bool:
    return (ROOT / path).is_dir()


def _text(path: str) -> str:
    """A file as it is, a folder as the names of its files."""
    if not _folder(path):
        return (ROOT / path).read_text(encoding="utf-8")
    names = (str(one.relative_to(ROOT)) for one in (ROOT / path).rglob("*") if one.is_file())
    return "".join(f"{name}\n" for name in sorted(names) if "__pycache__" not in name)


def _contributing() -> str:
    """CONTRIBUTING.md as if it lay in docs/."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    inside = re.sub(r"\]\(docs/([^)]*)\)", r"](\1)", text)
    return re.sub(
        r"\]\((?!https?:|#|\.\./)((?:src|tests|examples)/[^)]*|[A-Z]\w*(?:\.\w+)?)\)",
        r"](../\1)",
        inside,
    )


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the pages link to outside docs/."""
    files.append(File.generated(config, "contributing.md", content=_contributing()))
    texts = [_contributing(), *((ROOT / "docs" / page).read_text("utf-8") for page in _pages())]
    for path in sorted({found["path"] for text in texts for found in OUTSIDE.finditer(text)}):
        if (ROOT / path).exists() and files.get_file_from_path(_place(path)) is None:
            files.append(File.generated(config, _place(path), content=_text(path)))
    return files


def _pages() -> list[str]:
    return sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links out of docs/ lead to their places in the site; the marks of shown outputs stay
    comments."""
    return OUTSIDE.sub(lambda found: f"]({_place(found['path'])}{found['anchor'] or ''})", markdown)
