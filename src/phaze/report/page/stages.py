"""Memory of every stage against HBM, by what it holds."""

from collections.abc import Mapping
from html import escape
from typing import Any

from phaze.report.page.frame import bar, counted, legend, said
from phaze.report.view_model import Story
from phaze.units import show

TERMS = (
    ("parameters", "tensor"),
    ("gradients", "network"),
    ("optimizer", "buffer"),
    ("activations", "vector"),
    ("in_flight", "hbm"),
    ("reserve", "other"),
)
SHOWN = 24


def _words(term: str) -> str:
    return {"in_flight": "activations of other microbatches in flight"}.get(term, term)


def _row(number: int, stage: Mapping[str, Any], hbm_bytes: float, most: float) -> str:
    left, bars = 0.0, []
    for term, colour in TERMS:
        size = float(stage["memory"].get(term, 0.0))
        if size > 0:
            words = f"stage {number}, {_words(term)}: {show(size, 'B')}"
            bars.append(bar(left / most, size / most, colour, f' data-say="{escape(words)}"'))
            left += size
    bars.append(f'<rect x="{hbm_bytes / most:.3%}" width="2" height="100%" class="f-ink"/>')
    need = float(stage["memory_bytes"])
    share = f"{need / hbm_bytes:.0%}" + (" over" if need > hbm_bytes * (1 + 1e-9) else "")
    again = "" if stage["recompute"] == "none" else f", recompute {stage['recompute']}"
    name = f"{number}: {counted(len(stage['layers']), 'layer')}{again}"
    return (
        f'<div class="row"><span class="l">{escape(name)}</span><span class="track"><svg>{"".join(bars)}</svg></span>'
        f'<span class="v">{show(need, "B")}</span><span class="v">{share}</span></div>'
    )


def memory(story: Story) -> str:
    """A bar for every stage; the line is the HBM of a device."""
    stages, hbm = story.plan["stages"], story.hbm_bytes
    most = max(hbm, *(float(stage["memory_bytes"]) for stage in stages)) * 1.005
    rows = [_row(at, stage, hbm, most) for at, stage in enumerate(stages)]
    used = [
        (colour, _words(term)) for term, colour in TERMS if any(stage["memory"].get(term, 0.0) > 0 for stage in stages)
    ]
    text = f'<div class="rows">{"".join(rows[:SHOWN])}</div>'
    if len(rows) > SHOWN:
        rest = f'<div class="rows">{"".join(rows[SHOWN:])}</div>'
        text += f"<details><summary>{len(rows) - SHOWN} more stages</summary>{rest}</details>"
    line = f"<p>On each device; the line is its HBM, {show(hbm, 'B')}.</p>"
    return f"{line}{legend(used)}{text}{said('Point at a part of a bar, or tap it.')}"
