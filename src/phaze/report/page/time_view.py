"""Where the time goes, as templates draw it: the waterfall, what would help, and the pipeline as a timeline.

The timeline's numbers go to a script that zooms: starts by stage as whole numbers of end / (2^32 - 1). Beyond
``MOST_EVENTS`` the first and the last microbatches are kept, and the stretch in which any event is missing is said.
What would help is first order: a cost of x seconds that is 10 % less saves x / 11 of the step.
"""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from phaze.pipeline.families import FAMILIES
from phaze.report.numbers import counted
from phaze.report.view_model import Pipeline, Story
from phaze.report.waterfall import Step
from phaze.units import show

MOST_EVENTS = 2400
"""Events of a timeline: the first and last microbatches show its shape."""
STEPS = 2**32 - 1
"""32 bits a time: a microsecond of an hour."""
TAIL = ("synchronisation_s", "optimizer_s", "tied_s")
PEAK = "GEMM FLOPs at peak"
GROUPS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        PEAK: ("peak", "GEMM FLOPs"),
        "tensor-vector overlap": ("peak", "GEMM FLOPs"),
        "exposed TP communication": ("network", "communication"),
        "exposed pipeline send/recv": ("network", "communication"),
        "exposed DP communication": ("network", "communication"),
        "tied parameters": ("network", "communication"),
        "pipeline bubble": ("vector", "pipeline"),
        "stage imbalance": ("vector", "pipeline"),
        "idle devices": ("vector", "pipeline"),
        "activation recomputation": ("hbm", "recomputation"),
        "optimizer step": ("links", "optimizer"),
    }
)
KERNELS = ("tensor", "kernels")
# Costs that a faster part would lower, and the part in the reader's words.
HELP: Mapping[str, str] = MappingProxyType(
    {
        "sustained GEMM rate": "a higher sustained GEMM rate",
        "memory-bound GEMMs": "HBM bandwidth for GEMMs",
        "non-matmul ops": "non-matmul ops (HBM bandwidth, fusion)",
        "kernel start-up": "kernel start-up",
        "CPU launch overhead": "CPU launch overhead",
        "exposed TP communication": "network of the TP group",
        "exposed DP communication": "network of the DP group",
        "exposed pipeline send/recv": "pipeline send/recv",
        "activation recomputation": "activation recomputation",
        "pipeline bubble": "pipeline bubble",
        "stage imbalance": "stage imbalance",
        "gradient accumulation": "gradient accumulation",
    }
)
# Pipeline schedules in the field's words.
KINDS: Mapping[str, str] = MappingProxyType({name: family.title for name, family in FAMILIES.items()})


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the waterfall, or a bar; lengths are shares of the widest."""

    name: str
    meaning: str
    left: float
    width: float
    colour: str
    seconds: float
    value: str
    share: str
    total: bool = False


@dataclass(frozen=True, slots=True)
class TimeView:
    """The waterfall with its lead, and what would help."""

    lead: str
    note: str
    legend: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]
    levers: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class TimelineView:
    """The timeline in words, and how tall it is; ``drawn`` is False where there are too many events."""

    about: str
    legend: tuple[tuple[str, str], ...]
    label: str
    size: str
    drawn: bool


def waterfall_rows(steps: Sequence[Step], batch_s: float) -> tuple[Row, ...]:
    """Every step where the one before it ended; the last row is their sum."""
    ends = np.cumsum([step.seconds for step in steps])
    most = max(batch_s, float(ends.max()))
    rows = []
    for step, end in zip(steps, ends.tolist(), strict=True):
        start = end - step.seconds
        colour = GROUPS.get(step.name, KERNELS)[0]
        share = f"{100 * step.seconds / batch_s:.1f} %"
        at = (max(0.0, min(start, end)) / most, max(abs(step.seconds) / most, 1e-3))
        rows.append(Row(step.name, step.meaning, *at, colour, step.seconds, show(step.seconds, "s"), share))
    whole = (0.0, batch_s / most, "ink", batch_s, show(batch_s, "s"), "100 %", True)
    return (*rows, Row("step time", "what is reached: the sum of all rows", *whole))


def _levers(steps: Sequence[Step], batch_s: float) -> tuple[Row, ...]:
    """What 10 % less of a cost saves, largest first."""
    saved = {step.name: step.seconds / 11 for step in steps if step.name in HELP and step.seconds > 0}
    found = sorted(((value, name) for name, value in saved.items() if value >= 5e-4 * batch_s), reverse=True)[:6]
    most = found[0][0] if found else 1.0
    return tuple(
        Row(HELP[name], "", 0.0, value / most, "tensor", value, f"-{100 * value / batch_s:.1f} % step time", "")
        for value, name in found
    )


def time_view(story: Story) -> TimeView:
    """The waterfall of a plan."""
    batch_s, steps = float(story.plan["batch_s"]), story.steps
    peak = steps[0].seconds / batch_s
    rest = sorted((step for step in steps[1:] if step.seconds > 0), key=lambda step: -step.seconds)[:2]
    named = " and ".join(f"{step.name} ({100 * step.seconds / batch_s:.0f} %)" for step in rest)
    kinds = dict.fromkeys(GROUPS.get(step.name, KERNELS) for step in steps)
    return TimeView(
        lead=f"{100 * peak:.0f} % of the step is GEMM FLOPs at the peak of all {story.split.devices:,} devices.",
        note=(f"Most of the rest: {named}. " if named else "") + "The rows sum to the step.",
        legend=tuple(kinds),
        rows=waterfall_rows(steps, batch_s),
        levers=_levers(steps, batch_s),
    )


def _packed(values: Any) -> dict[str, Any]:
    return {"bytes": 4, "data": b64encode(np.ascontiguousarray(values).astype("<u4").tobytes()).decode()}


def timeline_numbers(flow: Pipeline, tail_s: float) -> dict[str, Any]:
    """What the script draws of one replica."""
    stages, pieces = flow.forward_s.shape
    kept = np.arange(pieces)
    skipped = None
    half = max(1, MOST_EVENTS // (4 * stages))
    if 2 * half < pieces and stages * pieces * 2 > MOST_EVENTS:
        kept = np.r_[0:half, pieces - half : pieces]
        gone = slice(half, pieces - half)
        last = flow.backward_s[:, gone] + flow.backward_length_s[:, None]
        skipped = [float(flow.forward_s[:, gone].min()), float(last.max())]
    end_s = flow.end_s or 1.0
    starts = [np.rint(one[:, kept] / end_s * STEPS) for one in (flow.forward_s, flow.backward_s)]
    passes_s = float(np.sum([lengths for _, _, lengths in flow.passes], axis=0).max())
    apart = {}
    if flow.weight_s is not None and flow.weight_length_s is not None:
        own = _packed(np.rint(flow.weight_s[:, kept] / end_s * STEPS))
        apart = {"weight_starts": own, "weight": [float(one) for one in flow.weight_length_s]}
    return {
        **apart,
        "forward_starts": _packed(starts[0]),
        "backward_starts": _packed(starts[1]),
        "forward": [float(one) for one in flow.forward_length_s],
        "backward": [float(one) for one in flow.backward_length_s],
        "pieces": [int(one) for one in kept],
        "chunks": flow.chunks,
        "end": end_s,
        "tail": tail_s,
        "warm": float(flow.backward_s[0, 0] + flow.backward_length_s[0]) + 4 * passes_s,
        "skipped": skipped,
    }


def tail_of(story: Story) -> float:
    """What follows the last pass of a replica."""
    flow = story.pipeline
    return 0.0 if flow is None else max(0.0, float(story.plan["simulated_s"]) - flow.end_s)


def timeline_view(story: Story) -> TimelineView:
    """The timeline of one replica in words."""
    plan, flow = story.plan, story.pipeline
    if flow is None:
        return TimelineView("One replica has too many events to be drawn.", (), "", "", False)
    (stages, events), rounds = flow.forward_s.shape, flow.rounds
    tail_s = tail_of(story)
    ends_s = sum(float(plan["breakdown"].get(key, 0.0)) for key in TAIL)
    inside = " Collectives of ZeRO lie inside the passes." if ends_s - tail_s > 1e-9 * plan["batch_s"] else ""
    idle = 1 - events * float(sum(lengths.sum() for _, _, lengths in flow.passes)) / (stages * flow.end_s)
    replica = "One replica" if plan["data"] == 1 else f"One of {plan['data']:,} replicas"
    name = KINDS.get(flow.family, flow.family)
    kind = name if flow.chunks == 1 else f"{name}, {flow.chunks} virtual stages a device, later ones paler"
    counts = f"{counted(stages, 'stage')}, {counted(rounds, 'microbatch', 'microbatches')}"
    about = (
        f"{replica}: {counts}, {kind}. {100 * max(0.0, idle):.1f} % of the pipeline is idle. As events the step takes "
        f"{show(plan['simulated_s'], 's')}; the plan is judged by its formula, {show(plan['batch_s'], 's')}.{inside}"
    )
    again = any(stage["recompute"] != "none" for stage in plan["stages"])
    colours = [("forward", "forward"), ("backward", "backward with recomputation" if again else "backward")]
    if flow.weight_s is not None:
        colours = [("forward", "forward"), ("backward", "input gradients"), ("weight", "weight gradients")]
    colours += [("sync", "exposed DP communication, optimizer")] if tail_s else []
    size = "" if stages <= 4 else " many" if stages <= 16 else " most"
    label = f"Timeline of {counts}, {show(flow.end_s + tail_s, 's')} long"
    return TimelineView(about, tuple(colours), label, size, True)
