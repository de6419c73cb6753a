"""What a given plan takes (``phaze plan --fixed``): its batch time and the memory of every stage, fitting or not.

The blocks of the model are cut evenly over the stages in their order; what lies before them joins the first stage, what
lies after them the last (:func:`even_cuts`); a stack that balances its stages cuts by time (:func:`balanced_cuts`).
The price is that of 1F1B, interleaved or not, in the better order of stages and replicas.
"""

import re
from collections.abc import Sequence

from phaze.errors import InputError
from phaze.evaluate.flow import PlacementJob, placement_problem
from phaze.evaluate.layers import LayerCost, Setting, layer_costs
from phaze.evaluate.prices import LevelPrices
from phaze.evaluate.run_file import Job
from phaze.evaluate.shelf import Shelf
from phaze.graph.ir import Model
from phaze.hardware.calibration import Basis
from phaze.placement.one.layout import Shape
from phaze.placement.one.pipeline import Cut, price
from phaze.placement.one.problem import Extra, Mode, Plan, Problem
from phaze.placement.one.rules import ORDERS, interleaved
from phaze.placement.problem import Layer, LayerGraph, layer_graph

SENT_BYTES = 2.0
# How traced graphs name what lies around their blocks.
AROUND = re.compile(r"prologue|epilogue|between(\.\d+)?")


def placed_layers(model: Model, costs: Sequence[LayerCost]) -> tuple[LayerGraph, tuple[Extra, ...]]:
    """One layer of a placement for every call of the model; only blocks are recomputed, and only equal blocks in a row
    can be cut into chunks."""
    ties, blocks = {call: tie for tie in model.ties for call in tie.calls}, set(block_calls(model))
    equal = _equal_blocks(model)
    layers, extras = [], []
    for number, call in enumerate(model.calls):
        cost, tie, again = costs[call.layer], ties.get(number), number in blocks
        layers.append(
            Layer(
                id=number,
                forward_s=cost.forward_s,
                backward_s=cost.backward_s,
                parameter_bytes=SENT_BYTES * cost.parameters,
                activation_bytes=cost.saved_bytes,
                sharded=cost.sharded,
            )
        )
        extras.append(
            Extra(
                selective_bytes=min(cost.selective_bytes, cost.saved_bytes),
                selective_s=cost.selective_s if again else 0.0,
                full_s=cost.full_s if again else 0.0,
                tied=None if tie is None else tie.name,
                tied_bytes=0.0 if tie is None else SENT_BYTES * tie.elements,
                block=equal and again,
            )
        )
    edges = [(edge.source, edge.target, float(edge.bytes)) for edge in model.edges]
    graph = layer_graph(model.tensor, layers, edges)
    order = {layer.id: extra for layer, extra in zip(layers, extras, strict=True)}
    return graph, tuple(order[layer.id] for layer in graph.layers)


def block_calls(model: Model) -> list[int]:
    """The calls that are split over stages: those of modules, not of what lies before, between and after them; where a
    graph names no such parts, those of layers that are called again."""
    inner = [at for at, call in enumerate(model.calls) if not AROUND.fullmatch(call.module)]
    if len(inner) == len(model.calls):
        inner = [at for at in inner if model.count(model.calls[at].layer) > 1]
    return inner or list(range(len(model.calls)))


def _equal_blocks(model: Model) -> bool:
    """Whether the blocks are in a row and one like the other: chunks of as many blocks then take equal time."""
    blocks = block_calls(model)
    row = blocks == list(range(blocks[0], blocks[-1] + 1))
    return row and len({model.calls[number].layer for number in blocks}) == 1


def even_cuts(model: Model, stages: int, mode: Mode) -> tuple[Cut, ...]:
    """Blocks cut evenly, earlier stages taking what does not divide; the rest with its neighbours."""
    blocks = block_calls(model)
    if stages > len(blocks):
        raise InputError("plan.pipeline", f"{stages} stages and {len(blocks)} blocks", "use at most as many stages")
    share, more = divmod(len(blocks), stages)
    ends = [(i + 1) * share + min(i + 1, more) for i in range(stages)]
    last = [*(blocks[end] - 1 for end in ends[:-1]), len(model.calls) - 1]
    first = [0, *(end + 1 for end in last[:-1])]
    return tuple(Cut(tuple(range(a, b + 1)), mode) for a, b in zip(first, last, strict=True))


def balanced_cuts(model: Model, costs: Sequence[LayerCost], stages: int, mode: Mode) -> tuple[Cut, ...]:
    """Calls in their order; a stage ends with the call that takes the sum of times past its share, i/S of all."""
    times = [costs[call.layer].forward_s + costs[call.layer].backward_s for call in model.calls]
    if stages > len(times):
        raise InputError("plan.pipeline", f"{stages} stages and {len(times)} layers", "use at most as many stages")
    total, done = sum(times), 0.0
    cuts: list[list[int]] = [[]]
    for number, time_s in enumerate(times):
        cuts[-1].append(number)
        done += time_s
        left = len(times) - number - 1
        past = done > total * len(cuts) / stages or left == stages - len(cuts)
        if len(cuts) < stages and past:
            cuts.append([])
    return tuple(Cut(tuple(cut), mode) for cut in cuts)


def _require_pieces(model: Model, cuts: Sequence[Cut], chunks: int) -> None:
    """Refuse chunks of which one would be empty."""
    fewest = min(len(cut.layers) for cut in cuts)
    if chunks > fewest:
        raise InputError("plan.chunks", f"{chunks} chunks and a stage of {fewest} layers", "use at most as many chunks")


def fixed_plan(job: Job, basis: Basis = "calibrated", shelf: Shelf | None = None) -> tuple[Problem, Plan]:
    """The plan of a job with its times and memory; ``shelf`` keeps what jobs share."""
    plan = job.plan
    setting = Setting(job.chip, job.cluster, job.stack, basis)
    where = (job.chip, job.cluster, job.stack, basis)
    costs = (shelf or Shelf()).take(("costs", job.traced, where), lambda: layer_costs(job.model, setting))
    asked = PlacementJob(
        setting.machine, job.devices, job.batch, job.precision, job.optimizer, plan.zero, plan.recompute
    )
    placed, hbm_bytes = placed_layers(job.model, costs), float(job.chip.hbm.size_bytes)
    families = (interleaved(plan.chunks),)
    problem = placement_problem(asked, plan.microbatch, [placed], hbm_bytes, setting.hbm_bytes_per_s, families)
    cuts = even_cuts(job.model, plan.pipeline, plan.recompute)
    if job.stack.balances_stages:
        cuts = balanced_cuts(job.model, costs, plan.pipeline, plan.recompute)
    _require_pieces(job.model, cuts, plan.chunks)
    shapes = [Shape(plan.tensor, plan.pipeline, plan.data, order, plan.chunks) for order in ORDERS]
    prices = LevelPrices(job.cluster, basis)
    return problem, min((price(problem, shape, cuts, prices) for shape in shapes), key=lambda priced: priced.batch_s)
