"""The documents as a reader follows them: every block of a page, in order, in one folder.

``console``: every command runs, in this process. A block under ``<!-- file: NAME -->`` is written
to that file first. ``python``: all blocks of a page are one program. ``toml`` and ``json`` are
read. ``<!-- slow -->`` blocks run with the slow tests.
"""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.conftest import Ran

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- (?P<mark>[^>]*?) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)
THEIRS = ("pandas", "polars")
KINDS = {"console", "text", "toml", "json", "python", "sh", "csv"}


@dataclass(frozen=True)
class Block:
    """A fenced block and what stands above it."""

    kind: str
    text: str
    mark: str

    @property
    def slow(self) -> bool:
        return self.mark == "slow"


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order."""
    found = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [Block(one["kind"], one["text"], one["mark"] or "") for one in found]


def followed(page: Path, folder: Path, slow: bool, phaze: Callable[..., Ran]) -> list[str]:
    """Do what the page says, in ``folder``; the commands that were run."""
    (folder / "examples").symlink_to(ROOT / "examples")
    program, ran = [], []
    for block in blocks(page):
        if block.slow and not slow:
            continue
        if block.mark.startswith("file: "):
            (folder / block.mark.removeprefix("file: ")).write_text(block.text)
        if block.kind == "toml":
            tomllib.loads(block.text)
        elif block.kind == "json":
            json.loads(block.text)
        elif block.kind == "python":
            program.append(block.text)
        elif block.kind == "console":
            ran += [
                line.removeprefix("$ ") for line in block.text.splitlines() if line.startswith("$ ")
            ]
            for line in block.text.splitlines():
                if line.startswith("$ "):
                    _run(line.removeprefix("$ "), folder, phaze)
    if program:
        lacking = [
            name
            for name in THEIRS
            if f"import {name}" in "\n".join(program) and find_spec(name) is None
        ]
        if lacking:
            pytest.skip(f"NOT RUN: {', '.join(lacking)} is not installed (make test installs it)")
        done = subprocess.run(
            [sys.executable, "-c", "\n".join(program)],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
        )
        assert done.returncode == 0, done.stderr
    return ran


def _run(line: str, folder: Path, phaze: Callable[..., Ran]) -> None:
    command, _, out = line.partition(" > ")
    program, *arguments = shlex.split(command)
    if program == "make":
        recipe = ["make", "--dry-run", *arguments]
        done = subprocess.run(recipe, capture_output=True, text=True, check=False, cwd=ROOT)
        code, printed, errors = done.returncode, done.stdout, done.stderr
    else:
        assert program == "phaze", line
        ran = phaze(*arguments)
        code, printed, errors = ran.code, ran.out, ran.err
    assert code == 0, f"{line}: {errors}"
    assert printed, line
    if out:
        (folder / out.strip()).write_text(printed)


def _runs(page: Path, slow: bool) -> bool:
    return any(
        block.kind in ("console", "python", "toml", "json") and block.slow is slow
        for block in blocks(page)
    )


@pytest.mark.parametrize(
    "page", [page for page in PAGES if _runs(page, False)], ids=lambda page: page.name
)
def test_a_page_can_be_followed(
    page: Path, tmp_path: Path, phaze: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    followed(page, tmp_path, False, phaze)


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in PAGES if _runs(page, True)], ids=lambda page: page.name
)
def test_a_page_can_be_followed_with_its_slow_parts(
    page: Path, tmp_path: Path, phaze: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert followed(page, tmp_path, True, phaze)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_says_what_it_is(page: Path) -> None:
    for block in blocks(page):
        assert block.kind in KINDS, block.text[:60]


def test_every_command_has_its_place_in_the_list() -> None:
    from typer.main import get_command

    from phaze.cli.main import app

    text = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    found = get_command(app)
    names = [name for name, command in found.commands.items() if not command.hidden]  # type: ignore[attr-defined]
    assert len(names) > 15
    for name in names:
        assert f"<!-- shows: phaze {name}" in text, name


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "index.md" or f"({page.name})" in index, page.name
