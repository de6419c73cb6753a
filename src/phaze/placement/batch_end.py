r"""The end of a batch: synchronisation over replicas, the optimizer step, and the reductions of
tied layers.

With w the bytes of parameters of a stage, x of them of experts, d replicas and h the share that is
hidden, the end of a stage takes E = sync + step, and tied layers Y beside it:

    sync   (1 - h) 4 w (d - 1) / (d B)        over one flat link of bandwidth B
           (1 - h) reduce(w - x) + reduce(x)  over levels; layer by layer min(that, max(r, L r - (L
                                              - 1) b)) for L layers of reduction r and backward b
    step   w / (bytes sent of one) x (bytes of an update) / HBM bandwidth, w shared by the replicas
           under ZeRO
    Y      reduce(shared parameters) over the stages that hold them

Every term never falls with w: the solver, its bounds and the price of a plan ask for it here.
"""

from collections.abc import Callable, Sequence
from math import inf

import numpy as np
import numpy.typing as npt

from phaze.cost.network_prices import NetworkPrices
from phaze.cost.synchronisation import open_reduction_of_equal_layers_s
from phaze.placement.frozen import Frozen
from phaze.placement.layout import Shape, outermost_level
from phaze.placement.problem import PlacementProblem

Floats = npt.NDArray[np.float64]


def flat_link_s_per_byte(link_bytes_per_s: float) -> float:
    """Seconds of W for a byte of parameters: reducing and gathering over a flat link takes W (1 -
    1/d), W = 4 w / B."""
    return 4 / link_bytes_per_s


def over_flat_link_alone(problem: PlacementProblem) -> bool:
    """Whether the end of a batch is W (1 - 1/d) and nothing else."""
    stepped = problem.hbm_bytes_per_s is not None and problem.optimizer_traffic_bytes > 0
    tied = any(layer.tied is not None for graph in problem.graphs for layer in graph.layers)
    return (
        problem.rules.flat_link_bytes_per_s is not None
        and problem.rules.hidden == 0
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


def _reduced_s(
    problem: PlacementProblem,
    shape: Shape,
    prices: NetworkPrices,
    dense_bytes: Floats,
    experts_bytes: Floats,
) -> Floats:
    """Reductions of gradients; under ZeRO 1 they are scattered, and weights gathered, half of an
    all-reduce each."""
    gradient, weight = problem.rules.gradient_wire, problem.rules.weight_wire

    def seconds(members: tuple[int, ...], sizes_bytes: Floats) -> Floats:
        if gradient == weight or problem.zero == 0:
            return prices.all_reduce_s(members, gradient * sizes_bytes)
        scattered_s = prices.all_reduce_s(members, gradient * sizes_bytes)
        return (scattered_s + prices.all_reduce_s(members, weight * sizes_bytes)) / 2

    reduced_s = _both_s(problem, shape, seconds, dense_bytes, experts_bytes)
    return reduced_s + _across_s(problem, shape, prices, dense_bytes)


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


def synchronisation_s(
    problem: PlacementProblem,
    shape: Shape,
    prices: NetworkPrices,
    parameter_bytes: Floats,
    backward_s: float | None = None,
    experts_bytes: Floats | None = None,
) -> Floats:
    """The exposed synchronisation of stages with so many bytes of parameters, and of experts among
    them; it never falls with dense parameters or experts.

    ``backward_s``: of a layer, if not the problem's own."""
    link, exposed = problem.rules.flat_link_bytes_per_s, 1 - problem.rules.hidden
    if problem.zero == 3:
        return exposed * _across_s(problem, shape, prices, parameter_bytes)
    if link is not None and problem.zero < 2 and not problem.has_experts:
        ranks = problem.sharing.context * shape.data
        return exposed * flat_link_s_per_byte(link) * parameter_bytes * (ranks - 1) / ranks
    experts = np.zeros_like(parameter_bytes) if experts_bytes is None else experts_bytes
    if problem.zero == 2:
        whole_s = _gathered_s(
            problem, shape, prices, (parameter_bytes, experts), [problem.rules.weight_wire]
        )
        return exposed * (whole_s + _across_s(problem, shape, prices, parameter_bytes))
    whole_s = _reduced_s(problem, shape, prices, parameter_bytes - experts, experts)
    if problem.rules.reduction == "share":
        return exposed * whole_s
    layer_bytes, behind_s, expert_bytes = problem.reduced_layer(shape.tensor)
    if layer_bytes == 0:
        return exposed * whole_s
    layers = np.maximum(1.0, parameter_bytes / layer_bytes)
    expert_bytes = expert_bytes if problem.has_experts else 0.0
    layer_sizes = np.array([layer_bytes - expert_bytes]), np.array([expert_bytes])
    layer_s = float(_reduced_s(problem, shape, prices, *layer_sizes)[0])
    seen_s = open_reduction_of_equal_layers_s(
        layer_s, behind_s if backward_s is None else backward_s, layers
    )
    return np.minimum(whole_s, seen_s)


def least_synchronisation_s(
    problem: PlacementProblem,
    shape: Shape,
    prices: NetworkPrices,
    parameter_bytes: Floats,
    experts_bytes: Floats | None = None,
) -> Floats:
    """What no chip undercuts, however long its backward passes are: of a search, whose problems are
    on no chip."""
    return synchronisation_s(problem, shape, prices, parameter_bytes, inf, experts_bytes)


def step_s(
    problem: PlacementProblem,
    shape: Shape,
    parameter_bytes: Floats,
    experts_bytes: Floats | None = None,
) -> Floats:
    """The optimizer step of stages with so many bytes of parameters, and of experts among them."""
    if problem.hbm_bytes_per_s is None:
        return np.zeros_like(parameter_bytes)
    dense, experts = 1.0, 1.0
    if problem.zero >= 1:
        dense = float(problem.sharing.sharers(shape.data))
        experts = problem.sharing.experts_share(shape.tensor, shape.data)
    moved = parameter_bytes / dense
    if experts_bytes is not None:
        moved = (parameter_bytes - experts_bytes) / dense + experts_bytes / experts
    return moved / problem.sent_bytes * problem.optimizer_traffic_bytes / problem.hbm_bytes_per_s


def tied_s(
    problem: PlacementProblem, shape: Shape, prices: NetworkPrices, members: int, size_bytes: float
) -> float:
    """An all-reduce of parameters that so many layers in several stages share."""
    group = [1] * len(problem.cluster.levels)
    group[outermost_level(problem.cluster, shape)] = members
    return float(
        prices.all_reduce_s(tuple(group), np.array([problem.rules.gradient_wire * size_bytes]))[0]
    )
