"""A plan's own timeline as a measured run: the passes of its stages, and what follows them.

``phaze plan --perfetto`` and ``phaze export --to perfetto`` write one process for a plan, one
thread for each stage, events ``forward K``, ``backward K`` (and ``weight K`` where gradients of
weights run apart) of microbatch K; the first also ``synchronisation``, ``optimizer`` and ``tied
gradients`` after them, the second processes with the operators of a layer, which are not read. A
timeline says nothing of kernels, so it determines

    software_share           at which the passes of all stages together take as long as in the trace
    hidden_synchronisation   at which the synchronisation, exposed after the last pass, does, with
                             that share

Both are found by bisection on the plan that the run states; its step and the trace's are then
compared.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from phaze.errors import InputError
from phaze.evaluate.fixed import fixed_plan
from phaze.evaluate.run_file import RunJob
from phaze.hardware.overlap import hiding
from phaze.placement.plan import Plan
from phaze.validate.predicted_step import step_works, with_share
from phaze.validate.profiler_trace import CORES
from phaze.validate.run_fit import LEAST_SHARE, Fitted, RunFit, bisected
from phaze.values import replace

PASSES = ("forward", "backward", "weight")
AFTER = ("synchronisation", "optimizer", "tied")
LEFT_OUT = "left out"
MICRO = 1e-6
NONE_LEFT = 1e-3
"""Of a step: a synchronisation below is hidden whole, as far as a trace can tell."""


@dataclass(frozen=True, slots=True)
class PlanTimeline:
    """Seconds of a step, of the passes of a microbatch summed over stages, and of the
    synchronisation after them; None where nothing after the passes is drawn, and the step is theirs
    alone."""

    step_s: float
    stages: int
    passes_s: float
    synchronisation_s: float | None


def is_timeline(text: str) -> bool:
    """Whether a text is a plan's timeline: complete events, all of them passes, what follows them,
    or operators by the part of a chip that runs them."""
    if "traceEvents" not in text[:2000]:
        return False
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return False
    events = _complete(document)
    kinds = {str(event.get("cat")) for event in events}
    return bool(kinds & set(PASSES)) and kinds <= {*PASSES, *AFTER, *CORES}


def _complete(document: Any) -> list[Mapping[str, Any]]:
    events = document.get("traceEvents") if isinstance(document, dict) else None
    listed = events if isinstance(events, list) else []
    return [event for event in listed if isinstance(event, dict) and event.get("ph") == "X"]


def _spans(events: Sequence[Mapping[str, Any]], where: str) -> list[tuple[str, Any, float, float]]:
    spans = []
    for event in events:
        ts, dur = event.get("ts"), event.get("dur")
        if not all(isinstance(number, int | float) and 0 <= number < 1e18 for number in (ts, dur)):
            raise InputError(where, "an event has no time", "export the plan again")
        spans.append(
            (str(event["cat"]), event.get("tid"), float(ts or 0) * MICRO, float(dur or 0) * MICRO)
        )
    return spans


def read_timeline(text: str, where: str) -> PlanTimeline:
    """A plan's timeline."""
    document = json.loads(text)
    events = [event for event in _complete(document) if event.get("cat") not in CORES]
    if len({str(event.get("pid")) for event in events}) > 1:
        raise InputError(where, "it has several plans", "export one plan")
    listed = (event for event in document["traceEvents"] if isinstance(event, dict))
    names = [event.get("args") for event in listed if event.get("name") == "process_name"]
    if any(LEFT_OUT in str(name) for name in names):
        raise InputError(
            where, "microbatches are left out of it", "export a plan of fewer microbatches"
        )
    spans = _spans(events, where)
    passes = [(kind, stage, length) for kind, stage, _, length in spans if kind in PASSES]
    stages = sorted({str(stage) for _, stage, _ in passes})
    first = {kind: sum(kind == seen for seen, _, _ in passes) for kind in PASSES}
    rounds = first["forward"] // max(1, len(stages))
    if not rounds:
        raise InputError(where, "no forward pass is in it", "export the plan again")
    start, end = (
        min(begin for *_, begin, _ in spans),
        max(begin + length for *_, begin, length in spans),
    )
    ended = any(kind in AFTER for kind, *_ in spans)
    after = max((length for kind, _, _, length in spans if kind == "synchronisation"), default=0.0)
    passes_s = sum(length for *_, length in passes) / rounds
    return PlanTimeline(end - start, len(stages), passes_s, after if ended else None)


def _passes_s(plan: Plan) -> float:
    return sum(stage.forward_s + stage.backward_s for stage in plan.stages) / plan.chunks


def fit_timeline(job: RunJob, line: PlanTimeline) -> RunFit:
    """The constants that a timeline determines."""
    works = step_works(job)
    rest = "a plan's timeline has no kernels: give a trace of torch.profiler"
    open_ = [(name, rest) for name in ("vector_hbm_share", "host_time", "levels")]
    if job.chip.lumped_share:
        return RunFit((), (("software_share", f"{job.chip.name} is a chip of cores"), *open_))
    if line.stages != job.plan.pipeline:
        reason = f"the trace has {line.stages} stages and the run {job.plan.pipeline}"
        return RunFit((), (("software_share", reason), *open_))

    def planned(share: float, hidden: float | None = None) -> Plan:
        stack = with_share(works.setting, share)
        stack = stack if hidden is None else replace(stack, overlap=hiding(stack.overlap, hidden))
        return fixed_plan(replace(job, stack=stack))[1]

    share = bisected(lambda x: _passes_s(planned(x)), line.passes_s, LEAST_SHARE, 1.0)
    if share is None:
        fastest = _passes_s(planned(1.0))
        reason = (
            f"the passes took {line.passes_s:.4g} s a microbatch, and {fastest:.4g} s with "
            "all of the rate"
        )
        return RunFit((), (("software_share", reason), *open_))
    how = "passes of all stages in a plan's timeline"
    fitted = [Fitted("stack", "software_share", works.constants().software_share, share, how)]
    hidden = _hidden(job, line, lambda h: planned(share, h))
    (fitted if isinstance(hidden, Fitted) else open_).append(hidden)  # type: ignore[arg-type]
    return RunFit(tuple(fitted), tuple(open_))


def _hidden(
    job: RunJob, line: PlanTimeline, planned: Callable[[float], Plan]
) -> Fitted | tuple[str, str]:
    """The hidden share of the synchronisation, or why it is not known."""
    key = "hidden_synchronisation"
    if line.synchronisation_s is None:
        return key, "nothing after the passes is drawn"
    if job.plan.data * job.plan.context < 2:
        return key, "there is one replica"
    exposed = [planned(hidden).breakdown.synchronisation_s for hidden in (0.0, 1.0)]
    if exposed[0] - exposed[1] <= NONE_LEFT * line.step_s:
        return (
            key,
            f"the synchronisation takes less than {NONE_LEFT:.1%} of the step, hidden or not",
        )
    value = (exposed[0] - line.synchronisation_s) / (exposed[0] - exposed[1])
    if not -NONE_LEFT <= value <= 1 + NONE_LEFT:
        return (
            key,
            (
                f"{line.synchronisation_s:.3g} s are exposed, and from {exposed[1]:.3g} to "
                f"{exposed[0]:.3g} s may be"
            ),
        )
    rounded = float(f"{min(1.0, max(0.0, value)):.6g}")
    return Fitted(
        "stack",
        key,
        job.stack.hidden_synchronisation,
        rounded,
        "synchronisation after the last pass",
    )
