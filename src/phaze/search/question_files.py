"""What a run's folder keeps of its question, so that nothing outside the folder matters to it any
more.

    study.toml     the study as it was run
    files/         a copy of every file that it names, and names.json: which path each one stands
                   for
    problem.json   everything resolved: axes as values, chips, technology, cluster, stack, job,
                   objective, gap
    graphs.json    the graphs of its models, one for each width and microbatch

The digest of ``problem.json``, which has those of the graphs in it, is the key of resuming.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from phaze.documents import Reader, parse
from phaze.errors import InputError
from phaze.files import read_text

STUDY, PROBLEM, GRAPHS, FILES, NAMES = (
    "study.toml",
    "problem.json",
    "graphs.json",
    "files",
    "names.json",
)
# Names of copies, as the folder's own code makes them: no path leads out of it.
PLAIN = re.compile(r"[0-9]+-[A-Za-z0-9._-]+")
# How many differences of two problems are worth a sentence.
SHOWN = 3


@dataclass(frozen=True, slots=True)
class Papers:
    """The texts of a question; ``files`` are those that the study names, by path as it names
    them."""

    study: str
    problem: str = ""
    graphs: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


def read_problem(folder: Path) -> dict[str, Any]:
    """``problem.json`` of a folder that was checked."""
    problem: dict[str, Any] = json.loads((folder / PROBLEM).read_text(encoding="utf-8"))
    return problem


@dataclass(slots=True)
class RecordingReader:
    """A reader that reads each path once, and remembers every text."""

    reader: Reader = read_text
    texts: dict[str, str] = field(default_factory=dict)

    def __call__(self, path: str) -> tuple[str, str]:
        if path not in self.texts:
            self.texts[path] = self.reader(path)[0]
        return self.texts[path], "standard input" if path == "-" else path


def copy_name(number: int, path: str) -> str:
    """What the copy of a file is called: a number, and what of its name is plain."""
    return f"{number}-{re.sub('[^A-Za-z0-9._-]', '_', Path(path).name)[-60:] or '_'}"


def texts_of(papers: Papers) -> dict[str, str]:
    """Every file of the question by its place in the folder."""
    texts = {STUDY: papers.study}
    if papers.problem:
        texts |= {PROBLEM: papers.problem, GRAPHS: papers.graphs}
    if papers.files:
        names = {path: copy_name(index, path) for index, path in enumerate(papers.files, 1)}
        texts |= {f"{FILES}/{name}": papers.files[path] for path, name in names.items()}
        texts[f"{FILES}/{NAMES}"] = json.dumps(names, indent=2, ensure_ascii=False) + "\n"
    return texts


def reader_of(folder: Path) -> Reader:
    """A reader of the copies that a folder keeps; what it has none of cannot be read."""
    index, names = folder / FILES / NAMES, dict[str, Any]()
    if index.is_file():
        text, where = read_text(str(index))
        names = parse(text, "json", where)

    def read(path: str) -> tuple[str, str]:
        name = names.get(path)
        if not isinstance(name, str) or not PLAIN.fullmatch(name):
            seen = f"its study names '{path}' and the folder keeps no copy of it"
            raise InputError(str(folder), seen, "search again")
        return read_text(str(folder / FILES / name))[0], f"{folder / FILES / name}"

    return read


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]")
    else:
        yield path, value


def differences(old: str, new: str, words: str = "{key} is {new} and was {old}") -> str:
    """Where two problems differ, in words: the first few values."""
    try:
        before, after = (dict(_leaves(parse(text, "json", PROBLEM))) for text in (old, new))
    except InputError:
        return "its problem.json cannot be read"
    changed = [
        key
        for key in dict.fromkeys([*before, *after])
        if before.get(key, "-") != after.get(key, "-")
    ]
    sentences = [
        words.format(
            key=key, new=repr(after.get(key, "-"))[:60], old=repr(before.get(key, "-"))[:60]
        )
        for key in changed[:SHOWN]
    ]
    more = len(changed) - len(sentences)
    return "; ".join(sentences) + (f"; and {more} more" if more else "")


def unlike(folder: Path, papers: Papers) -> list[str]:
    """What of a folder is not as its study and the copies of its files have it."""
    faults = []
    for name, text in ((PROBLEM, papers.problem), (GRAPHS, papers.graphs)):
        path = folder / name
        if not path.is_file():
            faults.append(f"{name}: there is none")
        elif (stored := read_text(str(path))[0]) != text:
            words = (
                differences(text, stored, "{key} is {new}, and {old} by " + STUDY)
                if name == PROBLEM
                else ""
            )
            faults.append(
                f"{name}: it is not what {STUDY} and {FILES} say{words and f' ({words})'}"
            )
    return faults


def refuse_another(folder: Path, papers: Papers) -> None:
    """Refuse a folder that keeps another question, saying what differs."""
    path = folder / PROBLEM
    if not papers.problem or not path.is_file():
        return
    old, _ = read_text(str(path))
    if old != papers.problem:
        seen = f"this folder holds a run of another study ({differences(old, papers.problem)})"
        raise InputError(str(folder), seen, "give another --out")
