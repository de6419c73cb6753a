"""Every value of a question counts: another one in its place is refused, or the claim in words is
another."""

from pathlib import Path
from typing import Any

import pytest

from phaze.check.verdict import check
from tests.check.forge import Papers
from tests.check.leaves import changed, leaves

MACHINE = ("models", 0, "training", "machine", "cluster")
REMARKS: tuple[tuple[Any, ...], ...] = (
    ("name",), ("round_size",), ("space", "title"), ("space", "name"), ("space", "base", "name"),
    ("space", "base", "title"), ("baseline",), ("cluster",), ("rules",), ("budget",),
    *((*MACHINE, key) for key in ("name", "title", "chip", "stack", "enlarged_from", "limit")),
)  # fmt: skip
"""What nothing that is proved depends on: names, the chip that an answer is compared with, the
network as it was before a chip's own links, what the space's rules were made from; all below them
too."""
ALL = pytest.param(5, marks=pytest.mark.slow)


def _silent(run: Path, folder: Path, each: int) -> list[Any]:
    """Leaves of problem.json, every so manieth, of which a change is neither refused nor shown."""
    papers, known = Papers(run), check(run, quick=True)
    rows = [path for path in leaves(papers.problem) if path[-1] != "digest"]
    found = []
    for path in rows[::each]:
        forged = Papers(run)
        forged.problem = changed(papers.problem, path)
        verdict = check(forged.write(folder), quick=True)
        if not verdict.wrong and not verdict.missing and verdict.words == known.words:
            found.append(path)
    return found


@pytest.mark.parametrize("each", [23, ALL])
@pytest.mark.parametrize("kind", ["good", "clustered", "proof", "clusters"])
def test_no_value_of_a_question_changes_in_silence(
    kind: str, each: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    found = _silent(request.getfixturevalue(kind), tmp_path, each)
    assert not [path for path in found if not _is_remark(path, kind == "clusters")]


def _is_remark(path: tuple[Any, ...], money: bool) -> bool:
    """Prices where nothing asks for them, and names of levels, are remarks too."""
    named = path[-1] in ("name", "title") or (path[0] == "ownership" and not money)
    return named or any(path[: len(own)] == own for own in REMARKS)
