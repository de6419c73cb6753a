"""A plan as a trace for ui.perfetto.dev: the pipeline of one replica, and the passes of its most
repeated layer.

The Chrome trace event format: one process for each picture, one thread for each stage or row of
cores, complete events (``ph`` X) with microseconds. Beyond ``MOST`` events the microbatches in the
middle are left out and said to be.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from phaze.report.drawings import Timeline
from phaze.report.view_model import Pipeline, Story

MICRO = 1e6
MOST = 40_000
"""Events: a trace of a few MB."""


def _named(process: int, name: str, threads: Sequence[str]) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    for index, thread in enumerate(threads, start=1):
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": process,
            "tid": index,
            "args": {"name": thread},
        }
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "pid": process,
            "tid": index,
            "args": {"sort_index": index},
        }


def _event(
    process: int, thread: int, name: str, kind: str, start_s: float, length_s: float
) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "cat": kind, "pid": process, "tid": thread,
        "ts": start_s * MICRO, "dur": length_s * MICRO,
    }  # fmt: skip


def _pipeline(process: int, name: str, flow: Pipeline) -> Iterator[dict[str, Any]]:
    stages, pieces = flow.forward_s.shape
    shown = max(1, MOST // (2 * stages) // 2)
    shown_numbers = [k for k in range(pieces) if k < shown or k >= pieces - shown]
    what = "microbatches" if flow.chunks == 1 else "pieces of microbatches"
    left = (
        ""
        if len(shown_numbers) == pieces
        else f", {pieces - len(shown_numbers)} {what} in the middle left out"
    )
    yield from _named(
        process,
        f"{name}: pipeline of one replica{left}",
        [f"stage {index}" for index in range(stages)],
    )
    for kind, starts, lengths in flow.passes:
        for stage in range(stages):
            for number in shown_numbers:
                start, length = float(starts[stage, number]), float(lengths[stage])
                yield _event(
                    process, stage + 1, f"{kind} {flow.numbered(number)}", kind, start, length
                )


def _timeline(process: int, name: str, timeline: Timeline) -> Iterator[dict[str, Any]]:
    yield from _named(process, name, [lane for lane, _ in timeline.lanes])
    for thread, (_, blocks) in enumerate(timeline.lanes, start=1):
        for block in blocks:
            length_s = block.end_s - block.start_s
            yield _event(process, thread, block.name, block.kind, block.start_s, length_s)


def trace(stories: Sequence[Story]) -> dict[str, Any]:
    """The trace of all models."""
    events: list[dict[str, Any]] = []
    process = 0
    for story in stories:
        if story.pipeline is not None:
            process += 1
            events += _pipeline(process, story.name, story.pipeline)
        for title, timeline in story.layer_passes.items():
            process += 1
            events += _timeline(process, f"{story.name}: {story.layer}, {title}", timeline)
    return {"displayTimeUnit": "ns", "traceEvents": events}
