"""What a plan whose activations wait in the memory of the host keeps there, for its answer.

    H(X) = q(X) sum over blocks l of stage X of h_l        h_l: bytes of a microbatch that the mode
                                                           keeps q: microbatches in flight at the
                                                           stage

``offloaded_bytes`` is the greatest H of the stages: what the host holds for one device of the
fullest one.
"""

from typing import Any

from phaze.evaluate.flow import block_calls
from phaze.evaluate.layers import Setting
from phaze.evaluate.lowered_layer import keeping_of
from phaze.graph.ir import Model
from phaze.graph.rewrites import run_layer
from phaze.graph.saved.modes import JOIN, OFFLOAD, Modes
from phaze.placement.plan import Plan
from phaze.placement.problem import PlacementProblem


def offload_document(
    model: Model, problem: PlacementProblem, plan: Plan, setting: Setting
) -> dict[str, Any]:
    """Bytes in the memory of a device's host; nothing of plans that offload nothing."""
    stages, blocks = len(plan.stages), frozenset(block_calls(model))
    family, rounds, most = problem.family(plan.family, plan.chunks), problem.rounds(plan.data), 0.0
    for index, stage in enumerate(plan.stages):
        if OFFLOAD in stage.recompute.split(JOIN):
            kinds = [model.calls[call].layer for call in stage.layers if call in blocks]
            each = {kind: _host_bytes(model, kind, stage.recompute, setting) for kind in set(kinds)}
            most = max(
                most,
                family.in_flight(rounds, stages - index, stages)
                * sum(each[kind] for kind in kinds),
            )
    return {"offloaded_bytes": most} if most else {}


def _host_bytes(model: Model, kind: int, mode: str, setting: Setting) -> int:
    """What a layer of a microbatch keeps in the memory of the host."""
    layer = run_layer(model.layers[kind], setting.stack, setting.precision)
    return Modes(layer, keeping_of(setting.stack)).of(mode).host_bytes
