"""Traces for ui.perfetto.dev: the Chrome trace event format, one process for each schedule, one
thread for each core.

A slot is a complete event (``ph`` X) with its start and length in microseconds. An operator on one
core of each kind is drawn on both; a spread one has its own thread, and so has the network. Threads
are named by metadata events.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from phaze.schedule.problem import Schedule, ScheduledOperator, ScheduleProblem, Slot

MICRO = 1e6


def lanes(operator: ScheduledOperator, slot: Slot) -> list[str]:
    """The rows that a slot is drawn on."""
    if operator.core == "none":
        return ["network"] if operator.collective else []
    if slot.spread:
        return ["spread"]
    found = []
    if slot.tensor_core is not None:
        found.append(f"tensor {slot.tensor_core}")
    if slot.vector_core is not None:
        found.append(f"vector {slot.vector_core}")
    return found


def lane_order(lane: str) -> tuple[int, int]:
    """Spread work first, then tensor cores, vector cores and the network, by number."""
    kind, _, number = lane.partition(" ")
    return ("spread", "tensor", "vector", "network").index(kind), int(number or 0)


def _events(
    process: int, name: str, problem: ScheduleProblem, schedule: Schedule
) -> Iterator[dict[str, Any]]:
    pairs = list(zip(problem.operators, schedule.slots, strict=True))
    rows = sorted({lane for pair in pairs for lane in lanes(*pair)}, key=lane_order)
    threads = {lane: at + 1 for at, lane in enumerate(rows)}
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    for lane, thread in threads.items():
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": process,
            "tid": thread,
            "args": {"name": lane},
        }
        order = {"sort_index": thread}
        yield {"ph": "M", "name": "thread_sort_index", "pid": process, "tid": thread, "args": order}
    for operator, slot in pairs:
        for lane in lanes(operator, slot):
            yield {
                "ph": "X",
                "name": slot.id,
                "cat": operator.core,
                "pid": process,
                "tid": threads[lane],
                "ts": slot.start_s * MICRO,
                "dur": (slot.end_s - slot.start_s) * MICRO,
                "args": {
                    "one_core_s": operator.one_core_s,
                    "all_cores_s": operator.all_cores_s,
                    "spread": slot.spread,
                },
            }


def schedule_trace(answers: Sequence[tuple[str, ScheduleProblem, Schedule]]) -> dict[str, Any]:
    """The schedules, each under its name, as one trace."""
    events = [event for at, answer in enumerate(answers) for event in _events(at + 1, *answer)]
    return {"displayTimeUnit": "ns", "traceEvents": events}
