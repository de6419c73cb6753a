r"""The end of a batch: synchronisation over replicas, the optimizer step, and the reductions of
tied layers.

With w the bytes of parameters of a stage, x of them of experts, and d replicas, the end of a stage
takes E = sync + step + norm, and tied layers Y beside it:

    sync   exposed(reduce, b) + exposed(gather, f)       :mod:`phaze.cost.synchronisation`, pieces of
                                                         a chunk, at most a bucket, at least a block
           4 w (d - 1) / (d B)                           over one flat link of bandwidth B
    step   (optimizer bytes / d1 + zeroed bytes / d2) / HBM bandwidth, and what the host needs
    norm   an all-reduce of 8 bytes over all devices
    Y      reduce(shared parameters) over the stages that hold them

    ZeRO   reduce, behind the last backward pass          gather, behind the first forward pass
    0      all-reduce of gradients
    1      scatter of gradients, reduction across groups  gather of weights
    2      reduction across groups                        gather of weights
    3      reduction across groups

Under ZeRO 2 and 3 the last scatter of gradients, and the first gather of weights, have nothing beside
them once a step: (1 - cost) of a block or of the layer that starts the model.

b and f are the passes of a block, of the model and not of the stage, so that every term never falls
with w: the solver, its bounds and the price of a plan ask for it here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.cost.network_prices import NetworkPrices
from phaze.cost.ranks import members_by_level
from phaze.cost.synchronisation import exposed_s, shown_s, window
from phaze.placement.frozen import Frozen
from phaze.placement.layout import Shape, outermost_level
from phaze.placement.problem import Piece, PlacementProblem

Floats = npt.NDArray[np.float64]
# Parameters of a bucket of gradients as Megatron has them: at least, and for every replica.
LEAST_BUCKET, BUCKET_A_RANK = 40e6, 1e6
NORM_BYTES = 8.0


def flat_link_s_per_byte(link_bytes_per_s: float) -> float:
    """Seconds of W for a byte of parameters: reducing and gathering over a flat link takes W (1 -
    1/d), W = 4 w / B."""
    return 4 / link_bytes_per_s


def over_flat_link_alone(problem: PlacementProblem) -> bool:
    """Whether the end of a batch is W (1 - 1/d) and nothing else."""
    moved = problem.optimizer_traffic_bytes + problem.zeroed_bytes
    stepped = problem.hbm_bytes_per_s is not None and moved > 0
    tied = any(layer.tied is not None for graph in problem.graphs for layer in graph.layers)
    return (
        problem.rules.flat_link_bytes_per_s is not None
        and not (problem.rules.norm or problem.rules.host_s)
        and not stepped
        and not tied
    )


def _both_s(
    problem: PlacementProblem,
    shape: Shape,
    seconds: Callable[[tuple[int, ...], Floats], Floats],
    dense_bytes: Floats,
    experts_bytes: Floats,
) -> Floats:
    """A collective of dense parameters and of experts, each over the ranks that share them out, or
    hold the same."""
    sharing, cluster = problem.sharing, problem.cluster
    both_s = seconds(
        (sharing.shard_by_level if problem.zero else sharing.dense_by_level)(cluster, shape),
        dense_bytes,
    )
    if not problem.has_experts:
        return both_s
    return both_s + seconds(sharing.experts_by_level(cluster, shape), experts_bytes)


def _across_s(
    problem: PlacementProblem, shape: Shape, prices: NetworkPrices, sizes_bytes: Floats
) -> Floats:
    """The reduction of what a rank holds of the gradients over the groups that shard state;
    nothing in one."""
    if not problem.sharing.shard or problem.zero == 0:
        return np.zeros_like(sizes_bytes)
    rank_bytes = problem.rules.gradient_wire * sizes_bytes / problem.sharing.sharers(shape.data)
    return prices.all_reduce_s(problem.sharing.shards_by_level(problem.cluster, shape), rank_bytes)


def _gathered_s(
    problem: PlacementProblem,
    shape: Shape,
    prices: NetworkPrices,
    sizes: tuple[Floats, Floats],
    wires: Sequence[float],
) -> Floats:
    """Gathers or scatters of layers or stages with so many bytes of parameters, and of experts
    among them, one for each of what they send over that."""
    whole, experts = sizes
    gathered_s = np.zeros_like(whole)
    for wire in wires:
        gathered_s = gathered_s + _both_s(
            problem, shape, prices.gather_s, wire * (whole - experts), wire * experts
        )
    return gathered_s


def collected_s(
    problem: PlacementProblem,
    shape: Shape,
    prices: NetworkPrices,
    parameter_bytes: Floats,
    experts: Floats,
    frozen: Sequence[Frozen] = (),
) -> tuple[Floats, Floats]:
    """v and u: the collectives of ZeRO 2 and 3 that a microbatch takes in layers of so many bytes
    of parameters, of experts among them, and of weights that are not trained: those are gathered
    alone."""
    nothing = np.zeros_like(parameter_bytes)
    sizes = parameter_bytes, experts if problem.has_experts else nothing
    ahead = nothing
    if problem.zero < 2:
        return ahead, nothing
    if problem.zero == 3:
        with_frozen = sizes
        if any(layer.bytes for layer in frozen):
            frozen_bytes = np.array(
                [(la.bytes, la.expert_bytes if problem.has_experts else 0.0) for la in frozen]
            )
            with_frozen = sizes[0] + frozen_bytes[:, 0], sizes[1] + frozen_bytes[:, 1]
        ahead = _gathered_s(problem, shape, prices, with_frozen, [problem.rules.weight_wire])
    return ahead, ahead + _gathered_s(problem, shape, prices, sizes, [problem.rules.gradient_wire])


@dataclass(frozen=True, slots=True)
class _Sent:
    """One of the communications at the end of a batch: seconds of stages with so many bytes of dense
    parameters and of experts, what a second adds to the work beside it, and that work of a block."""

    seconds: Callable[[Floats, Floats], Floats]
    cost: float
    block_s: float


def _communications(
    problem: PlacementProblem, shape: Shape, prices: NetworkPrices, piece: Piece
) -> list[_Sent]:
    """What runs behind the last backward pass, and behind the first forward pass."""
    rules, zero = problem.rules, problem.zero

    def reduced(dense: Floats, experts: Floats) -> Floats:
        gradients = [rules.gradient_wire * dense, rules.gradient_wire * experts]
        across_s = _across_s(problem, shape, prices, dense + experts)
        if zero == 0:
            return _both_s(problem, shape, prices.all_reduce_s, *gradients)
        if zero == 1:
            return _both_s(problem, shape, prices.gather_s, *gradients) + across_s
        return across_s

    def gathered(dense: Floats, experts: Floats) -> Floats:
        weights = rules.weight_wire * dense, rules.weight_wire * experts
        return _both_s(problem, shape, prices.gather_s, *weights)

    sent = []
    if zero < 2 or problem.sharing.shard:
        sent.append(_Sent(reduced, rules.reduction_cost, piece.backward_s))
    if zero in (1, 2):
        sent.append(_Sent(gathered, rules.gather_cost, piece.forward_s))
    return sent


def _alone_s(problem: PlacementProblem, shape: Shape, prices: NetworkPrices, piece: Piece) -> float:
    """What ZeRO's collectives of a microbatch leave once a step with nothing beside it: the first
    gather of weights, the last scatter of gradients, of the layer for which it takes longer."""
    rules, (last, experts) = problem.rules, (piece.last_bytes, piece.last_expert_bytes)
    if problem.zero < 2 or rules.sharded_cost == 1:
        return 0.0
    shared = np.array([piece.expert_bytes, experts]) * float(problem.has_experts)
    sizes = np.array([piece.parameter_bytes, last]), shared
    wires = [rules.gradient_wire, rules.weight_wire][: problem.zero - 1]
    return (1 - rules.sharded_cost) * sum(
        float(_gathered_s(problem, shape, prices, sizes, [wire]).max()) for wire in wires
    )


def piece_bytes(problem: PlacementProblem, shape: Shape, piece: Piece) -> float:
    """Bytes of a piece: of a bucket, no more than a chunk of the stages on average, no less than a
    block."""
    bucket = problem.rules.bucket
    if bucket is None:
        bucket = max(LEAST_BUCKET, BUCKET_A_RANK * problem.sharing.sharers(shape.data))
    chunk = problem.graph(shape.tensor).parameter_bytes / (shape.stages * shape.chunks)
    return max(piece.parameter_bytes, min(bucket * problem.sent_bytes, chunk))


def synchronisation_s(
    problem: PlacementProblem,
    shape: Shape,
    prices: NetworkPrices,
    parameter_bytes: Floats,
    experts_bytes: Floats | None = None,
    least: bool = False,
) -> Floats:
    """The exposed synchronisation of stages with so many bytes of parameters, and of experts among
    them; it never falls with dense parameters or experts.

    ``least``: what no chip undercuts, and no number of chunks, however long its passes are: of a
    search, whose problems are on no chip."""
    link = problem.rules.flat_link_bytes_per_s
    if link is not None and problem.zero < 2 and not problem.has_experts:
        ranks = problem.sharing.context * shape.data
        return flat_link_s_per_byte(link) * parameter_bytes * (ranks - 1) / ranks
    experts = np.zeros_like(parameter_bytes)
    if experts_bytes is not None and problem.has_experts:
        experts = experts_bytes
    piece = problem.piece(shape.tensor)
    each = piece.parameter_bytes if least else piece_bytes(problem, shape, piece)
    share = piece.expert_bytes / piece.parameter_bytes if problem.has_experts and each else 0.0
    last = piece.last_expert_bytes if problem.has_experts else 0.0
    dense_each = np.array([each * (1 - share), piece.last_bytes - last])
    pieces = np.maximum(1.0, parameter_bytes / each) if each else np.ones_like(parameter_bytes)
    longer = window(shape.chunks, shape.stages) * each / (piece.parameter_bytes or 1.0)
    exposed = np.full_like(parameter_bytes, _alone_s(problem, shape, prices, piece))
    for sent in _communications(problem, shape, prices, piece):
        whole_s = sent.seconds(parameter_bytes - experts, experts)
        if sent.cost < 1:
            each_s = sent.seconds(dense_each, np.array([each * share, last]))
            work_s = inf if least else longer * sent.block_s
            seen_s = shown_s(whole_s, float(each_s[0]), float(each_s.max()), work_s, pieces)
            whole_s = exposed_s(seen_s, whole_s, sent.cost)
        exposed = exposed + whole_s
    return exposed


def step_s(
    problem: PlacementProblem,
    shape: Shape,
    parameter_bytes: Floats,
    experts_bytes: Floats | None = None,
) -> Floats:
    """Zeroing and optimizer step of stages with so many bytes of parameters, and of experts among
    them, and what the host needs between steps."""
    host_s = np.full_like(parameter_bytes, problem.rules.host_s)
    if problem.hbm_bytes_per_s is None:
        return host_s
    moved = problem.optimizer_traffic_bytes * _held(
        problem, shape, 1, parameter_bytes, experts_bytes
    ) + problem.zeroed_bytes * _held(problem, shape, 2, parameter_bytes, experts_bytes)
    return host_s + moved / problem.sent_bytes / problem.hbm_bytes_per_s


def _held(
    problem: PlacementProblem,
    shape: Shape,
    stage: int,
    parameter_bytes: Floats,
    experts_bytes: Floats | None,
) -> Floats:
    """Those that a rank holds itself of what ZeRO shares out from a stage on."""
    if problem.zero < stage:
        return parameter_bytes
    dense = float(problem.sharing.sharers(shape.data))
    if experts_bytes is None:
        return parameter_bytes / dense
    shared = problem.sharing.experts_share(shape.tensor, shape.data)
    return (parameter_bytes - experts_bytes) / dense + experts_bytes / shared


def norm_s(problem: PlacementProblem, shape: Shape, prices: NetworkPrices) -> float:
    """An all-reduce of one number over all devices of a plan, where the norm of the gradients is
    taken."""
    if not problem.rules.norm:
        return 0.0
    every = shape.tensor * shape.stages * shape.data
    members = members_by_level(problem.cluster, ((1, every),))
    return float(prices.all_reduce_s(members, np.array([NORM_BYTES]))[0])


def tied_s(
    problem: PlacementProblem, shape: Shape, prices: NetworkPrices, members: int, size_bytes: float
) -> float:
    """An all-reduce of parameters that so many layers in several stages share."""
    group = [1] * len(problem.cluster.levels)
    group[outermost_level(problem.cluster, shape)] = members
    return float(
        prices.all_reduce_s(tuple(group), np.array([problem.rules.gradient_wire * size_bytes]))[0]
    )
