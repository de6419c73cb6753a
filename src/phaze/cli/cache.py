"""``phaze cache``: the traced graphs of own models that are kept between commands."""

from typing import TYPE_CHECKING, Annotated, Any

from phaze.api.values import Shown
from phaze.options.option import Option

if TYPE_CHECKING:
    from rich.console import Console

Clear = Annotated[bool, Option("Remove all cached graphs.")]


def cache(clear: Clear = False) -> Shown:
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
        "models": [{"model": one.place, "graphs": one.graphs, "bytes": one.bytes} for one in entries],
    }

    def show(console: "Console") -> None:
        from phaze.report.terminal import table

        console.print(str(kept.folder), style="bold", markup=False)
        if removed is not None:
            console.print(f"{removed:,} files removed")
        elif not entries:
            console.print("nothing is kept yet")
        else:
            rows = [(one.place, f"{one.graphs:,}", f"{one.bytes / 1024:,.0f}") for one in entries]
            console.print(table(("model", "graphs", "KiB"), rows))

    return Shown(document, show)
