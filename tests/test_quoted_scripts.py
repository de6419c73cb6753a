"""Scripts that documents quote figures of: each is there and runs, in small every day and with Ray
among the slow."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
QUOTED = sorted(
    {
        name
        for page in PAGES
        for name in re.findall(r"docs/\w+\.py", page.read_text(encoding="utf-8"))
    }
)


def _ran(*arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.mark.parametrize("script", QUOTED)
def test_every_script_that_a_document_names_finds_what_it_imports(script: str) -> None:
    assert runpy.run_path(str(ROOT / script), run_name="imported")["__doc__"]


def test_the_share_of_a_search_that_workers_take_over_is_measured() -> None:
    said = _ran("docs/scaling.py", "--share", "bert-large")
    assert re.search(r"bert-large: [\d.]+ CPU s, of it evaluating chips .* serial share \d+%", said)
    assert len(re.findall(r"at most [\d.]+ times as fast on \d+ workers", said)) == 3


@pytest.mark.slow
def test_what_the_ray_engine_costs_is_measured() -> None:
    said = _ran("docs/scaling.py", "--chips", "2")
    assert "2 chips evaluated" in said and "ray, 1 workers" in said and "ray, 2 workers" in said
    assert re.search(r"a chip [\d,]+ there and [\d,]+ back", said)
