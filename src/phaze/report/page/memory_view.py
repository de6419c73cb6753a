"""Memory of every stage by cause against the memory of a device, as templates draw it.

Causes are those that the plan states: known ones have their colour and words, any other one is shown under its own
name.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.report.numbers import counted
from phaze.units import show

Piece = tuple[float, float, str, str]
TERMS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "parameters": ("tensor", "parameters"),
        "gradients": ("network", "gradients"),
        "optimizer": ("buffer", "optimizer state"),
        "activations": ("vector", "activations of one microbatch"),
        "in_flight": ("hbm", "activations in flight"),
        "reserve": ("other", "reserve of the software"),
    }
)
# Colours of causes that have none of their own, in turn.
SPARE = ("links", "good", "bad", "front")


@dataclass(frozen=True, slots=True)
class StageRow:
    """A stage: its bar, in words, and how full it is."""

    name: str
    pieces: tuple[Piece, ...]
    label: str
    need: str
    share: str


@dataclass(frozen=True, slots=True)
class MemoryView:
    """All stages."""

    about: str
    legend: tuple[tuple[str, str], ...]
    rows: tuple[StageRow, ...]


def _looks(stages: Sequence[Mapping[str, Any]]) -> dict[str, tuple[str, str]]:
    """Colour and words of every cause that some stage has, known ones first."""
    there = {term for stage in stages for term, size in stage["memory"].items() if size > 0}
    strange = sorted(there - set(TERMS))
    known = {term: looks for term, looks in TERMS.items() if term in there}
    return known | {
        term: (SPARE[at % len(SPARE)], term.removesuffix("_bytes").replace("_", " ")) for at, term in enumerate(strange)
    }


def _row(
    number: int,
    stage: Mapping[str, Any],
    looks: Mapping[str, tuple[str, str]],
    device: DeviceMemory,
    most: float,
) -> StageRow:
    pieces: list[Piece] = []
    hbm = device.hbm_bytes
    if device.headroom > 0:
        free = device.kept_free_bytes
        words = f"kept free for fragmentation: {show(free, 'B')}"
        pieces.append((hbm * (1 - device.headroom) / most, free / most, "room", words))
    left, told = 0.0, []
    for term, (colour, name) in looks.items():
        size = float(stage["memory"].get(term, 0.0))
        if size > 0:
            told.append(f"{name} {show(size, 'B')}")
            pieces.append((left / most, size / most, colour, f"stage {number}, {name}: {show(size, 'B')}"))
            left += size
    pieces.append((hbm / most, 0.003, "ink", ""))
    need = float(stage["memory_bytes"])
    over = " over" if need > hbm * (1 + 1e-9) else ""
    again = "" if stage["recompute"] == "none" else f", recompute {stage['recompute']}"
    name = f"Stage {number}: {counted(len(stage['layers']), 'layer')}{again}"
    return StageRow(name, tuple(pieces), f"{name}: {', '.join(told)}", show(need, "B"), f"{need / hbm:.0%}{over}")


def memory_view(plan: Mapping[str, Any], device: DeviceMemory) -> MemoryView:
    """Every stage of a plan on a device."""
    stages, hbm_bytes, headroom = plan["stages"], device.hbm_bytes, device.headroom
    looks = _looks(stages)
    fullest = max(range(len(stages)), key=lambda at: float(stages[at]["memory_bytes"]))
    most = max(hbm_bytes, float(stages[fullest]["memory_bytes"])) * 1.02
    holds = stages[fullest]["memory"]
    largest = max(holds, key=lambda term: float(holds[term]))
    words = looks.get(largest, ("", largest))[1]
    free = f" Shaded: the {100 * headroom:.3g} % kept free." if headroom else ""
    about = (
        f"Stage {fullest} is the fullest, {show(float(stages[fullest]['memory_bytes']), 'B')} of "
        f"{show(hbm_bytes, 'B')} a device; its largest part is {words}, {show(float(holds[largest]), 'B')}. The line "
        f"is the memory of a device.{free}"
    )
    legend = [looks[term] for term in looks] + ([("room", "kept free")] if headroom else [])
    rows = tuple(_row(at, stage, looks, device, most) for at, stage in enumerate(stages))
    return MemoryView(about, tuple(legend), rows)
