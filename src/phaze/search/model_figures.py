"""What an answer says of each model beside its time: tokens a second, MFU and HFU, and what a whole
run takes.

MFU and HFU are defined in :mod:`phaze.evaluate.utilisation`, over all devices of the job; the run
in :mod:`phaze.evaluate.training_run`, with the energy of the plan itself.
"""

from collections.abc import Mapping
from typing import Any

from phaze.evaluate.flow import block_calls
from phaze.evaluate.idle import idle_document
from phaze.evaluate.lowered_layer import keeping_of
from phaze.evaluate.training_run import Budget, Pace, training_run
from phaze.evaluate.utilisation import LayerFlops, Ran, model_flops, utilisation_of
from phaze.hardware.chip import Chip
from phaze.placement.layout import Shape
from phaze.placement.settings import job_rules
from phaze.placement.sharing import Sharing
from phaze.search.task import Configuration, ModelTask


def with_figures(
    model: Mapping[str, Any],
    task: ModelTask,
    configuration: Configuration,
    chip: Chip,
    budget: Budget | None,
) -> dict[str, Any]:
    """A model's table in the answer with these figures."""
    graph, training, plan = task.graphs[configuration.graph], task.training, model["plan"]
    wide = graph.width * graph.model.context
    used = plan["data"] * sum(stage["devices"] for stage in plan["stages"])
    shape = Shape(wide, plan["pipeline"], plan["data"], plan.get("order", ""))
    sharing = Sharing(
        **{key: plan[key] for key in ("context", "expert", "expert_tensor", "shard") if key in plan}
    )
    tokens = training.batch * graph.model.sequence
    recomputed = (
        range(len(graph.calls)) if job_rules(training).plain_layers else block_calls(graph.model)
    )
    rounds = training.microbatches(graph.microbatch)
    devices, peak = training.devices, chip.peak_flops_in(training.precision)
    ran = Ran(wide, rounds, tokens, model["batch_s"], devices, peak)
    # Layers that were given by their times alone have no FLOP.
    flops = model_flops(graph.model, keeping_of(training.machine.stack)) or (
        LayerFlops(0.0, 0.0, 0.0, lambda mode: 0.0),
    ) * len(graph.layers)
    reached = utilisation_of(flops, graph.calls, plan["stages"], frozenset(recomputed), ran)
    figures = {
        **model,
        "batch": training.batch,
        "sequence": graph.model.sequence,
        "devices": devices,
        "devices_used": used,
        **idle_document(shape, sharing, devices, used, (training.batch, graph.microbatch)),
        "tokens_per_s": tokens / model["batch_s"],
        "tokens_per_s_per_device": tokens / model["batch_s"] / devices,
        **reached.document(),
    }
    if budget is not None:
        pace = Pace(tokens, model["batch_s"], training.devices, model["power_w"])
        figures["training_run"] = training_run(budget, pace, chip)
    return figures
