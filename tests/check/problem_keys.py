"""Where a key of ``problem.json`` stands: the rows of docs/formats.md that name all of them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FORMATS = Path(__file__).parents[2] / "docs" / "formats.md"
FREE = ("space.axes", "space.tied", "front.within")
CHIPS = re.compile(r"^(space\.base|space\.area_chip|baseline)(?=\.|$)")
CLUSTER = re.compile(r"^models\[\]\.training\.machine\.cluster(?=\.|$)")
CURVES = re.compile(r"\.(core_buffer|scratchpad|cache|sram|buffer)$")
RATES = re.compile(r"\.attention\.(forward|backward)(\[\])+$")


def place(path: str) -> str | None:
    """The row of a table: a chip, a cluster, a curve and a memory are one wherever they stand;
    None: names are free."""
    if path in FREE:
        return None
    path = CLUSTER.sub("cluster", CHIPS.sub("chip", path))
    if RATES.search(path):
        return "models[].training.constants.attention.rate"
    if CURVES.search(path) and (".area." in path or ".energy." in path):
        return "curve"
    if path in (
        "chip.tensor_core.buffer",
        "chip.vector_core.buffer",
        "chip.global_buffer",
        "chip.hbm",
    ):
        return "chip.memory"
    if path.endswith((".ga100", ".aldebaran")):
        return "chip.clusters.node.area.interfaces"
    return path.replace("chip.clusters.accelerator.published", "chip.published") or "problem"


def tables(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every (row, key) of a document."""
    if isinstance(value, dict):
        row = place(path)
        for key, inner in value.items():
            if row is not None:
                yield row, str(key)
            yield from tables(inner, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from tables(inner, f"{path}[]")


def documented() -> dict[str, set[str]]:
    """The rows of the page."""
    text = FORMATS.read_text(encoding="utf-8")
    start = text.index("### Every key of problem.json")
    section = text[start : text.index("\n## ", start)]
    found = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) >= 2:
            found[cells[0].strip("`")] = set(re.findall(r"`([^`]+)`", cells[1]))
    return found
