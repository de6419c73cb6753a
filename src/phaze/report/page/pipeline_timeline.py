"""The pipeline of a plan as a timeline: every pass of one replica by stage.

Beyond ``MOST_EVENTS`` the first and the last microbatches are drawn, and the stretch in which any
event is missing is said.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from phaze.pipeline.families import FAMILIES
from phaze.report.drawings import Block, BlockKind, Timeline
from phaze.report.numbers import counted
from phaze.report.sections import Notes, Section
from phaze.report.view_model import Pipeline, Story
from phaze.units import show

Integers = NDArray[np.int64]

MOST_EVENTS = 2400
"""Events of a timeline: the first and last microbatches show its shape."""
TAIL = ("synchronisation_s", "optimizer_s", "tied_s")


def _shown_pieces(flow: Pipeline) -> tuple[Integers, tuple[float, float] | None]:
    """The microbatches, or their chunks, that are drawn, and the stretch in which others are
    missing."""
    stages, pieces = flow.forward_s.shape
    half = max(1, MOST_EVENTS // (4 * stages))
    if 2 * half >= pieces or stages * pieces * 2 <= MOST_EVENTS:
        return np.arange(pieces), None
    hidden = slice(half, pieces - half)
    last_s = flow.backward_s[:, hidden] + flow.backward_length_s[:, None]
    return np.r_[0:half, pieces - half : pieces], (
        float(flow.forward_s[:, hidden].min()),
        float(last_s.max()),
    )


def _lane(
    flow: Pipeline, stage: int, pieces: Integers, kinds: Mapping[str, BlockKind]
) -> list[Block]:
    blocks = []
    for name, starts_s, lengths_s in flow.passes:
        for piece in pieces.tolist():
            start_s = float(starts_s[stage, piece])
            pale = 0.55 * (piece % flow.chunks) / (flow.chunks - 1) if flow.chunks > 1 else 0.0
            symbol = str(piece) if flow.chunks == 1 else ""
            text = f"{name} of microbatch {flow.numbered(piece)}"
            blocks.append(
                Block(start_s, start_s + float(lengths_s[stage]), text, symbol, kinds[name], pale)
            )
    return blocks


def _about(story: Story, flow: Pipeline, tail_s: float) -> str:
    plan, (stages, events) = story.plan, flow.forward_s.shape
    ends_s = sum(float(plan["breakdown"].get(key, 0.0)) for key in TAIL)
    inside = (
        " Collectives of ZeRO lie inside the passes."
        if ends_s - tail_s > 1e-9 * plan["batch_s"]
        else ""
    )
    idle = 1 - events * float(sum(lengths.sum() for _, _, lengths in flow.passes)) / (
        stages * flow.end_s
    )
    replica = "One replica" if plan["data"] == 1 else f"One of {plan['data']:,} replicas"
    name = FAMILIES[flow.family].title if flow.family in FAMILIES else flow.family
    kind = (
        name
        if flow.chunks == 1
        else f"{name}, {flow.chunks} virtual stages a device, later ones paler"
    )
    counts = f"{counted(stages, 'stage')}, {counted(flow.rounds, 'microbatch', 'microbatches')}"
    return (
        f"{replica}: {counts}, {kind}. {100 * max(0.0, idle):.1f} % of the pipeline is "
        "idle. As events the step takes "
        f"{show(plan['simulated_s'], 's')}; the plan is judged by its formula, "
        f"{show(plan['batch_s'], 's')}.{inside}"
    )


def pipeline_timeline(story: Story) -> Section:
    """Every pass of one replica by stage, and what follows its last."""
    plan, flow = story.plan, story.pipeline
    if flow is None:
        return Notes(["One replica has too many events to be drawn."], "Timeline")
    tail_s = max(0.0, float(plan["simulated_s"]) - flow.end_s)
    again = any(stage["recompute"] != "none" for stage in plan["stages"])
    kinds: dict[str, BlockKind] = {
        "forward": "forward",
        "backward": "recomputed" if again else "backward",
    }
    if flow.weight_s is not None:
        kinds = {"forward": "forward", "backward": "inputs", "weight": "weight"}
    pieces, skipped = _shown_pieces(flow)
    lanes = []
    for stage in range(flow.forward_s.shape[0]):
        blocks = _lane(flow, stage, pieces, kinds)
        if tail_s:
            blocks.append(
                Block(
                    flow.end_s, flow.end_s + tail_s, "gradients summed, optimizer step", "", "sync"
                )
            )
        lanes.append((f"stage {stage}", blocks))
    passes_s = float(np.sum([lengths for _, _, lengths in flow.passes], axis=0).max())
    zoom_s = float(flow.backward_s[0, 0] + flow.backward_length_s[0]) + 4 * passes_s
    end_s = (flow.end_s or 1.0) + tail_s
    return Timeline(
        lanes, end_s, "Timeline", _about(story, flow, tail_s), zoom_s=zoom_s, skipped=skipped
    )
