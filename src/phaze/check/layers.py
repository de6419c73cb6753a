"""The layers of a graph as a stack runs them (docs/plan.md): passes, parameters, and bytes by mode of recompute."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .graphs import chain_of, pass_of
from .network import Network
from .passes import TimedPass, timed
from .reading import RefusedError, cover, listed, whole
from .recompute import Keeping, Mode, Modes, gradient_elements, offered
from .stack import Stack
from .traced import Trace, TracedLayer, traced_layer, with_sums
from .works import Work

Floats = NDArray[np.float64]
AROUND = ("prologue", "epilogue", "between")


@dataclass(frozen=True, slots=True)
class RunLayer:
    """A distinct layer: forward, backward, what each mode runs again (None: nothing, or a share of the forward pass),
    parameters, bytes in each mode: kept by a microbatch, and beside that while backward runs; logits, buffers."""

    forward: TimedPass
    backward: TimedPass
    trimmed: TimedPass | None
    again: tuple[TimedPass | None, ...]
    modes: tuple[Mode, ...]
    parameters: int
    logit_bytes: int
    buffer_bytes: float

    @property
    def passes(self) -> tuple[TimedPass, ...]:
        """All that run."""
        more = (self.trimmed, *self.again)
        return (self.forward, self.backward, *(one for one in more if one is not None))


@dataclass(frozen=True, slots=True)
class Tie:
    """Elements that several calls share."""

    calls: tuple[int, ...]
    elements: int


@dataclass(frozen=True, slots=True)
class RunGraph:
    """A model at one width and microbatch: layers, the modes of recompute, calls, which of them are blocks, bytes
    between calls, ties. ``equal``: the blocks stand in a row and are one like the other."""

    width: int
    microbatch: int
    names: tuple[str, ...]
    layers: tuple[RunLayer, ...]
    calls: tuple[int, ...]
    block: tuple[bool, ...]
    equal: bool
    edges: tuple[tuple[int, int, float], ...]
    ties: tuple[Tie, ...]


def _needed_again(layer: TracedLayer) -> Trace:
    """The forward pass without what leads to nothing that backward reads."""
    read = {tensor for one in layer.backward.operators for tensor in one.reads}
    needed, tensors = set[int](), set(read)
    for one in reversed(layer.forward.operators):
        if tensors & set(one.writes):
            needed.add(one.number)
            tensors |= set(one.reads)
    return layer.forward.part(needed, frozenset(read))


def _layer(
    layer: TracedLayer, stack: Stack, keeping: Keeping, names: Sequence[str], groups: Any, residency: bool
) -> RunLayer:
    modes = Modes(layer, keeping)
    found = tuple(modes.of(name) for name in ("selective", *names))
    full = modes.of("full")
    reruns = [mode.again if mode.share == 1.0 else None for mode in found]
    trimmed = _needed_again(layer) if stack.trims else None
    traces = [layer.forward, layer.backward, reruns[0], *(() if trimmed is None else (trimmed,)), *reruns[1:]]
    wanted = [trace for trace in traces if trace is not None]
    fused = iter(listed(groups, "fusion", len(wanted)))
    made = [
        None if trace is None else timed(
            pass_of(trace, layer.tensors, next(fused), residency), stack.named_only, stack.pieces, at == 1, stack.host
        )
        for at, trace in enumerate(traces)
    ]  # fmt: skip
    forward, backward, selective = made[0], made[1], made[2]
    assert forward is not None and backward is not None
    more = made[3:] if trimmed is None else made[4:]
    buffers = stack.buffer_bytes * gradient_elements(layer) if stack.buffer_bytes else 0.0
    return RunLayer(
        forward, backward, None if trimmed is None else made[3], (selective, *more),
        (modes.of("none"), *found, full), layer.parameters, modes.logit_bytes, buffers,
    )  # fmt: skip


def _blocks(table: Mapping[str, Any], calls: Sequence[int]) -> list[int]:
    """Calls of modules, not of what lies around them; where a graph names none so, those of layers called again."""
    names = [str(call[1]) for call in table["calls"]]
    inner = [at for at, name in enumerate(names) if name.split(".")[0] not in AROUND]
    if len(inner) == len(calls):
        inner = [at for at in inner if calls.count(calls[at]) > 1]
    return inner or list(range(len(calls)))


def run_graph(table: Mapping[str, Any], stack: Stack, fusion: Any, residency: bool) -> RunGraph:
    """A graph of the run as its stack runs it, its layers fused as the certificate says."""
    try:
        calls, edges = chain_of(table)
        traced = [with_sums(traced_layer(layer), stack.inside) for layer in table["layers"]]
        names = offered([(layer, calls.count(at)) for at, layer in enumerate(traced)], stack.keeping)
        groups = listed(fusion, "fusion", len(traced))
        layers = [
            _layer(layer, stack, stack.keeping, names, own, residency)
            for layer, own in zip(traced, groups, strict=True)
        ]
        blocks = _blocks(table, list(calls))
        row = blocks == list(range(blocks[0], blocks[-1] + 1)) and len({calls[at] for at in blocks}) == 1
        ties = tuple(
            Tie(tuple(whole(c, "ties", 0, len(calls) - 1) for c in listed(tie[1], "ties")), whole(tie[2], "ties"))
            for tie in listed(table["ties"], "ties")
        )
        cover(len({c for tie in ties for c in tie.calls}) == sum(len(t.calls) for t in ties), "calls of several ties")
        return RunGraph(
            whole(table["tensor"], "tensor", 1), whole(table["microbatch"], "microbatch", 1),
            ("none", "selective", *names, "full"), tuple(layers), calls,
            tuple(at in set(blocks) for at in range(len(calls))), row, edges, ties,
        )  # fmt: skip
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as fault:
        raise RefusedError(f"graphs.json: it cannot be read ({type(fault).__name__}: {fault})") from None


def works_of(graph: RunGraph) -> list[Work]:
    """Every work of its passes."""
    return [work for layer in graph.layers for own in layer.passes for work in own.own.works]


@dataclass(frozen=True, slots=True)
class LayerSeconds:
    """Seconds of the layers of a graph on every chip, [layers, chips]; of modes [modes, layers, chips]."""

    forward: Floats
    backward: Floats
    again: Floats


def layer_seconds(
    graph: RunGraph, stack: Stack, network: Network, spread: Mapping[Work, Floats], hbm_rate: Floats
) -> LayerSeconds:
    """All layers on all chips, from the seconds of works; ``hbm_rate`` is what vector work reaches."""
    chips, shape = len(hbm_rate), (len(graph.layers), len(hbm_rate))
    found = LayerSeconds(np.zeros(shape), np.zeros(shape), np.zeros((len(graph.names), *shape)))
    nothing = np.zeros((0, chips))

    def seconds(own: TimedPass) -> Floats:
        times = np.stack([spread[work] for work in own.own.works]) if own.own.works else nothing
        return own.seconds(times, own.waits(network))

    for at, layer in enumerate(graph.layers):
        forward = seconds(layer.forward)
        found.forward[at] = forward
        found.backward[at] = seconds(layer.backward) + stack.apart * layer.parameters / hbm_rate
        full = forward if layer.trimmed is None else np.minimum(forward, seconds(layer.trimmed))
        for mode, own in enumerate(layer.again, 1):
            share = layer.modes[mode].share
            found.again[mode, at] = share * full if own is None else np.minimum(forward, seconds(own))
        found.again[-1, at] = full
    return found
