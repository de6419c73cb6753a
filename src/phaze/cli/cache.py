"""``phaze cache``: the traced graphs of own models that are kept between commands."""

from typing import TYPE_CHECKING, Annotated, Any

from phaze.api.values import Answer
from phaze.options.option import Option
from phaze.report.sections import Notes, Section, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phaze.graph.supply.cache import CacheEntry

Clear = Annotated[bool, Option("Remove all cached graphs.")]


def cache(clear: Clear = False) -> Answer:
    """Show the cache of traced graphs of your own models, or clear it.

    PHAZE_CACHE names another folder. Examples: phaze cache · phaze cache --clear
    """
    from phaze.graph.supply.cache import GraphCache, cache_folder

    graphs = GraphCache(cache_folder())
    removed = graphs.clear() if clear else None
    entries = graphs.entries()
    document: dict[str, Any] = {
        "folder": str(graphs.folder),
        "removed_files": removed,
        "models": [
            {"model": entry.place, "graphs": entry.graphs, "bytes": entry.bytes}
            for entry in entries
        ],
    }
    return Answer(document, lambda: _sections(str(graphs.folder), entries, removed))


def _sections(folder: str, entries: "Sequence[CacheEntry]", removed: int | None) -> list[Section]:
    if removed is not None:
        return [Notes([f"{removed:,} files removed"], folder)]
    if not entries:
        return [Notes(["nothing is kept yet"], folder)]
    rows = [(entry.place, f"{entry.graphs:,}", f"{entry.bytes / 1024:,.0f}") for entry in entries]
    return [Table(("model", "graphs", "KiB"), rows, folder)]
