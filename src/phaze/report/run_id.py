"""The id of a run, shown by every command that answers: what an answer is cited by. Same input,
same id.

a search, a front, a plan's certificate   SHA-256 of the digests of problem.json, graphs.json,
                                          certificate.json and of what result.json, front.json or
                                          plan.json says, but for the code's version
a sweep                                   SHA-256 of the ids of its points, in order, and of the
                                          digest of sweep.json
an answer without a folder                SHA-256 of its document as ``--json`` prints it
"""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from phaze.documents import dumps
from phaze.report.sections import Notes
from phaze.search.finished import run_id_in

POINTS, SWEEP = "points", "sweep.json"


def id_in(folder: Path) -> str | None:
    """The id of what a folder holds; None where nothing is certified."""
    if not folder.is_dir():
        return None
    points = sorted((folder / POINTS).glob("*")) if (folder / SWEEP).is_file() else []
    if points:
        shown = sha256((folder / SWEEP).read_bytes()).hexdigest()
        return sha256(
            "".join([*(run_id_in(point) or "" for point in points), shown]).encode()
        ).hexdigest()
    return run_id_in(folder)


def answer_id(document: Mapping[str, Any]) -> str:
    """The id of an answer that is a document alone."""
    return sha256(dumps(document).encode()).hexdigest()


def id_notes(run_id: str | None) -> list[Notes]:
    """A line with an id; none where nothing is certified."""
    return [] if run_id is None else [Notes([f"Run id: {run_id}"], verbatim=True)]
