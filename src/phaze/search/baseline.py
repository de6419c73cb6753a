"""Several models are compared by what they reach relative to a baseline chip: its values, by the plain path."""

from phaze.errors import InputError
from phaze.hardware.library import load_chip
from phaze.search.objective import Objective, Scale, scale_of
from phaze.search.plain import value_on
from phaze.search.task import ModelTask


def scale_for(objective: Objective, models: tuple[ModelTask, ...]) -> Scale:
    """The objective with its models' weights, sequences, and where it needs them their values on the baseline chip."""
    weights = [task.weight for task in models]
    sequences = [float(task.training.batch) for task in models]
    if len(models) == 1 or objective.mean == "arithmetic":
        return scale_of(objective, weights, sequences, [1.0] * len(models))
    chip = load_chip(objective.baseline)
    values = [value_on(task, chip, objective) for task in models]
    for task, value in zip(models, values, strict=True):
        if value == float("inf"):
            raise InputError("objective.baseline", f"{task.name} does not fit on {chip.name}", "choose another chip")
    return scale_of(objective, weights, sequences, values)
