"""The layers of a graph as a stack runs them (docs/plan.md): passes, parameters, and bytes by mode of recompute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .formats import in_format
from .graphs import Pass, chain_of, pass_of
from .job import Job
from .passes import TimedPass, timed
from .plan_graph import LayerBytes, LayerSeconds, PlanGraph, Tie
from .reading import RefusedError, cover, listed, require, whole
from .recompute import Mode, Modes, gradient_elements, offered
from .softmaxes import with_plain_softmaxes
from .traced import Trace, TracedLayer, traced_layer, with_sums
from .works import Work

Floats = NDArray[np.float64]
AROUND = ("prologue", "epilogue", "between")
HOST_SHARE = 0.85
"""Of the host link that offload reaches: docs/plan.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLayer(LayerBytes):
    """A distinct layer with its passes: forward, backward, what each mode runs again (None: nothing, or a share of the
    forward pass), gradients of inputs and of weights apart."""

    modes: tuple[Mode, ...]
    forward: TimedPass
    backward: TimedPass
    trimmed: TimedPass | None = None
    again: tuple[TimedPass | None, ...] = ()
    halves: tuple[TimedPass, TimedPass] | None = None

    @property
    def passes(self) -> tuple[TimedPass, ...]:
        """All that run, in the order in which a certificate lists them."""
        more = (*self.again[:1], self.trimmed, *self.again[1:], *(self.halves or ()))
        return (self.forward, self.backward, *(one for one in more if one is not None))


@dataclass(frozen=True, slots=True)
class RunGraph(PlanGraph):
    """A graph with the passes of its layers."""

    layers: tuple[RunLayer, ...]


def _needed_again(layer: TracedLayer) -> Trace:
    """The forward pass without what leads to nothing that backward reads."""
    read = {tensor for one in layer.backward.operators for tensor in one.reads}
    needed, tensors = set[int](), set(read)
    for one in reversed(layer.forward.operators):
        if tensors & set(one.writes):
            needed.add(one.number)
            tensors |= set(one.reads)
    return layer.forward.part(needed, frozenset(read))


def _halves(layer: TracedLayer, groups: Any, whole_pass: Pass) -> tuple[Trace, Trace]:
    """The backward pass in two: what leads to gradients of the input, and all else. A gradient of a parameter has as
    many elements; of outputs that have, the last ones are the input's."""
    left, inputs, back = list(layer.trained), set[int](), layer.backward
    for tensor in sorted(back.outputs):
        if layer.tensors[tensor][0] in left:
            left.remove(layer.tensors[tensor][0])
        else:
            inputs.add(tensor)
    by_number = {one.number: one for one in back.operators}
    leads, members = set[int](), [[by_number[i] for i in group] for group in groups]
    for at in range(len(members) - 1, -1, -1):
        written = {tensor for one in members[at] for tensor in one.writes}
        if written & inputs or any(at in whole_pass.waits[other] for other in leads):
            leads.add(at)
    first = {one.number for at in leads for one in members[at]}
    rest = [one for one in back.operators if one.number not in first]
    read = {tensor for one in rest for tensor in one.reads}
    ahead = back.part(first, back.outputs | frozenset(read))
    made = {tensor for one in ahead.operators for tensor in one.writes}
    return ahead, back.part({one.number for one in rest}, frozenset(back.outputs - made))


def _layer(layer: TracedLayer, job: Job, names: Sequence[str], groups: Any, residency: bool) -> RunLayer:
    stack = job.stack
    modes = Modes(layer, stack.keeping)
    found = tuple(modes.of(name) for name in ("selective", *names))
    full = modes.of("full")
    reruns = [mode.again if mode.reruns else None for mode in found]
    trimmed = _needed_again(layer) if stack.trims else None
    traces = [layer.forward, layer.backward, reruns[0], *(() if trimmed is None else (trimmed,)), *reruns[1:]]
    wanted = [trace for trace in traces if trace is not None]
    listing = listed(groups, "fusion", len(wanted) + 2 * stack.splits)
    fused = iter(listing)

    def run(trace: Trace, own: Any, backward: bool) -> TimedPass:
        passed = pass_of(trace, layer.tensors, own, residency)
        return timed(passed, stack.rule, stack.pieces, backward, stack.host, stack.exchanging)

    made = [None if trace is None else run(trace, next(fused), at == 1) for at, trace in enumerate(traces)]
    forward, backward, selective = made[0], made[1], made[2]
    assert forward is not None and backward is not None
    more, halves = made[3:] if trimmed is None else made[4:], None
    if stack.splits:
        apart = _halves(layer, listing[1], backward.own)
        chosen = [[group for group in listing[1] if group[0] in {o.number for o in one.operators}] for one in apart]
        require(listing[-2:] == chosen, "fusion: the halves of a backward pass are not parts of it")
        halves = run(apart[0], chosen[0], True), run(apart[1], chosen[1], True)
    buffers = stack.buffer_bytes * gradient_elements(layer) if stack.buffer_bytes else 0.0
    return RunLayer(
        modes=(modes.of("none"), *found, full),
        parameters=layer.parameters,
        logit_bytes=modes.logit_bytes,
        buffer_bytes=buffers,
        experts=layer.experts,
        frozen=layer.frozen,
        frozen_experts=layer.frozen_experts,
        forward=forward,
        backward=backward,
        trimmed=None if trimmed is None else made[3],
        again=(selective, *more),
        halves=halves,
    )


def _blocks(table: Mapping[str, Any], calls: Sequence[int]) -> list[int]:
    """Calls of modules, not of what lies around them; where a graph names none so, those of layers called again."""
    names = [str(call[1]) for call in table["calls"]]
    inner = [at for at, name in enumerate(names) if name.split(".")[0] not in AROUND]
    if len(inner) == len(calls):
        inner = [at for at in inner if calls.count(calls[at]) > 1]
    return inner or list(range(len(calls)))


def _low(layers: Sequence[RunLayer], calls: Sequence[int], blocks: Sequence[int], low: float) -> float:
    """What is sent of gathered weights on the average, those of blocks in few bits; layers that take no time to
    recompute are none of them."""
    counts = [layers[kind].parameters + layers[kind].frozen for kind in calls]
    total, inside = sum(counts), sum(counts[at] for at in blocks)
    return 1.0 - (1.0 - low) * inside / total if low != 1.0 and total else 1.0


def _is_still(table: Mapping[str, Any], name: str, tie: Tie) -> bool:
    """Whether what several calls share is not trained: some layer that holds it says so, by the end of its path."""
    rows = [row for call in tie.calls for row in table["layers"][table["calls"][call][0]]["parameters"]]
    own = [row for row in rows if row[2] == tie.elements and f".{name}".endswith(f".{row[0]}")]
    return any(row[4] is not True for row in own)


def run_graph(table: Mapping[str, Any], job: Job, fusion: Any, residency: bool) -> RunGraph:
    """A graph of the run as its stack runs it, its layers fused as the certificate says."""
    stack = job.stack
    try:
        calls, edges = chain_of(table)
        wide = job.held.sent / 2.0
        edges = tuple((a, b, wide * size) for a, b, size in edges)
        inside = max(stack.inside, job.held.sent) if wide > 1 else stack.inside
        every = [with_plain_softmaxes(traced_layer(layer), stack.matrices) for layer in table["layers"]]
        if wide > 1:
            traced = [with_sums(in_format(layer, job.precision), inside) for layer in every]
        else:
            traced = [in_format(with_sums(layer, inside), job.precision) for layer in every]
        # Which modes there are is read off the trace, before its format.
        names = offered([(layer, calls.count(at)) for at, layer in enumerate(every)], stack.keeping)
        groups = listed(fusion, "fusion", len(traced))
        layers = [_layer(layer, job, names, own, residency) for layer, own in zip(traced, groups, strict=True)]
        blocks = _blocks(table, list(calls))
        row = blocks == list(range(blocks[0], blocks[-1] + 1)) and len({calls[at] for at in blocks}) == 1
        ties = tuple(
            Tie(tuple(whole(c, "ties", 0, len(calls) - 1) for c in listed(tie[1], "ties")), whole(tie[2], "ties"))
            for tie in listed(table["ties"], "ties")
        )
        still = tuple(_is_still(table, str(row[0]), tie) for row, tie in zip(table["ties"], ties, strict=True))
        cover(len({c for tie in ties for c in tie.calls}) == sum(len(t.calls) for t in ties), "calls of several ties")
        group = whole(table.get("expert", 1), "expert", 1) * whole(table.get("expert_tensor", 1), "expert_tensor", 1)
        if group == 1:
            layers = [replace(layer, experts=0, frozen_experts=0) for layer in layers]
        return RunGraph(
            whole(table["tensor"], "tensor", 1), whole(table["microbatch"], "microbatch", 1),
            ("none", "selective", *names, "full"), tuple(layers), calls,
            tuple(at in set(blocks) for at in range(len(calls))), row, edges,
            tuple(tie for tie, own in zip(ties, still, strict=True) if not own),
            whole(table.get("context", 1), "context", 1), group, _low(layers, calls, blocks, job.held.low),
            tuple(tie for tie, own in zip(ties, still, strict=True) if own),
        )  # fmt: skip
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as fault:
        raise RefusedError(f"graphs.json: it cannot be read ({type(fault).__name__}: {fault})") from None


def works_of(graph: RunGraph) -> list[Work]:
    """Every work of its passes."""
    return [work for layer in graph.layers for own in layer.passes for work in own.own.works]


@dataclass(frozen=True, slots=True)
class LayerJoules:
    """Joules of the layers of a graph on every chip: both passes [layers, chips], what modes run again [modes, layers,
    chips]."""

    both: Floats
    again: Floats


def layer_joules(graph: RunGraph, job: Job, spread: Mapping[Work, Floats], hbm_j: Floats) -> LayerJoules:
    """All layers on all chips, from the joules of works and of a byte of HBM."""
    shape = len(graph.layers), len(hbm_j)
    found = LayerJoules(np.zeros(shape), np.zeros((len(graph.names), *shape)))

    def joules(own: TimedPass) -> Floats:
        return sum((spread[work] for work in own.own.works), np.zeros(len(hbm_j)))

    for at, layer in enumerate(graph.layers):
        forward = joules(layer.forward)
        found.both[at] = forward + joules(layer.backward) + job.stack.apart * layer.parameters * hbm_j
        full = forward if layer.trimmed is None else joules(layer.trimmed)
        for mode, own in enumerate(layer.again, 1):
            found.again[mode, at] = layer.modes[mode].share * full if own is None else joules(own)
        found.again[-1, at] = full
    return found


def _slots(graph: RunGraph, schedules: Any) -> dict[int, tuple[Any, str]]:
    """The schedule of every pass, by the pass itself."""
    found = dict[int, tuple[Any, str]]()
    rows = [] if schedules is None else listed(schedules, "answer.schedules", len(graph.layers))
    for layer, own in zip(graph.layers, rows, strict=False):
        for at, (one, starts) in enumerate(zip(layer.passes, listed(own, "schedules", len(layer.passes)), strict=True)):
            found[id(one)] = starts, f"schedules[{len(found)}][{at}]"
    return found


def layer_seconds(
    graph: RunGraph, job: Job, spread: Mapping[Work, Floats], hbm_rate: Floats, exact: bool, schedules: Any = None
) -> LayerSeconds:
    """All layers on all chips, from the seconds of works; ``hbm_rate`` is what vector work reaches; ``schedules``: of
    all passes of all layers on one chip, where no formula gives their seconds."""
    chips, shape, stack = len(hbm_rate), (len(graph.layers), len(hbm_rate)), job.stack
    found = LayerSeconds(np.zeros(shape), np.zeros(shape), np.zeros((len(graph.names), *shape)), np.zeros(shape), exact)
    nothing, slots = np.zeros((0, chips)), _slots(graph, schedules)

    def seconds(own: TimedPass) -> Floats:
        times = np.stack([spread[work] for work in own.own.works]) if own.own.works else nothing
        if schedules is not None:
            return own.scheduled(times, own.waits(job.network), *slots[id(own)])
        return own.seconds(times, own.waits(job.network))

    for at, layer in enumerate(graph.layers):
        forward = seconds(layer.forward)
        found.forward[at] = forward
        behind, adding = seconds(layer.backward), stack.apart * layer.parameters / hbm_rate
        found.backward[at] = behind + adding
        if layer.halves is not None:
            inputs, weights = seconds(layer.halves[0]), seconds(layer.halves[1]) + adding
            both = inputs + weights
            found.weight[at] = found.backward[at] * np.divide(weights, both, out=np.zeros(chips), where=both > 0)
        full = forward if layer.trimmed is None else np.minimum(forward, seconds(layer.trimmed))
        for mode, own in enumerate(layer.again, 1):
            kept = layer.modes[mode]
            again = kept.share * full if own is None else np.minimum(forward, seconds(own))
            if kept.host:
                copies = 2.0 * kept.host / (HOST_SHARE * (job.host_rate or np.inf))
                again = again + np.maximum(0.0, copies - (stack.offload or 0.0) * (forward + behind + again))
            found.again[mode, at] = again
        found.again[-1, at] = full
    return found
