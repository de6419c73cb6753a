"""What the exchanges of a plan's experts take, how far they go, and what of them is hidden.

exchange_s        = microbatches of a replica x dispatches and combines of both passes in the
                  slowest stage
exchange_hidden_s = what of these the stack runs behind other work, of those that find another
                  microbatch where that is needed
(:mod:`phaze.evaluate.exchange_overlap`)
expert_nodes      = groups of the innermost level that the ranks of one exchange lie in
"""

from dataclasses import replace
from math import prod
from typing import Any

from phaze.cost.chip_set import chip_set
from phaze.cost.exchange import exchange_cost
from phaze.cost.ranks import members_by_level
from phaze.evaluate.exchange_overlap import NO_OVERLAP, is_exchange_of_experts
from phaze.evaluate.layers import Setting
from phaze.evaluate.lowered_layer import lower_layer
from phaze.evaluate.lowered_pass import work_times
from phaze.graph.ir import Layer, Model
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem


def _layer_s(layer: Layer, setting: Setting) -> float:
    every = (*layer.forward.operators, *layer.backward.operators)
    operators = [op for op in every if is_exchange_of_experts(op)]
    sizes = [
        (op.size("bytes"), op.size("group"), op.size("stride"), op.size("copies"))
        for op in operators
    ]
    where = setting.cluster, setting.basis, setting.stack.deduplicated_exchange
    return sum(exchange_cost("all_to_all", size, *where).time_s for size in sizes)


def _hidden_s(layer: Layer, setting: Setting) -> float:
    """What of a layer's exchanges is hidden in its two passes."""
    total, chips = 0.0, chip_set([setting.chip])
    lowered = lower_layer(layer, setting.machine)
    for layer_pass in (lowered.forward, lowered.backward):
        if layer_pass.exchanges.beside:
            times = layer_pass.times(
                work_times(layer_pass.works, chips, setting.constants, layer_pass.rule), 0, chips
            )
            exposed = replace(layer_pass, exchanges=NO_OVERLAP)
            total += float((exposed.device_s(times) - layer_pass.device_s(times))[0])
    return total


def exchange_document(
    model: Model, problem: PlacementProblem, plan: Plan, setting: Setting
) -> dict[str, Any]:
    """These figures of a plan whose experts are sharded; nothing of others."""
    if plan.sharing.expert == 1:
        return {}
    slowest = max(plan.stages, key=lambda stage: stage.time_s)
    kinds = [model.calls[call].layer for call in slowest.layers]
    each_s = {kind: _layer_s(model.layers[kind], setting) for kind in set(kinds)}
    rounds, stack = problem.rounds(plan.data), setting.stack
    members = members_by_level(
        problem.cluster, ((plan.sharing.expert_tensor, plan.sharing.expert),)
    )
    figures = {
        "exchange_s": rounds * sum(each_s[kind] for kind in kinds),
        "expert_nodes": prod(members[1:]),
    }
    if stack.hidden_exchange or stack.overlaps_shared_experts:
        hidden_s = {kind: _hidden_s(model.layers[kind], setting) for kind in set(kinds)}
        met = float(rounds)
        if stack.hidden_exchange:
            family = problem.family(plan.family, plan.chunks)
            alone = problem.rules.alone_share(family, rounds, len(plan.stages))
            # A single stage waits for the exchanges of one microbatch.
            met = (1 - alone) * (rounds - (len(plan.stages) == 1))
        figures["exchange_hidden_s"] = met * sum(hidden_s[kind] for kind in kinds)
    return figures
