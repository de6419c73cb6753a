"""The end of a batch for the checker: reductions and steps of the stage whose end counts, from the problem alone."""

from collections.abc import Sequence
from math import fsum

import numpy as np
import numpy.typing as npt

from phaze.placement.check_layout import Stated, expert_members, group_members, replica_members, shard_members
from phaze.placement.problem import Problem

Floats = npt.NDArray[np.float64]


def ranks_of_experts(problem: Problem) -> int:
    """Ranks that hold one set of all experts."""
    return problem.sharing.expert * problem.sharing.expert_tensor


def _behind_backward(stated: Stated, counted: Floats, whole_s: Floats) -> Floats:
    """What is seen of reductions that run layer by layer: the last one, or all but what backward passes cover."""
    blocks = [la for la, extra in zip(stated.graph.layers, stated.extras, strict=True) if extra.block]
    layers = blocks[:1] or stated.graph.layers
    size = fsum(layer.parameter_bytes for layer in layers) / len(layers)
    behind_s = fsum(layer.backward_s for layer in layers) / len(layers)
    if size == 0:
        return whole_s * (1 - stated.problem.rules.hidden)
    experts = fsum(layer.expert_bytes for layer in layers) / len(layers)
    once_s = float(_reductions(stated, np.array([size]), np.array([experts]))[0])
    many = np.maximum(counted / size, 1.0)
    return np.minimum(whole_s, np.maximum(once_s, many * once_s - (many - 1) * behind_s))


def _reductions(stated: Stated, counted: Floats, experts: Floats) -> Floats:
    """Reductions of stages with so many bytes, experts among them over ranks of their own; under ZeRO 1 half of the
    bytes are gradients that are scattered, half weights that are gathered."""
    rules, zero = stated.problem.rules, stated.problem.zero
    wires = [rules.gradient_wire] * 2 if zero == 0 else [rules.gradient_wire, rules.weight_wire]

    def over(members: tuple[int, ...], sizes: Floats) -> Floats:
        return sum((stated.prices.all_reduce_s(members, wire * sizes) for wire in wires), np.zeros(1)) / 2

    if ranks_of_experts(stated.problem) > 1:
        return over(replica_members(stated), counted - experts) + over(expert_members(stated), experts)
    if zero == 0:
        return over(replica_members(stated), counted)
    return over(shard_members(stated), counted) + _across_groups(stated, counted)


def sharing_ranks(stated: Stated) -> int:
    """Ranks that share out dense state."""
    alike = stated.data * stated.problem.sharing.context
    return stated.problem.sharing.shard or alike


def _across_groups(stated: Stated, counted: Floats) -> Floats:
    """Where only some of the replicas share out state: what a rank holds of the gradients, reduced over all groups."""
    if not stated.problem.sharing.shard:
        return np.zeros(len(counted))
    own = counted * stated.problem.rules.gradient_wire / sharing_ranks(stated)
    return stated.prices.all_reduce_s(group_members(stated), own)


def gathers(stated: Stated, counted: Floats, experts: Floats, wire: float) -> Floats:
    """Gathers of layers or stages with so many bytes, experts among them over ranks of their own; of each parameter so
    much of its bytes goes over the wire."""
    if ranks_of_experts(stated.problem) == 1:
        return stated.prices.gather_s(shard_members(stated), wire * counted)
    dense_s = stated.prices.gather_s(replica_members(stated), wire * (counted - experts))
    return dense_s + stated.prices.gather_s(expert_members(stated), wire * experts)


def batch_end(stated: Stated, parameters: Sequence[float], of_experts: Sequence[float]) -> tuple[float, float]:
    """Synchronisation and optimizer step of the stage whose end counts."""
    problem, data = stated.problem, sharing_ranks(stated)
    first = 1 if problem.rules.end == "first" else len(parameters)
    counted, experts = np.array(parameters[:first]), np.array(of_experts[:first])
    link = problem.rules.link_bytes_per_s if problem.rules.end == "first" and problem.zero < 2 else None
    link = None if experts.any() else link
    if link is not None:
        syncs = 4 * (data - 1) * counted / (data * link)
    elif problem.zero == 2:
        syncs = gathers(stated, counted, experts, problem.rules.weight_wire) + _across_groups(stated, counted)
    elif problem.zero == 3:
        syncs = _across_groups(stated, counted)
    else:
        syncs = _reductions(stated, counted, experts)
    if problem.rules.reduction == "layers" and problem.zero < 2 and link is None:
        syncs = _behind_backward(stated, counted, syncs)
    else:
        syncs = syncs * (1 - problem.rules.hidden)
    steps = np.zeros(len(counted))
    if problem.hbm_bytes_per_s is not None:
        alike = stated.width * stated.data / ranks_of_experts(problem)
        shared = (counted - experts) / data + experts / alike if problem.zero else counted
        steps = shared * problem.optimizer_traffic_bytes / problem.sent_bytes / problem.hbm_bytes_per_s
    which = int(np.argmax(syncs + steps))
    return float(syncs[which]), float(steps[which])
