"""A sweep: the best chip at every point."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phaze.report.sections import Notes, Section, Table
from phaze.search.plan_words import degree_words


def sweep_sections(document: Mapping[str, Any], folder: str) -> list[Section]:
    """A row for every point, and where the sweep and its page lie."""
    names = {
        index: region["name"] for region in document["chips"] for index in range(region["first"], region["last"] + 1)
    }
    cells = []
    for index, point in enumerate(document["points"]):
        if point["chip"] is None:
            cells.append((point["shown"], "", "nothing fits", "", ""))
            continue
        rates = [f"{model['throughput_per_s']:,.4g}" for model in point["models"]]
        plan = degree_words(point["models"][0]) if len(rates) == 1 else ""
        cells.append((point["shown"], names[index], point["chip"], " ".join(rates), plan))
    columns = (document["over"].rpartition(".")[2], "", "best chip", "sequences/s", "plan")
    enlarged = [
        f"{point['shown']}: {point['cluster']}"
        for point in document["points"]
        if "enlarged" in (point["cluster"] or "")
    ]
    places = [f"The sweep: {folder}", f"Its page: {Path(folder) / 'sweep.html'}"]
    return [Table(columns, cells, notes=enlarged, texts=3), Notes(places, verbatim=True)]
