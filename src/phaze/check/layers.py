"""The layers of a graph as a stack runs them (docs/plan.md): passes, parameters, and bytes by mode
of recompute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .formats import AROUND, in_format
from .graphs import Pass, chain_of, pass_of
from .job import Job
from .pass_units import timed
from .passes import TimedPass
from .plan_graph import LayerBytes, PlanGraph, Tie
from .reading import RefusedError, listed, require, whole
from .recompute import Mode, Modes, gradient_elements, offered
from .softmaxes import with_plain_softmaxes
from .traced import Trace, TracedLayer, traced_layer, with_sums


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLayer(LayerBytes):
    """A distinct layer with its passes: forward, backward, what each mode runs again (None:
    nothing, or a share of the forward pass), gradients of inputs and of weights apart."""

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
        return (
            self.forward,
            self.backward,
            *(operator for operator in more if operator is not None),
        )


@dataclass(frozen=True, slots=True)
class RunGraph(PlanGraph):
    """A graph with the passes of its layers."""

    layers: tuple[RunLayer, ...]


def _needed_again(layer: TracedLayer) -> Trace:
    """The forward pass without what leads to nothing that backward reads."""
    read = {tensor for operator in layer.backward.operators for tensor in operator.reads}
    needed, tensors = set[int](), set(read)
    for operator in reversed(layer.forward.operators):
        if tensors & set(operator.writes):
            needed.add(operator.number)
            tensors |= set(operator.reads)
    return layer.forward.part(needed, frozenset(read))


def _input_gradients(layer: TracedLayer) -> set[int]:
    """The gradients of a layer's input. A gradient of a parameter has as many elements; of outputs
    that have, the last ones are the input's."""
    left, inputs = list(layer.trained), set[int]()
    for tensor in sorted(layer.backward.outputs):
        elements = layer.tensors[tensor][0]
        if elements in left:
            left.remove(elements)
        else:
            inputs.add(tensor)
    return inputs


def _halves(layer: TracedLayer, groups: Any, whole_pass: Pass) -> tuple[Trace, Trace]:
    """The backward pass in two: what leads to gradients of the input, and all else."""
    inputs, back = _input_gradients(layer), layer.backward
    leading, numbers = set[int](), set[int]()
    for place in range(len(groups) - 1, -1, -1):
        written = {tensor for tensor, _ in whole_pass.operators[place].writes}
        if written & inputs or any(place in whole_pass.waits[other] for other in leading):
            leading.add(place)
            numbers |= set(groups[place])
    rest = {operator.number for operator in back.operators} - numbers
    read = {
        tensor
        for operator in back.operators
        if operator.number in rest
        for tensor in operator.reads
    }
    ahead = back.part(numbers, back.outputs | read)
    written = {tensor for operator in ahead.operators for tensor in operator.writes}
    return ahead, back.part(rest, back.outputs - written)


@dataclass(frozen=True, slots=True)
class _Fusion:
    """What a certificate says of a layer: how its passes are fused, and multipliers by pass; where
    it says nothing every operator stands alone."""

    groups: Any
    multipliers: Mapping[int, Sequence[Any]]
    residency: bool


def _layer(layer: TracedLayer, job: Job, names: Sequence[str], fusion: _Fusion) -> RunLayer:
    """A layer whose modes between none and full have these names."""
    stack = job.stack
    modes = Modes(layer, stack.keeping)
    between = tuple(modes.of(name) for name in names)
    reruns = [mode.again if mode.reruns else None for mode in between]
    trimmed = [_needed_again(layer)] if stack.trims and not stack.all_recompute else []
    traces = [layer.forward, layer.backward, *reruns[:1], *trimmed, *reruns[1:]]
    count = sum(trace is not None for trace in traces)
    groups: Sequence[Any] = _alone(traces)
    if fusion.groups is not None:
        groups = listed(fusion.groups, "fusion", count + 2 * stack.splits)

    def run(trace: Trace, own: Any, backward: bool) -> TimedPass:
        fused = pass_of(trace, layer.tensors, own, fusion.residency)
        return timed(fused, stack, backward, fusion.multipliers.get(int(backward), ()))

    runs, left = list[TimedPass | None](), iter(groups)
    for trace in traces:
        runs.append(None if trace is None else run(trace, next(left), trace is layer.backward))
    forward, backward, again = runs[0], runs[1], runs[2:]
    assert forward is not None and backward is not None
    cut = again.pop(len(reruns[:1])) if trimmed else None
    halves = None
    if stack.splits:
        parts = _halves(layer, groups[1], backward.own)
        chosen = [_groups_in(groups[1], part) for part in parts]
        stated = fusion.groups is None or groups[-2:] == chosen
        require(stated, "fusion: the halves of a backward pass are not parts of it")
        halves = run(parts[0], chosen[0], True), run(parts[1], chosen[1], True)
    # Where no layer stands out as a block, its logits and gradient buffers are not told apart.
    apart = 0.0 if stack.all_recompute else 1.0
    return RunLayer(
        modes=(modes.of("none"), *between, modes.of("full")),
        parameters=layer.parameters,
        logit_bytes=apart * modes.logit_bytes,
        buffer_bytes=apart * stack.buffer_bytes * gradient_elements(layer),
        experts=layer.experts,
        frozen=layer.frozen,
        frozen_experts=layer.frozen_experts,
        sharded=layer.sharded,
        forward=forward,
        backward=backward,
        trimmed=cut,
        again=tuple(again),
        halves=halves,
    )


def _alone(traces: Sequence[Trace | None]) -> list[Any]:
    """Every operator of some passes as one of its own."""
    passes = [trace.operators for trace in traces if trace is not None]
    return [[[operator.number] for operator in operators] for operators in passes]


def _groups_in(groups: Sequence[Any], part: Trace) -> list[Any]:
    """The fused operators of a pass that a part of it has."""
    numbers = {operator.number for operator in part.operators}
    return [group for group in groups if group[0] in numbers]


def _blocks(table: Mapping[str, Any], calls: Sequence[int]) -> list[int]:
    """Calls of modules, not of what lies around them; where a graph names none so, those of layers
    called again."""
    names = [str(call[1]) for call in table["calls"]]
    inner = [at for at, name in enumerate(names) if name.split(".")[0] not in AROUND]
    if len(inner) == len(calls):
        inner = [at for at in inner if calls.count(calls[at]) > 1]
    return inner or list(range(len(calls)))


def _low(
    layers: Sequence[RunLayer], calls: Sequence[int], blocks: Sequence[int], low: float
) -> float:
    """What is sent of gathered weights on the average, those of blocks in few bits; layers that
    take no time to recompute are none of them."""
    counts = [layers[kind].parameters + layers[kind].frozen for kind in calls]
    total, inside = sum(counts), sum(counts[at] for at in blocks)
    return 1.0 - (1.0 - low) * inside / total if low != 1.0 and total else 1.0


def _is_still(table: Mapping[str, Any], name: str, tie: Tie) -> bool:
    """Whether what several calls share is not trained: some layer that holds it says so, by the end
    of its path."""
    rows = [
        row for call in tie.calls for row in table["layers"][table["calls"][call][0]]["parameters"]
    ]
    own = [row for row in rows if row[2] == tie.elements and f".{name}".endswith(f".{row[0]}")]
    return any(row[4] is not True for row in own)


def _ties_of(table: Mapping[str, Any]) -> tuple[list[Tie], list[Tie]]:
    """What several calls share, trained and not; of what a call shares with others the last
    counts."""
    trained, still = list[Tie](), list[Tie]()
    last = len(table["calls"]) - 1
    rows, tie_of = listed(table["ties"], "ties"), dict[int, int]()
    for number, row in enumerate(rows):
        for call in listed(row[1], "ties"):
            tie_of[whole(call, "ties", 0, last)] = number
    for number, row in enumerate(rows):
        elements = whole(row[2], "ties")
        whole_tie = Tie(tuple(row[1]), elements)
        tie = Tie(tuple(call for call in row[1] if tie_of[call] == number), elements)
        (still if _is_still(table, str(row[0]), whole_tie) else trained).append(tie)
    return trained, still


def _as_run(layer: TracedLayer, job: Job) -> TracedLayer:
    """A layer in its number format, with gradients summed as the stack does."""
    if job.held.sent > 2.0:
        return with_sums(in_format(layer, job.precision), max(job.stack.inside, job.held.sent))
    return in_format(with_sums(layer, job.stack.inside), job.precision)


def _multipliers_of(table: Any, layers: int, allowed: bool) -> list[dict[int, list[Any]]]:
    """By layer and pass the multipliers that a certificate lists: rows [layer, pass, entry]."""
    found: list[dict[int, list[Any]]] = [{} for _ in range(layers)]
    for row in listed(table, "multipliers"):
        require(allowed, "multipliers: this schedule rule needs none")
        layer, number, entry = listed(row, "multipliers", 3)
        place = whole(layer, "multipliers", 0, layers - 1)
        found[place].setdefault(whole(number, "multipliers", 0, 1), []).append(entry)
    return found


def run_graph(
    table: Mapping[str, Any], job: Job, fusion: Any, multipliers: Any, residency: bool
) -> RunGraph:
    """A graph of the run as its stack runs it, its layers fused as the certificate says."""
    try:
        return _graph(table, job, fusion, multipliers, residency)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as fault:
        raise RefusedError(
            f"graphs.json: it cannot be read ({type(fault).__name__}: {fault})"
        ) from None


def _graph(
    table: Mapping[str, Any], job: Job, fusion: Any, multipliers: Any, residency: bool
) -> RunGraph:
    stack, (calls, edges) = job.stack, chain_of(table)
    traced = [
        with_plain_softmaxes(traced_layer(layer), stack.matrices) for layer in table["layers"]
    ]
    names = tuple[str, ...]()
    if not stack.all_recompute:
        # Which modes there are is read off the trace, before its format.
        called = [(layer, calls.count(at)) for at, layer in enumerate(traced)]
        names = ("selective", *offered(called, stack.keeping))
    entries = _multipliers_of(multipliers, len(traced), stack.on_cores)
    layers = list[RunLayer]()
    fused = [None] * len(traced) if fusion is None else listed(fusion, "fusion", len(traced))
    for layer, groups, entry in zip(traced, fused, entries, strict=True):
        layers.append(_layer(_as_run(layer, job), job, names, _Fusion(groups, entry, residency)))
    context = whole(table.get("context", 1), "context", 1)
    group = whole(table.get("expert", 1), "expert", 1) * whole(
        table.get("expert_tensor", 1), "expert_tensor", 1
    )
    if group == 1:
        layers = [replace(layer, experts=0, frozen_experts=0) for layer in layers]
    ties, still = _ties_of(table) if stack.ties else ([], [])
    blocks, wide = _blocks(table, list(calls)), job.held.sent / 2.0
    in_a_row = blocks == list(range(blocks[0], blocks[-1] + 1))
    return RunGraph(
        tensor=whole(table["tensor"], "tensor", 1),
        microbatch=whole(table["microbatch"], "microbatch", 1),
        names=("none", *names, "full"),
        layers=tuple(layers),
        calls=calls,
        block=tuple(call in set(blocks) for call in range(len(calls))),
        equal=in_a_row and len({calls[call] for call in blocks}) == 1,
        edges=tuple((tail, head, wide * size) for tail, head, size in edges),
        ties=tuple(ties),
        context=context,
        group=group,
        low=_low(layers, calls, blocks, job.held.low),
        still=tuple(still),
        every_mode=stack.all_recompute,
    )
