"""``phaze cache``: the traced graphs of own models that are kept between commands."""

from typing import TYPE_CHECKING, Annotated, Any

from phaze.api.values import Answer
from phaze.options.option import Option
from phaze.report.sections import Notes, Section, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from phaze.graph.supply.cache import Kept

Clear = Annotated[bool, Option("Remove all cached graphs.")]


def cache(clear: Clear = False) -> Answer:
    """Show the cache of traced graphs of your own models, or clear it.

    PHAZE_CACHE names another folder. Examples: phaze cache · phaze cache --clear
    """
    from phaze.graph.supply.cache import GraphCache, cache_folder

    kept = GraphCache(cache_folder())
    removed = kept.clear() if clear else None
    entries = kept.entries()
    document: dict[str, Any] = {
        "folder": str(kept.folder),
        "removed_files": removed,
        "models": [
            {"model": one.place, "graphs": one.graphs, "bytes": one.bytes} for one in entries
        ],
    }
    return Answer(document, lambda: _sections(str(kept.folder), entries, removed))


def _sections(folder: str, entries: "Sequence[Kept]", removed: int | None) -> list[Section]:
    if removed is not None:
        return [Notes([f"{removed:,} files removed"], folder)]
    if not entries:
        return [Notes(["nothing is kept yet"], folder)]
    rows = [(entry.place, f"{entry.graphs:,}", f"{entry.bytes / 1024:,.0f}") for entry in entries]
    return [Table(("model", "graphs", "KiB"), rows, folder)]
