"""The documentation as a site: it builds without a warning or a broken link, and asks nothing of
the network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
pytest.importorskip("mkdocs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "--quiet",
        "--site-dir",
        str(folder),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


def test_the_site_has_every_page_and_the_reference(site: Path) -> None:
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert pages <= {page.stem for page in site.glob("*.html")}
    text = (site / "reference.html").read_text(encoding="utf-8")
    assert "Tensor-parallel degrees (TP) to try" in text
    assert (site / "search" / "search_index.json").is_file()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    loaded = re.compile(r"""<(?:script|link|img|iframe)[^>]*(?:src|href)=["']?(https?:)?//""")
    for page in site.glob("*.html"):
        assert loaded.search(page.read_text(encoding="utf-8")) is None, page
