"""Where the time goes: the waterfall from peak to what is reached, and the pipeline as a timeline of microbatches."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Any

import numpy as np

from phaze.report.page.frame import bar, counted, legend, said
from phaze.report.view_model import Pipeline, Story
from phaze.report.waterfall import Step
from phaze.units import show

WIDE = 1000.0
MOST_SHAPES = 1600
TAIL = ("synchronisation_s", "optimizer_s", "tied_s")
COLOURS: Mapping[str, str] = MappingProxyType(
    {
        "at peak": "good",
        "cores side by side": "good",
        "tensor communication": "network",
        "handing on": "network",
        "synchronisation": "sync",
        "tied parameters": "sync",
        "bubble": "links",
        "stage imbalance": "links",
        "left over": "links",
        "recomputing": "buffer",
    }
)


def _row(name: str, meaning: str, left: float, width: float, colour: str, value: str, share: str, total: bool) -> str:
    kind = " total" if total else ""
    words = escape(f"{name}: {value}, {meaning}")
    return (
        f'<div class="row"><span class="l{kind}">{escape(name)}</span>'
        f'<span class="track" data-say="{words}"><svg>{bar(left, width, colour)}</svg></span>'
        f'<span class="v{kind}">{escape(value)}</span><span class="v{kind}">{escape(share)}</span></div>'
    )


def waterfall(steps: Sequence[Step], batch_s: float) -> str:
    """Every step where the one before it ended; the last row is their sum."""
    most, sums = batch_s, 0.0
    for step in steps:
        sums += step.seconds
        most = max(most, sums)
    rows, end = [], 0.0
    for step in steps:
        start, end = end, end + step.seconds
        left, width = min(start, end) / most, abs(step.seconds) / most
        share = f"{step.seconds / batch_s:+.1%}" if abs(step.seconds) >= 5e-4 * batch_s else "0.0%"
        share = share.removeprefix("+") if step.name == "at peak" else share
        colour = COLOURS.get(step.name, "tensor")
        value = show(step.seconds, "s")
        rows.append(_row(step.name, step.meaning, left, width, colour, value, share, False))
    rows.append(_row("a batch", "what is reached", 0.0, batch_s / most, "ink", show(batch_s, "s"), "100%", True))
    return f'<div class="rows">{"".join(rows)}</div>{said("Point at a bar for what it means, or tap it.")}'


def _windows(pipeline: Pipeline, tail_s: float) -> list[tuple[float, float]]:
    """The stretches of time that are drawn: everything, or the beginning and the end."""
    stages, rounds = pipeline.forward_s.shape[0], pipeline.rounds
    whole = pipeline.end_s + tail_s
    shown = max(stages + 6, 12) if pipeline.chunks == 1 else max(stages + 2, 6)
    if rounds <= 2 * shown + 2:
        return [(0.0, whole)]
    begin = float(
        pipeline.backward_s[0, min(rounds - 1, shown - stages) * pipeline.chunks] + pipeline.backward_length_s[0]
    )
    begin = min(begin, 0.45 * pipeline.end_s)
    return [(0.0, begin), (pipeline.end_s - begin, whole)]


def _events(pipeline: Pipeline, windows: Sequence[tuple[float, float]]) -> Iterator[tuple[int, str, int, float, float]]:
    """(stage, pass, microbatch, start, end) of every event that lies in a window, cut to it."""
    passes = (
        ("forward", pipeline.forward_s, pipeline.forward_length_s),
        ("backward", pipeline.backward_s, pipeline.backward_length_s),
    )
    for first, last in windows:
        for name, starts, lengths in passes:
            inside = (starts + lengths[:, None] > first) & (starts < last)
            for stage, number in np.argwhere(inside).tolist():
                start = float(starts[stage, number])
                yield stage, name, number, max(start, first), min(start + float(lengths[stage]), last)


def _shade(chunk: int, chunks: int) -> str:
    """Later chunks are paler, so that a glance tells them apart."""
    return "" if chunk == 0 else f' opacity="{1 - 0.6 * chunk / (chunks - 1):.2f}"'


def _shapes(pipeline: Pipeline, windows: Sequence[tuple[float, float]], row: float) -> str:
    gap = 14.0 if len(windows) > 1 else 0.0
    seconds = sum(last - first for first, last in windows)
    scale = (WIDE - gap) / seconds if seconds else 0.0
    offsets, x = [], 0.0
    for first, last in windows:
        offsets.append((first, last, x))
        x += (last - first) * scale + gap
    pieces: dict[tuple[str, int], list[str]] = {
        (name, chunk): [] for name in ("forward", "backward") for chunk in range(pipeline.chunks)
    }
    events = list(_events(pipeline, windows))
    single = len(events) <= MOST_SHAPES
    for stage, name, number, start, end in events:
        first, _, moved = next(o for o in offsets if o[0] <= start <= o[1] and end <= o[1] + 1e-12 * seconds)
        left, width, top = moved + (start - first) * scale, (end - start) * scale, stage * row
        height = row * 0.86
        if single:
            which = f"stage {stage}, {name} of microbatch {pipeline.numbered(number)}"
            words = f"{which}: {show(start, 's')} to {show(end, 's')}"
            pieces[name, number % pipeline.chunks].append(
                f'<rect x="{left:.2f}" y="{top:.2f}" width="{max(0.3, width - 0.6):.2f}" height="{height:.2f}" '
                f'data-say="{escape(words)}"/>'
            )
        else:
            wide = max(0.2, width - 0.3)
            shape = f"M{left:.1f} {top:.1f}h{wide:.1f}v{height:.1f}h-{wide:.1f}z"
            pieces[name, number % pipeline.chunks].append(shape)
    drawn = []
    for (name, chunk), own in pieces.items():
        style = f'class="f-{name}"{_shade(chunk, pipeline.chunks)}'
        drawn.append(f"<g {style}>{''.join(own)}</g>" if single else f'<path {style} d="{"".join(own)}"/>')
    end_first, _, end_moved = offsets[-1]
    left = end_moved + (pipeline.end_s - end_first) * scale
    drawn.append(
        f'<rect x="{left:.2f}" y="0" width="{max(0.0, WIDE - left):.2f}" height="100%" class="f-sync" opacity=".55"/>'
    )
    if gap:
        middle = (windows[0][1] - windows[0][0]) * scale
        drawn.append(f'<rect x="{middle:.2f}" y="0" width="{gap:g}" height="100%" class="f-paper"/>')
    return "".join(drawn)


def _names(stages: Sequence[Mapping[str, Any]], row_px: float) -> str:
    every = 1 if row_px >= 12 else max(1, round(14 / row_px))
    shown = (f"stage {at}" if at % every == 0 and row_px * every >= 12 else "" for at in range(len(stages)))
    return "".join(f"<span>{name}</span>" for name in shown)


def pipeline(story: Story) -> str:
    """The timeline of one replica."""
    plan, flow = story.plan, story.pipeline
    if flow is None:
        return "<p>One replica has too many events to be drawn.</p>"
    (stages, events), rounds = flow.forward_s.shape, flow.rounds
    tail_s = max(0.0, float(plan["simulated_s"]) - flow.end_s)
    ends_s = sum(float(plan["breakdown"].get(key, 0.0)) for key in TAIL)
    inside = " Collectives of ZeRO lie inside the passes." if ends_s - tail_s > 1e-9 * plan["batch_s"] else ""
    windows = _windows(flow, tail_s)
    row_px = max(4.0, min(22.0, 520.0 / stages))
    svg = (
        f'<svg viewBox="0 0 {WIDE:g} {stages * 10}" preserveAspectRatio="none" height="{stages * row_px:g}" '
        f'role="img" aria-label="timeline of {stages} stages and {rounds} microbatches">'
        f"{_shapes(flow, windows, 10.0)}</svg>"
    )
    cut = ""
    if len(windows) > 1:
        cut = f"<span>the middle, {show(windows[1][0] - windows[0][1], 's')} of the same, is left out</span>"
    scale = f'<div class="scale"><span>0</span>{cut}<span>{show(flow.end_s + tail_s, "s")}</span></div>'
    idle = 1 - events * float((flow.forward_length_s + flow.backward_length_s).sum()) / (stages * flow.end_s)
    replica = "One replica" if plan["data"] == 1 else f"One of {plan['data']:,} replicas"
    pieces = (
        "" if flow.chunks == 1 else f"every stage in {flow.chunks} chunks, drawn as equal pieces, later ones paler, "
    )
    about = (
        f"<p>{replica}: {counted(stages, 'stage')}, {counted(rounds, 'microbatch', 'microbatches')}, {pieces}"
        f"one forward and one backward in turn. Of the time before synchronisation {idle:.1%} is idle. As events it "
        f"takes {show(plan['simulated_s'], 's')}; the plan is judged by its formula, {show(plan['batch_s'], 's')}."
        f"{inside}</p>"
    )
    again = any(stage["recompute"] != "none" for stage in plan["stages"])
    colours = [("forward", "forward"), ("backward", "backward, recomputing with it" if again else "backward")]
    colours += [("sync", "synchronisation, optimizer")] if tail_s else []
    hint = said("Point at a block, or tap it.") if "data-say" in svg else ""
    names = f'<div class="names">{_names(plan["stages"], row_px)}</div>'
    drawn = f'<div class="lanes">{names}<div class="drawn">{svg}</div>{scale}</div>'
    return f"{about}{legend(colours)}{drawn}{hint}"
