r"""READ FIRST. The whole flow: a model, a chip and a job become a placement problem, and its
fastest plan an answer.

Everything that asks for a plan builds its problem here: ``phaze plan`` and its levers
(:mod:`phaze.evaluate.plan`, :mod:`phaze.evaluate.levers`), a given plan and the measured runs
(:mod:`phaze.evaluate.fixed`, :mod:`phaze.validate`), a search, ``compare`` and ``verify``
(:mod:`phaze.search`). They differ in what they hold fixed.

Follow one block of a Llama at tensor width 8, microbatch 1:

    trace      :mod:`phaze.graph` has one rank of the model as a :class:`Model`: the block is one of
               its three distinct layers (before, block, after), called once for each of the 32; its
               forward and backward pass are graphs of operators (norm, products, attention, gated
               MLP, collectives), with the bytes that each mode of recompute saves and the
               parameters that it holds
    fusion     the stack fuses the operators of a pass (:func:`phaze.graph.fuse.fuse_graph`); graphs
               that differ in sizes alone are fused and ordered once
               (:mod:`phaze.evaluate.pass_builder`)
    costs      each operator becomes a work: cycles, bytes and FLOP, hence seconds on the chip's
               cores, with the best mapping of a product on its arrays (:mod:`phaze.cost`); a
               collective becomes seconds on the level of the network that its tensor group spans
               (:mod:`phaze.cost.collective`)
    schedule   under the stack's schedule rule the operators of a pass overlap or follow each other,
               and with the host's launches they take a pass's seconds
               (:mod:`phaze.evaluate.lowered_pass`, :mod:`phaze.evaluate.layer_table`): the block's
               forward, backward, selective and full recompute
    layers     every call of the model becomes a layer to place: 32 equal ones between the two
               others, with parameter and activation bytes, edges and tied parameters
               (:func:`placed_layers`)
    problem    with the cluster's levels, the stack's rules and pipeline families, devices, batch
               and memory (:func:`placement_problem`; :func:`rank_problem` is all of this at once,
               for one chip)
    plan       stages, replicas, order, chunks, recompute by stage: the fastest, proved by
               :mod:`phaze.placement`; at the prices of the network
               (:mod:`phaze.cost.network_prices`)
    answer     checked by code that shares none with the solver, written as ``phaze.plan/1``
               (:mod:`phaze.evaluate.answer`) and shown (:mod:`phaze.report`)

Throughput is sequences / batch time. A search does the same with arrays over all chips, and asks
this path only about chips that may still win.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from phaze.cost.memory import sent_bytes
from phaze.evaluate.efficient_modes import efficient
from phaze.evaluate.layer_table import FULL, SELECTIVE, LayerTable
from phaze.evaluate.layers import Setting, model_table
from phaze.evaluate.lowered_layer import LoweredLayer
from phaze.graph.ir import Model, Tie
from phaze.graph.rewrites.low_precision import is_around
from phaze.hardware.formats import PLAIN, Precision
from phaze.pipeline.family import Family
from phaze.placement.frozen import NO_FROZEN, Frozen
from phaze.placement.job import TrainingJob
from phaze.placement.layers import LayerGraph, PlacedLayer, RecomputeOption, layer_graph
from phaze.placement.problem import PlacementProblem
from phaze.placement.settings import families_of, stack_problem
from phaze.placement.sharing import REPLICAS, Sharing

# What edges of a trace hold of an activation.
TRACED_BYTES = 2.0


def sharing_of(model: Model, shard: int = 0) -> Sharing:
    """Ranks that share a sequence, and experts, of which the model is one; of the ranks with the
    same weights ``shard`` shard state, 0: all."""
    return Sharing(model.context, model.expert, model.expert_tensor, shard)


def placed_layers(model: Model, table: LayerTable, precision: Precision = PLAIN) -> LayerGraph:
    """One layer of a placement for every call of the model, on the first chip of a table.

    Only blocks are recomputed, and only equal blocks in a row can be cut into chunks. A stage is as
    wide as its tensor-parallel ranks and those that share its sequence.
    """
    sent = sent_bytes(precision)
    ties, blocks = {call: tie for tie in model.ties for call in tie.calls}, set(block_calls(model))
    equal = _equal_blocks(model)
    layers, fields = list[PlacedLayer](), dict[tuple[int, Tie | None, bool], dict[str, Any]]()
    for number, call in enumerate(model.calls):
        tie, is_block = ties.get(number), number in blocks
        key = (call.layer, tie, is_block)
        if key not in fields:
            trained = tie is None or _is_trained(model, tie)
            fields[key] = {
                **_costed(table, call.layer, sent, is_block),
                "tied": None if tie is None or not trained else tie.name,
                "tied_bytes": 0.0 if tie is None or not trained else sent * tie.elements,
                "block": equal and is_block,
                "kind": call.layer,
                "frozen": _frozen(table.layers[call.layer], sent, None if trained else tie),
            }
        layers.append(PlacedLayer(id=number, **fields[key]))
    edges = [(edge.source, edge.target, sent / TRACED_BYTES * edge.bytes) for edge in model.edges]
    return layer_graph(model.tensor * model.context, layers, edges)


def _costed(table: LayerTable, kind: int, sent: float, is_block: bool) -> dict[str, Any]:
    """What a call of a layer takes and holds, whatever it shares; only blocks are recomputed."""
    layer, again_s = table.layers[kind], table.again_s[:, kind, 0].tolist()
    return {
        "forward_s": float(table.forward_s[kind, 0]),
        "backward_s": float(table.backward_s[kind, 0]),
        "weight_s": None if table.weight_s is None else float(table.weight_s[kind, 0]),
        "beside_s": 0.0 if table.beside_s is None else float(table.beside_s[kind, 0]),
        "parameter_bytes": sent * layer.parameters,
        "expert_bytes": sent * layer.expert_parameters,
        "activation_bytes": layer.saved_bytes,
        "sharded": layer.sharded,
        "selective_bytes": min(layer.modes[SELECTIVE].saved_bytes, layer.saved_bytes)
        if is_block
        else layer.saved_bytes,
        "selective_s": again_s[SELECTIVE] if is_block else 0.0,
        "full_s": again_s[FULL] if is_block else 0.0,
        "live_bytes": float(layer.logit_bytes),
        "buffer_bytes": layer.buffer_bytes,
        "more": tuple(_options(layer, again_s, is_block)),
    }


def _is_trained(model: Model, tie: Tie) -> bool:
    """Whether a parameter that several calls hold is trained: a layer names it by the end of its
    path."""
    parameters = [p for call in tie.calls for p in model.layers[model.calls[call].layer].parameters]
    named = [
        p.trained
        for p in parameters
        if p.elements == tie.elements and f".{tie.name}".endswith(f".{p.name}")
    ]
    return all(named)


def _frozen(layer: LoweredLayer, sent: float, tie: Tie | None) -> Frozen:
    """The weights of a layer that are not trained; ``tie``: one of them that other layers hold
    too."""
    if not layer.frozen[0]:
        return NO_FROZEN
    shared = (None, 0.0) if tie is None else (tie.name, sent * tie.elements)
    return Frozen(sent * layer.frozen[0], sent * layer.frozen[1], *shared)


def _options(
    layer: LoweredLayer, again_s: Sequence[float], is_block: bool
) -> Iterator[RecomputeOption]:
    """A layer in its modes between selective and full; what lies around the blocks is not
    recomputed."""
    for mode, seconds in zip(layer.modes[1:-1], again_s[1:-1], strict=True):
        if is_block:
            live_bytes = mode.live_bytes - layer.logit_bytes
            yield RecomputeOption(
                mode.name, min(mode.saved_bytes, layer.saved_bytes), live_bytes, seconds
            )
        else:
            yield RecomputeOption(mode.name, layer.saved_bytes, 0.0, 0.0)


def block_calls(model: Model) -> list[int]:
    """The calls that are split over stages: those of modules, not of what lies before, between and
    after them; where a graph names no such parts, those of layers that are called again."""
    inner = [number for number, call in enumerate(model.calls) if not is_around(call.module)]
    if len(inner) == len(model.calls):
        inner = [number for number in inner if model.count(model.calls[number].layer) > 1]
    return inner or list(range(len(model.calls)))


def _equal_blocks(model: Model) -> bool:
    """Whether the blocks are in a row and one like the other: chunks of as many blocks then take
    equal time."""
    blocks = block_calls(model)
    row = blocks == list(range(blocks[0], blocks[-1] + 1))
    return row and len({model.calls[number].layer for number in blocks}) == 1


def placement_problem(
    job: TrainingJob,
    microbatch: int,
    graphs: Sequence[LayerGraph],
    hbm_bytes: float,
    hbm_bytes_per_s: float | None,
    families: tuple[Family, ...] | None = None,
    sharing: Sharing = REPLICAS,
) -> PlacementProblem:
    """The placement problem of layers (:func:`placed_layers`) at one or more widths.

    ``families``: what a given plan runs; if None all that stack and blocks allow. ``sharing``: that
    of the model (:func:`sharing_of`)."""
    stack = job.machine.stack
    families = families_of(graphs, stack.families, job.chunks) if families is None else families
    microbatches = -(-job.batch // microbatch)
    return stack_problem(job, graphs, families, microbatches, (hbm_bytes, hbm_bytes_per_s), sharing)


def rank_problem(
    job: TrainingJob,
    model: Model,
    setting: Setting,
    table: LayerTable | None = None,
    families: tuple[Family, ...] | None = None,
) -> PlacementProblem:
    """The placement problem of a traced rank on a chip; ``table`` of its distinct layers there
    where it is known."""
    table = model_table(model, setting) if table is None else table
    table = efficient(table) if job.recompute == "best" else table
    graph = placed_layers(model, table, job.machine.precision)
    hbm = float(setting.chip.hbm.size_bytes), float(table.hbm_bytes_per_s[0])
    return placement_problem(
        job, model.microbatch, [graph], *hbm, families, sharing_of(model, job.shard)
    )
