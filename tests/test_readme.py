"""The README and the documents: their commands run, and what they show is what is printed today."""

import importlib.util
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tests.conftest import Ran

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]*)(?:#([^)]*))?\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def _commands() -> list[str]:
    blocks = (
        block for page in PAGES for block in CONSOLE.findall(page.read_text(encoding="utf-8"))
    )
    return [
        line.removeprefix("$ ")
        for block in blocks
        for line in block.splitlines()
        if line.startswith("$ ")
    ]


def _tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_readme_has_the_two_commands_and_five_more() -> None:
    commands = _commands()
    assert {"make demo", "make test"} <= set(commands)
    assert sum(command.startswith("phaze ") for command in commands) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_is_what_is_printed(
    page: Path, tmp_path: Path, phaze: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, tables = page.read_text(encoding="utf-8"), _tables()
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)

    def run(arguments: str, program: str) -> str:
        """A command in this process; a tool as ``make tables`` runs it."""
        if program != "phaze":
            return str(tables.printed(arguments, program))
        ran = phaze(*arguments.split())
        assert ran.code == 0, f"{arguments}: {ran.err}"
        return str(tables.without_blanks(ran.out))

    assert tables.current(text, run=run) == text, "run make tables"


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_shows_of_long_commands_is_what_is_printed(page: Path) -> None:
    text, tables = page.read_text(encoding="utf-8"), _tables()
    assert tables.current(text, tables.LONG) == text, "run docs/tables.py --long"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, place in LINK.findall(page.read_text(encoding="utf-8")):
        there = page.parent / target if target else page
        assert there.exists(), target
        if place:
            headings = HEADING.findall(there.read_text(encoding="utf-8"))
            assert place in {_anchor(heading) for heading in headings}, f"{target}#{place}"


def _anchor(heading: str) -> str:
    """What a heading is called in a link: small letters, no signs, hyphens for blanks."""
    return re.sub(r"[^\w -]", "", heading.strip().lower()).replace(" ", "-")


def test_the_demo_runs_what_the_readme_shows() -> None:
    """Its command is run where what the README shows is compared with what is printed."""
    recipe = subprocess.run(
        ["make", "--dry-run", "demo"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout
    lines = [
        line
        for line in recipe.splitlines()
        if line.startswith(".venv/bin/phaze ") and "kernels" not in line
    ]
    shown = [
        found["arguments"]
        for found in _tables().BLOCK.finditer(PAGES[0].read_text(encoding="utf-8"))
    ]
    assert lines and all(line.removeprefix(".venv/bin/phaze ") in shown for line in lines)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--help"], 0),
        (["--hepl"], 2),
        (["--onyl", "chips"], 2),
        (["chips"], 2),
        (["--only", "no such command"], 2),
        (["--check", "--measured"], 2),
        (["--long", "--measured"], 2),
    ],
)
def test_the_tool_that_rewrites_outputs_refuses_what_it_does_not_know(
    words: list[str], code: int
) -> None:
    before = [page.read_bytes() for page in PAGES]
    with pytest.raises(SystemExit) as ended:
        _tables().main(words)
    assert ended.value.code == code
    assert [page.read_bytes() for page in PAGES] == before


def test_the_tool_checks_only_what_is_requested() -> None:
    _tables().main(["--check", "--only", "models --help"])
