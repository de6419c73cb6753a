"""The checker of pages is fetched, never committed, and only the published one is used."""

import subprocess
from pathlib import Path

import pytest

from tests.browser import axe

ROOT = Path(__file__).parents[2]


def test_a_script_that_is_not_the_published_one_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "axe.min.js"
    kept.write_text("axe.run = () => ({violations: []})", encoding="utf-8")
    monkeypatch.setattr(axe, "_fetched", lambda: None)
    assert axe.axe_source(kept) is None, "what was put there is not believed"
    assert axe.script_in(b"another package", tmp_path) is None
    monkeypatch.setattr(axe, "_fetched", lambda: b"another script")
    assert axe.axe_source(kept) is None and "violations: []" in kept.read_text(encoding="utf-8")


def test_nothing_that_is_fetched_is_part_of_the_repository() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout")
    listed = subprocess.run(
        ["git", "ls-files", ".cache"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    assert listed == ""
