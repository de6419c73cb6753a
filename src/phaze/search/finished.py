"""A run that has ended answers from its folder: nothing is searched again where question and files are the same.

The journal of a run keeps the SHA-256 of its question and of what the search wrote. Where the question of the folder
(``problem.json``, ``graphs.json``) is the one that is asked, journal and code are of it, and ``result.json`` and
``certificate.json`` are as they were written, the answer is the one that is there. A study that names no file depends
on its text and on the code alone: where both are those of the folder, its question need not be built to know that it
is the same. Anything else is searched. Whether the answer is true is for ``phaze verify`` to say, here as after a
search.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from phaze.errors import InputError
from phaze.files import is_path, read_text
from phaze.search.code import code_digest
from phaze.search.journal_file import read_about
from phaze.search.question_files import GRAPHS, PROBLEM, STUDY, Papers

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
    return _ended(texts[RESULT])


def names_files(value: Any) -> bool:
    """Whether plain values have anything that may lead to a file or to code: a path, ``file.py:function``, a module."""
    if isinstance(value, Mapping):
        said = {key: one for key, one in value.items() if key != "schema"}
        return any(names_files(one) for one in (*said.keys(), *said.values()))
    if isinstance(value, list | tuple):
        return any(names_files(one) for one in value)
    if isinstance(value, str):
        return is_path(value) or ":" in value or "@" in value
    return not isinstance(value, bool | int | float)


def finished_as(folder: Path, study_text: str) -> dict[str, Any] | None:
    """The answer of a run that has ended with this study, which names no file; None where there is none."""
    names = (STUDY, PROBLEM, GRAPHS, RESULT, CERTIFICATE)
    if not all((folder / name).is_file() for name in (*names, JOURNAL)):
        return None
    try:
        texts = {name: read_text(str(folder / name))[0] for name in names}
        about = read_about(folder / JOURNAL)
    except InputError:
        return None
    known = {"code": code_digest(), **digests_of({name: texts[name] for name in names if name != STUDY})}
    if texts[STUDY] != study_text or any(about.get(key) != value for key, value in known.items()):
        return None
    return _ended(texts[RESULT])


def _ended(text: str) -> dict[str, Any] | None:
    found: dict[str, Any] = json.loads(text)
    return found if not found["certificate"]["closed"]["open"] else None


def run_id_in(folder: Path) -> str | None:
    """The id of a run: SHA-256 over the digests of its question and its certificate; None where it has none."""
    paths = [folder / name for name in (PROBLEM, GRAPHS, CERTIFICATE)]
    if not all(path.is_file() for path in paths):
        return None
    each = [sha256(read_text(str(path))[0].encode()).hexdigest() for path in paths]
    return sha256("".join(each).encode()).hexdigest()
