"""Memory of every stage by cause against the memory of a device.

Causes are those that the plan states: those of phaze have their colour and words, any other is
shown under its name.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from phaze.evaluate.headroom import DeviceMemory
from phaze.report.drawings import Bar, Bars, Colour, Piece
from phaze.report.numbers import counted
from phaze.units import show

TERMS: Mapping[str, tuple[Colour, str]] = MappingProxyType(
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
SPARE: tuple[Colour, ...] = ("links", "good", "bad", "front")


def _looks(stages: Sequence[Mapping[str, Any]]) -> dict[str, tuple[Colour, str]]:
    """Colour and words of every cause that some stage has, those of phaze first."""
    stated = {term for stage in stages for term, size in stage["memory"].items() if size > 0}
    looks = {term: look for term, look in TERMS.items() if term in stated}
    for number, term in enumerate(sorted(stated - set(TERMS))):
        looks[term] = (SPARE[number % len(SPARE)], term.removesuffix("_bytes").replace("_", " "))
    return looks


def _bar(
    number: int,
    stage: Mapping[str, Any],
    looks: Mapping[str, tuple[Colour, str]],
    device: DeviceMemory,
) -> Bar:
    pieces, hbm = list[Piece](), device.hbm_bytes
    if device.headroom > 0:
        free = device.kept_free_bytes
        pieces.append(
            Piece(hbm - free, free, "room", f"kept free for fragmentation: {show(free, 'B')}")
        )
    filled = 0.0
    for term, (colour, name) in looks.items():
        size = float(stage["memory"].get(term, 0.0))
        if size > 0:
            pieces.append(Piece(filled, size, colour, f"stage {number}, {name}: {show(size, 'B')}"))
            filled += size
    pieces.append(Piece(hbm, 0.003 * hbm, "ink"))
    need = float(stage["memory_bytes"])
    over = " over" if need > hbm * (1 + 1e-9) else ""
    again = "" if stage["recompute"] == "none" else f", recompute {stage['recompute']}"
    layers, time = counted(len(stage["layers"]), "layer"), show(float(stage["time_s"]), "s")
    name = f"Stage {number}: {layers}, {time}{again}"
    return Bar(name, need, show(need, "B"), f"{need / hbm:.0%}{over}", pieces=pieces)


def memory_bars(plan: Mapping[str, Any], device: DeviceMemory) -> Bars:
    """Every stage of a plan on a device."""
    stages, hbm_bytes, headroom = plan["stages"], device.hbm_bytes, device.headroom
    looks = _looks(stages)
    fullest = max(range(len(stages)), key=lambda number: float(stages[number]["memory_bytes"]))
    need, terms = float(stages[fullest]["memory_bytes"]), stages[fullest]["memory"]
    largest = max(terms, key=lambda term: float(terms[term]))
    caption = (
        f"Stage {fullest} is the fullest, {show(need, 'B')} of {show(hbm_bytes, 'B')} a "
        "device; its largest part is "
        f"{looks[largest][1] if largest in looks else largest}, "
        f"{show(float(terms[largest]), 'B')}. Times are of a microbatch."
    )
    legend: list[tuple[Colour, str]] = [*looks.values(), ("ink", "a device")]
    legend += [("room", f"{100 * headroom:.3g} % kept free")] if headroom else []
    rows = [_bar(number, stage, looks, device) for number, stage in enumerate(stages)]
    return Bars(
        rows, "Memory", caption, scale=max(hbm_bytes, need) * 1.02, legend=legend, look="tall"
    )
