"""docs/model.md: every line of the model names what runs it and what checks it, and both are
there."""

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent / "docs" / "model.md"
ROWS = [
    line
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and "`" in line
]


def _resolve(name: str) -> object:
    """What a dotted name below ``phaze`` stands for; modules are as long as they can be."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = import_module(f"phaze.{'.'.join(parts[:end])}")
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def test_the_page_has_the_whole_step() -> None:
    text = PAGE.read_text(encoding="utf-8")
    sections = re.findall(r"^## (.*)$", text, flags=re.MULTILINE)
    assert len(sections) == 7
    assert len(ROWS) >= 40


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.split("|")[1].strip()[:40])
def test_a_line_names_what_runs_it_and_what_checks_it(row: str) -> None:
    _, line, runs, checks, _ = row.split("|")
    assert line.strip()
    for cell, in_checker in ((runs, False), (checks, True)):
        names = re.findall(r"`([^`]+)`", cell)
        assert names, row
        for name in names:
            assert name.startswith("check.") is in_checker, name
            assert callable(_resolve(name)), name
