"""Where the files and models of a study lie.

A path in a study, or in a file that it names, is relative to the study's file, or else to the
working folder; a path that a person gave on the command line is relative to the working folder. The
study of a run reads the copies that the run's folder keeps.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from phaze.documents import Reader
from phaze.files import STANDARD_INPUT, beside, read_text
from phaze.graph.tensor_plan import place_and_plan
from phaze.search.question_files import PROBLEM, STUDY, reader_of


def plain_name(text: str) -> str:
    """What of a text can name a model of a study."""
    return re.sub("[^a-z0-9.]+", "-", text.lower()).strip("-.")[:64] or "model"


def name_of(place: str) -> str:
    """What a model is called: ``my_model.py:build`` is my-model-build, a configuration has the name
    of its folder."""
    place = place_and_plan(place)[0]
    path, _, function = place.rpartition(":") if ":" in place else (place, "", "")
    stem = (
        Path(path).parent.name
        if Path(path).name == "config.json" and Path(path).parent.name
        else Path(path).stem
    )
    return plain_name(f"{stem}-{function}")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a study comes from: what to call it, its folder, how the files that it names are read,
    and whether Python that it names as a model may run."""

    where: str
    folder: Path = Path()
    reader: Reader = read_text
    allow_code: bool = False

    def trusting(self, paths: Collection[str]) -> "Origin":
        """The same, but for files that a person named on the command line."""

        def read(path: str) -> tuple[str, str]:
            return read_text(path) if path in paths else self.reader(path)

        return replace(self, reader=read) if paths else self


def origin_of(path: str, where: str) -> Origin:
    """The origin of a study's file; of a run's study that is its folder's copies."""
    if path in STANDARD_INPUT:
        return Origin(where)
    folder = Path(path).parent
    if Path(path).name == STUDY and (folder / PROBLEM).is_file():
        return Origin(where, folder, reader_of(folder))
    return Origin(where, folder, lambda named: read_text(beside(folder, named)))


def with_texts(texts: Mapping[str, str], reader: Reader) -> Reader:
    """A reader of the files that a study holds in itself, and else ``reader``."""

    def read(path: str) -> tuple[str, str]:
        return (texts[path], f"files.{path}") if path in texts else reader(path)

    return read if texts else reader
