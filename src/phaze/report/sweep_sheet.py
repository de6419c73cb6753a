"""A sweep for the terminal: the best chip at every point."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from phaze.report.terminal import table
from phaze.search.plan_words import degree_words


def show_sweep(console: Console, document: Mapping[str, Any], folder: str) -> None:
    """A row for every point, and where the sweep and its page lie."""
    chips = {at: region["name"] for region in document["chips"] for at in range(region["first"], region["last"] + 1)}
    cells = []
    for at, point in enumerate(document["points"]):
        if point["chip"] is None:
            cells.append((point["shown"], "", "nothing fits", "", ""))
            continue
        rates = [f"{model['throughput_per_s']:,.4g}" for model in point["models"]]
        first = point["models"][0]
        plan = degree_words(first) if len(rates) == 1 else ""
        cells.append((point["shown"], chips[at], point["chip"], " ".join(rates), plan))
    heads = (document["over"].rpartition(".")[2], "", "best chip", "sequences/s", "plan")
    console.print(table(heads, cells, left=3))
    for point in document["points"]:
        if "enlarged" in (point["cluster"] or ""):
            console.print(f"{point['shown']}: {point['cluster']}", markup=False)
    console.print(f"\nThe sweep: {folder}; its page: {Path(folder) / 'sweep.html'}")
