"""Plans as a trace for ui.perfetto.dev: one process for each plan, one thread for each stage of one
of its replicas.

The events are those of :mod:`phaze.pipeline.replica`: every forward and backward of every
microbatch, then what the replicas do together at the end. Times in the Chrome trace event format
are microseconds. Beyond ``MOST`` events the microbatches in the middle are left out, and the name
of the process says how many.
"""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem
from phaze.placement.simulate import timeline

MICRO = 1e6
MOST = 40_000
"""Events: a trace of a few MB."""
# A timeline of more microbatches than this is not worked out in full: the pace of the middle is
# known.
MOST_ROUNDS = 100_000

Answer = tuple[str, PlacementProblem, Plan]


def _named(process: int, name: str, stages: int) -> Iterator[dict[str, Any]]:
    yield {"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}
    for at in range(1, stages + 1):
        yield {
            "ph": "M",
            "name": "thread_name",
            "pid": process,
            "tid": at,
            "args": {"name": f"stage {at}"},
        }
        yield {
            "ph": "M",
            "name": "thread_sort_index",
            "pid": process,
            "tid": at,
            "args": {"sort_index": at},
        }


def _event(process: int, thread: int, name: str, start_s: float, length_s: float) -> dict[str, Any]:
    times = {"ts": start_s * MICRO, "dur": length_s * MICRO}
    return {
        "ph": "X",
        "name": name,
        "cat": name.split(maxsplit=1)[0],
        "pid": process,
        "tid": thread,
        **times,
    }


def _endings(plan: Plan, paced_s: float) -> list[tuple[str, float]]:
    """What follows the last backward pass: seconds of the breakdown that no microbatch has."""
    parts = plan.breakdown
    end_s = plan.simulated_s - paced_s
    after = [("optimizer", parts.optimizer_s), ("tied gradients", parts.tied_s)]
    sync_s = max(0.0, end_s - sum(seconds for _, seconds in after))
    return [
        (name, seconds)
        for name, seconds in [("synchronisation", sync_s), *after]
        if seconds > 1e-9 * end_s
    ]


def _events(
    process: int, name: str, problem: PlacementProblem, plan: Plan
) -> Iterator[dict[str, Any]]:
    count, rounds = len(plan.stages), -(-problem.microbatches // plan.data)
    drawn, chunks = min(rounds, MOST_ROUNDS // plan.chunks), plan.chunks
    if chunks > 1:
        drawn -= drawn % count
    line = timeline(plan, drawn)
    shown = max(1, MOST // (4 * count))
    shown = -(-shown // chunks)
    kept = [k for k in range(drawn) if k < shown or k >= drawn - shown]
    left = (
        ""
        if len(kept) == rounds
        else f", {rounds - len(kept):,} microbatches in the middle left out"
    )
    yield from _named(process, f"{name}: one of {plan.data} replicas{left}", count)
    for at, stage in enumerate(plan.stages):
        back_s = (
            stage.backward_s - stage.weight_s if line.weight_s is not None else stage.backward_s
        )
        passes = [
            ("forward", line.forward_s, stage.forward_s),
            ("backward", line.backward_s, back_s),
        ]
        passes += [("weight", line.weight_s, stage.weight_s)] if line.weight_s is not None else []
        for kind, starts, length_s in passes:
            for k, chunk in product(kept, range(chunks)):
                name = f"{kind} {k}" if chunks == 1 else f"{kind} {k}, chunk {chunk}"
                yield _event(
                    process, at + 1, name, float(starts[at, k * chunks + chunk]), length_s / chunks
                )
    start_s = line.end_s
    for kind, seconds in _endings(plan, line.end_s) if drawn == rounds else ():
        for at in range(count):
            yield _event(process, at + 1, kind, start_s, seconds)
        start_s += seconds


def plan_trace(answers: Sequence[Answer]) -> dict[str, Any]:
    """The plans, each under its name, as one trace."""
    events = [event for at, answer in enumerate(answers) for event in _events(at + 1, *answer)]
    return {"displayTimeUnit": "ns", "traceEvents": events}
