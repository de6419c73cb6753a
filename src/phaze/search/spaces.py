"""Spaces by name or path, of chips of cores (``phaze.space/1``) or of clusters (``phaze.space/2``), and opened.

This is the one place where a search asks which of them it has: both have the same face.
"""

from importlib.resources import files
from typing import overload

from phaze import documents
from phaze.documents import Reader
from phaze.errors import unknown_name
from phaze.files import is_path, read_text
from phaze.hardware.silicon.space import KIND, cluster_space_names
from phaze.hardware.silicon.space_file import SCHEMA, ClusterSpaceFile
from phaze.search.chips import SpaceChips
from phaze.search.clustered_chips import ClusterChips, enumerate_clusters
from phaze.search.clustered_space import SpaceOfClusters, cluster_space
from phaze.search.feasibility import kept_of
from phaze.search.space import Space, SpaceFile, space_from

AnySpace = Space | SpaceOfClusters
EnumeratedSpace = SpaceChips | ClusterChips


def _names() -> tuple[str, ...]:
    """The spaces of chips of cores that are bundled."""
    folder = files("phaze.search") / "presets" / "spaces"
    return tuple(sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir()))


def space_names() -> tuple[str, ...]:
    """The spaces that are bundled."""
    return tuple(sorted((*_names(), *cluster_space_names())))


def load_space(text: str, reader: Reader = read_text) -> AnySpace:
    """A space by preset name or path."""
    if is_path(text):
        found, where = reader(text)
        raw = documents.parse(found, documents.notation_of(text, found), where)
    elif text not in space_names():
        raise unknown_name("", "space", text, space_names())
    else:
        of_cores = text in _names()
        room, where = ("phaze.search", "presets/spaces") if of_cores else ("phaze.hardware", f"presets/{KIND}")
        source = files(room) / where / f"{text}.toml"
        where = f"{where}/{text}.toml"
        raw = documents.parse(source.read_text(encoding="utf-8"), "toml", where)
    if raw.get("schema") == SCHEMA:
        return cluster_space(documents.check(ClusterSpaceFile, raw, where), reader)
    return space_from(documents.check(SpaceFile, raw, where), reader)


@overload
def enumerate_space(space: Space) -> SpaceChips: ...
@overload
def enumerate_space(space: SpaceOfClusters) -> ClusterChips: ...
def enumerate_space(space: AnySpace) -> EnumeratedSpace:
    """The chips of a space, ready."""
    if isinstance(space, SpaceOfClusters):
        return enumerate_clusters(space)
    return SpaceChips(space, space.base, space.technology, kept_of(space))
