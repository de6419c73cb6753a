"""Where the time of a step goes: a sum of parts, and what would help.

A plan's document states its parts (``breakdown``); :mod:`phaze.report.waterfall` takes those of the
passes apart by cause. What would help is first order: a cost of x seconds that is 10 % less saves x
/ 11 of the step.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from types import MappingProxyType
from typing import Any

from phaze.report.drawings import Bar, Bars, Colour, Piece
from phaze.report.sections import Notes, Section
from phaze.units import show

SHOWN_HELP = 6
"""Costs that are named as worth lowering."""
RECOMPUTED = "forward passes run a second time in the backward pass"
PASSES: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "forward_s": ("forward passes", "of all microbatches on the slowest stage"),
        "backward_s": ("backward passes", "of all microbatches on the slowest stage"),
        "recompute_s": ("activation recomputation", RECOMPUTED),
    }
)
ENDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "transfer_s": (
            "exposed pipeline send/recv",
            "the slowest stage waits for its neighbours' activations and gradients",
        ),
        "bubble_s": ("pipeline bubble", "stages that wait while the pipeline fills and drains"),
        "synchronisation_s": (
            "exposed DP communication",
            "gradients summed over the replicas, as far as nothing overlaps it",
        ),
        "optimizer_s": ("optimizer step", "the step that updates the parameters"),
        "tied_s": ("tied parameters", "gradients of parameters that several stages share"),
    }
)
PARTS = MappingProxyType({**PASSES, **ENDS})
"""The parts that a breakdown states: by key their name and what they mean."""
ROUNDING = 1e-12
"""A row of rounding errors is no row."""
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


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the batch time; what it means in a few words."""

    name: str
    seconds: float
    meaning: str


def part_words(key: str) -> str:
    """A part of a step by its key in a document's breakdown, or by that without its unit."""
    name = key.removesuffix("_s")
    return PARTS.get(f"{name}_s", (name.replace("_", " "), ""))[0]


def stated_steps(plan: Mapping[str, Any]) -> list[Step]:
    """The parts of a plan's step as its document states them."""
    steps = []
    for key, seconds in plan["breakdown"].items():
        name, meaning = PARTS.get(key, (part_words(key), ""))
        steps.append(Step(name, float(seconds), meaning))
    return [step for step in steps if abs(step.seconds) > ROUNDING * plan["batch_s"]]


def _bars(steps: Sequence[Step], batch_s: float, caption: str) -> Bars:
    """Every step where the one before it ended; the last row is their sum."""
    ends = list(accumulate(step.seconds for step in steps))
    scale = max([batch_s, *ends])
    rows = []
    for step, end in zip(steps, ends, strict=True):
        start = max(0.0, min(end - step.seconds, end))
        colour = GROUPS.get(step.name, KERNELS)[0]
        piece = Piece(start, max(abs(step.seconds), 1e-3 * scale), colour)
        share = f"{100 * step.seconds / batch_s:.1f} %"
        rows.append(
            Bar(step.name, step.seconds, show(step.seconds, "s"), share, step.meaning, [piece])
        )
    meaning, whole = "what is reached: the sum of all rows", [Piece(0.0, batch_s, "ink")]
    rows.append(Bar("step time", batch_s, show(batch_s, "s"), "100 %", meaning, whole, marked=True))
    legend = list(dict.fromkeys(GROUPS.get(step.name, KERNELS) for step in steps))
    return Bars(rows, "", caption, scale=scale, legend=legend, look="breakdown")


def step_time(
    plan: Mapping[str, Any], steps: Sequence[Step] = (), devices: int = 0
) -> list[Section]:
    """The step time of a plan by part, or by cause where its passes were taken apart into
    ``steps``."""
    batch_s = float(plan["batch_s"])
    if not steps:
        return [_bars(stated_steps(plan), batch_s, "")]
    rest = sorted((step for step in steps[1:] if step.seconds > 0), key=lambda step: -step.seconds)[
        :2
    ]
    named = " and ".join(f"{step.name} ({100 * step.seconds / batch_s:.0f} %)" for step in rest)
    peak = f"{100 * steps[0].seconds / batch_s:.0f} % of the step is GEMM FLOPs at the peak"
    lead = Notes([f"{peak} of all {devices:,} devices."], look="bold")
    caption = f"{f'Most of the rest: {named}. ' if named else ''}The rows sum to the step."
    return [lead, _bars(steps, batch_s, caption)]


def what_would_help(steps: Sequence[Step], batch_s: float) -> Bars:
    """What 10 % less of a cost saves, largest first."""
    saved = {
        step.name: step.seconds / 11 for step in steps if step.name in HELP and step.seconds > 0
    }
    largest = sorted(
        ((saved_s, name) for name, saved_s in saved.items() if saved_s >= 5e-4 * batch_s),
        reverse=True,
    )
    rows = []
    for saved_s, name in largest[:SHOWN_HELP]:
        rows.append(Bar(HELP[name], saved_s, f"-{100 * saved_s / batch_s:.1f} % step time"))
    caption = (
        "First order, with this plan kept: what a step would save if that cost were 10 % "
        "less and nothing else became "
        "the limit."
    )
    return Bars(rows, "What would help", caption)
