"""What the page lists as not checkable yet is what the checker says so of: each is asked for, and
none is missing."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from phaze.check.verdict import check
from tests.check.forge import Papers
from tests.check.forgeries import put

PAGE = Path(__file__).parents[2] / "docs" / "search.md"
Change = Callable[[Papers, Papers], Any]


def _set(*path: Any, value: Any) -> Change:
    return lambda papers, _: put(*path, value=value)(papers)


LISTED: dict[str, tuple[str, Change]] = {
    "any key of a run's documents that is not in the checker's own lists "
        "(`check/question.py`, `stack.py`, "
    "`job.py`)": ("good", _set("problem", "trust", value=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", LISTED)
def test_what_is_listed_is_said_to_be_not_covered(
    name: str, clustered: Path, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    kind, change = LISTED[name]
    papers = Papers(request.getfixturevalue(kind))
    change(papers, Papers(clustered))
    found = check(papers.write(tmp_path))
    assert found.missing and not found.wrong and not found.holds, found.sentence()


def test_the_page_has_that_list() -> None:
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    (listed,) = re.findall(r"\*\*Not checkable yet\*\* \([^)]*\): (.*?)\. For such a run", text)
    assert listed.split("; ") == list(LISTED)
