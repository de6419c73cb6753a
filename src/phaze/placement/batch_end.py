"""The end of a batch: synchronisation over replicas, the optimizer step, and the reductions of tied layers."""

from math import inf

import numpy as np
import numpy.typing as npt

from phaze.cost.synchronisation import open_reduction_of_equal_layers_s
from phaze.placement.layout import Shape, outermost_level, replicas_by_level
from phaze.placement.prices import Prices
from phaze.placement.problem import Problem

Floats = npt.NDArray[np.float64]


def flat_link_s_per_byte(link_bytes_per_s: float) -> float:
    """Seconds of W for a byte of parameters: reducing and gathering over a flat link takes W (1 - 1/d), W = 4 w / B."""
    return 4 / link_bytes_per_s


def synchronisation_s(
    problem: Problem, shape: Shape, prices: Prices, parameter_bytes: Floats, backward_s: float | None = None
) -> Floats:
    """The exposed synchronisation of stages with so many bytes of parameters; it never falls with them.

    ``backward_s``: of a layer, if not the problem's own."""
    if problem.zero == 3:
        return np.zeros_like(parameter_bytes)
    link, exposed = problem.rules.flat_link_bytes_per_s, 1 - problem.rules.hidden
    if link is not None and problem.zero < 2:
        return exposed * flat_link_s_per_byte(link) * parameter_bytes * (shape.data - 1) / shape.data
    members = replicas_by_level(problem.cluster, shape)
    if problem.zero == 2:
        return exposed * prices.gather_s(members, parameter_bytes)
    whole_s = prices.all_reduce_s(members, parameter_bytes)
    if problem.rules.reduction == "share":
        return exposed * whole_s
    layer_bytes, behind_s = problem.reduced_layer(shape.tensor)
    if layer_bytes == 0:
        return exposed * whole_s
    layers = np.maximum(1.0, parameter_bytes / layer_bytes)
    layer_s = float(prices.all_reduce_s(members, np.array([layer_bytes]))[0])
    seen_s = open_reduction_of_equal_layers_s(layer_s, behind_s if backward_s is None else backward_s, layers)
    return np.minimum(whole_s, seen_s)


def least_synchronisation_s(problem: Problem, shape: Shape, prices: Prices, parameter_bytes: Floats) -> Floats:
    """What no chip undercuts, however long its backward passes are: of a search, whose problems are on no chip."""
    return synchronisation_s(problem, shape, prices, parameter_bytes, inf)


def step_s(problem: Problem, data: int, parameter_bytes: Floats) -> Floats:
    """The optimizer step of stages with so many bytes of parameters."""
    if problem.hbm_bytes_per_s is None:
        return np.zeros_like(parameter_bytes)
    traffic = parameter_bytes / problem.sent_bytes * problem.optimizer_traffic_bytes
    return traffic / (data if problem.zero >= 1 else 1) / problem.hbm_bytes_per_s


def tied_s(problem: Problem, shape: Shape, prices: Prices, members: int, size_bytes: float) -> float:
    """An all-reduce of parameters that so many layers in several stages share."""
    group = [1] * len(problem.cluster.levels)
    group[outermost_level(problem.cluster, shape)] = members
    return float(prices.all_reduce_s(tuple(group), np.array([size_bytes]))[0])
