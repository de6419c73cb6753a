"""A run that has ended answers from its folder: nothing is searched again where question and files are the same.

The journal of a run keeps the SHA-256 of what the search wrote. Where the question of the folder (``problem.json``,
``graphs.json``) is the one that is asked, journal and code are of it, and ``result.json`` and ``certificate.json`` are
as they were written, the answer is the one that is there. Anything else is searched. Whether the answer is true is for
``phaze verify`` to say, here as after a search.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from phaze.errors import InputError
from phaze.files import read_text
from phaze.search.code import code_digest
from phaze.search.journal import read_about
from phaze.search.question_files import GRAPHS, PROBLEM, Papers

JOURNAL, RESULT, CERTIFICATE = "journal.sqlite", "result.json", "certificate.json"


def digests_of(texts: dict[str, str]) -> dict[str, str]:
    """What a journal keeps of the files that a search wrote."""
    return {name: sha256(text.encode()).hexdigest() for name, text in texts.items()}


def finished_in(folder: Path, papers: Papers, study: str) -> dict[str, Any] | None:
    """The answer of a run that has ended with this question, ``study`` being its digest; None where there is none."""
    wanted = {PROBLEM: papers.problem, GRAPHS: papers.graphs}
    names = (*wanted, RESULT, CERTIFICATE, JOURNAL)
    if not papers.problem or not all((folder / name).is_file() for name in names):
        return None
    try:
        if any(read_text(str(folder / name))[0] != text for name, text in wanted.items()):
            return None
        about = read_about(folder / JOURNAL)
        texts = {name: read_text(str(folder / name))[0] for name in (RESULT, CERTIFICATE)}
    except InputError:
        return None
    known = {"study": study, "code": code_digest(), **digests_of(texts)}
    if any(about.get(key) != value for key, value in known.items()):
        return None
    found: dict[str, Any] = json.loads(texts[RESULT])
    return found if not found["certificate"]["closed"]["open"] else None


def run_id_in(folder: Path) -> str | None:
    """The id of a run: SHA-256 over the digests of its question and its certificate; None where it has none."""
    paths = [folder / name for name in (PROBLEM, GRAPHS, CERTIFICATE)]
    if not all(path.is_file() for path in paths):
        return None
    each = [sha256(read_text(str(path))[0].encode()).hexdigest() for path in paths]
    return sha256("".join(each).encode()).hexdigest()
