r"""READ FIRST. The whole flow: a model, a chip and a job become a placement problem, and its fastest plan an answer.

Everything that asks for a plan builds its problem here: ``phaze plan`` and its levers (:mod:`phaze.evaluate.plan`,
:mod:`phaze.evaluate.levers`), a given plan and the measured runs (:mod:`phaze.evaluate.fixed`,
:mod:`phaze.validate`), a search, ``compare`` and ``verify`` (:mod:`phaze.search`). They differ in what they hold fixed.

Follow one block of a Llama at tensor width 8, microbatch 1:

    trace      :mod:`phaze.graph` has one rank of the model as a :class:`Model`: the block is one of its three distinct
               layers (before, block, after), called once for each of the 32; its forward and backward pass are graphs
               of operators (norm, products, attention, gated MLP, collectives), with the bytes that each mode of
               recompute saves and the parameters that it holds
    fusion     the stack fuses the operators of a pass (:func:`phaze.graph.fuse.fuse_graph`); graphs that differ in
               sizes alone are fused and ordered once (:mod:`phaze.evaluate.pass_builder`)
    costs      each operator becomes a work: cycles, bytes and FLOP, hence seconds on the chip's cores, with the best
               mapping of a product on its arrays (:mod:`phaze.cost`); a collective becomes seconds on the level of the
               network that its tensor group spans (:mod:`phaze.cost.collective`)
    schedule   under the stack's schedule rule the operators of a pass overlap or follow each other, and with the host's
               launches they take a pass's seconds (:mod:`phaze.evaluate.ruled_pass`,
               :mod:`phaze.evaluate.layer_table`): the block's forward, backward, selective and full recompute
    layers     every call of the model becomes a layer to place: 32 equal ones between the two others, with parameter
               and activation bytes, edges and tied parameters (:func:`placed_layers`)
    problem    with the cluster's levels, the stack's rules and pipeline families, devices, batch and memory
               (:func:`placement_problem`; :func:`rank_problem` is all of this at once, for one chip)
    plan       stages, replicas, order, chunks, recompute by stage: the fastest, proved by :mod:`phaze.placement`;
               what transfers and reductions take is asked of :mod:`phaze.evaluate.prices`
    answer     checked by code that shares none with the solver, written as ``phaze.plan/1``
               (:mod:`phaze.evaluate.answer`) and shown (:mod:`phaze.report`)

Throughput is sequences / batch time. A search does the same with arrays over all chips, and asks this path only about
chips that may still win.
"""

from collections.abc import Sequence

from phaze.cost.low_precision import is_around
from phaze.cost.memory import sent_bytes
from phaze.evaluate.efficient_modes import efficient
from phaze.evaluate.layers import LayerCost, ModeCost, Setting, layer_costs
from phaze.graph.ir import Model, Tie
from phaze.hardware.formats import PLAIN, Precision
from phaze.pipeline.family import Family
from phaze.placement.frozen import NO_FROZEN, Frozen
from phaze.placement.job import PlacementJob
from phaze.placement.layers import LayerGraph, PlacedLayer, layer_graph
from phaze.placement.problem import Extra, PlacementProblem, RecomputeOption
from phaze.placement.settings import PlacedLayers, families_of, stack_problem
from phaze.placement.sharing import REPLICAS, Sharing

# What edges of a trace hold of an activation.
TRACED_BYTES = 2.0


def sharing_of(model: Model, shard: int = 0) -> Sharing:
    """Ranks that share a sequence, and experts, of which the model is one; of the ranks with the same weights ``shard``
    share out state, 0: all."""
    return Sharing(model.context, model.expert, model.expert_tensor, shard)


def placed_layers(
    model: Model, costs: Sequence[LayerCost], precision: Precision = PLAIN
) -> tuple[LayerGraph, tuple[Extra, ...]]:
    """One layer of a placement for every call of the model; only blocks are recomputed, and only equal blocks in a row
    can be cut into chunks. A stage is as wide as its tensor-parallel ranks and those that share its sequence."""
    sent = sent_bytes(precision)
    ties, blocks = {call: tie for tie in model.ties for call in tie.calls}, set(block_calls(model))
    equal = _equal_blocks(model)
    layers, extras, known = [], [], dict[tuple[int, int | None, bool], Extra]()
    for number, call in enumerate(model.calls):
        cost, tie, again = costs[call.layer], ties.get(number), number in blocks
        trained = tie is None or _is_trained(model, tie)
        layers.append(
            PlacedLayer(
                id=number,
                forward_s=cost.forward_s,
                backward_s=cost.backward_s,
                parameter_bytes=sent * cost.parameters,
                activation_bytes=cost.saved_bytes,
                sharded=cost.sharded,
                expert_bytes=sent * cost.expert_parameters,
                weight_s=cost.weight_s,
            )
        )
        key = (call.layer, None if tie is None else id(tie), again)
        if key not in known:
            known[key] = Extra(
                selective_bytes=min(cost.selective_bytes, cost.saved_bytes) if again else cost.saved_bytes,
                selective_s=cost.selective_s if again else 0.0,
                full_s=cost.full_s if again else 0.0,
                tied=None if tie is None or not trained else tie.name,
                tied_bytes=0.0 if tie is None or not trained else sent * tie.elements,
                block=equal and again,
                live_bytes=float(cost.logit_bytes),
                buffer_bytes=cost.buffer_bytes,
                kind=call.layer,
                more=tuple(_kept(mode, cost, again) for mode in cost.more),
                frozen=_frozen(cost, sent, None if trained else tie),
            )
        extras.append(known[key])
    edges = [(edge.source, edge.target, sent / TRACED_BYTES * edge.bytes) for edge in model.edges]
    graph = layer_graph(model.tensor * model.context, layers, edges)
    order = {layer.id: extra for layer, extra in zip(layers, extras, strict=True)}
    return graph, tuple(order[layer.id] for layer in graph.layers)


def _is_trained(model: Model, tie: Tie) -> bool:
    """Whether a parameter that several calls hold is trained: a layer names it by the end of its path."""
    own = [p for call in tie.calls for p in model.layers[model.calls[call].layer].parameters]
    named = [p.trained for p in own if p.elements == tie.elements and f".{tie.name}".endswith(f".{p.name}")]
    return all(named)


def _frozen(cost: LayerCost, sent: float, tie: Tie | None) -> Frozen:
    """The weights of a layer that are not trained; ``tie``: one of them that other layers hold too."""
    if not cost.frozen[0]:
        return NO_FROZEN
    shared = (None, 0.0) if tie is None else (tie.name, sent * tie.elements)
    return Frozen(sent * cost.frozen[0], sent * cost.frozen[1], *shared)


def _kept(mode: ModeCost, cost: LayerCost, again: bool) -> RecomputeOption:
    """A layer in a mode; what lies around the blocks is not recomputed."""
    if not again:
        return RecomputeOption(mode.name, cost.saved_bytes, 0.0, 0.0)
    return RecomputeOption(mode.name, min(mode.saved_bytes, cost.saved_bytes), mode.live_bytes, mode.again_s)


def block_calls(model: Model) -> list[int]:
    """The calls that are split over stages: those of modules, not of what lies before, between and after them; where a
    graph names no such parts, those of layers that are called again."""
    inner = [at for at, call in enumerate(model.calls) if not is_around(call.module)]
    if len(inner) == len(model.calls):
        inner = [at for at in inner if model.count(model.calls[at].layer) > 1]
    return inner or list(range(len(model.calls)))


def _equal_blocks(model: Model) -> bool:
    """Whether the blocks are in a row and one like the other: chunks of as many blocks then take equal time."""
    blocks = block_calls(model)
    row = blocks == list(range(blocks[0], blocks[-1] + 1))
    return row and len({model.calls[number].layer for number in blocks}) == 1


def placement_problem(
    job: PlacementJob,
    microbatch: int,
    placed: Sequence[PlacedLayers],
    hbm_bytes: float,
    hbm_bytes_per_s: float | None,
    families: tuple[Family, ...] | None = None,
    sharing: Sharing = REPLICAS,
) -> PlacementProblem:
    """The placement problem of layers (:func:`placed_layers`) at one or more widths.

    ``families``: what a given plan runs; if None all that stack and blocks allow. ``sharing``: that of the model
    (:func:`sharing_of`)."""
    stack = job.machine.stack
    families = families_of(placed, stack.families, job.chunks) if families is None else families
    microbatches = -(-job.batch // microbatch)
    return stack_problem(job, placed, families, microbatches, (hbm_bytes, hbm_bytes_per_s), sharing)


def rank_problem(
    job: PlacementJob,
    model: Model,
    setting: Setting,
    costs: Sequence[LayerCost] | None = None,
    families: tuple[Family, ...] | None = None,
    hbm_bytes_per_s: float | None = None,
) -> PlacementProblem:
    """The placement problem of a traced rank on a chip; ``costs`` of its distinct layers, and the bandwidth that vector
    work reaches, where they are known."""
    costs = layer_costs(model, setting) if costs is None else costs
    costs = efficient(costs) if job.recompute == "best" else costs
    placed = placed_layers(model, costs, job.precision)
    hbm_bytes = float(setting.chip.hbm.size_bytes)
    where = hbm_bytes, setting.hbm_bytes_per_s if hbm_bytes_per_s is None else hbm_bytes_per_s
    return placement_problem(job, model.microbatch, [placed], *where, families, sharing_of(model, job.shard))
