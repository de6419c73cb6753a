"""What the exchanges of a plan's experts take, and how far they go.

exchange_s   = microbatches of a replica x dispatches and combines of both passes in the slowest stage
expert_nodes = groups of the innermost level that the ranks of one exchange lie in
"""

from math import prod
from typing import Any

from phaze.cost.exchange import exchange_cost
from phaze.cost.ranks import members_by_level
from phaze.graph.ir import Layer, Model
from phaze.hardware.calibration import Basis
from phaze.placement.plan import Plan
from phaze.placement.problem import Problem


def _layer_s(layer: Layer, problem: Problem, basis: Basis) -> float:
    operators = [op for graph in (layer.forward, layer.backward) for op in graph.operators if op.kind == "all_to_all"]
    sizes = [(op.size("bytes"), op.size("group"), op.size("stride"), op.size("copies")) for op in operators]
    return sum(exchange_cost("all_to_all", size, problem.cluster, basis).time_s for size in sizes if size[3] > 1)


def exchange_document(model: Model, problem: Problem, plan: Plan, basis: Basis) -> dict[str, Any]:
    """Both figures of a plan whose experts are shared out; nothing of others."""
    if plan.sharing.expert == 1:
        return {}
    slowest = max(plan.stages, key=lambda stage: stage.time_s)
    each_s = [_layer_s(layer, problem, basis) for layer in model.layers]
    once_s = sum(each_s[model.calls[call].layer] for call in slowest.layers)
    members = members_by_level(problem.cluster, ((plan.sharing.expert_tensor, plan.sharing.expert),))
    return {"exchange_s": problem.rounds(plan.data) * once_s, "expert_nodes": prod(members[1:])}
