"""Several models are compared by their throughput relative to a baseline chip: its batch times, by the plain path."""

from phaze.errors import InputError
from phaze.evaluate.flow import graph_of, layer_schedules, placement_of, seconds_of
from phaze.hardware.chip import Chip
from phaze.hardware.library import load_chip
from phaze.placement.solve import fastest_plan
from phaze.search.evaluation import LIMITS
from phaze.search.objective import Objective, Scale, scale_of
from phaze.search.task import ModelTask


def batch_on(task: ModelTask, chip: Chip) -> float:
    """The least batch time of a model on a chip with its own memory, over all its ways; infinite if none fits."""
    schedules = [layer_schedules(graph, chip, LIMITS) for graph in task.graphs]
    best = float("inf")
    for way in task.ways:
        graph = task.graphs[way.graph]
        layers = graph_of(graph, seconds_of(schedules[way.graph]))
        problem = placement_of([layers], graph.microbatch, way.recompute, chip.hbm.size_bytes, task.training)
        plan = fastest_plan(problem)
        best = min(best, float("inf") if plan is None else plan.batch_s)
    return best


def scale_for(objective: Objective, models: tuple[ModelTask, ...]) -> Scale:
    """The objective with its models' weights, sequences, and where it needs them their times on the baseline chip."""
    weights = [task.weight for task in models]
    sequences = [float(task.training.batch) for task in models]
    if len(models) == 1 or objective.mean == "arithmetic":
        return scale_of(objective, weights, sequences, [1.0] * len(models))
    chip = load_chip(objective.baseline)
    times = [batch_on(task, chip) for task in models]
    for task, time_s in zip(models, times, strict=True):
        if time_s == float("inf"):
            raise InputError("objective.baseline", f"{task.name} does not fit on {chip.name}", "choose another chip")
    return scale_of(objective, weights, sequences, times)
