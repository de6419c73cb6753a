"""Files under ``presets/`` by name and files by path: what looks like a path (it ends in .toml or
.json, holds a slash, or is ``-``) is read from there; all else is the name of a preset, with the
nearest right one in the error.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from phaze import documents
from phaze.documents import Reader
from phaze.errors import unknown_name
from phaze.files import is_path, read_text

M = TypeVar("M", bound=documents.Document)


@cache
def preset_names(kind: str) -> tuple[str, ...]:
    """The names of the presets of a kind (chips, clusters, stacks, technologies), sorted."""
    folder = files("phaze.hardware") / "presets" / kind
    return tuple(
        sorted(
            entry.name.removesuffix(".toml")
            for entry in folder.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def keys_of(
    kind: str, text: str, reader: Reader = read_text, noun: str = ""
) -> tuple[Mapping[str, Any], str]:
    """The keys of the file of ``kind`` that ``text`` names or leads to, and where it lies;
    ``noun``: what errors call it."""
    if is_path(text):
        raw, where = reader(text)
        return documents.parse(raw, documents.notation_of(text, raw), where), where
    if text not in preset_names(kind):
        raise unknown_name("", noun or kind.removesuffix("s"), text, preset_names(kind))
    where = f"presets/{kind}/{text}.toml"
    return bundled(where), where


def read(model: type[M], kind: str, text: str, reader: Reader = read_text) -> M:
    """The file of ``kind`` that ``text`` names or leads to, checked."""
    keys, where = keys_of(kind, text, reader)
    return documents.check(model, keys, where)


@cache
def bundled(where: str) -> Mapping[str, Any]:
    """The keys of a bundled file of this room; a process reads it once."""
    source = files("phaze.hardware") / where
    return documents.parse(source.read_text(encoding="utf-8"), "toml", where)
