"""A plan as a trace for ui.perfetto.dev: the pipeline of one replica, and the passes of its most
repeated layer.

The Chrome trace event format: one process for each picture, one thread for each stage or row of
cores, complete events (``ph`` X) with microseconds. Beyond ``MOST`` events the microbatches in the
middle are left out and said to be.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from phaze.report.view_model import Gantt, Pipeline, Story

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


def _gantt(process: int, name: str, gantt: Gantt) -> Iterator[dict[str, Any]]:
    yield from _named(process, f"{name}, {gantt.title}", [lane for lane, _ in gantt.rows])
    for thread, (_, bars) in enumerate(gantt.rows, start=1):
        for bar in bars:
            yield _event(process, thread, bar.name, bar.core, bar.start_s, bar.end_s - bar.start_s)


def trace(stories: Sequence[Story]) -> dict[str, Any]:
    """The trace of all models."""
    events: list[dict[str, Any]] = []
    process = 0
    for story in stories:
        if story.pipeline is not None:
            process += 1
            events += _pipeline(process, story.name, story.pipeline)
        for gantt in story.gantts:
            process += 1
            events += _gantt(process, f"{story.name}: {story.layer}", gantt)
    return {"displayTimeUnit": "ns", "traceEvents": events}
