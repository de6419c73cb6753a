"""From a region of a pass to a :class:`phaze.graph.ir.Layer`: both graphs, parameters, and what is
kept.

saved (none)  = storages that backward reads and that forward wrote or that entered from other
              layers, each once
shared        = the same, but entered and made from no parameter: masks, position tables, token
              numbers
saved (full)  = storages that entered from other layers and forward reads
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from torch import nn

from phaze.graph import recompute
from phaze.graph.ir import Layer, Parameter, Recompute
from phaze.graph.torch.convert import Numbering, graph_of, live, real_reads
from phaze.graph.torch.record import FROM_PARAMETERS, Log, RecordedStep
from phaze.graph.torch.regions import TracedRegion, Value


@dataclass(frozen=True, slots=True)
class Weights:
    """Parameters of the model by storage, with the path of each, which are shards of a larger one,
    and which no region reads (the last part holds them)."""

    by_storage: Mapping[int, nn.Parameter]
    names: Mapping[int, str]
    split: frozenset[int]
    unread: frozenset[int] = frozenset()


def _relevant(steps: Iterable[RecordedStep]) -> set[Value]:
    return {operand.value for step in steps for operand in real_reads(step)}


def _local_name(path: str, region: TracedRegion) -> str:
    return path.removeprefix(region.path + ".") if region.path else path


def _saved(log: Log, values: Iterable[Value], numbering: Numbering) -> tuple[tuple[int, ...], int]:
    """Tensor numbers of ``values`` and the bytes of their storages, each once."""
    chosen = sorted(value for value in values if value in numbering.numbers)
    storages = {storage for storage, _ in chosen}
    return tuple(sorted(numbering.numbers[v] for v in chosen)), sum(
        log.bytes_of[s] for s in storages
    )


def _entering(
    log: Log, region: TracedRegion, values: Iterable[Value], weights: Weights
) -> set[Value]:
    """Those of ``values`` that were made elsewhere: by another region, or given to the model."""
    return {
        value
        for value in values
        if value in region.inputs
        or (
            value[0] not in weights.by_storage
            and (
                log.made_in.get(value[0], region.number) != region.number
                or value[0] in log.arguments
            )
        )
    }


def layer_of(log: Log, region: TracedRegion, weights: Weights, name: str) -> Layer:
    """The layer that ``region`` is; its pass was forward and backward."""
    forward_steps, backward_steps = (
        log.forward.get(region.number, []),
        log.backward.get(region.number, []),
    )
    gradients = set(region.gradients)
    needed_back = _relevant(live(backward_steps, gradients))
    results = set(region.outputs)
    read = _relevant(live(forward_steps, results | needed_back))
    entering = _entering(log, region, read | needed_back, weights)
    inputs = frozenset(entering) | frozenset(region.output_gradients)
    numbering = Numbering(log, frozenset(weights.by_storage), inputs, region.path)
    forward = graph_of(forward_steps, numbering, results | needed_back, 0)
    written = set(numbering.written)
    backward = graph_of(backward_steps, numbering, gradients, len(forward.operators))
    carried = {
        v for v in entering if region.inputs.get(v) or log.origin.get(v[0], 0) & FROM_PARAMETERS
    } - written
    saved, saved_bytes = _saved(log, needed_back & (written | carried), numbering)
    none = Recompute(saved, saved_bytes, recompute.empty_graph())
    _, shared_bytes = _saved(log, needed_back & entering - carried - written, numbering)
    whole, whole_bytes = _saved(log, read & carried, numbering)
    storage_of = {number: value[0] for value, number in numbering.numbers.items()}
    chosen = recompute.selective(
        forward, none, lambda saved: sum(log.bytes_of[s] for s in {storage_of[n] for n in saved})
    )
    parameters = _parameters(region, weights, numbering)
    return Layer(
        name=name,
        forward=forward,
        backward=backward,
        parameters=parameters,
        none=none,
        selective=chosen,
        full=Recompute(whole, whole_bytes, forward),
        shared_bytes=shared_bytes,
        input_bytes=sum(log.bytes_of[v[0]] for v in region.inputs if region.inputs[v]),
        output_bytes=sum(log.bytes_of[v[0]] for v in region.outputs if region.outputs[v]),
        sharded=any(parameter.split for parameter in parameters),
    )


def _parameters(
    region: TracedRegion, weights: Weights, numbering: Numbering
) -> tuple[Parameter, ...]:
    """The weights that the region reads, in order of their registration; unread ones of a block too
    (tensor -1)."""
    tensor_of = {
        storage: number
        for (storage, _), number in numbering.numbers.items()
        if storage in weights.by_storage
    }
    block_parameters = (
        set() if region.module is None else {id(p) for p in region.module.parameters()}
    )
    parameters: list[Parameter] = []
    for storage, parameter in weights.by_storage.items():
        if storage in tensor_of or id(parameter) in block_parameters or storage in weights.unread:
            parameters.append(
                Parameter(
                    name=_local_name(weights.names[storage], region),
                    tensor=tensor_of.get(storage, -1),
                    elements=parameter.numel(),
                    element_bytes=parameter.element_size(),
                    trained=parameter.requires_grad,
                    split=storage in weights.split,
                )
            )
    return tuple(parameters)
