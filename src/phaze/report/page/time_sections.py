"""Where the time goes: the step as a sum of causes, what would help, and the pipeline as a timeline.

Beyond ``MOST_EVENTS`` the first and the last microbatches of a pipeline are drawn, and the stretch in which any event
is missing is said. What would help is first order: a cost of x seconds that is 10 % less saves x / 11 of the step.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from phaze.pipeline.families import FAMILIES
from phaze.report.drawings import Bar, Bars, Block, BlockKind, Colour, Piece, Timeline
from phaze.report.numbers import counted
from phaze.report.sections import Notes, Section
from phaze.report.view_model import Pipeline, Story
from phaze.report.waterfall import Step
from phaze.units import show

Integers = NDArray[np.int64]

MOST_EVENTS = 2400
"""Events of a timeline: the first and last microbatches show its shape."""
SHOWN_HELP = 6
"""Costs that are named as worth lowering."""
TAIL = ("synchronisation_s", "optimizer_s", "tied_s")
PEAK = "GEMM FLOPs at peak"
GROUPS: Mapping[str, tuple[Colour, str]] = MappingProxyType(
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
KERNELS: tuple[Colour, str] = ("tensor", "kernels")
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


def _breakdown_rows(steps: Sequence[Step], batch_s: float) -> list[Bar]:
    """Every step where the one before it ended; the last row is their sum."""
    ends = np.cumsum([step.seconds for step in steps]).tolist()
    scale = max(batch_s, *ends)
    rows = []
    for step, end in zip(steps, ends, strict=True):
        start = max(0.0, min(end - step.seconds, end))
        colour = GROUPS.get(step.name, KERNELS)[0]
        piece = Piece(start, max(abs(step.seconds), 1e-3 * scale), colour)
        share = f"{100 * step.seconds / batch_s:.1f} %"
        rows.append(Bar(step.name, step.seconds, show(step.seconds, "s"), share, step.meaning, [piece]))
    meaning, whole = "what is reached: the sum of all rows", [Piece(0.0, batch_s, "ink")]
    return [*rows, Bar("step time", batch_s, show(batch_s, "s"), "100 %", meaning, whole, marked=True)]


def step_time(story: Story) -> list[Section]:
    """The step time of a plan by cause."""
    batch_s, steps = float(story.plan["batch_s"]), story.steps
    rest = sorted((step for step in steps[1:] if step.seconds > 0), key=lambda step: -step.seconds)[:2]
    named = " and ".join(f"{step.name} ({100 * step.seconds / batch_s:.0f} %)" for step in rest)
    peak = f"{100 * steps[0].seconds / batch_s:.0f} % of the step is GEMM FLOPs at the peak"
    lead = Notes([f"{peak} of all {story.split.devices:,} devices."], look="bold")
    caption = f"{f'Most of the rest: {named}. ' if named else ''}The rows sum to the step."
    legend = list(dict.fromkeys(GROUPS.get(step.name, KERNELS) for step in steps))
    scale = max(batch_s, *np.cumsum([step.seconds for step in steps]).tolist())
    rows = _breakdown_rows(steps, batch_s)
    return [lead, Bars(rows, "", caption, scale=scale, legend=legend, look="breakdown")]


def what_would_help(story: Story) -> Bars:
    """What 10 % less of a cost saves, largest first."""
    batch_s = float(story.plan["batch_s"])
    saved = {step.name: step.seconds / 11 for step in story.steps if step.name in HELP and step.seconds > 0}
    largest = sorted(((saved_s, name) for name, saved_s in saved.items() if saved_s >= 5e-4 * batch_s), reverse=True)[
        :6
    ]
    rows = [Bar(HELP[name], saved_s, f"-{100 * saved_s / batch_s:.1f} % step time") for saved_s, name in largest]
    caption = (
        "First order, with this plan kept: what a step would save if that cost were 10 % less and nothing else became "
        "the limit."
    )
    return Bars(rows, "What would help", caption)


def _shown_pieces(flow: Pipeline) -> tuple[Integers, tuple[float, float] | None]:
    """The microbatches, or their chunks, that are drawn, and the stretch in which others are missing."""
    stages, pieces = flow.forward_s.shape
    half = max(1, MOST_EVENTS // (4 * stages))
    if 2 * half >= pieces or stages * pieces * 2 <= MOST_EVENTS:
        return np.arange(pieces), None
    hidden = slice(half, pieces - half)
    last_s = flow.backward_s[:, hidden] + flow.backward_length_s[:, None]
    return np.r_[0:half, pieces - half : pieces], (float(flow.forward_s[:, hidden].min()), float(last_s.max()))


def _lane(flow: Pipeline, stage: int, pieces: Integers, kinds: Mapping[str, BlockKind]) -> list[Block]:
    blocks = []
    for name, starts_s, lengths_s in flow.passes:
        for piece in pieces.tolist():
            start_s = float(starts_s[stage, piece])
            pale = 0.55 * (piece % flow.chunks) / (flow.chunks - 1) if flow.chunks > 1 else 0.0
            symbol = str(piece) if flow.chunks == 1 else ""
            text = f"{name} of microbatch {flow.numbered(piece)}"
            blocks.append(Block(start_s, start_s + float(lengths_s[stage]), text, symbol, kinds[name], pale))
    return blocks


def _about(story: Story, flow: Pipeline, tail_s: float) -> str:
    plan, (stages, events) = story.plan, flow.forward_s.shape
    ends_s = sum(float(plan["breakdown"].get(key, 0.0)) for key in TAIL)
    inside = " Collectives of ZeRO lie inside the passes." if ends_s - tail_s > 1e-9 * plan["batch_s"] else ""
    idle = 1 - events * float(sum(lengths.sum() for _, _, lengths in flow.passes)) / (stages * flow.end_s)
    replica = "One replica" if plan["data"] == 1 else f"One of {plan['data']:,} replicas"
    name = FAMILIES[flow.family].title if flow.family in FAMILIES else flow.family
    kind = name if flow.chunks == 1 else f"{name}, {flow.chunks} virtual stages a device, later ones paler"
    counts = f"{counted(stages, 'stage')}, {counted(flow.rounds, 'microbatch', 'microbatches')}"
    return (
        f"{replica}: {counts}, {kind}. {100 * max(0.0, idle):.1f} % of the pipeline is idle. As events the step takes "
        f"{show(plan['simulated_s'], 's')}; the plan is judged by its formula, {show(plan['batch_s'], 's')}.{inside}"
    )


def pipeline_timeline(story: Story) -> Section:
    """Every pass of one replica by stage, and what follows its last."""
    plan, flow = story.plan, story.pipeline
    if flow is None:
        return Notes(["One replica has too many events to be drawn."], "Timeline")
    tail_s = max(0.0, float(plan["simulated_s"]) - flow.end_s)
    again = any(stage["recompute"] != "none" for stage in plan["stages"])
    kinds: dict[str, BlockKind] = {"forward": "forward", "backward": "recomputed" if again else "backward"}
    if flow.weight_s is not None:
        kinds = {"forward": "forward", "backward": "inputs", "weight": "weight"}
    pieces, skipped = _shown_pieces(flow)
    lanes = []
    for stage in range(flow.forward_s.shape[0]):
        blocks = _lane(flow, stage, pieces, kinds)
        if tail_s:
            blocks.append(Block(flow.end_s, flow.end_s + tail_s, "gradients summed, optimizer step", "", "sync"))
        lanes.append((f"stage {stage}", blocks))
    passes_s = float(np.sum([lengths for _, _, lengths in flow.passes], axis=0).max())
    zoom_s = float(flow.backward_s[0, 0] + flow.backward_length_s[0]) + 4 * passes_s
    end_s = (flow.end_s or 1.0) + tail_s
    return Timeline(lanes, end_s, "Timeline", _about(story, flow, tail_s), zoom_s=zoom_s, skipped=skipped)
